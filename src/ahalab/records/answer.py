"""The evaluation: its protocol, and one answer under it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from ahalab.records.base import Record, digest_bytes, encode
from ahalab.records.terms import Finish, Outcome, Side


class Protocol(Record, frozen=True, kw_only=True):
    """All that fixes how answers are produced and scored."""

    schema: Literal["ahalab.protocol/1"] = "ahalab.protocol/1"
    plan_digest: str
    answer_format: str
    task: str
    prompts_digest: str
    template_digest: str
    tokenizer_digest: str
    base_digest: str
    adapter_digest: str | None  # None: the base answers
    generation: dict[str, Any]  # every generation field
    dtype: str
    device: str
    backend: str
    versions: dict[str, str]
    batch_size: int
    seed: int
    samples: int
    scorer_version: str
    adapter_mode: Literal["unmerged"] = "unmerged"


def comparable_digest(protocol: Protocol) -> str:
    """Return the digest of everything but the adapter: equal digests may be compared."""
    return digest_bytes(encode(replace(protocol, adapter_digest=None)))


class Answer(Record, frozen=True, kw_only=True):
    """One completion of the evaluation, with its outcomes."""

    schema: Literal["answer/1"] = "answer/1"
    protocol: str  # digest of the Protocol
    side: Side
    prompt_id: str
    sample: int
    completion: str
    completion_ids: tuple[int, ...]
    finish: Finish
    extracted: str | None  # by the lenient reading
    rule: str  # the rule that took it
    status: str  # of the lenient reading: "ok", or why there is no verdict on a value
    strict: Outcome
    lenient: Outcome
