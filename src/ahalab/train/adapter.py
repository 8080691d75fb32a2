"""The finished adapter: what the trainer saved, written so that equal runs leave equal bytes."""

from __future__ import annotations

import json
from pathlib import Path

from ahalab.plain_files import read_plain
from ahalab.records.plan import Plan
from ahalab.store.durable import replace_file
from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS


def save_adapter(checkpoint: Path, adapter: Path, plan: Plan) -> None:
    """Copy the adapter of the last checkpoint, its configuration sorted and without paths.

    PEFT writes `target_modules` in set order and the base's local path, so two equal runs differ
    (TRL_FACTS 18).
    """
    config = json.loads(read_plain(checkpoint / ADAPTER_CONFIG))
    config["base_model_name_or_path"] = plan.model.id
    for key in ("target_modules", "exclude_modules", "modules_to_save"):
        if isinstance(config.get(key), list):
            config[key] = sorted(config[key])
    replace_file(adapter / ADAPTER_WEIGHTS, read_plain(checkpoint / ADAPTER_WEIGHTS))
    text = json.dumps(config, indent=1, sort_keys=True, allow_nan=False) + "\n"
    replace_file(adapter / ADAPTER_CONFIG, text.encode())
