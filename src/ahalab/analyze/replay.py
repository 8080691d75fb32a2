"""The replay beside the evaluation: equal answers, flips, and whether the conclusion stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from msgspec import structs

from ahalab.analyze.adapters import compare_adapters
from ahalab.analyze.answers import Answers, StudyAnswers, expected_keys, load_answers
from ahalab.analyze.arms import compare_arms
from ahalab.analyze.protocols import require_comparable
from ahalab.errors import CheckFailedError, ProtocolError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import BASE, Cell, training_cells
from ahalab.records.answer import MACHINE_FIELDS, Answer, as_text, covers, differing_fields
from ahalab.records.base import decode_file, digest
from ahalab.records.comparison import AdapterComparison, ArmComparison, Comparison, VerdictWord
from ahalab.records.replay import ChangedVerdict, Replay, ReplayDifference, ReplayedAnswers
from ahalab.records.terms import Metric
from ahalab.store.layout import StudyPaths
from ahalab.tasks.places import answer_paths

UNDER = "replay/"
Judged = tuple[str, int | None, Literal["base", "control"], Metric]  # arm, seed, against, metric


def compare_replay(study: StudyAnswers, comparison: Comparison, paths: StudyPaths) -> Replay | None:
    """Compare the answers generated again with those of the evaluation.

    Args:
        study: The evaluation's answers.
        comparison: What they say.
        paths: Where the replay lies, below `replay/`: the study's folder, or another.

    Returns:
        None where no answer set was generated again.

    Raises:
        ProtocolError: A replay differs from the evaluation in more than versions and machine, or
            two replays were made on different machines; the fields are named.
        RecordError: A row is malformed, doubled or missing.
    """
    firsts = {BASE: study.base}
    for cell in training_cells(study.plan):
        if (answers := study.adapters.get(cell.run)) is not None:
            firsts[cell] = answers
    again = _load(study, firsts, paths)
    if not again:
        return None
    sets = [_compare_set(firsts[cell], answers) for cell, answers in again.items()]
    missing = tuple(cell.name for cell in firsts if cell not in again)
    before, after = _verdicts(comparison.arms, comparison.adapters), None
    if not missing:
        after = _verdicts(*_judge(study, again))
    changed = _changed(before, after or before)
    return Replay(
        plan_digest=digest(study.plan),
        sets=tuple(sets),
        missing=missing,
        n=sum(s.n for s in sets),
        equal=sum(s.equal for s in sets),
        strict_gained=sum(s.strict_gained for s in sets),
        strict_lost=sum(s.strict_lost for s in sets),
        lenient_gained=sum(s.lenient_gained for s in sets),
        lenient_lost=sum(s.lenient_lost for s in sets),
        conclusion="not drawn" if after is None else "changed" if changed else "stands",
        verdicts=None if after is None else len(before),
        changed=changed,
    )


def read_replay(paths: StudyPaths) -> Replay | None:
    """Return what came of a study's replay, as the analysis wrote it; None where there is none.

    Raises:
        RecordError: It is malformed.
    """
    if not paths.replay.is_file():
        return None
    return decode_file(read_plain(paths.replay), Replay, str(paths.replay))


def require_replay(replay: Replay, place: Path) -> None:
    """Refuse a replay that speaks against the evaluation.

    Raises:
        CheckFailedError: Under an equal protocol an answer differs (the sets are named), or the
            conclusion does not stand.
    """
    broken = [s.answers for s in replay.sets if s.equal < s.n and not s.protocol]
    if broken:
        names = ", ".join(name.removesuffix("/answers") for name in broken)
        raise CheckFailedError(
            f"{place}: expected the same bytes as the evaluation, found others in {names}, under "
            "an equal protocol. Remove that replay to generate it again; the protocol does not "
            "tell one model of processor from another."
        )
    if replay.changed:
        told = "; ".join(changed_verdict(change) for change in replay.changed)
        raise CheckFailedError(
            f"{place}: expected the verdicts of the evaluation, found {told}. The conclusion "
            "does not stand on this machine: more seeds or questions would make it firmer."
        )


def changed_verdict(change: ChangedVerdict) -> str:
    """Return a changed verdict in words."""
    seed = "" if change.seed is None else f" seed {change.seed}"
    whom = f"{change.arm}{seed} against {change.against}, {change.metric}"
    return f"{whom}: {change.again}, was {change.first}"


def _load(
    study: StudyAnswers, firsts: Mapping[Cell, Answers], paths: StudyPaths
) -> dict[Cell, Answers]:
    """Return the replays that are whole, by cell, after comparing their protocols."""
    expected = expected_keys(study.plan, study.prompts)
    again: dict[Cell, Answers] = {}
    for cell, first in firsts.items():
        answers = load_answers(answer_paths(paths, cell, UNDER), expected)
        if answers is None:
            continue
        fields = differing_fields(first.protocol, answers.protocol)
        more = {f: both for f, both in fields.items() if not covers(MACHINE_FIELDS, f)}
        if more:
            told = "; ".join(f"{f}: {a!r} and {b!r}" for f, (a, b) in more.items())
            raise ProtocolError(
                f"{first.name} and {answers.name}: expected protocols that differ in "
                f"{', '.join(MACHINE_FIELDS)} at most, found different {told}. Remove that replay "
                "to generate it again."
            )
        again[cell] = answers
    sets = list(again.values())
    for other in sets[1:]:
        require_comparable(sets[0], other, study.exceptions)
    return again


def _compare_set(first: Answers, again: Answers) -> ReplayedAnswers:
    pairs = [(row, again.rows[key]) for key, row in first.rows.items()]
    return ReplayedAnswers(
        answers=first.name,
        n=len(pairs),
        equal=sum(_bare(a) == _bare(b) for a, b in pairs),
        strict_gained=sum(b.strict == "correct" != a.strict for a, b in pairs),
        strict_lost=sum(a.strict == "correct" != b.strict for a, b in pairs),
        lenient_gained=sum(b.lenient == "correct" != a.lenient for a, b in pairs),
        lenient_lost=sum(a.lenient == "correct" != b.lenient for a, b in pairs),
        protocol=tuple(
            ReplayDifference(field=field, first=as_text(a), again=as_text(b))
            for field, (a, b) in differing_fields(first.protocol, again.protocol).items()
        ),
    )


def _bare(row: Answer) -> Answer:
    """Return a row without the digest of its protocol, which other versions change."""
    return structs.replace(row, protocol="")


def _judge(
    study: StudyAnswers, again: Mapping[Cell, Answers]
) -> tuple[list[ArmComparison], list[AdapterComparison]]:
    """Return what the analysis says of the replayed answers."""
    adapters = {c.run: a for c, a in again.items() if c.trained}
    replayed = replace(study, base=again[BASE], floor=None, adapters=adapters)
    judged = compare_adapters(replayed)
    return compare_arms(replayed, judged), judged


def _verdicts(
    arms: Sequence[ArmComparison], adapters: Sequence[AdapterComparison]
) -> dict[Judged, VerdictWord]:
    """Return every verdict word of a conclusion.

    One seed carries no claim on a reward: there, what the study says is said of the adapter.
    """
    found: dict[Judged, VerdictWord] = {
        (arm.arm, None, arm.against, arm.metric): arm.verdict for arm in arms
    }
    seeds = [adapter.arm for adapter in adapters if adapter.metric == "strict"]
    found |= {
        (adapter.arm, adapter.seed, "base", adapter.metric): adapter.verdict
        for adapter in adapters
        if seeds.count(adapter.arm) == 1
    }
    return found


def _changed(
    before: Mapping[Judged, VerdictWord], after: Mapping[Judged, VerdictWord]
) -> tuple[ChangedVerdict, ...]:
    return tuple(
        ChangedVerdict(
            arm=arm, seed=seed, against=against, metric=metric, first=word, again=after[key]
        )
        for key, word in before.items()
        for arm, seed, against, metric in (key,)
        if after[key] != word
    )
