"""The protocol of an evaluation: every choice that fixes how an answer comes about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ahalab.errors import InputError, ProtocolError
from ahalab.evaluate.backends import BackendFacts
from ahalab.plain_files import read_plain
from ahalab.records.answer import MACHINE_FIELDS, Protocol, covers, differing_fields
from ahalab.records.base import decode_file, digest, digest_bytes, encode, to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.tasks.generation import greedy_fields
from ahalab.tasks.questions import scoring_task


def generation_fields(plan: Plan, end_ids: frozenset[int], pad_id: int) -> dict[str, Any]:
    """Return every generation field of the plan's evaluation; see `greedy_fields`."""
    evaluation = plan.evaluation
    fields = greedy_fields(evaluation.max_new_tokens, end_ids, pad_id)
    if evaluation.temperature > 0:
        fields |= {
            "do_sample": True,
            "temperature": evaluation.temperature,
            "top_p": evaluation.top_p,
        }
    return fields


def prompts_digest(prompts: list[Prompt]) -> str:
    """Return the digest of a prompt set: ids, golds and rendered token ids, in order."""
    return digest_bytes(b"\n".join(encode(prompt) for prompt in prompts))


def batch_seed(seed: int, batch: int) -> int:
    """Return the seed of one batch, from the plan's seed and its number, so sampling can resume."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{batch}".encode()).digest()[:4], "big")


@dataclass(frozen=True, slots=True)
class Weights:
    """Digests of what answers."""

    template: str
    tokenizer: str
    base: str


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Which rows are generated together."""

    size: int  # questions at once
    cells: int  # sides that may share a batch
    seed: int
    limit: int | None = None  # of a partial evaluation


def make_protocol(
    plan: Plan, prompts: list[Prompt], weights: Weights, facts: BackendFacts, batch: BatchPlan
) -> Protocol:
    """Return the protocol of an answer set of the base; adapters are added by `with_adapters`.

    Args:
        plan: The resolved plan.
        prompts: The evaluation prompts, in order.
        weights: What answers.
        facts: What the backend adds.
        batch: What is generated together.
    """
    return Protocol(
        plan_digest=digest(plan),
        answer_format=plan.answer_format,
        task=scoring_task(plan.task),
        prompts_digest=prompts_digest(prompts),
        template_digest=weights.template,
        tokenizer_digest=weights.tokenizer,
        base_digest=weights.base,
        adapter_digest=None,
        generation=facts.generation,
        dtype=plan.model.dtype,
        device=facts.device,
        backend=facts.name,
        decoder=facts.decoder,
        versions=facts.versions,
        batch_size=batch.size,
        cells_per_batch=batch.cells,
        companions=(),
        limit=batch.limit,
        seed=batch.seed,
        samples=plan.evaluation.samples,
        scorer_version=SCORER_VERSION,
    )


def with_adapters(
    protocol: Protocol, adapter: str | None, companions: Sequence[str | None]
) -> Protocol:
    """Return the protocol of one side.

    Args:
        protocol: The base's, from `make_protocol`.
        adapter: Fingerprint of the adapter that answers; None for the base.
        companions: Those of every side in the round, itself among them.
    """
    shared = tuple(companions) if len(companions) > 1 else ()
    return replace(protocol, adapter_digest=adapter, companions=shared)


def require_same(expected: Protocol, found: Protocol, place: Path) -> None:
    """Refuse to go on with answers that were begun under another protocol.

    Raises:
        ProtocolError: The fields that differ are named.
    """
    ours, theirs = to_plain(expected), to_plain(found)
    differing = [f"{k}: {ours[k]!r} now, {theirs[k]!r} there" for k in ours if ours[k] != theirs[k]]
    if ours["scorer_version"] != theirs["scorer_version"]:
        differing.append("(`ahalab rescore` brings saved answers to the installed scorer)")
    if differing:
        raise ProtocolError(
            f"{place}: expected the protocol of this plan and machine, found another one: "
            f"{'; '.join(differing)}. Remove these answers to generate them again, or use a new "
            "--out (for a replay --to)."
        )


def require_replayable(protocol: Protocol, first: Path) -> None:
    """Refuse to generate a replay that differs from the evaluation in more than what generates.

    Args:
        protocol: The replay's.
        first: Where the evaluation's lies.

    Raises:
        InputError: There is none: nothing was evaluated that could be replayed.
        ProtocolError: The fields that differ are named.
    """
    if not first.is_file():
        raise InputError(
            f"{first}: expected the protocol of an evaluation to replay, found none. "
            "Evaluate first: ahalab evaluate."
        )
    evaluated = decode_file(read_plain(first), Protocol, str(first))
    differing = beyond_machine(evaluated, protocol)
    if differing:
        raise ProtocolError(
            f"{first}: expected a replay to differ in {', '.join(MACHINE_FIELDS)} at most, found "
            f"{'; '.join(differing)}. Replay with the ahalab and the files that evaluated."
        )


def beyond_machine(evaluated: Protocol, here: Protocol) -> list[str]:
    """Return each field that differs, both values, but for those of the machine that generates."""
    return [
        f"{field}: {there!r} there, {now!r} now"
        for field, (there, now) in differing_fields(evaluated, here).items()
        if not covers(MACHINE_FIELDS, field)
    ]
