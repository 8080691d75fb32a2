"""Our rows against the plan and the trainer's own counter: nothing lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plan.schedule import rollouts_after
from ahalab.records.plan import Plan
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step


def reconcile(
    plan: Plan,
    steps: Sequence[Step],
    rollouts: Sequence[Rollout],
    *,
    done: int,
    prompt_tokens: Mapping[str, int],
    place: Path,
) -> None:
    """Compare the rows of a run so far with what the trainer did.

    Args:
        plan: The plan.
        steps: Rows of steps.jsonl.
        rollouts: Rows of rollouts.jsonl.
        done: Optimizer steps that the trainer has done.
        prompt_tokens: Tokens of each training prompt by id.
        place: The rollouts' file, for the message.

    Raises:
        InputError: A row is missing or doubled, or the trainer counted other tokens.
    """
    expected = rollouts_after(plan, done)
    keys = {(r.step, r.prompt_id, r.group, r.sample) for r in rollouts}
    if not len(keys) == len(rollouts) == expected or len(steps) != done:
        raise InputError(
            f"{place}: expected {expected} rollouts in {done} steps, each once, found "
            f"{len(rollouts)} ({len(keys)} different) in {len(steps)}."
        )
    tokens = sum(prompt_tokens[r.prompt_id] + len(r.completion_ids) for r in rollouts)
    # A step that reused a batch has no count: TRL logs one when it generates.
    counted = next((s.tokens for s in reversed(steps) if s.tokens is not None), None)
    if counted is not None and counted != tokens:
        raise InputError(
            f"{place}: expected the trainer's count of tokens, {counted}, in the rows, found "
            f"{tokens}."
        )
