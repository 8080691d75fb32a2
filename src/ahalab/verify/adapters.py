"""The adapters: fingerprints, configuration, finite weights, and whether they do anything."""

from __future__ import annotations

import numpy as np

from ahalab.errors import AhaLabError
from ahalab.records.diagnostics import Diagnostics
from ahalab.store.adapters import COMPARED, effect_norm, read_adapter, unknown_effect
from ahalab.store.fingerprint import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    adapter_fingerprint,
    read_adapter_config,
)
from ahalab.store.safetensors import load_float32
from ahalab.verify.reading import Study
from ahalab.verify.rollouts import RunRows

NOTHING_LEARNED = "nothing_learned"


def check_adapter(study: Study, run: RunRows) -> None:
    """Check the adapter of a finished run."""
    _check_fingerprint(study, run)
    _check_config(study, run)
    _check_weights(study, run)


def _check_fingerprint(study: Study, run: RunRows) -> None:
    tally, record = study.ledger["adapter.fp"], run.record
    name = study.relative(run.paths.adapter)
    if record is None:
        return
    try:
        found = adapter_fingerprint(run.paths.adapter)
    except (AhaLabError, OSError) as error:
        tally.fail(name, None, "an adapter", str(error))
        return
    tally.expect(name, None, "adapter_digest of run.json", record.adapter_digest, found)


def _check_config(study: Study, run: RunRows) -> None:
    tally, record = study.ledger["adapter.config"], run.record
    name = f"{study.relative(run.paths.adapter)}/{ADAPTER_CONFIG}"
    try:
        config = read_adapter_config(run.paths.adapter)
    except (AhaLabError, OSError) as error:
        tally.fail(name, None, "an adapter configuration", str(error))
        return
    tally.expect(
        name,
        None,
        "base_model_name_or_path",
        run.plan.model.id,
        config.get("base_model_name_or_path"),
    )
    effective = {} if record is None else record.effective_lora
    for key, value in {
        **{k: effective[k] for k in COMPARED if k in effective},
        **run.plan.lora,
    }.items():
        if key == "target_modules" and isinstance(value, str):
            continue  # PEFT writes out which modules `all-linear` came to
        found = config.get(key)
        if isinstance(value, list) and isinstance(found, list):
            value, found = sorted(value, key=str), sorted(found, key=str)
        tally.expect(name, None, key, value, found)
        if key in effective and key in run.plan.lora:
            record_name = study.relative(run.paths.record)
            tally.expect(
                record_name, None, f"effective_lora.{key}", run.plan.lora[key], effective[key]
            )


def _check_weights(study: Study, run: RunRows) -> None:
    ledger = study.ledger
    name = f"{study.relative(run.paths.adapter)}/{ADAPTER_WEIGHTS}"
    try:
        tensors = load_float32(run.paths.adapter / ADAPTER_WEIGHTS)
    except (AhaLabError, OSError, ValueError) as error:
        ledger["tensor.finite"].fail(name, None, "readable float tensors", str(error))
        return
    broken = [tensor for tensor, values in tensors.items() if not np.isfinite(values).all()]
    for tensor in broken:
        ledger["tensor.finite"].fail(name, None, f"finite weights in {tensor}", "NaN or infinity")
    ledger["tensor.finite"].passed(len(tensors) - len(broken))
    if broken:
        return
    try:
        adapter = read_adapter(run.paths.adapter)
    except (AhaLabError, OSError, ValueError) as error:
        ledger["adapter.config"].fail(name, None, "tensors of its own rank", str(error))
        return
    ledger["adapter.config"].passed(len(adapter.modules))
    why = unknown_effect(adapter)
    if why is not None:
        ledger["adapter.effect"].not_checked(f"{run.cell.name}: not told by the files ({why})")
        return
    _judge_effect(study, run, name, effect_norm(adapter) or 0.0)


def _judge_effect(study: Study, run: RunRows, name: str, norm: float) -> None:
    tally, record = study.ledger["adapter.effect"], run.record
    diagnostics = study.record(run.paths.diagnostics, Diagnostics)
    named = {alarm.name for alarm in record.alarms} if record else set()
    if norm > 0:
        tally.passed()
    elif (
        NOTHING_LEARNED in named
        and diagnostics is not None
        and diagnostics.adapter_effect_norm == 0
    ):
        tally.passed()
        tally.note(f"{run.cell.name}: the adapter changes nothing, as its alarm says")
    else:
        tally.fail(
            name,
            None,
            "an adapter that changes the model, or the alarm that it does not",
            f"norm {norm}",
        )


def check_shared_weights(
    study: Study, run: RunRows, trained_on: str, weights: dict[str, tuple[str, str]]
) -> None:
    """Refuse one adapter under two labels when what they were trained on differs."""
    record = run.record
    if record is None or any(alarm.name == NOTHING_LEARNED for alarm in record.alarms):
        return
    other, other_trained_on = weights.setdefault(record.adapter_digest, (run.cell.name, trained_on))
    if trained_on != other_trained_on:
        study.ledger["adapter.arm"].fail(
            study.relative(run.paths.adapter), None, "weights of its own", f"those of {other}"
        )
    else:
        study.ledger["adapter.arm"].passed()
