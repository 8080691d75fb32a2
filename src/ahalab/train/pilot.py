"""The pilot: the run whose prompts, order and configuration a later arm reuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError, PlanError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_file
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.train.trl_compat import effective_lora, lora_config


@dataclass(frozen=True, slots=True)
class Pilot:
    """A finished run that another arm follows."""

    study: StudyPaths
    folder: Path
    record: RunRecord

    @property
    def name(self) -> str:
        """The run within its study, as `arms/historical/seed-1`."""
        return f"arms/{self.record.arm}/seed-{self.record.seed}"

    def require_same_configuration(self, plan: Plan, seed: int) -> None:
        """Refuse to follow a pilot that was configured otherwise.

        Raises:
            PlanError: The keys that differ are named.
        """
        lora = effective_lora(lora_config(plan))
        shared = lora.keys() & self.record.effective_lora.keys()  # PEFT's fields come and go
        ours = {
            **plan.grpo,
            "seed": seed,
            **{f"lora.{key}": lora[key] for key in shared},
            "model.id": plan.model.id,
            "model.revision": plan.model.revision,
            "model.dtype": plan.model.dtype,
        }
        theirs = {
            **self.record.requested_grpo,
            "seed": self.record.seed,
            **{f"lora.{key}": self.record.effective_lora[key] for key in shared},
            "model.id": self.record.model_id,
            "model.revision": self.record.model_revision,
            "model.dtype": self.record.dtype,
        }
        differing = [
            f"{key}: {ours.get(key)!r} here, {theirs.get(key)!r} in the pilot"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key)
        ]
        if differing:
            raise PlanError(
                f"--like {self.folder}: expected the pilot's configuration, found "
                f"{'; '.join(differing)}. "
                "Use the pilot's values, or train without --like."
            )

    def require_same_prompts(self, prompts: list[Prompt]) -> None:
        """Refuse training prompts that are not the pilot's.

        Raises:
            InputError: The first prompt that differs is named.
        """
        theirs = read_prompts(self.study, "train")
        pairs = zip(prompts, theirs, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a.prompt_ids != b.prompt_ids), None)
        if at is None and len(prompts) == len(theirs):
            return
        raise InputError(
            f"--like {self.folder}: expected the pilot's {len(theirs)} training prompts, found "
            f"{len(prompts)}, the first other one at {at if at is not None else 'the end'}. "
            "Begin a new --out, so that the prompts are taken from the pilot."
        )

    def require_same_order(self, rollouts: list[Rollout], place: Path) -> None:
        """Check, after training, that each step met the prompts that the pilot met.

        Raises:
            InputError: The first row that differs is named.
        """
        theirs = list(read_rows(self.folder / "rollouts.jsonl", Rollout))
        if len(rollouts) != len(theirs):
            raise InputError(
                f"{place}: expected {len(theirs)} rollouts as in the pilot, found {len(rollouts)}."
            )
        for ours, (line, other) in zip(rollouts, theirs, strict=True):
            if (ours.step, ours.prompt_id) != (other.step, other.prompt_id):
                raise InputError(
                    f"{place}:{line}: expected prompt {other.prompt_id} at step {other.step}, as "
                    "in the "
                    f"pilot, found {ours.prompt_id} at step {ours.step}."
                )


def load_pilot(like: Path) -> Pilot:
    """Return the pilot in a run folder `<study>/arms/<arm>/seed-<s>`.

    Raises:
        InputError: There is no finished run.
    """
    path = like / "run.json"
    if not path.is_file():
        raise InputError(
            f"--like {like}: expected the folder of a finished run (arms/<arm>/seed-<s>), found "
            "no run.json."
        )
    record = decode_file(read_plain(path), RunRecord, str(path))
    return Pilot(StudyPaths(like.resolve().parents[2]), like, record)
