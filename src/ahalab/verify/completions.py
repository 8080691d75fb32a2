"""One greedy or sampled completion under the evaluation scorer: its end, its text, its outcomes.

Answers of the evaluation and of the validation are checked alike.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ahalab.records.answer import Answer
from ahalab.records.prompt import Prompt
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.verify.checks import Ledger
from ahalab.verify.grading import Put, clock_decided
from ahalab.verify.reading import Study

# What to do where another scorer judged: answers may be brought to this one. Rewards, and what was
# seen while they were paid, may not: they are what the training was.
RESCORE = "`ahalab rescore STUDY --write`, or install that version of ahalab, to check"
INSTALL = "paid or seen in training, so a rescore leaves them; install that version to check"


@dataclass(frozen=True, slots=True)
class Placed:
    """A row, and where it stands."""

    file: str  # relative to the study
    line: int
    name: str  # for failures: prompt, and sample or step
    row: Answer | ValidationAnswer


def check_end(ledger: Ledger, placed: Placed, end_ids: Collection[int], limit: int) -> None:
    """Compare the finish with the token ids: an end token ends, and only the limit cuts."""
    file, line, row, ids = placed.file, placed.line, placed.row, placed.row.completion_ids
    if not 1 <= len(ids) <= limit:
        ledger["tokens"].fail(file, line, f"1 to {limit} completion ids", len(ids))
    else:
        ledger["tokens"].passed()
    ended = bool(ids) and ids[-1] in end_ids
    ledger["finish"].expect(file, line, "finish", "eos" if ended else "length", row.finish)
    if not ended and len(ids) != limit:
        ledger["finish"].fail(
            file, line, f"an end token, or {limit} ids", f"{len(ids)} ids, no end token"
        )
    elif any(i in end_ids for i in ids[:-1]):
        ledger["finish"].fail(file, line, "nothing after an end token", f"{len(ids)} ids")


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


def tell_version(
    ledger: Ledger, file: str, version: str, change: tuple[int, int], remedy: str
) -> None:
    """Say that completions were scored by another version, and how many outcomes would change.

    Args:
        ledger: The checks.
        file: The rows, relative to the study.
        version: The scorer that judged them.
        change: Outcomes that would change, and rows.
        remedy: What to do to have them checked.
    """
    would_change, rows = change
    if version == SCORER_VERSION:
        return
    for check in ("regrade", "extract"):
        ledger[check].not_checked(
            f"{file}: scored by version {version}, here is {SCORER_VERSION}; {would_change} of "
            f"{rows} outcomes would change ({remedy})"
        )
