"""The recipe that made the packaged model: from random weights, seeded, on one CPU thread."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from ahalab.errors import InputError
from ahalab.organism.digests import write_digests
from ahalab.organism.tokenizer import (
    END,
    MODEL_MAX_TOKENS,
    PAD,
    render_prompt,
    save_tokenizer,
    token_id,
    train_tokenizer,
)
from ahalab.organism.world import stream_problems
from ahalab.organism.writing import write_solution

DEFAULT_SEED = 7
TOKENIZER_TEXTS = 20_000
POOL_BATCHES = 8
IGNORED = -100  # the label cross entropy leaves out


@dataclass(frozen=True, slots=True)
class Recipe:
    """Every size and rate of the training run."""

    steps: int = 1200
    batch_texts: int = 64
    peak_learning_rate: float = 3e-3
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    hidden: int = 128
    intermediate: int = 352
    layers: int = 4
    heads: int = 4
    initial_std: float = 0.06  # 0.02 took three times as long to learn to copy digits


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a build stands after one step."""

    step: int  # steps done, from 1
    total: int
    loss: float  # nats per token of the solutions
    steps_per_second: float
    left_seconds: float


def build(
    out: Path,
    seed: int = DEFAULT_SEED,
    progress: Callable[[Progress], None] | None = None,
    recipe: Recipe | None = None,
) -> None:
    """Train the model organism and write its folder.

    The folder appears at the end, complete: a killed build leaves nothing at `out`. Equal seeds
    give equal weights on one machine with one set of versions; torch is set to one thread.

    Args:
        out: The folder to make; it must not exist, or be empty.
        seed: Seed of the weights and of the texts.
        progress: Called after every step.
        recipe: Sizes and rates; the packaged model's own by default.

    Raises:
        InputError: `out` holds something already.
    """
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: expected no folder or an empty one, found files. Use another.")
    recipe = recipe or Recipe()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    texts = (part for question, solution in _texts(seed) for part in (question, solution))
    tokenizer = train_tokenizer(islice(texts, 2 * TOKENIZER_TEXTS))
    model = _make_model(tokenizer, recipe)
    _train(model, _batches(tokenizer, recipe.batch_texts, seed), recipe, progress)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as holder:
        folder = Path(holder) / "model"
        model.save_pretrained(folder)
        (folder / "model.safetensors").chmod(0o644)  # safetensors writes it for the owner alone
        save_tokenizer(tokenizer, folder)
        write_digests(folder)
        if out.exists():
            out.rmdir()
        folder.rename(out)


def _texts(seed: int) -> Iterator[tuple[str, str]]:
    """Yield (question, solution) without end."""
    rng = random.Random(f"solutions:{seed}")  # noqa: S311 (a reproducible draw, not a secret)
    for problem in stream_problems("pretrain", seed):
        yield problem.question, write_solution(problem, rng)


def _batches(
    tokenizer: Tokenizer, batch_texts: int, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield (input ids, labels), each of shape (batch, tokens), padded on the right.

    Texts of like length share a batch, which saves a third of the time; the batches of one pool
    come in a drawn order.
    """
    rng = random.Random(f"batches:{seed}")  # noqa: S311 (a reproducible draw, not a secret)
    stream = _texts(seed)
    while True:
        rows = [
            (tokenizer.encode(render_prompt(question)).ids, tokenizer.encode(solution + END).ids)
            for question, solution in islice(stream, POOL_BATCHES * batch_texts)
        ]
        rows.sort(key=lambda row: len(row[0]) + len(row[1]))
        starts = list(range(0, len(rows), batch_texts))
        rng.shuffle(starts)
        for start in starts:
            yield _pad(rows[start : start + batch_texts], token_id(tokenizer, PAD))


def _pad(rows: list[tuple[list[int], list[int]]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (input ids, labels) of shape (rows, longest); only the solutions are labelled."""
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.full((len(rows), width), pad)
    labels = torch.full((len(rows), width), IGNORED)
    for row, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    return ids, labels


def _make_model(tokenizer: Tokenizer, recipe: Recipe) -> LlamaForCausalLM:
    ends = {
        "bos_token_id": None,
        "eos_token_id": token_id(tokenizer, END),
        "pad_token_id": token_id(tokenizer, PAD),
    }
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=recipe.hidden,
        intermediate_size=recipe.intermediate,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        max_position_embeddings=MODEL_MAX_TOKENS,
        tie_word_embeddings=True,
        initializer_range=recipe.initial_std,
        **ends,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(**ends)
    return model


def _train(
    model: LlamaForCausalLM,
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    recipe: Recipe,
    progress: Callable[[Progress], None] | None,
) -> None:
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=recipe.peak_learning_rate,
        betas=(0.9, 0.98),
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    started = time.monotonic()
    model.train()
    for step, (ids, labels) in enumerate(islice(batches, recipe.steps), start=1):
        for group in optimizer.param_groups:
            group["lr"] = recipe.peak_learning_rate * rate_fraction(step, recipe)
        # Padding stands on the right, where a causal mask already hides it: no mask is needed.
        loss = _loss(model(input_ids=ids, use_cache=False).logits, labels)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        if progress is not None:
            rate = step / (time.monotonic() - started)
            left = (recipe.steps - step) / rate
            progress(Progress(step, recipe.steps, float(loss.detach()), rate, left))
    model.eval()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy (nats) of the labelled tokens."""
    wanted = labels[:, 1:] != IGNORED
    return torch.nn.functional.cross_entropy(logits[:, :-1][wanted], labels[:, 1:][wanted])


def rate_fraction(step: int, recipe: Recipe) -> float:
    """Return the share of the peak learning rate at a step: up over the warm-up, then down to 0."""
    warmup = max(1, round(recipe.warmup_fraction * recipe.steps))
    if step <= warmup:
        return step / warmup
    return (recipe.steps + 1 - step) / (recipe.steps + 1 - warmup)
