"""Whether an adapter is what training left, from its files; and whether it learned anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.plan.cells import Cell
from ahalab.records.answer import Answer
from ahalab.store.adapters import (
    Adapter,
    adapter_effect_norm,
    read_adapter,
    settings_that_differ,
)
from ahalab.store.fingerprint import ADAPTER_CONFIG, read_adapter_config, require_weights
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.places import answer_paths, run_paths

# Ways to begin an adapter that take something from the base, on training and whenever it is loaded.
CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")


def require_sound_adapter(folder: Path, model_id: str, effective: Mapping[str, Any]) -> Adapter:
    """Read an adapter; refuse one that PEFT would apply otherwise than it was trained.

    Args:
        folder: The adapter's folder.
        model_id: The base of the plan.
        effective: The configuration that training recorded (`effective_lora` of run.json); alpha
            leaves no trace in the tensors, so that this alone can tell.

    Raises:
        InputError: No safetensors, torn, not finite, of another rank or alpha, or for another
            base; in one line.
    """
    require_weights(folder)
    config, place = read_adapter_config(folder), folder / ADAPTER_CONFIG
    base = config.get("base_model_name_or_path")
    if base != model_id:
        raise InputError(
            f"{place}: expected an adapter for the base {model_id} (the plan's model.id), found "
            f"one for {base}. Use the adapter that was trained on this base."
        )
    for setting, expected, found in settings_that_differ(config, effective):
        raise InputError(
            f"{place}: expected {setting}={expected!r}, as it was trained (run.json), found "
            f"{found!r}. Restore the adapter's configuration, or train again."
        )
    start = config.get("init_lora_weights", True)
    if isinstance(start, str) and start.startswith(CHANGES_BASE):
        raise InputError(
            f"{place}: expected an adapter beside an unchanged base, found "
            f"init_lora_weights={start!r}, which changes the base's weights when it is attached. "
            "Convert it with PEFT's save_pretrained(path_initial_model_for_weight_conversion=...)."
        )
    return read_adapter(folder)


def told_nothing_learned(paths: StudyPaths, cell: Cell) -> str | None:
    """Say that an adapter learned nothing, by its weights or by its answers; None: it did.

    Its answers are compared with the base's where both are there.

    Raises:
        InputError: The adapter is malformed.
        RecordError: A row is.
    """
    if not cell.trained:
        return None
    norm = adapter_effect_norm(run_paths(paths, cell).adapter)
    if norm == 0:
        return f"{cell.name} learned nothing: its weights add 0 to the base's (B @ A = 0)."
    ours, base = answer_paths(paths, cell), paths.base_answers()
    sets = [read_journal(journal_path(target.answers)) for target in (ours, base)]
    if any(state.seal is None for state in sets):
        return None
    if _completions(ours) != _completions(base):
        return None
    return (
        f"{cell.name} answered every question as the base did, to the letter: nothing that it "
        "learned shows."
    )


def _completions(target: AnswerPaths) -> dict[tuple[str, int], str]:
    rows = (row for _, row in read_rows(target.answers, Answer))
    return {(row.prompt_id, row.sample): row.completion for row in rows}
