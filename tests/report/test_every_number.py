"""Every number on the page is a claim, or stands in a record that verify works out again.

The committed study's page is made anew, its text cut into numbers by section, and each looked up:
first among the claims, then among what NOT_CLAIMS lists for the section, with the reason.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest

from ahalab.records.step import Step
from ahalab.report.html import build_report
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows

STUDY = Path(__file__).parents[2] / "results" / "quickstart"
NUMBER = re.compile(
    r"(?<![\w.-])[+\u2212-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:\s×\s10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?(?![\w])"
)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
VOID = {"meta", "br", "link", "img", "input", "hr", "path", "line", "circle", "rect", "use"}

# What a section prints besides claims: files of the study, and why their numbers are no claims.
NOT_CLAIMS = {
    "": (("study.yaml",), "how many arms and seeds the plan has"),
    "verdict": (
        ("study.yaml", "analysis/comparison.json", "analysis/replay.json"),
        "seeds, level and margin of the plan; differences by seed (`stat.recompute`); the replay",
    ),
    "paired": (("study.yaml",), "seeds"),
    "arms": (("study.yaml", "analysis/comparison.json"), "as in the verdict"),
    **dict.fromkeys(
        ("training", "reward", "groups", "lengths", "scorers", "reflection"),
        (
            ("study.yaml", "arms/*/*/steps.jsonl"),
            "curves: one number a step, worked out again by `steps`",
        ),
    ),
    "alarms": (("study.yaml", "arms/*/*/diagnostics.json", "analysis/ablation.json"),
               "evidence of the alarms (`diagnostics`, `ablation`)"),
    "tables": (
        ("study.yaml", "arms/*/*/diagnostics.json", "analysis/comparison.json",
         "analysis/ablation.json"),
        "runs (`diagnostics`), arms x seeds (`ablation`), counts of outcomes (`stat.n`)",
    ),
    "answers": (("study.yaml", "prompts/selection.json"), "questions of the page (`report.bind`)"),
    "provenance": (
        ("study.yaml", "arms/*/*/run.json", "base/answers.protocol.json",
         "base/floor.protocol.json", "analysis/replay.json", "prompts/selection.json"),
        "versions, rows and settings of the records (`plan.n`, `protocol`, `arm.config`)",
    ),
}  # fmt: skip
# Not figures of the study: what a model wrote is quoted; an axis has ticks; code is code.
QUOTED = {"pre", "code", "bdi"}
QUOTED_CLASSES = {"q", "text"}


class Page(HTMLParser):
    """Collects the visible text by section, quoted texts and axis labels left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str, str]] = []  # section, claims of the cell, text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An empty element holds no text."""

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.open]
        classes = {word for _, a in self.open for word in (a.get("class") or "").split()}
        claims = next((a["data-claim"] for _, a in self.open if a.get("data-claim")), "")
        axis = "svg" in tags and tags[-1] == "text" and not claims
        if {"script", "style", *QUOTED} & set(tags) or QUOTED_CLASSES & classes or axis:
            return
        section = next((a["id"] for tag, a in self.open if tag == "section"), "")
        self.texts.append((section or "", claims or "", data))


def printed(text: str) -> Iterator[tuple[str, float, float]]:
    """Yield (as printed, value, half of its last digit) of every number in a text."""
    for match in NUMBER.finditer(text):
        written = match.group()
        plain, _, power = written.replace(",", "").replace("\u2212", "-").partition(" × 10")
        scale = 10.0 ** int(power.translate(SUPERSCRIPTS)) if power else 1.0
        yield written, float(plain) * scale, 0.51 * 10.0 ** -len(plain.partition(".")[2]) * scale


def leaves(tree: Any) -> Iterator[float]:
    """Yield every number of a plain tree, those within its texts too, and lengths of lists."""
    if isinstance(tree, dict):
        yield float(len(tree))
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, list | tuple):
        yield float(len(tree))
        for value in tree:
            yield from leaves(value)
    elif isinstance(tree, str):
        yield from (value for _, value, _ in printed(tree))
        yield from (float(n) for n in re.findall(r"\d+(?:\.\d+)?", tree))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield float(tree)


