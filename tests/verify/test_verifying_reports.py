from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ahalab.records.base import decode_file
from ahalab.records.manifest import Claims
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.reading import Study
from ahalab.verify.reportfile import check_report

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
        (swap(r' data-field="1/entropy"', ""), "a number that names"),
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
