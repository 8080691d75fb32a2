"""Two files of answers to one paired verdict, without a study and without torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from ahalab.analyze.answer_files import AnswerFile, read_answer_file
from ahalab.analyze.pair_sentences import ONE_PAIR, pair_sentence, protocol_sentence
from ahalab.analyze.pairing import FloatArray, Paired, allowed_differences, pair_files
from ahalab.analyze.readings import one_scorer_note
from ahalab.records.pair import PairComparison, PairReading
from ahalab.records.terms import Metric, Outcome
from ahalab.statistics.bootstrap import bootstrap_pairs, bootstrap_questions
from ahalab.statistics.by_question import sign_flip_p
from ahalab.statistics.difference import Difference, detectable, difference_over_questions
from ahalab.statistics.interval import Interval
from ahalab.statistics.verdict import Verdict, decide

DRAWS = 9999
SEED = 0
CUT_FRACTION = 0.05  # of a file's answers; below it, cut answers decide little


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides, fixed before looking."""

    primary: Metric = "strict"
    alpha: float = 0.05
    margin_points: float | None = None  # largest difference that does not matter; None: no margin


@dataclass(frozen=True, slots=True)
class Judged:
    """The figures of one reading: fractions."""

    found: Difference
    bootstrap: Interval
    sign_flip: float | None  # p by flips of signs; None for pairs, whose exact p stands in `found`
    detectable: float | None
    verdict: Verdict


def compare_files(
    base: Path, adapter: Path, rules: Rules, allow: Sequence[str] = ()
) -> PairComparison:
    """Compare the answers of two files, the second against the first.

    Args:
        base: File of answers, A.
        adapter: File of answers to the same prompts, B.
        rules: Primary reading, level, margin.
        allow: Fields in which the protocols beside the files may differ.

    Raises:
        InputError: A file is not there, a row is malformed, or the answers do not pair.
        ProtocolError: The protocols differ in more than the adapter.
    """
    first, second = read_answer_file(base), read_answer_file(adapter)
    allowed = allowed_differences(first, second, allow)
    paired = pair_files(first, second)
    strict, lenient = (_reading(paired, metric, rules) for metric in ("strict", "lenient"))
    known = first.protocol is not None and second.protocol is not None
    without = [file.name for file in (first, second) if file.protocol is None]
    told = protocol_sentence(known, without, allowed)
    return PairComparison(
        base=first.name,
        adapter=second.name,
        answers=len(paired.keys),
        samples=paired.samples,
        protocol="unknown" if not known else "allowed to differ" if allowed else "same",
        allowed=allowed,
        primary=rules.primary,
        alpha=rules.alpha,
        confidence=1.0 - rules.alpha,
        margin_points=rules.margin_points,
        bootstrap_draws=DRAWS,
        bootstrap_seed=SEED,
        notes=tuple(filter(None, [told, *_file_notes(paired), _cut(paired), ONE_PAIR])),
        strict=_told(strict, lenient, rules),
        lenient=_told(lenient, strict, rules),
    )


def judge(base: FloatArray, adapter: FloatArray, rules: Rules) -> Judged:
    """Test and judge one reading, from the share of right answers to each question.

    Args:
        base: Shares of the first file, fractions, shape (N,).
        adapter: Shares of the second file, the same order.
        rules: Level and margin.
    """
    confidence = 1.0 - rules.alpha
    differences = adapter - base
    found = difference_over_questions(differences, confidence=confidence)
    if found.gained is not None and found.lost is not None:
        drawn = bootstrap_pairs(found.gained, found.lost, found.units, SEED, DRAWS, confidence)
        flipped = None
    else:
        drawn = bootstrap_questions(differences, SEED, DRAWS, confidence=confidence)
        flipped = sign_flip_p(differences, SEED, DRAWS)
    margin = None if rules.margin_points is None else rules.margin_points / 100
    verdict = decide(found.p_value, found.interval, margin=margin, alpha=rules.alpha)
    return Judged(found, drawn, flipped, detectable(found, rules.alpha), verdict)


def _reading(paired: Paired, metric: Metric, rules: Rules) -> PairReading:
    base = paired.correct(paired.base, metric)
    adapter = paired.correct(paired.adapter, metric)
    judged = judge(base, adapter, rules)
    found = judged.found
    notes = {
        "borderline": judged.verdict.borderline,
        "smaller than the margin": judged.verdict.smaller_than_margin,
    }
    return PairReading(
        metric=metric,
        primary=metric == rules.primary,
        n=found.units,
        base_correct=float(np.sum(base)),
        adapter_correct=float(np.sum(adapter)),
        gained=found.gained,
        lost=found.lost,
        difference_points=100 * found.difference,
        interval_points=_in_points(found.interval),
        bootstrap_points=_in_points(judged.bootstrap),
        p_value=found.p_value,
        p_exact=found.p_exact,
        p_sign_flip=judged.sign_flip,
        minimal_detectable_points=None if judged.detectable is None else 100 * judged.detectable,
        base_outcomes=_outcomes(paired.base, metric),
        adapter_outcomes=_outcomes(paired.adapter, metric),
        verdict=judged.verdict.name,
        notes=tuple(note for note, holds in notes.items() if holds),
        sentence="",
    )


def _in_points(bounds: Interval) -> tuple[float, float]:
    return 100 * bounds.low, 100 * bounds.high


def _outcomes(file: AnswerFile, metric: Metric) -> dict[Outcome, int]:
    return dict(sorted(Counter(getattr(row, metric) for row in file.rows.values()).items()))


def _told(reading: PairReading, other: PairReading, rules: Rules) -> PairReading:
    """Add what only the other reading tells (a gain in format alone), and the sentence."""
    alone = one_scorer_note(reading.metric, reading.verdict, other.verdict)
    noted = replace(reading, notes=(*reading.notes, alone)) if alone else reading
    return replace(noted, sentence=pair_sentence(noted, 1.0 - rules.alpha, rules.margin_points))


def _file_notes(paired: Paired) -> list[str]:
    """Say what is odd about the two files, or about a question that stands there twice."""
    first, second, notes = paired.base, paired.adapter, []
    prompts = len({prompt for prompt, _ in paired.keys})
    questions = int(paired.question.max()) + 1
    if questions < prompts:
        notes.append(
            f"{prompts:,} prompts ask {questions:,} different questions; each question counts once."
        )
    if first.side == "adapter" and second.side == "base":
        notes.append("A holds answers of an adapter and B those of the base: is the order meant?")
    protocols = [file.protocol for file in (first, second) if file.protocol is not None]
    if len(protocols) == 2 and len({p.adapter_digest for p in protocols}) == 1:
        notes.append("Both files were made by the same weights.")
    return notes


def _cut(paired: Paired) -> str | None:
    """Warn when many answers were cut before they stated anything: these cannot be right."""
    shares = [
        _outcomes(file, "lenient").get("truncated", 0) / len(file.rows)
        for file in (paired.base, paired.adapter)
    ]
    if max(shares) < CUT_FRACTION:
        return None
    return (
        f"Cut by the token limit before an answer was stated: {shares[0]:.0%} of A, {shares[1]:.0%}"
        " of B. A cut answer cannot be right, so a difference may be one of length."
    )
