"""Generation with transformers: the base loaded once, adapters switched, never merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

from ahalab.errors import InputError
from ahalab.evaluate.backends import BackendFacts, Batch, Opening, Side
from ahalab.evaluate.backends.decoding import Row, can_release_rows, decode
from ahalab.evaluate.backends.memory import held_weights, require_unchanged
from ahalab.evaluate.protocol import generation_fields
from ahalab.records.plan import Plan
from ahalab.store.fingerprint import ADAPTER_WEIGHTS, named_difference, read_adapter_config
from ahalab.store.models import end_ids, load_model, quiet_libraries
from ahalab.store.safetensors import tensor_entries
from ahalab.store.versions import versions
from ahalab.tasks.generation import Completion, completion_of
from ahalab.tasks.library_loop import generate_whole

NAME = "transformers"


class TransformersBackend:
    """A base model, and the adapters of the sides that it serves."""

    def __init__(self, plan: Plan, folder: Path, tokenizer: Any) -> None:
        torch.set_num_threads(plan.model.threads)
        self.model_id = plan.model.id
        self.base = load_model(plan.model, folder).eval()
        self.model = self.base
        self.tokenizer = tokenizer
        self.end_ids = end_ids(self.base, tokenizer)
        fields = generation_fields(plan, self.end_ids, int(tokenizer.pad_token_id))
        self.generation = GenerationConfig(**fields)
        # What the model's own configuration sets must not reach `generate` (TRL_FACTS 6).
        self.base.generation_config = self.generation
        self.held = held_weights(self.base)
        self.sides: tuple[Side, ...] = ()
        self.names: list[str | None] = []  # PEFT's name of each side's adapter
        self.facts = BackendFacts(
            name=NAME,
            decoder="rows" if can_release_rows(self.base) else "generate",
            device=f"{plan.model.device}, {plan.model.threads} threads",
            generation=fields,
            versions=versions(),
        )

    def serve(self, sides: Sequence[Side]) -> None:
        """Put the adapters of these sides on the base, and take every other one off.

        Raises:
            InputError: One was made for another base, or its tensors are not those that the base
                expects.
        """
        if self.model is not self.base:
            self.base = self.model.unload()
            self.model = self.base
        self.sides = tuple(sides)
        self.names = [None if s.adapter is None else f"side{n}" for n, s in enumerate(sides)]
        for side, name in zip(sides, self.names, strict=True):
            if side.adapter is not None and name is not None:
                self._attach(side.adapter, name)
        if len(sides) == 1:  # then the one adapter is simply active
            self.names = [None]
        self.model.eval()

    def check_weights(self) -> None:
        """Take every adapter off, and check that the base's weights are what they were.

        Raises:
            InputError: Adapters left something behind; the tensors are named.
        """
        self.serve(())
        require_unchanged(self.held, held_weights(self.base), f"model {self.model_id}")

    def _attach(self, folder: Path, name: str) -> None:
        from peft import PeftModel

        config = read_adapter_config(folder)
        if config.get("base_model_name_or_path") != self.model_id:
            raise InputError(
                f"{folder}: expected an adapter for {self.model_id}, found one for "
                f"{config.get('base_model_name_or_path')}."
            )
        saved = {e.name: e.shape for e in tensor_entries(folder / ADAPTER_WEIGHTS)}
        try:
            with quiet_libraries():  # missing keys are an error below, not a warning
                if self.model is self.base:
                    self.model = PeftModel.from_pretrained(
                        self.base, str(folder), adapter_name=name
                    )
                else:
                    self.model.load_adapter(str(folder), adapter_name=name)
        except (RuntimeError, ValueError) as error:  # shapes that do not fit
            raise InputError(
                f"{folder}: expected an adapter that fits {self.model_id}, found: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error
        self._check_keys(folder, name, saved)

    def _check_keys(self, folder: Path, name: str, saved: dict[str, tuple[int, ...]]) -> None:
        """Compare the file's tensors with those the wrapped model holds: PEFT only warns."""
        from peft import get_peft_model_state_dict

        # Not told whether to list embeddings, PEFT asks the hub about the base's name.
        embeddings = any(".lora_" not in tensor for tensor in saved)
        state = get_peft_model_state_dict(
            self.model, adapter_name=name, save_embedding_layers=embeddings
        )
        held = {tensor: tuple(values.shape) for tensor, values in state.items()}
        if (told := named_difference(held, saved)) is not None:
            raise InputError(
                f"{folder}: expected the {len(held)} tensors that the base takes, found "
                f"{len(saved)}: {told}. The adapter would be applied in part."
            )

    def generate(self, batch: Batch) -> list[list[Completion]]:
        """Answer one batch; rows of every side share each forward pass.

        Returns:
            One list per side, one completion per question.
        """
        prompts = [prompt.prompt_ids for prompt, _ in batch.asked]
        rows = [Row(ids, n, name) for name in self.names for n, ids in enumerate(prompts)]
        if self.facts.decoder == "rows":
            written = decode(self.model, rows, self.generation, batch.seed)
        else:
            written = self._generate_whole(rows, batch.seed)
        done = [completion_of(ids, self.end_ids, self.tokenizer) for ids in written]
        return [done[at : at + len(prompts)] for at in range(0, len(done), len(prompts))]

    def finish(self, openings: Sequence[Opening], seed: int) -> list[Completion]:
        """Finish completions of the one side that is served, each up to the usual limit.

        Needs a decoder whose rows can leave the batch.

        Args:
            openings: B of them.
            seed: Of the batch's random numbers, when sampling.

        Returns:
            Whole completions, their beginnings included.
        """
        limit = int(self.generation.max_new_tokens)
        rows = [
            Row(o.prompt_ids + o.ids, o.draws, None, limit - len(o.ids), o.forbidden)
            for o in openings
        ]
        written = decode(self.model, rows, self.generation, seed)
        return [
            completion_of([*o.ids, *ids], self.end_ids, self.tokenizer)
            for o, ids in zip(openings, written, strict=True)
        ]

    @torch.inference_mode()
    def _generate_whole(self, rows: list[Row], seed: int) -> list[list[int]]:
        """Let the library decode: for models whose state is more than keys and values."""
        names = [row.adapter or "__base__" for row in rows]
        mixed = {"adapter_names": names} if any(row.adapter for row in rows) else {}
        torch.manual_seed(seed)
        return generate_whole(self.model, [row.prompt for row in rows], self.generation, **mixed)
