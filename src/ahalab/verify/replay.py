"""The replay: what its record says is counted again, and the conclusion is drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahalab.plan.cells import BASE, Cell, training_cells
from ahalab.records.base import to_plain
from ahalab.records.replay import Replay
from ahalab.records.terms import METRICS
from ahalab.verify.adapter_verdicts import expected_adapter
from ahalab.verify.answers import AnswerSet, Sets
from ahalab.verify.arm_verdicts import arm_words
from ahalab.verify.exceptions import field_differences
from ahalab.verify.matrices import Outcomes
from ahalab.verify.protocols import REPLAY, protocol_of
from ahalab.verify.reading import Study, differences

FILE = "analysis/replay.json"
COUNTS = ("n", "equal", "strict_gained", "strict_lost", "lenient_gained", "lenient_lost")
Word = tuple[str, int | None, str, str]  # arm, seed, against, metric


def check_replay(study: Study, outcomes: Outcomes | None, again: Sets) -> Replay | None:
    """Check replay.json against the answers; return it when it could be read.

    Bytes are compared with the answers (`verify/answers.py`); here it is told how much another
    machine changed, and a conclusion that does not stand is a failure.
    """
    path, tally = study.paths.replay, study.ledger["replay"]
    found = study.record(path, Replay)
    whole = {cell: answers for cell, answers in again.items() if answers.whole}
    _tell_missing(study, again)
    if outcomes is None:
        if again:
            tally.not_checked("no base and adapter with whole answers to compare with")
    elif not any(cell in whole for cell in (BASE, *outcomes.cells)):
        if path.exists():
            tally.fail(FILE, None, "no record, as no whole answer set was generated again", "one")
    else:
        expected = _expected(study, outcomes, whole)
        study.recompute("replay", expected)
        _tell(study, expected)
        if found is not None:
            study.match_plan(path, found.plan_digest)
            plain = to_plain(found)
            for place, ours, theirs in differences(expected, {k: plain[k] for k in expected}, 0.0):
                tally.fail(FILE, None, f"{place}: {ours}", theirs)
            tally.passed(len(expected))
        elif not path.exists():
            tally.incomplete(f"{FILE}: not written yet")
    study.ledger.close(("replay",))
    return found


def _tell_missing(study: Study, again: Sets) -> None:
    """Name what was not generated again: unfinished where the plan asks for it."""
    tally, plan = study.ledger["replay"], study.plan
    cells = (BASE, *training_cells(plan)) if plan is not None else ()
    left = [cell.name for cell in cells if cell not in again or not again[cell].whole]
    if plan is not None and plan.evaluation.replay:
        for name in left:
            tally.incomplete(f"{name}: planned, and not generated again yet")
    elif not again:
        tally.not_checked("the plan asks for no replay, and there is none")
    elif left:
        tally.note(f"not generated again: {', '.join(left)}")


def _tell(study: Study, expected: Mapping[str, Any]) -> None:
    """Say how much another machine changed; fail a conclusion that does not stand."""
    tally = study.ledger["replay"]
    fields = sorted({d["field"] for one in expected["sets"] for d in one["protocol"]})
    if fields:
        tally.note(
            f"generated again under another {', '.join(fields)}: "
            f"{expected['n'] - expected['equal']} of {expected['n']} answers differ, correct ones "
            f"+{expected['strict_gained']} \N{MINUS SIGN}{expected['strict_lost']} (strict), "
            f"conclusion: {expected['conclusion']}"
        )
    for change in expected["changed"]:
        seed = "" if change["seed"] is None else f" seed {change['seed']}"
        place = f"{change['arm']}{seed} against {change['against']}, {change['metric']}"
        tally.fail(FILE, None, f"{place}: {change['first']}, as evaluated", change["again"])


def _expected(study: Study, outcomes: Outcomes, again: Sets) -> dict[str, Any]:
    """Return every field that the record must have, but the plan's digest."""
    cells = [BASE, *outcomes.cells]
    sets = [_set(study, cell, outcomes.sets[cell], again[cell]) for cell in cells if cell in again]
    missing = [cell.name for cell in cells if cell not in again]
    changed: list[dict[str, Any]] = []
    before, verdicts = _words(outcomes), None
    if not missing:
        replayed = Outcomes(
            outcomes.plan, outcomes.prompts, again[BASE], {c: again[c] for c in cells}
        )
        after, verdicts = _words(replayed), len(before)
        changed = [
            {
                "arm": arm,
                "seed": seed,
                "against": against,
                "metric": metric,
                "first": word,
                "again": after[arm, seed, against, metric],
            }
            for (arm, seed, against, metric), word in before.items()
            if after[arm, seed, against, metric] != word
        ]
    stands = "changed" if changed else "stands"
    return {
        "sets": sets,
        "missing": missing,
        **{count: sum(one[count] for one in sets) for count in COUNTS},
        "conclusion": "not drawn" if missing else stands,
        "verdicts": verdicts,
        "changed": sorted(changed, key=lambda c: _order(outcomes, c)),
    }


def _set(study: Study, cell: Cell, first: AnswerSet, again: AnswerSet) -> dict[str, Any]:
    pairs = [(reply, again.replies[key]) for key, reply in first.replies.items()]
    protocols = [protocol_of(study, cell, under) for under in ("", REPLAY)]
    fields = field_differences(protocols[0], protocols[1]) if protocols[0] and protocols[1] else {}
    counts: dict[str, Any] = {
        "answers": first.name,
        "n": len(pairs),
        "equal": sum(ours.row == theirs.row for ours, theirs in pairs),
    }
    for metric in METRICS:
        right = [[one.outcome(metric) == "correct" for one in pair] for pair in pairs]
        counts[f"{metric}_gained"] = right.count([False, True])
        counts[f"{metric}_lost"] = right.count([True, False])
    counts["protocol"] = [{"field": f, "first": a, "again": b} for f, (a, b) in fields.items()]
    return counts


def _words(outcomes: Outcomes) -> dict[Word, str]:
    """Return the verdicts: each arm's, and each adapter's whose arm has one seed."""
    words: dict[Word, str] = {
        (arm, None, against, metric): word
        for (arm, against, metric), word in arm_words(outcomes).items()
    }
    arms = [cell.arm for cell in outcomes.cells]
    for cell in outcomes.cells:
        if arms.count(cell.arm) == 1:
            for metric in METRICS:
                verdict = expected_adapter(outcomes, outcomes.sets[cell], metric)["verdict"]
                words[(*cell.run, "base", metric)] = verdict
    return words


def _order(outcomes: Outcomes, change: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a changed verdict stands in the record: as the comparison lists them."""
    plan = outcomes.plan
    arms = [arm.name for arm in plan.arms]
    primary = change["metric"] != plan.analysis.primary
    if change["seed"] is not None:
        return (1, arms.index(change["arm"]), METRICS.index(change["metric"]))
    against = plan.analysis.comparisons.index(change["against"])
    return (0, primary, against, arms.index(change["arm"]))
