"""One greedy or sampled completion under the evaluation scorer: its end, its text, its outcomes.

Answers of the evaluation and of the validation are checked alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ahalab.records.answer import Answer
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Ending
from ahalab.records.terms import Finish
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import NO_ANSWER, SCORER_VERSION
from ahalab.verify.checks import Ledger
from ahalab.verify.grading import Put, clock_decided
from ahalab.verify.reading import Study

Kind = Literal["answers", "rollouts", "validation answers", "continuations"]
# What to do where another scorer judged: answers may be brought to this one. Rewards, and what was
# seen while they were paid, may not: they are what the training was.
_TRAINING = "a rescore leaves what was paid or seen in training; install that version to check"
REMEDIES: Mapping[Kind, str] = MappingProxyType(
    {
        "answers": "`ahalab rescore STUDY --write`, or install that version of ahalab, to check",
        "rollouts": _TRAINING,
        "validation answers": _TRAINING,
        "continuations": "install that version of ahalab to check",
    }
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A row, and where it stands."""

    file: str  # relative to the study
    line: int
    name: str  # for failures: prompt, and sample or step
    row: Answer | ValidationAnswer | Ending


def check_end(ledger: Ledger, placed: Placed, end_ids: frozenset[int], limit: int) -> None:
    """Compare the finish with the token ids: an end token ends, and only the limit cuts."""
    file, line, row, ids = placed.file, placed.line, placed.row, placed.row.completion_ids
    if ids is None:
        for check in ("tokens", "finish"):
            ledger[check].not_checked(f"{file}: the endpoint told no token ids")
        return
    if row.finish in NO_ANSWER:  # the endpoint ended it, so no token of the model did
        ledger["finish"].passed()
        return
    check_length(ledger, (file, line), ids, limit)
    check_finish(ledger, (file, line), (ids, row.finish), end_ids, limit)
    check_nothing_after(ledger, (file, line), ids, end_ids)


def check_length(ledger: Ledger, place: tuple[str, int], ids: Sequence[int], limit: int) -> None:
    """Check that there is a token, and no more than were allowed; `place` is file and line."""
    if 1 <= len(ids) <= limit:
        ledger["tokens"].passed()
    else:
        ledger["tokens"].fail(*place, f"1 to {limit} completion ids", len(ids))


def check_finish(
    ledger: Ledger,
    place: tuple[str, int],
    ended: tuple[Sequence[int], Finish],
    end_ids: frozenset[int],
    limit: int,
) -> None:
    """Compare the finish with the last token id: an end token ends, and only the limit cuts."""
    ids, finish = ended
    at_end = bool(ids) and ids[-1] in end_ids
    ledger["finish"].expect(*place, "finish", "eos" if at_end else "length", finish)
    if not at_end and len(ids) != limit:
        found = f"{len(ids)} ids, no end token"
        ledger["finish"].fail(*place, f"an end token, or {limit} ids", found)


def check_nothing_after(
    ledger: Ledger, place: tuple[str, int], ids: Sequence[int], end_ids: frozenset[int]
) -> None:
    """Check that an end token is the last one."""
    early = next((at for at, token in enumerate(ids[:-1], 1) if token in end_ids), None)
    if early is not None:
        found = f"one at {early} of {len(ids)} ids"
        ledger["finish"].fail(*place, "nothing after an end token", found)


def check_grade(study: Study, placed: Placed, prompt: Prompt, scorer_version: str) -> bool:
    """Score one completion again; say whether its outcomes change.

    They are compared when it was scored by the scorer at hand.
    """
    file, line, row = placed.file, placed.line, placed.row
    ledger, grader = study.ledger, study.grader
    if grader is None:
        return False
    put = Put(row.completion, prompt.gold, prompt.question, row.finish)
    try:
        score = grader.grade(put).score
    except ValueError as error:
        ledger["regrade"].fail(file, line, "an answer that can be scored", str(error))
        return False
    if clock_decided(score, row.status):
        ledger["regrade"].note(f"{file}:{line}: the scorer ran out of time")
        return False
    expected = (score.strict.outcome, score.lenient.outcome)
    found = (row.strict, row.lenient)
    if scorer_version == SCORER_VERSION:
        what, taken = placed.name, (score.lenient.extracted, score.lenient.rule)
        ledger["regrade"].expect(file, line, f"{what}: strict and lenient", expected, found)
        ledger["extract"].expect(
            file, line, f"{what}: extracted and rule", taken, (row.extracted, row.rule)
        )
        ledger["grade.status"].expect(
            file, line, f"{what}: status", score.lenient.status, row.status
        )
    return expected != found


def count_version(
    study: Study, kind: Kind, versions: tuple[str, str], would_change: int, rows: int
) -> None:
    """Count rows that another scorer judged, to be told once for all files of a kind.

    Args:
        study: The study.
        kind: What the rows are.
        versions: Of the scorers, as recorded and as installed.
        would_change: Rows of which the outcomes would change.
        rows: All of them.
    """
    if versions[0] != versions[1]:
        study.judge_elsewhere({(kind, versions): (1, would_change, rows)})


def tell_versions(study: Study) -> None:
    """Say what other scorers judged, how many outcomes would change, and what to do."""
    for kind, remedy in REMEDIES.items():
        for (counted, (made, here)), (files, changed, rows) in study.judged_elsewhere.items():
            if counted != kind:
                continue
            for check in ("regrade", "extract", "grade.status"):
                study.ledger[check].not_checked(
                    f"{kind} in {files} files: scored by version {made}, here is {here}; "
                    f"{changed} of {rows} outcomes would change ({remedy})"
                )
