"""Generation with vLLM in this process: the base loaded once, adapters as LoRA requests.

Adapters are never merged. vLLM packs rows by itself; a batch is still the unit of commit. Its rows
depend on what shares a step in the last bits, unless VLLM_BATCH_INVARIANT=1 is set (Hopper and
newer): that is recorded in the protocol's versions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.evaluate.backends import BackendFacts, Batch, Side
from ahalab.evaluate.seeds import row_seed
from ahalab.records.plan import Plan
from ahalab.store.fingerprint import read_adapter_config
from ahalab.store.models import end_ids_of_folder
from ahalab.store.versions import versions
from ahalab.tasks.generation import Completion, completion_of

NAME = "vllm"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM allocates for


class VLLMBackend:
    """A vLLM engine, and the LoRA requests of the sides that it serves.

    Raises:
        InputError: vLLM can't load the base.
    """

    def __init__(self, plan: Plan, folder: Path, tokenizer: Any) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # one process: seeds repeat
        from vllm import LLM, SamplingParams, __version__

        self.model_id = plan.model.id
        self.tokenizer = tokenizer
        self.end_ids = end_ids_of_folder(folder, tokenizer.eos_token_id)
        self.params = SamplingParams
        self.fields = sampling_fields(plan, self.end_ids)
        self.numbers: dict[Path, int] = {}  # vLLM knows an adapter by a number from 1 on
        self.requests: list[Any] = []  # of each side; None: the base
        try:
            self.engine = LLM(
                model=str(folder),
                tokenizer=str(folder),
                dtype=plan.model.dtype,
                seed=plan.evaluation.seed,
                enforce_eager=True,  # graphs are captured per batch size, and differ in last bits
                enable_prefix_caching=False,  # what was computed before must not matter
                enable_lora=True,
                max_lora_rank=_rank(int(plan.lora["r"])),
                max_loras=plan.evaluation.cells_per_batch,
                generation_config="vllm",  # nothing slips in from the model's own
                trust_remote_code=False,
                max_model_len=None,
            )
        except (OSError, ValueError, RuntimeError) as error:
            told = " ".join(str(error).split())[:200]
            raise InputError(
                f"{folder}: expected a model that vLLM loads, found: {told}"
            ) from error
        self.facts = BackendFacts(
            name=NAME,
            decoder="engine",
            device=plan.model.device,
            generation={**self.fields, "eos_token_id": sorted(self.end_ids)},
            versions={
                **versions(),
                "vllm": __version__,
                "VLLM_BATCH_INVARIANT": os.environ.get("VLLM_BATCH_INVARIANT", "0"),
            },
        )

    def serve(self, sides: Sequence[Side]) -> None:
        """Make a LoRA request for each side that has an adapter.

        Raises:
            InputError: One was made for another base.
        """
        self.requests = [self._request(side) for side in sides]

    def _request(self, side: Side) -> Any:
        from vllm.lora.request import LoRARequest

        if side.adapter is None:
            return None
        found = read_adapter_config(side.adapter).get("base_model_name_or_path")
        if found != self.model_id:
            raise InputError(
                f"{side.adapter}: expected an adapter for {self.model_id}, found one for {found}."
            )
        folder = side.adapter.resolve()
        number = self.numbers.setdefault(folder, len(self.numbers) + 1)
        return LoRARequest(side.name, number, str(folder))

    def generate(self, batch: Batch) -> list[list[Completion]]:
        """Answer one batch; rows of every side are handed to the engine together.

        Returns:
            One list per side, one completion per question.
        """
        from vllm import TokensPrompt

        asked = [
            (
                TokensPrompt(prompt_token_ids=list(prompt.prompt_ids)),
                self.params(**self.fields, seed=row_seed(batch.seed, row, sample)),
            )
            for row, (prompt, sample) in enumerate(batch.asked)
        ]
        outputs = self.engine.generate(
            [prompt for _ in self.requests for prompt, _ in asked],
            [params for _ in self.requests for _, params in asked],
            lora_request=[request for request in self.requests for _ in asked],
            use_tqdm=False,
        )
        done = [
            completion_of(output.outputs[0].token_ids, self.end_ids, self.tokenizer)
            for output in outputs
        ]
        return [done[at : at + len(asked)] for at in range(0, len(done), len(asked))]

    def check_weights(self) -> None:
        """Check nothing: vLLM keeps adapters beside the base, and shows neither."""


def sampling_fields(plan: Plan, end_ids: frozenset[int]) -> dict[str, Any]:
    """Return every field of vLLM's `SamplingParams` that decides, the seed of a row apart."""
    evaluation = plan.evaluation
    sampled = evaluation.temperature > 0
    return {
        "n": 1,
        "temperature": evaluation.temperature if sampled else 0.0,
        "top_p": evaluation.top_p if sampled else 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "max_tokens": evaluation.max_new_tokens,
        "min_tokens": 0,
        "ignore_eos": False,
        "stop": None,
        "stop_token_ids": sorted(end_ids),
        "detokenize": False,  # our tokenizer writes the text
    }


def _rank(rank: int) -> int:
    """Return the least rank that vLLM allocates for and that holds an adapter's."""
    return next((size for size in RANKS if size >= rank), rank)
