"""Trackers (`grpo.report_to`): what they are told beside TRL's own metrics, and where they write.

TRL's means mislead now and then (TRL_FACTS 3 and 4), so a tracker also gets the figures that are
recomputed from the rollouts, under `ahalab/`. Some trackers put `train/` before every name.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from ahalab.errors import MissingError
from ahalab.records.base import to_plain
from ahalab.records.plan import Plan
from ahalab.records.step import Step

# Of a step's row: what TRL logs itself, under its own names.
TRAINERS_OWN = frozenset(
    {"schema", "step", "loss", "grad_norm", "learning_rate", "entropy", "kl", "clip_low_fraction",
     "clip_high_fraction", "tokens"}
)  # fmt: skip

# Where a tracker's module is not called as the tracker is.
MODULES = {
    "azure_ml": ("azureml",),
    "flyte": ("flytekit",),
    "kubeflow": ("json",),  # speaks to a server that the environment names
    "tensorboard": ("tensorboard", "tensorboardX"),
}


def tracked(step: Step) -> dict[str, float]:
    """Return the recomputed figures of a step, as a tracker names them; unknown ones are absent."""
    row = to_plain(step)
    components = row.pop("components")
    figures = {name: value for name, value in row.items() if name not in TRAINERS_OWN}
    figures |= {f"components/{name}": value for name, value in components.items()}
    return {f"ahalab/{name}": value for name, value in figures.items() if value is not None}


def wanted_trackers(plan: Plan) -> tuple[str, ...]:
    """Return the trackers that a plan names; `all` is those that are installed."""
    named = plan.grpo.get("report_to") or []
    listed = [named] if isinstance(named, str) else named
    if "all" in listed:
        return _installed()
    return tuple(str(name) for name in listed if name != "none")


def missing_trackers(plan: Plan) -> tuple[str, ...]:
    """Return those of them that are not installed, or that transformers does not know."""
    return tuple(name for name in wanted_trackers(plan) if not _is_installed(name))


def _is_installed(name: str) -> bool:
    """Say whether a tracker could be imported, importing none: that takes seconds."""
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    modules = MODULES.get(name, (name,))
    return name in INTEGRATION_TO_CALLBACK and any(map(importlib.util.find_spec, modules))


def _installed() -> tuple[str, ...]:
    from transformers.integrations import get_available_reporting_integrations

    return tuple(get_available_reporting_integrations())


def name_run(plan: Plan, config: Any, folder: Path, run: str) -> None:
    """Give trackers the run's name, and keep their files out of the checkpoints, which go.

    Args:
        plan: The plan.
        config: TRL's GRPOConfig, which is changed.
        folder: Where local files of trackers go.
        run: The run within its study, as `arms/random/seed-0`.

    Raises:
        MissingError: A tracker that the plan names is not installed.
    """
    if missing := missing_trackers(plan):
        raise MissingError(
            f"grpo.report_to: expected installed trackers, found no {', '.join(missing)}. "
            f"pip install {' '.join(missing)}, or drop it from the plan."
        )
    config.run_name = f"{plan.name}/{run}"
    if "trackio" in wanted_trackers(plan) and "project" not in plan.grpo:
        config.project = plan.name
    if hasattr(config, "logging_dir"):  # before transformers 5
        config.logging_dir = str(folder / "tensorboard" / run)
    if "wandb" in wanted_trackers(plan):  # else it makes a folder where the command was typed
        folder.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("WANDB_DIR", str(folder))
        os.environ.setdefault("WANDB_PROJECT", plan.name)


def attach(trainer: Any, recorder: Any, folder: Path, run: str) -> None:
    """Add the recorder of steps before every tracker, so that they see what it adds to the log."""
    callbacks = trainer.callback_handler.callbacks
    for callback in callbacks:
        # From transformers 5 on its folder is its own, by default within the checkpoints.
        if type(callback).__name__ == "TensorBoardCallback" and not getattr(
            callback, "logging_dir", True
        ):
            callback.logging_dir = str(folder / "tensorboard" / run)
    trainer.add_callback(recorder)
    callbacks.insert(0, callbacks.pop())
