"""Generation with transformers: the base loaded once, adapters switched, never merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

from ahalab.errors import InputError
from ahalab.store.fingerprint import ADAPTER_WEIGHTS, read_adapter_config
from ahalab.store.models import quiet_libraries
from ahalab.store.safetensors import tensor_entries
from ahalab.tasks.generation import Completion, completion_of, padded

ADAPTER = "measured"  # name of the adapter that answers


class Generator:
    """A base model, and at most one adapter at a time on top of it."""

    def __init__(
        self, model: Any, tokenizer: Any, generation: dict[str, Any], threads: int
    ) -> None:
        torch.set_num_threads(threads)
        self.base = model.eval()
        self.model = self.base
        self.tokenizer = tokenizer
        self.generation = GenerationConfig(**generation)
        # What the model's own configuration sets must not reach `generate` (TRL_FACTS 6).
        self.base.generation_config = self.generation
        self.end_ids = frozenset(generation["eos_token_id"])

    def use_base(self) -> None:
        """Let the base answer, every adapter removed."""
        if self.model is not self.base:
            self.base = self.model.unload()
            self.model = self.base

    def use_adapter(self, folder: Path, model_id: str) -> None:
        """Let an adapter answer.

        Raises:
            InputError: It was made for another base, or its tensors are not those the base expects.
        """
        from peft import PeftModel

        self.use_base()
        config = read_adapter_config(folder)
        if config.get("base_model_name_or_path") != model_id:
            raise InputError(
                f"{folder}: expected an adapter for {model_id}, found one for "
                f"{config.get('base_model_name_or_path')}."
            )
        saved = {e.name: e.shape for e in tensor_entries(folder / ADAPTER_WEIGHTS)}
        try:
            with quiet_libraries():  # missing keys are an error below, not a warning
                self.model = PeftModel.from_pretrained(self.base, str(folder), adapter_name=ADAPTER)
        except (RuntimeError, ValueError) as error:  # shapes that do not fit
            raise InputError(
                f"{folder}: expected an adapter that fits {model_id}, found: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error
        self.model.eval()
        self._check_keys(folder, saved)

    def _check_keys(self, folder: Path, saved: dict[str, tuple[int, ...]]) -> None:
        """Compare the file's tensors with those the wrapped model holds: PEFT only warns."""
        from peft import get_peft_model_state_dict

        # Not told whether to list embeddings, PEFT asks the hub about the base's name.
        embeddings = any(".lora_" not in name for name in saved)
        state = get_peft_model_state_dict(
            self.model, adapter_name=ADAPTER, save_embedding_layers=embeddings
        )
        held = {name: tuple(tensor.shape) for name, tensor in state.items()}
        if held != saved:
            odd = sorted(set(held.items()) ^ set(saved.items()))
            raise InputError(
                f"{folder}: expected {len(held)} tensors as the base takes them, found "
                f"{len(saved)}; "
                f"first difference: {odd[0][0]} {odd[0][1]}. The adapter would be applied in part."
            )

    @torch.inference_mode()
    def generate(self, prompts: list[tuple[int, ...]], seed: int) -> list[Completion]:
        """Answer one batch of prompts.

        Args:
            prompts: Token ids per prompt, each of shape (T_i,).
            seed: Seed of this batch; decides sampling, nothing else.

        Returns:
            One completion per prompt, in order.
        """
        rows, marks = padded(prompts, self.generation.pad_token_id)
        ids, mask = torch.tensor(rows), torch.tensor(marks)  # (B, T)
        torch.manual_seed(seed)
        device = self.base.device
        output = self.model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            generation_config=self.generation,
        )
        return [
            completion_of(row, self.end_ids, self.tokenizer)
            for row in output[:, ids.shape[1] :].tolist()
        ]
