"""The evaluation: its protocol, and one answer under it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from ahalab.records.base import Record, digest_bytes, encode, to_plain
from ahalab.records.terms import Finish, Outcome, Side


class Protocol(Record, frozen=True, kw_only=True):
    """All that fixes how answers are produced and scored."""

    schema: Literal["ahalab.protocol/2"] = "ahalab.protocol/2"
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
    decoder: str  # `rows`: finished rows leave the batch; `generate`: the library's own loop
    versions: dict[str, str]
    batch_size: int  # questions put to each side at once
    cells_per_batch: int  # sides that may share a batch
    companions: tuple[str | None, ...]  # adapters of the sides that shared each batch, in order
    limit: int | None  # questions drawn for a partial evaluation; None: all of them
    seed: int
    samples: int
    scorer_version: str
    adapter_mode: Literal["unmerged"] = "unmerged"


def without_adapter(protocol: Protocol) -> Protocol:
    """Return a protocol without the adapters: what two answer sets must share to be compared."""
    return replace(protocol, adapter_digest=None, companions=())


def comparable_digest(protocol: Protocol) -> str:
    """Return the digest of everything but the adapter: equal digests may be compared."""
    return digest_bytes(encode(without_adapter(protocol)))


# What generates, and where: the fields in which a replay may differ from the evaluation.
MACHINE_FIELDS = ("device", "backend", "decoder", "versions")


def differing_fields(one: Protocol, other: Protocol) -> dict[str, tuple[Any, Any]]:
    """Return both values of every field that differs, nested ones as `generation.top_k`.

    Returns:
        Field to both values, sorted by field; `absent` where one lacks a nested field.
    """
    ours, theirs = _leaves(one), _leaves(other)
    return {
        field: (ours.get(field, "absent"), theirs.get(field, "absent"))
        for field in sorted(ours.keys() | theirs.keys())
        if field not in ours or field not in theirs or _json(ours[field]) != _json(theirs[field])
    }


def as_text(value: Any) -> str:
    """Return a field's value for a record: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Return a value's JSON, in which 1, 1.0 and true are three."""
    return json.dumps(value, ensure_ascii=True)


def covers(names: Iterable[str], field: str) -> bool:
    """Say whether a field is one of these, or nested in one of them."""
    return any(field == name or field.startswith(f"{name}.") for name in names)


def _leaves(protocol: Protocol) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in to_plain(protocol).items():
        inner = {f"{key}.{name}": v for name, v in value.items()} if isinstance(value, dict) else {}
        found |= inner or {key: value}
    return found


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
