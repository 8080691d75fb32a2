"""The completions of a run: counted, graded again, rewards and advantages computed again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ahalab.plan.cells import Cell
from ahalab.plan.schedule import expected_rollouts, generation_batch
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.scoring.arms import ArmDefinition, Reward, score_batch, without_own
from ahalab.scoring.components import Origin, Response, is_formatted, repeated_fraction
from ahalab.scoring.reflection import reflection_markers
from ahalab.scoring.training_parser import TRAINING_PARSER_VERSION
from ahalab.statistics.training import (
    advantage_tolerance,
    generation_advantages,
    handed_rewards,
)
from ahalab.store.layout import RunPaths
from ahalab.verify.checks import Ledger
from ahalab.verify.completions import (
    check_finish,
    check_length,
    check_nothing_after,
    count_version,
)
from ahalab.verify.grading import Grader, Put, clock_decided
from ahalab.verify.reading import Study, close


@dataclass(slots=True)
class RunRows:
    """One run while its rows are checked."""

    cell: Cell
    paths: RunPaths
    file: str  # of the rollouts, relative to the study
    arm: ArmDefinition
    plan: Plan
    record: RunRecord | None
    prompts: dict[str, Prompt]
    rows: list[tuple[int, Rollout]] = field(default_factory=list)  # (line, row)
    changed_by_version: int = 0

    @property
    def group_size(self) -> int:
        """G."""
        return int(self.plan.grpo["num_generations"])

    @property
    def batch_size(self) -> int:
        """Completions of one generation batch."""
        return generation_batch(self.plan)

    @property
    def same_scorers(self) -> bool:
        """Whether the scorers at hand are those of the record."""
        if self.record is None:
            return True
        found = (self.record.scorer_version, self.record.training_parser_version)
        return found == (SCORER_VERSION, TRAINING_PARSER_VERSION)


def check_rollouts(study: Study, run: RunRows, end_ids: frozenset[int]) -> None:
    """Check every rollout of a run."""
    _check_keys(study.ledger, run)
    _check_cover(study.ledger, run)
    _check_grades(study, run)
    if run.record is not None:
        recorded = _versions(run.record.scorer_version, run.record.training_parser_version)
        versions = (recorded, _versions(SCORER_VERSION, TRAINING_PARSER_VERSION))
        count_version(study, "rollouts", versions, run.changed_by_version, len(run.rows))
    _check_finish(study.ledger, run, end_ids)
    for line, row in run.rows:
        study.check_text((run.file, line), row.completion_ids, row.completion)
    _check_advantages(study.ledger, run)


def _versions(scorer: str, training_parser: str) -> str:
    return f"{scorer} (training parser {training_parser})"


def training_digest(run: RunRows) -> str:
    """Return the digest of what made the gradient: runs that differ in it can't share weights."""
    seen = hashlib.sha256()
    for _, row in run.rows:
        seen.update(f"{row.completion}\x00{row.advantage!r}\x00".encode())
    return seen.hexdigest()


def _check_keys(ledger: Ledger, run: RunRows) -> None:
    seen: dict[tuple[int, int, str, int], int] = {}
    for line, row in run.rows:
        key = (row.step, row.group, row.prompt_id, row.sample)
        if key in seen:
            what = f"step {row.step}, prompt {row.prompt_id}, sample {row.sample} once"
            ledger["row.unique"].fail(run.file, line, what, f"it stands in line {seen[key]} too")
        else:
            seen[key] = line
        if row.prompt_id not in run.prompts:
            ledger["cover"].fail(run.file, line, "a training prompt", row.prompt_id)
    ledger["row.unique"].passed(len(seen))


def _check_cover(ledger: Ledger, run: RunRows) -> None:
    """Compare step, group and sample of each row with the place that the schedule gives it."""
    if run.record is None:
        ledger["cover"].incomplete(f"{run.cell.name}: training is not finished")
    else:
        ledger["cover"].expect(
            run.file, None, "rollouts", expected_rollouts(run.plan), len(run.rows)
        )
    grpo, size = run.plan.grpo, run.batch_size
    window = int(grpo["steps_per_generation"]) * int(grpo["num_iterations"])
    accumulation = int(grpo["gradient_accumulation_steps"])
    prompt = ""
    for at, (line, row) in enumerate(run.rows):
        batch, place = divmod(at, size)
        step = batch * window // accumulation
        group, sample = divmod(place, run.group_size)
        rank = place // (size // run.plan.training.processes)
        if not ledger["cover"].expect(
            run.file,
            line,
            "step, rank, group and sample",
            (step, rank, group, sample),
            (row.step, row.rank, row.group, row.sample),
        ):
            return  # everything after it is shifted
        prompt = row.prompt_id if sample == 0 else prompt
        if row.prompt_id != prompt:
            ledger["cover"].fail(
                run.file, line, f"prompt {prompt} as in the rest of its group", row.prompt_id
            )


def _check_grades(study: Study, run: RunRows) -> None:
    """Score every completion again, a generation batch at a time, as training did."""
    grader = study.grader
    if grader is None:
        return
    arm = without_own(run.arm) if run.arm.not_loaded else run.arm
    known = [(line, row) for line, row in run.rows if row.prompt_id in run.prompts]
    for start in range(0, len(known), run.batch_size):
        batch = known[start : start + run.batch_size]
        try:
            responses = [_response(grader, run, row) for _, row in batch]
        except ValueError as error:
            what = "completions that can be scored"
            study.ledger["regrade"].fail(run.file, batch[0][0], what, str(error))
            return
        rewards = score_batch(arm, responses)
        for at, response, reward in zip(batch, responses, rewards, strict=True):
            _compare_row(study.ledger, run, at, response, reward)


