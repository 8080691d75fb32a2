from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import escape
from reflection_builder import add_continuations

from ahalab.plan.cells import BASE
from ahalab.records.base import decode_file
from ahalab.records.manifest import Claims
from ahalab.records.reflection import Reflection
from ahalab.store.layout import StudyPaths
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.reading import Study
from ahalab.verify.report_drawn import Drawing
from ahalab.verify.reportfile import check_report
from ahalab.verify.study import verify_study
from drawing import INSTALLED
from study_builder import build
from tampering import reseal

Edit = Callable[[str], str]


def report_bind(root: Path) -> Check:
    """Return what the check of the report alone says."""
    ledger = Ledger(None)
    study = Study(root, ledger)
    check_report(study, decode_file(study.paths.claims.read_bytes(), Claims, "claims"))
    return next(c for c in ledger.verification().checks if c.name == "report.bind")


def swap(pattern: str, new: str) -> Edit:
    """Replace the first match of a pattern, which must be there."""

    def edit(page: str) -> str:
        changed, count = re.subn(pattern, new, page, count=1, flags=re.DOTALL)
        assert count == 1
        assert changed != page
        return changed

    return edit


def held(change: Callable[[dict], object]) -> Edit:  # type: ignore[type-arg]
    """Change the block of answers."""

    def edit(page: str) -> str:
        found = re.search(r'(id="ahalab-answers">)(.*?)(</script>)', page, re.DOTALL)
        assert found
        block = json.loads(found.group(2))
        change(block)
        text = json.dumps(block, separators=(",", ":")).replace("<", "\\u003c")
        return page[: found.start(2)] + text + page[found.end(2) :]

    return edit


def another_text(block: dict) -> None:  # type: ignore[type-arg]
    block["texts"].append("I am sure: 42")
    block["adapters"][0]["answers"][0][0][1] = len(block["texts"]) - 1


def another_outcome(block: dict) -> None:  # type: ignore[type-arg]
    answer = block["adapters"][0]["answers"][0][0]
    answer[4] = (answer[4] + 1) % 2


def another_arm(block: dict) -> None:  # type: ignore[type-arg]
    block["adapters"][0]["arm"] = "../../elsewhere"


def another_question(block: dict) -> None:  # type: ignore[type-arg]
    block["texts"][block["questions"][0][1]] += "!"


def a_cut_that_hides(block: dict) -> None:  # type: ignore[type-arg]
    place = block["base"][0][0][1]
    block["texts"][place] = block["texts"][place][:3] + "\x02 … 9 characters more\x03"


def test_a_sound_report_has_thousands_of_bound_places(sound_study: Path) -> None:
    check = report_bind(sound_study)
    assert (check.status, check.failures) == ("passed", ())
    assert check.count > 1_000


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (swap(r'(data-field="1/reward_mean">)[^<]*<', r"\g<1>0.987<"), "0.987"),
        (swap(r'(data-field="\d+/entropy">)[^<]*<', r"\g<1>9.99<"), "9.99"),
        (swap(r'(data-field="strict/first strict/last">[^→]*→)[^<]*<', r"\g<1> 99.9 %<"), "99.9"),
        (swap(r'(data-field="cells/0/strict_accuracy">)[^<]*<', r"\g<1>99.1 %<"), "99.1"),
        (swap(r'(data-field="arms/\d+/seed_differences_points/0[^>]*>)', r"\g<1>+77.7, "), "77.7"),
        (swap(r'(<text[^>]*data-claim="[^"]*both_wrong"[^>]*>)\d+<', r"\g<1>7777<"), "7777"),
        (swap(r'(<text[^>]*data-claim="arm[^>]*>)[^<]*<', r"\g<1>+88.8 (+1.0 to +99.0)<"), "88.8"),
        (swap(r'(class="sentence" data-claim="[^>]*>)[^<]*<', r"\g<1>It works.<"), "It works."),
        (swap(r'(data-claim="arm\.[^"]*\.verdict">)[^<]*<', r"\g<1>miraculous<"), "miraculous"),
        (swap(r'(data-field="\d+/entropy">)[^<]*<', r"\g<1>1e999999<"), "1e999999"),
        (swap(r' data-field="1/entropy"', ""), "a number that names"),
        (swap(r"<h1", "<![x[<h1"), "unknown status keyword"),
        (swap(r"<h1", "&#" + "9" * 5_000 + ";<h1"), "4300 digits"),
        (swap(r'data-file="arms/[^"]*steps.jsonl"', 'data-file="../../x/steps.jsonl"'), "1/"),
        (swap(r'data-file="arms/[^"]*steps.jsonl"', 'data-file="/etc/passwd"'), "1/"),
        (swap(r'data-claim="arm\.[^"]*\.verdict"', 'data-claim="arm.none"'), "arm.none"),
        (swap(r'id="ahalab-answers"', 'id="answers-of-mine"'), "0 of them"),
        (held(another_text), "False"),
        (held(another_outcome), "'correct'"),
        (held(another_arm), "elsewhere"),
        (held(another_question), "another question"),
        (held(a_cut_that_hides), "False"),
        (held(lambda block: block.pop("texts")), "texts"),
        (held(lambda block: block["base"][0].append([9, 0, 0, 0, 0, 0])), "none"),
        (held(lambda block: block["base"].pop()), "argument"),
        (held(lambda block: block["base"][0][0].__setitem__(1, -2)), "below 0"),
    ],
)
def test_a_report_that_shows_something_else_is_refused(study: Path, edit: Edit, found: str) -> None:
    report = study / "report.html"
    report.write_text(edit(report.read_text(encoding="utf-8")), encoding="utf-8")
    check = report_bind(study)
    assert check.status == "failed"
    told = [f"{failure.expected} {failure.found}" for failure in check.failures]
    assert any(found in one for one in told), told
    assert {failure.file for failure in check.failures} == {"report.html"}


