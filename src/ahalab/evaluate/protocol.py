"""The protocol of an evaluation: every choice that fixes how an answer comes about."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ahalab.errors import ProtocolError
from ahalab.records.answer import Protocol
from ahalab.records.base import digest, digest_bytes, encode, to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.tasks.generation import greedy_fields
from ahalab.tasks.questions import scoring_task

BACKEND = "transformers"


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


def make_protocol(
    plan: Plan, prompts: list[Prompt], weights: dict[str, str | None], how: dict[str, Any]
) -> Protocol:
    """Return the protocol of one answer set.

    Args:
        plan: The resolved plan.
        prompts: The evaluation prompts, in order.
        weights: `template`, `tokenizer`, `base` and `adapter` digests.
        how: `generation` fields, `versions`, `batch_size` and `seed`.
    """
    return Protocol(
        plan_digest=digest(plan),
        answer_format=plan.answer_format,
        task=scoring_task(plan.task),
        prompts_digest=prompts_digest(prompts),
        template_digest=str(weights["template"]),
        tokenizer_digest=str(weights["tokenizer"]),
        base_digest=str(weights["base"]),
        adapter_digest=weights["adapter"],
        generation=how["generation"],
        dtype=plan.model.dtype,
        device=f"{plan.model.device}, {plan.model.threads} threads",
        backend=BACKEND,
        versions=how["versions"],
        batch_size=how["batch_size"],
        seed=how["seed"],
        samples=plan.evaluation.samples,
        scorer_version=SCORER_VERSION,
    )


def require_same(expected: Protocol, found: Protocol, place: Path) -> None:
    """Refuse to go on with answers that were begun under another protocol.

    Raises:
        ProtocolError: The fields that differ are named.
    """
    ours, theirs = to_plain(expected), to_plain(found)
    differing = [f"{k}: {ours[k]!r} now, {theirs[k]!r} there" for k in ours if ours[k] != theirs[k]]
    if differing:
        raise ProtocolError(
            f"{place}: expected the protocol of this plan and machine, found another one: "
            f"{'; '.join(differing)}. Remove these answers to generate them again, or use a new "
            "--out."
        )
