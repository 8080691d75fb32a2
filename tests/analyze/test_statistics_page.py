"""docs/statistics.md prints every verdict sentence as the code makes it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ahalab.analyze.pair_sentences import pair_sentence
from ahalab.analyze.sentences import (
    ONE_READING,
    AdapterFinding,
    Finding,
    adapter_sentence,
    arm_sentence,
    floor_sentence,
    note_sentence,
)
from ahalab.records.comparison import VerdictWord
from ahalab.records.pair import PairReading

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
BEGIN, END = "<!-- sentences: begin -->\n", "<!-- sentences: end -->"
WIDTH = 110

REWARD = Finding(
    arm="terse", metric="strict", seeds=3, control_seeds=None, accuracy=0.439,
    reference="the base", reference_accuracy=0.312, difference_points=12.7,
    interval_points=(9.0, 16.4), p_holm=0.004, confidence=0.95, margin_points=2.0,
    detectable_points=5.2, verdict="improved",
)  # fmt: skip
WORSE = replace(
    REWARD, accuracy=0.2, difference_points=-11.2, interval_points=(-15.0, -7.4), verdict="worse"
)
SAME = replace(
    REWARD, accuracy=0.315, difference_points=0.3, interval_points=(-1.2, 1.8), p_holm=1.0,
    verdict="equivalent",
)  # fmt: skip
UNSURE = replace(
    REWARD, accuracy=0.335, difference_points=2.3, interval_points=(-1.4, 6.0), p_holm=0.412,
    verdict="no evidence",
)  # fmt: skip
CONTROL = replace(REWARD, reference="the control arm random", reference_accuracy=0.3,
                  control_seeds=3, difference_points=13.9, interval_points=(8.1, 19.7))  # fmt: skip
NO_INTERVAL = replace(
    REWARD, interval_points=None, p_holm=None, detectable_points=None, verdict="no evidence"
)
ADAPTER = AdapterFinding(
    name="terse, seed 0", metric="strict", difference_points=6.0, margin_points=2.0,
    told="15 gained, 3 lost of 200 (95 % interval +2.1 to +10.7 over questions; p = .004 alone, "
    "p = .031 corrected for all 12 adapters)",
    detectable_points=5.7, verdict="improved",
)  # fmt: skip
NULL = replace(
    ADAPTER, difference_points=-1.0, detectable_points=3.63, verdict="no evidence",
    told="28 gained, 34 lost of 600 (95 % interval −3.7 to +1.6 over questions; "
    "p = .450 alone, p = .980 corrected for all 12 adapters)",
)  # fmt: skip
ONE_CHANGED = replace(
    NULL, difference_points=5.0, detectable_points=None,
    told="1 gained, 0 lost of 20 (95 % interval −11.9 to +23.6 over questions; "
    "p = .500)",
)  # fmt: skip
NONE_CHANGED = replace(
    NULL, difference_points=0.0, detectable_points=None,
    told="0 gained, 0 lost of 200 (95 % interval −1.9 to +1.9 over questions; "
    "p undefined)",
)  # fmt: skip
FILES = PairReading(
    metric="strict", primary=True, n=1319, base_correct=455.0, adapter_correct=449.0, gained=28,
    lost=34, difference_points=-0.45, interval_points=(-1.66, 0.74),
    bootstrap_points=(-1.67, 0.68), p_value=0.45, p_exact=0.526, p_sign_flip=None,
    minimal_detectable_points=1.66,
    base_outcomes={}, adapter_outcomes={}, verdict="no evidence", notes=(), sentence="",
)  # fmt: skip

SENTENCES = {
    "improved": [
        arm_sentence(REWARD, ()),
        arm_sentence(CONTROL, ()),
        adapter_sentence(ADAPTER, ()),
    ],
    "worse": [arm_sentence(WORSE, ())],
    "equivalent": [arm_sentence(SAME, ())],
    "no evidence": [
        arm_sentence(UNSURE, ()),
        adapter_sentence(NULL, ()),
        pair_sentence(FILES, 0.95, None),
    ],
    "no evidence, since nothing could be tested": [
        arm_sentence(replace(NO_INTERVAL, seeds=1), ("one seed",)),
        arm_sentence(replace(NO_INTERVAL, reference=CONTROL.reference, control_seeds=1), ()),
        arm_sentence(replace(NO_INTERVAL, accuracy=0.312, difference_points=0.0), ()),
        adapter_sentence(ONE_CHANGED, ()),
        adapter_sentence(NONE_CHANGED, ("same answers",)),
    ],
    "the noise floor": [floor_sentence(500, 0, 0, 0), floor_sentence(500, 3, 1, 2)],
}
NOTES = (*ONE_READING, "smaller than the margin", "borderline", "not after Holm")


def block() -> str:
    """Return what stands between the marks of the page."""
    lines = []
    for title, sentences in SENTENCES.items():
        lines.append(f"*{title}*\n")
        for sentence in sentences:
            lines += textwrap.wrap(
                f"- {sentence}",
                WIDTH,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append("")
    lines += ["| note | what it adds |", "|---|---|"]
    lines += [f"| `{note}` | {note_sentence(note, 2.0)} |" for note in NOTES]
    return "\n".join(lines) + "\n"


def test_the_page_prints_the_sentences_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == block()


def test_every_verdict_stands_in_the_page_in_the_order_in_which_it_is_decided() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## The verdicts")[2].partition("\n## ")[0]
    words = ("not comparable", "improved", "worse", "equivalent", "no evidence")
    assert set(words) == set(get_args(VerdictWord))
    places = [section.index(f"| `{word}` |") for word in words]
    assert places == sorted(places)
    assert set(SENTENCES) >= set(words[1:])


def test_the_page_names_code_that_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:statistics|analyze|verify|tasks)/\w+\.py)`", page))
    assert len(named) > 10
    source = PAGE.parents[1] / "src" / "ahalab"
    assert [name for name in sorted(named) if not (source / name).is_file()] == []