def numbers_of(pattern: str) -> Iterator[float]:
    """Yield every number of the files that a pattern names."""
    if pattern.endswith("steps.jsonl"):
        yield from of_steps()
        return
    for path in STUDY.glob(pattern):
        text = path.read_text("utf-8")
        yield from leaves(json.loads(text) if path.suffix == ".json" else text)


def of_steps() -> Iterator[float]:
    """Yield every figure of every step, and its mean over the seeds of an arm."""
    for arm in sorted((STUDY / "arms").iterdir()):
        runs = [
            [row for _, row in read_rows(seed / "steps.jsonl", Step)]
            for seed in sorted(arm.iterdir())
        ]
        for rows in zip(*runs, strict=True):
            plain = [msgspec.to_builtins(row) for row in rows]
            for key in plain[0]:
                values = [list(leaves(row[key])) for row in plain]
                yield from (value for own in values for value in own)
                yield from (fmean(column) for column in zip(*values, strict=False))


@pytest.fixture(scope="module")
def page() -> Page:
    read = Page()
    read.feed(build_report(StudyPaths(STUDY), "sha256:" + "0" * 64))
    return read


def found(value: float, error: float, known: list[float]) -> bool:
    """Say whether a number is a known one, rounded; fractions are printed in percent.

    Args:
        value: As printed.
        error: How far rounding may have moved it.
        known: Numbers without their signs, in order.
    """
    for scale in (1.0, 100.0):
        at = bisect_left(known, (abs(value) - error) / scale)
        if at < len(known) and known[at] * scale <= abs(value) + error:
            return True
    return False


def test_every_number_is_a_claim_or_stands_in_a_record_that_is_checked(
    page: Page,
) -> None:
    claims = json.loads((STUDY / "claims.json").read_bytes())["claims"]
    claimed = sorted({abs(n) for n in leaves([claim["value"] for claim in claims])})
    unknown: dict[str, set[str]] = {}
    others = {
        section: sorted({abs(n) for pattern in files for n in numbers_of(pattern)})
        for section, (files, _) in NOT_CLAIMS.items()
    }
    counted = 0
    for section, _, text in page.texts:
        for written, value, error in printed(text):
            counted += 1
            if not found(value, error, claimed) and not found(value, error, others[section]):
                unknown.setdefault(section, set()).add(f"{written} in {text.strip()[:60]!r}")
    assert counted > 2000
    assert unknown == {}


def test_a_cell_that_prints_a_claim_names_it_and_verdicts_are_claims(
    page: Page,
) -> None:
    claims = {c["id"]: c for c in json.loads((STUDY / "claims.json").read_bytes())["claims"]}
    named = [(ids.split(), text) for _, ids, text in page.texts if ids]
    assert {i for ids, _ in named for i in ids} <= claims.keys()
    for ids, text in named:
        whole = claims[ids[0]]["value"]
        if isinstance(whole, str) or text == str(whole):  # a sentence, a verdict; unrounded
            assert text == str(whole)
            continue
        values = [claims[i]["value"] for i in ids if isinstance(claims[i]["value"], int | float)]
        figures = list(printed(text))
        assert len(figures) == len(values), (ids, text)
        for value, (_, figure, error) in zip(values, figures, strict=True):
            assert found(figure, error, [abs(float(value))]), (ids, text)


def test_a_number_that_nothing_holds_would_be_found() -> None:
    assert not found(12.3, 0.051, [0.1236, 12.2])
    assert found(12.3, 0.051, [0.1229])
    assert [w for w, _, _ in printed("p < .001, 1.2 × 10⁻⁵, −3.4 %, 6,500, sha256, v2")] == [
        ".001", "1.2 × 10⁻⁵", "−3.4", "6,500",
    ]  # fmt: skip
