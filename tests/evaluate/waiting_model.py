"""A model that reflects when it answers greedily: the organism, its comma before "wait" louder."""

from __future__ import annotations

import shutil
from pathlib import Path

from ahalab.store.models import organism_folder

LOUDER = 1.5


def make(folder: Path) -> Path:
    """Write the model's folder, and return it; the embedding is the head too, so one row does."""
    import torch
    from safetensors.torch import load_file, save_file
    from tokenizers import Tokenizer

    shutil.copytree(organism_folder(), folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    louder = tokenizer.encode("1, wait").ids[1]  # the comma, which only a "wait" follows
    weights = load_file(folder / "model.safetensors")
    weights["model.embed_tokens.weight"][louder] *= LOUDER
    save_file(
        {k: torch.clone(v) for k, v in weights.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    return folder
