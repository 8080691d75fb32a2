from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from synthetic import ROOT, make_plan, rewrite, write_study
from synthetic_answers import EFFECTS, HOSTILE, base_right, make_answers, make_changed, make_prompts

from ahalab.errors import InputError, PlanError, RecordError
from ahalab.records.answer import Answer
from ahalab.records.base import decode_file, digest
from ahalab.records.comparison import ChangedResponses, Comparison
from ahalab.records.diagnostics import Diagnostics, ValidationPoint
from ahalab.records.manifest import Claims
from ahalab.report.html import build_report, write_report
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, root_digest
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, write_rows

VOID = {"meta", "br", "img", "input", "link", "hr"}
SHAPES = {"path", "line", "use", "rect", "circle", "g"}  # SVG elements that may close themselves


class Page(HTMLParser):
    """Reads a page as a browser would: elements, attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.unbalanced: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(f"{tag} at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif not (self.open and self.open[-1] == "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def ids(self) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get("id"))]


@pytest.fixture(scope="session")
def parsed(page: str) -> Page:
    return Page(page)


def test_the_page_is_balanced_html_with_unique_ids(parsed: Page) -> None:
    assert parsed.unbalanced == []
    assert parsed.open == []
    assert len(parsed.ids()) == len(set(parsed.ids()))


def test_the_page_holds_every_verdict_sentence(study: StudyPaths, parsed: Page) -> None:
    comparison = decode_file(study.comparison.read_bytes(), Comparison, "comparison")
    for arm in comparison.arms:
        assert arm.sentence in parsed.text
    assert comparison.floor is not None
    assert comparison.floor.sentence in parsed.text


def test_the_sentence_against_the_base_on_the_primary_reading_comes_first(
    study: StudyPaths, parsed: Page
) -> None:
    comparison = decode_file(study.comparison.read_bytes(), Comparison, "comparison")
    for arm in EFFECTS:
        places = {
            (c.against, c.metric): parsed.text.index(c.sentence)
            for c in comparison.arms
            if c.arm == arm
        }
        assert min(places, key=lambda key: places[key]) == ("base", "strict")


def test_the_page_binds_every_claim_its_plan_and_its_root(study: StudyPaths, parsed: Page) -> None:
    claims = decode_file(study.claims.read_bytes(), Claims, "claims")
    (found,) = [text for a, text in parsed.scripts if a.get("id") == "ahalab-claims"]
    assert json.loads(found) == {
        "root": ROOT,
        "plan_digest": claims.plan_digest,
        "claims": [{"id": c.id, "value": c.value} for c in claims.claims],
    }
    assert "<" not in found
    assert all(claim.id in parsed.text for claim in claims.claims)


def test_a_printed_number_names_a_claim_that_exists(study: StudyPaths, parsed: Page) -> None:
    known = {c.id for c in decode_file(study.claims.read_bytes(), Claims, "claims").claims}
    named = [value for _, a in parsed.elements if (value := a.get("data-claim"))]
    assert named
    assert {name for value in named for name in value.split()} <= known
    assert "arm.correctness.base.strict.difference_points" in named


def test_nothing_is_loaded_from_anywhere(page: str, parsed: Page) -> None:
    for tag, attributes in parsed.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img", "image", "video"}
        for name in (
            "src",
            "href",
            "xlink:href",
            "action",
            "srcset",
            "data",
            "poster",
            "formaction",
        ):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, name, value)
    styles = " ".join(re.findall(r"<style>.*?</style>", page, re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles
    assert all(u.startswith("#") for u in re.findall(r"url\(([^)]*)\)", page))


def test_no_element_carries_an_event_handler(parsed: Page) -> None:
    for tag, attributes in parsed.elements:
        assert not [name for name in attributes if name.startswith("on")], tag


def test_the_policy_allows_one_script_and_one_style_by_their_hash_and_nothing_else(
    page: str, parsed: Page
) -> None:
    (policy,) = [
        a["content"] or ""
        for t, a in parsed.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    (script,) = [text for a, text in parsed.scripts if "type" not in a]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{_sha(style)}'",
        "script-src": f"'sha256-{_sha(script)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not [t for t, a in parsed.elements if "style" in a]  # such a policy would refuse it


def _sha(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def block(parsed: Page) -> Any:
    """Return the answers that the page holds."""
    (found,) = [text for a, text in parsed.scripts if a.get("id") == "ahalab-answers"]
    assert "<" not in found
    return json.loads(found)


def test_hostile_answers_are_data_of_a_script_that_no_text_can_end(page: str, parsed: Page) -> None:
    texts = block(parsed)["texts"]
    for raw in HOSTILE[:2]:
        assert raw not in page
        assert raw in texts
    assert '" onmouseover="alert(2)" x="' in texts
    assert len(parsed.scripts) == 3  # answers, claims, and the page's own


def test_a_hostile_claim_stands_on_the_page_as_text(page: str, parsed: Page) -> None:
    assert "</script><script>alert(5)</script>" in parsed.text
    assert "<script>alert(5)" not in page


def test_control_and_bidi_characters_are_written_out_and_never_sent(
    page: str, parsed: Page
) -> None:
    unseen = {c for c in page if c < " " or c in "\x7f\x9b\u200b\u202e\u2066"} - {"\n", "\t"}
    assert unseen == set()
    texts = block(parsed)["texts"]  # what was written out stands between U+0001 and U+0003
    assert "abc\1\\u202e\3gnp.exe\1\\u2066\3 isolates \1\\u200b\3zero" in texts
    assert "\1^[\3[31mred\1^[\3[0m \1^[\3]52;c;aGk=\1^G\3 \1\\x9b\0031m" in texts
    assert "NUL\1^@\3 and \1^?\3 and \1^M\3 carriage, \1^A\3\1^B\3\1^C\3 marks" in texts


def test_the_page_holds_every_answer_of_every_side_with_its_outcomes(
    study: StudyPaths, parsed: Page
) -> None:
    held = block(parsed)
    assert [q[0] for q in held["questions"]] == [p.prompt_id for p in make_prompts()]
    rows = {a.prompt_id: a for _, a in read_rows(study.answers("random", 1).answers, Answer)}
    (own,) = [a for a in held["adapters"] if (a["arm"], a["seed"]) == ("random", 1)]
    for (prompt, *_), ((sample, _, extracted, _, strict, lenient),) in zip(
        held["questions"], own["answers"], strict=True
    ):
        row = rows[prompt]
        assert sample == 0
        assert held["outcomes"][strict] == row.strict
        assert held["outcomes"][lenient] == row.lenient
        assert (None if extracted < 0 else held["texts"][extracted]) == row.extracted


def test_every_chart_has_a_text_alternative_and_a_table_behind_it(page: str, parsed: Page) -> None:
    charts = [a for t, a in parsed.elements if t == "svg" and a.get("class") == "chart"]
    figures = [t for t, _ in parsed.elements if t == "figure"]
    # 2 references x 2 readings; 2 readings; reward, 4 components and 6 more quantities; reward,
    # groups and lengths of 4 arms each; 3 of the scorers; reflection
    assert len(charts) == len(figures) == 4 + 2 + 11 + 12 + 3 + 1
    ids = set(parsed.ids())
    for chart in charts:
        assert chart["role"] in ("img", "group")
        assert {chart["aria-labelledby"], chart["aria-describedby"]} <= ids
    for figure in re.findall(r"<figure>.*?</figure>", page, re.DOTALL):
        assert re.search(r"<title[^>]*>[^<]+</title><desc[^>]*>[^<]+</desc>", figure)
        assert re.search(r"<details.*<table>", figure, re.DOTALL)


def test_the_sections_come_in_reading_order(parsed: Page) -> None:
    sections = [a["id"] for t, a in parsed.elements if t == "section"]
    assert sections == [
        "verdict", "paired", "arms", "training", "reward", "groups", "lengths", "scorers",
        "reflection", "alarms", "tables", "answers", "provenance",
    ]  # fmt: skip


def test_every_number_of_a_table_names_a_claim_or_a_field(page: str) -> None:
    cells = re.findall(r'<td[^>]*class="n"[^>]*>.*?</td>', page)
    assert len(cells) > 2_000
    for cell in cells:
        text = re.sub(r"<[^>]*>", "", cell)
        assert "data-claim" in cell or "data-field" in cell or not re.search(r"\d", text), cell


def test_the_counts_of_the_bars_are_links_to_their_answers_and_claims(page: str) -> None:
    links = re.findall(
        r'<a href="#answers\?arm=random&amp;seed=1&amp;metric=lenient&amp;change=([a-z+]+)" '
        r'aria-label="([^"]*)">(?:(?!</a>).)*data-claim="([^"]*)">(\d+)</text></a>',
        page,
    )
    gained, lost = EFFECTS["random"][1][1]
    right = 234 - lost
    assert {(change, claim, int(count)) for change, _, claim, count in links} == {
        ("gained", "adapter.random.1.lenient.gained", gained),
        ("lost", "adapter.random.1.lenient.lost", lost),
        ("both+right", "adapter.random.1.lenient.both_right", right),
        ("both+wrong", "adapter.random.1.lenient.both_wrong", 400 - right - lost - gained),
    }
    assert f"random, seed 1, lenient: {lost} lost. Show these answers" in {
        link[1] for link in links
    }


def test_the_page_never_calls_its_own_evidence_verified(parsed: Page) -> None:
    assert "not verified by this page itself: ahalab verify rechecks it" in parsed.text
    kinds = [a.get("class") for t, a in parsed.elements if t == "li"]
    assert kinds.count("asks") == 1


def test_provenance_names_digests_commands_and_what_is_not_checked(parsed: Page) -> None:
    for expected in (
        ROOT, digest(make_plan()), "0123456789abcdef0123456789abcdef01234567", "ahalab verify .",
        "ahalab run study.yaml", "Not checked", "trl 1.16.0", "learning_rate: 0.0001",
    ):  # fmt: skip
        assert expected in parsed.text


def test_alarms_stand_on_the_page_once_with_every_run_that_raised_them(parsed: Page) -> None:
    assert parsed.text.count("Read the gained answers; pay correctness beside the format.") == 1
    for seed in (0, 1, 2):
        assert f"format_only, seed {seed}: reward rose" in parsed.text


def test_the_same_files_give_the_same_bytes(study: StudyPaths, page: str) -> None:
    assert build_report(study, ROOT) == page


def test_another_process_and_another_folder_give_the_same_bytes(tmp_path: Path, page: str) -> None:
    paths = write_study(tmp_path / "elsewhere")
    code = (
        "import sys; from pathlib import Path; from ahalab.report.html import build_report;"
        "from ahalab.store.layout import StudyPaths;"
        f"sys.stdout.buffer.write(build_report(StudyPaths(Path(sys.argv[1])), {ROOT!r}).encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(paths.root)], capture_output=True, check=True, timeout=120
    )
    assert done.stdout.decode() == page


def test_the_report_imports_no_torch() -> None:
    code = "import sys, ahalab.report.html; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_a_large_study_is_sampled_by_question_changed_ones_first_and_the_page_says_so(
    study: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahalab.report.answers.MAX_BYTES", 60_000)
    parsed = Page(build_report(study, ROOT))
    held = block(parsed)
    kept = [question[0] for question in held["questions"]]
    assert 20 < len(kept) < 60
    changed = decode_file(study.changed.read_bytes(), ChangedResponses, "changed")
    moved = {c.prompt_id for c in changed.changed}
    digests = sorted(moved, key=lambda prompt: hashlib.sha256(prompt.encode()).digest())
    assert set(kept) == set(digests[: len(kept)])
    assert f"This page holds {len(kept)} of 400 questions" in parsed.text
    assert " ".join(digests[: len(kept)]) in parsed.text
    assert all(len(adapter["answers"]) == len(kept) for adapter in held["adapters"])


def test_long_completions_are_cut_and_the_page_says_by_how_much(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "long")
    answers = [
        replace(a, completion="\x1b<&" * 20_000) if number < 5 else a
        for number, a in enumerate(make_answers("base", base_right()))
    ]
    file = paths.base_answers()
    for path in (file.answers, file.answers.with_name("answers.journal.jsonl")):
        path.unlink()
    rows = RowFile(file.answers, "answer/1", digest(make_plan()), file.name, paths.broken)
    write_rows(rows, answers)
    html = build_report(paths, ROOT)
    assert len(html.encode()) < 5_000_000
    assert "\\u0002 \\u2026 54,000 characters more\\u0003" in html


def test_validation_is_drawn_under_the_reward_where_the_plan_asked_for_it(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "validated")
    for seed in (0, 1, 2):
        file = paths.run("correctness", seed).diagnostics
        found = decode_file(file.read_bytes(), Diagnostics, "diagnostics")
        points = tuple(
            ValidationPoint(
                step=step,
                prompts=64,
                strict_fraction=0.25 + step / 200,
                lenient_fraction=0.5,
                truncated_fraction=0.0,
            )
            for step in (20, 40, 60)
        )
        rewrite(file, replace(found, validation=points))
    html = build_report(paths, ROOT)
    assert "how many of the validation questions the adapter of each checkpoint answered" in html
    assert 'data-field="validation/2/strict_fraction">55.0 %</td>' in html
    assert "(this plan asked for no validation)" not in html


def test_no_marker_of_reflection_is_said_and_not_drawn(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "plain", reflection=0.0)
    text = Page(build_report(paths, ROOT)).text
    assert "No rollout of this study holds a marker of reflection" in text


def test_a_missing_cell_is_named_and_the_plan_not_called_kept(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "partial")
    comparison = decode_file(paths.comparison.read_bytes(), Comparison, "comparison")
    rewrite(paths.comparison, replace(comparison, missing=("arms/random/seed-2",), floor=None))
    paths.run("random", 2).record.unlink()
    text = Page(build_report(paths, ROOT)).text
    assert "missing arms/random/seed-2" in text
    assert "kept, all" not in text
    assert "Not measured: the base was not generated under a second batch plan" in text


def test_one_seed_carries_no_claim_on_a_reward(tmp_path: Path) -> None:
    text = Page(build_report(write_study(tmp_path / "one", seeds=(7,)), ROOT)).text
    assert "one: no claim on a reward" in text
    assert "covers nothing" in text


def test_several_samples_leave_pairs_undefined(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "sampled")
    comparison = decode_file(paths.comparison.read_bytes(), Comparison, "comparison")
    adapters = tuple(replace(a, gained=None, lost=None) for a in comparison.adapters)
    rewrite(paths.comparison, replace(comparison, adapters=adapters))
    assert "gained and lost are not whole questions" in build_report(paths, ROOT)


def test_an_answer_set_under_another_protocol_is_named(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "unequal")
    comparison = decode_file(paths.comparison.read_bytes(), Comparison, "comparison")
    rewrite(paths.comparison, replace(comparison, protocol_digest="sha256:" + "0" * 64))
    assert "differs in base/answers" in Page(build_report(paths, ROOT)).text


def test_files_of_another_plan_are_refused(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "other")
    changed = make_changed(make_plan(seeds=(5,)))
    rewrite(paths.changed, changed)
    with pytest.raises(PlanError, match=r"changed_responses\.json: expected plan_digest"):
        build_report(paths, ROOT)


def test_a_study_that_was_not_analyzed_names_the_command(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "early")
    paths.comparison.unlink()
    with pytest.raises(InputError, match="Run `ahalab analyze` first"):
        build_report(paths, ROOT)


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "broken")
    paths.claims.write_bytes(paths.claims.read_bytes() + b" ")
    with pytest.raises(RecordError, match=r"claims\.json"):
        build_report(paths, ROOT)


def test_the_written_report_carries_the_root_of_the_evidence(tmp_path: Path) -> None:
    paths = write_study(tmp_path / "written")
    written = write_report(paths)
    root = root_digest(digest(make_plan()), evidence_entries(paths.root))
    assert written == paths.report
    assert root in written.read_text(encoding="utf-8")
    first = written.read_bytes()
    assert write_report(paths).read_bytes() == first