def test_what_reflecting_causes_stands_in_the_report_and_is_bound(tmp_path: Path) -> None:
    root = add_continuations(build(tmp_path / "synthetic"), [BASE])
    paths = StudyPaths(root)
    found = decode_file(paths.reflection.read_bytes(), Reflection, "reflection")
    page = paths.report.read_text(encoding="utf-8")
    sentence = next(e for e in found.causal[0].effects if e.metric == found.primary).sentence
    assert f">{escape(sentence)}</li>" in page
    assert "What reflecting causes" in page
    assert report_bind(root).failures == ()
    told = re.sub(r"(causal/0/effects/\d/sentence\">)[^<]*<", r"\g<1>It causes everything.<", page)
    paths.report.write_text(told, encoding="utf-8")
    assert [f.found for f in report_bind(root).failures] == ["It causes everything."]


def drawn(root: Path, drawing: Drawing | None = INSTALLED) -> Check:
    """Return what the whole verification says of the drawing."""
    checks = verify_study(root, drawing=drawing).checks
    return next(c for c in checks if c.name == "report.drawn")


@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        (swap('" fill="none" stroke="var', 'L9 9" fill="none" stroke="var'), "L9 9"),  # a curve
        (swap(r"--arm-0:", "--arm-0:red;--x:"), "red"),
        (swap("</main>", "<p>It works.</p></main>"), "It works."),
        (lambda page: page + "more", "more"),
        (lambda page: page.rstrip(), "</html>"),
        (lambda page: page[: page.index("</html>")], "the end"),
    ],
)
def test_what_no_number_tells_of_is_told_by_drawing_it_again(
    study: Path, edit: Edit, shown: str
) -> None:
    path = study / "report.html"
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    reseal(study)
    check = drawn(study)
    (failure,) = check.failures
    assert (check.status, failure.file, failure.line is not None) == ("failed", "report.html", True)
    assert shown in failure.found
    assert failure.expected != failure.found


def test_a_page_that_other_code_drew_is_not_compared_and_that_is_said(study: Path) -> None:
    path = study / "report.html"
    edit = swap(r'(name="ahalab-drawing" content="sha256:)[0-9a-f]{8}', r"\g<1>00000000")
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    reseal(study)
    check = drawn(study)
    assert (check.status, "`ahalab report" in check.note) == ("not checked", True)
    assert drawn(study, None).status == "not checked"


def test_records_that_fail_are_not_drawn(study: Path) -> None:
    path = study / "analysis" / "comparison.json"
    path.write_bytes(path.read_bytes().replace(b'"strict"', b'"striking"'))
    reseal(study)
    assert drawn(study).status == "not checked"


def test_the_page_names_the_code_that_draws_it(sound_study: Path) -> None:
    page = (sound_study / "report.html").read_text(encoding="utf-8")
    assert page.count(f'<meta name="ahalab-drawing" content="{INSTALLED.digest}">') == 1
    assert drawn(sound_study).count == 1
