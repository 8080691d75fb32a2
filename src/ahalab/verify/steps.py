"""The steps and the summary of a run, computed again from its rollouts."""

from __future__ import annotations

from itertools import zip_longest

from ahalab.errors import AhaLabError
from ahalab.records.base import to_plain
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step, Timing
from ahalab.records.validation import ValidationAnswer
from ahalab.statistics.diagnostics import RULES_VERSION, diagnose
from ahalab.statistics.training import step_figures
from ahalab.store.adapters import adapter_effect_norm
from ahalab.verify.reading import Study, close, differences
from ahalab.verify.rollouts import RunRows

NORM_TOLERANCE = 1e-6  # matrix products differ in their last digits between machines


def check_steps(study: Study, run: RunRows) -> list[Step]:
    """Check every step row and its clock; return the steps."""
    ledger, path = study.ledger, run.paths.steps
    name = study.stored_name(path)
    batches = _batches(run)
    rows = list(study.rows(path, Step))
    tokens = 0
    for at, (line, row) in enumerate(rows):
        ledger["steps"].expect(name, line, "step", at + 1, row.step)
        fresh = batches.get(at, [])
        tokens += sum(_tokens(run, batch) for batch in fresh)
        if row.tokens is not None:
            ledger["tokens"].expect(name, line, "tokens so far", tokens, row.tokens)
        found = to_plain(row)
        expected = step_figures(fresh[-1] if fresh else [])
        wrong = list(
            differences(expected, {key: found[key] for key in expected}, path=f"step {at + 1}")
        )
        for place, ours, theirs in wrong:
            ledger["steps"].fail(name, line, f"{place}: {ours}", theirs)
        ledger["steps"].passed(len(expected) - len(wrong))
    planned = int(run.plan.grpo["max_steps"])
    if run.record is not None:
        ledger["plan.n"].expect(name, None, "steps", planned, len(rows))
    _check_clock(study, run, len(rows))
    return [row for _, row in rows]


def _batches(run: RunRows) -> dict[int, list[list[Rollout]]]:
    """Return the generation batches by the number of steps done when they were generated."""
    found: dict[int, list[list[Rollout]]] = {}
    size = run.batch_size
    for at in range(0, len(run.rows), size):
        batch = [row for _, row in run.rows[at : at + size]]
        found.setdefault(batch[0].step, []).append(batch)
    return found


def _tokens(run: RunRows, batch: list[Rollout]) -> int:
    return sum(
        len(row.completion_ids)
        + (run.prompts[row.prompt_id].prompt_tokens if row.prompt_id in run.prompts else 0)
        for row in batch
    )


def _check_clock(study: Study, run: RunRows, steps: int) -> None:
    """Compare the numbers of the clocks' rows; what a clock showed is information, never judged."""
    name = study.stored_name(run.paths.timings)
    found = [(line, row.step) for line, row in study.rows(run.paths.timings, Timing)]
    for number, clock in zip_longest(range(1, steps + 1), found):
        line, step = clock or (None, None)
        study.ledger["steps"].expect(name, line, "clock of step", number, step)


def check_diagnostics(
    study: Study, run: RunRows, steps: list[Step], validation: list[ValidationAnswer]
) -> None:
    """Summarise the run again and compare, alarms included."""
    ledger, path = study.ledger, run.paths.diagnostics
    found = study.record(path, Diagnostics)
    name = study.relative(path)
    if found is None:
        if not path.exists():
            ledger["diagnostics"].incomplete(f"{name}: not written yet")
        return
    if found.rules_version != RULES_VERSION:
        ledger["diagnostics"].not_checked(
            f"{name}: summarised by rules {found.rules_version}, installed are {RULES_VERSION}"
        )
        return
    norm = _norm(run)
    rollouts = [row for _, row in run.rows]
    expected = diagnose(*run.cell.run, steps, rollouts, norm, validation)
    ours, theirs = to_plain(expected), to_plain(found)
    if close(norm, found.adapter_effect_norm, NORM_TOLERANCE):
        ours["adapter_effect_norm"] = theirs["adapter_effect_norm"]
    wrong = list(differences(ours, theirs))
    for place, value, other in wrong:
        ledger["diagnostics"].fail(name, None, f"{place}: {value}", other)
    ledger["diagnostics"].passed(len(ours) - min(len(ours), len(wrong)))
    if run.record is not None:
        alarms = [to_plain(alarm) for alarm in expected.alarms]
        for place, value, other in differences(
            alarms, [to_plain(a) for a in run.record.alarms], path="alarms"
        ):
            ledger["diagnostics"].fail(
                study.relative(run.paths.record), None, f"{place}: {value}", other
            )


def _norm(run: RunRows) -> float | None:
    """Return the size of what the adapter does; None when it can't be read (told elsewhere)."""
    try:
        return adapter_effect_norm(run.paths.adapter)
    except (AhaLabError, OSError, ValueError):
        return None