def _response(grader: Grader, run: RunRows, row: Rollout) -> Response:
    prompt, (_, seed) = run.prompts[row.prompt_id], run.cell.run
    return grader.response(
        Put(row.completion, prompt.gold, prompt.question, row.finish),
        Origin(row.prompt_id, row.step, row.sample, seed, row.completion_ids),
    )


def _compare_row(
    ledger: Ledger, run: RunRows, at: tuple[int, Rollout], response: Response, reward: Reward
) -> None:
    line, row = at
    if clock_decided(response.score, row.status):
        ledger["regrade"].note(f"{run.file}:{line}: the scorer ran out of time")
        return
    _compare_sum(ledger, run, line, row)
    if run.same_scorers:
        _compare_grade(ledger, run, at, response)
        _compare_reward(ledger, run, at, reward)
    else:
        recorded = (row.historical, row.strict, row.lenient)
        run.changed_by_version += recorded != _outcomes(response)


def _outcomes(response: Response) -> tuple[str, str, str]:
    score = response.score
    return response.historical, score.strict.outcome, score.lenient.outcome


def _compare_grade(
    ledger: Ledger, run: RunRows, at: tuple[int, Rollout], response: Response
) -> None:
    line, row = at
    what, lenient = f"{row.prompt_id} sample {row.sample}", response.score.lenient
    ledger["regrade"].expect(
        run.file, line, f"{what}: historical, strict, lenient", _outcomes(response),
        (row.historical, row.strict, row.lenient),
    )  # fmt: skip
    ledger["regrade"].expect(
        run.file, line, f"{what}: formatted, repetition, reflection",
        (is_formatted(response), repeated_fraction(response), reflection_markers(row.completion)),
        (row.formatted, row.repetition, row.reflection),
    )  # fmt: skip
    taken = (lenient.extracted, lenient.status)
    ledger["extract"].expect(
        run.file, line, f"{what}: extracted and status", taken, (row.extracted, row.status)
    )


def _compare_reward(ledger: Ledger, run: RunRows, at: tuple[int, Rollout], reward: Reward) -> None:
    line, row = at
    for name, part in reward.components.items():
        found = row.components.get(name)
        ledger["reward.own" if name in run.arm.own else "grade.status"].expect(
            run.file, line, f"component {name}", (part.value, part.status),
            (found.value, found.status) if found else None,
        )  # fmt: skip
    names = list(run.arm.components)
    ledger["grade.status"].expect(run.file, line, "components", names, list(row.components))
    if not run.arm.not_loaded and not close(reward.reward, row.reward, 1e-9):
        ledger["regrade"].fail(
            run.file, line, f"{row.prompt_id}: reward {reward.reward}", row.reward
        )


def _compare_sum(ledger: Ledger, run: RunRows, line: int, row: Rollout) -> None:
    """Add the recorded components up with the arm's weights; one without a value has no sum."""
    parts = [(weight, row.components.get(name)) for name, weight in run.arm.components.items()]
    terms = [weight * part.value for weight, part in parts if part and part.value is not None]
    total = math.fsum(terms) if len(terms) == len(parts) else None
    if close(total, row.reward, 1e-9):
        ledger["reward.sum"].passed()
    else:
        what = f"the sum of {len(parts)} components, {len(terms)} with a value: {total}"
        ledger["reward.sum"].fail(run.file, line, what, row.reward)


def _check_finish(ledger: Ledger, run: RunRows, end_ids: frozenset[int]) -> None:
    limit = int(run.plan.grpo["max_completion_length"])
    for line, row in run.rows:
        place, ids = (run.file, line), row.completion_ids
        check_length(ledger, place, ids, limit)
        if end_ids:
            check_finish(ledger, place, (ids, row.finish), end_ids, limit)
        if len(end_ids) == 1:  # TRL before 1.14 cut at one of several only
            check_nothing_after(ledger, place, ids, end_ids)
    if not end_ids:
        ledger["finish"].incomplete(
            f"{run.cell.name}: end tokens stand in the base's protocol, not there yet"
        )


def _check_advantages(ledger: Ledger, run: RunRows) -> None:
    scale = {True: "group", False: "none"}.get(
        run.plan.grpo["scale_rewards"], run.plan.grpo["scale_rewards"]
    )
    size = run.batch_size
    for at in range(0, len(run.rows), size):
        batch = run.rows[at : at + size]
        groups = [batch[i : i + run.group_size] for i in range(0, len(batch), run.group_size)]
        groups = [group for group in groups if len(group) == run.group_size]
        rewards = [[row.reward for _, row in group] for group in groups]
        expected = generation_advantages(rewards, str(scale))
        for number, group in enumerate(groups):
            _check_group(ledger, run, group, None if expected is None else expected[number])


def _check_group(
    ledger: Ledger, run: RunRows, group: Sequence[tuple[int, Rollout]], expected: list[float] | None
) -> None:
    if expected is None:
        ledger["advantage"].not_checked(
            f"scale_rewards={run.plan.grpo['scale_rewards']}: not known here"
        )
        return
    tolerance = advantage_tolerance(handed_rewards([row.reward for _, row in group]))
    for (line, row), value in zip(group, expected, strict=True):
        if abs(row.advantage - value) <= tolerance:
            ledger["advantage"].passed()
        else:
            what = f"{row.prompt_id} sample {row.sample}: {value:.6f}"
            ledger["advantage"].fail(run.file, line, what, row.advantage)
