"""How many questions are put to the model at once, where the plan leaves it open.

Chosen by memory once, then frozen: every later answer set follows the first protocol of the study.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.plan.endpoint import backend_name
from ahalab.records.answer import Protocol
from ahalab.records.base import decode_file
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.store.layout import StudyPaths
from ahalab.store.memory import available_bytes

SERVED = 256  # questions at once where a server or an engine packs the rows by itself
LARGEST = 64  # rows at once: more gain little on a CPU, and fewer lie between two commits
USED = 0.5  # of the free memory: other processes live on this machine too
UNKNOWN_BYTES = 4 << 30  # taken as free where nothing tells
ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def frozen_batch_size(paths: StudyPaths) -> int | None:
    """Return the batch size that the study's first answers were made with; None before there are.

    Raises:
        RecordError: A protocol is malformed.
    """
    found = [paths.base_answers().protocol, *sorted(paths.root.glob("arms/*/*/*.protocol.json"))]
    found += sorted(paths.root.glob("templates/*/*.protocol.json"))
    for path in found:
        if path.is_file():
            return decode_file(read_plain(path), Protocol, str(path)).batch_size
    return None


def choose_batch_size(
    plan: Plan, folder: Path, prompts: Iterable[Prompt], processes: int, free: int | None = None
) -> int:
    """Return the largest power of two of questions whose rows fit into memory, at least 1.

    Args:
        plan: The plan.
        folder: Of the base, whose configuration tells what a row takes.
        prompts: The questions; the longest one counts.
        processes: Evaluations side by side.
        free: Bytes that may be taken; None: what the machine says.
    """
    if backend_name(plan) != "transformers":
        return max(1, SERVED // plan.evaluation.cells_per_batch)
    tokens = max(p.prompt_tokens for p in prompts) + plan.evaluation.max_new_tokens
    if free is None:
        free = _free_bytes(plan)
    weights = sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    rows = (free / processes - 2 * weights) * USED / _row_bytes(plan, folder, tokens)
    size = min(LARGEST, int(rows) // plan.evaluation.cells_per_batch)
    return 1 << max(0, size.bit_length() - 1)


def batch_size_of(
    plan: Plan,
    paths: StudyPaths,
    folder: Path,
    prompts: list[Prompt],
    asked: tuple[int | None, int],
) -> int:
    """Return the batch size of a study's answers: the plan's, the frozen one, or one by memory.

    Args:
        plan: The plan.
        paths: Where the answers go.
        folder: Of the base.
        prompts: The questions.
        asked: The size asked for on the command line, if any, and the processes side by side.

    Raises:
        InputError: Another size is asked for than the plan or the study's first answers have.
    """
    wanted, processes = asked
    fixed = plan.evaluation.batch_size or frozen_batch_size(paths)
    if fixed is None:
        return wanted or choose_batch_size(plan, folder, prompts, processes)
    if wanted not in (None, fixed):
        raise InputError(
            f"--batch-size: expected {fixed}, as the plan or the first answers of this study have "
            f"it, found {wanted}. Leave it out, or use a new --out."
        )
    return fixed


def _free_bytes(plan: Plan) -> int:
    if plan.model.device == "cuda":
        import torch

        return int(torch.cuda.mem_get_info()[0])
    return available_bytes() or UNKNOWN_BYTES


def _row_bytes(plan: Plan, folder: Path, tokens: int) -> int:
    """Return what one row takes: its cache (twice, while it grows), activations, and logits."""
    config = json.loads(read_plain(folder / "config.json"))
    config = config.get("text_config", config)
    size = ELEMENT_BYTES[plan.model.dtype]
    hidden = _number(config, "hidden_size", "n_embd", "d_model")
    layers = _number(config, "num_hidden_layers", "n_layer")
    heads = _number(config, "num_attention_heads", "n_head")
    shared = config.get("num_key_value_heads") or heads
    wide = _number(config, "intermediate_size", "n_inner", default=4 * hidden)
    width = config.get("head_dim") or hidden // heads
    cache = 2 * layers * shared * width * tokens * size
    passing = tokens * (4 * hidden + 2 * wide) * size
    return int(2 * cache + passing + 3 * _number(config, "vocab_size") * 4)


def _number(config: dict[str, Any], *names: str, default: int = 1) -> int:
    """Return the first of these keys that a model's configuration has: families name them apart."""
    return next((int(config[name]) for name in names if config.get(name)), default)
