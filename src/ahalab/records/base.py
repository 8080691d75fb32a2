"""What every record shares: strict structs, canonical JSON, digests, placed errors."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from ahalab.errors import RecordError


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A strict struct: an unknown field, a missing field or a wrong type is an error."""


R = TypeVar("R")
FURTHEST = 1e100  # a number in a record; what is squared and summed stays a float
# A number beyond 64 bits or beyond that, unless it stands in a text.
_MAYBE_BEYOND = re.compile(rb"[:,\[\s]-?(?:[0-9]{19,}|[0-9.]+e\+[0-9]{3})[,\]}\s]")
_CANONICAL = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def encode(record: msgspec.Struct) -> bytes:
    """Return the canonical JSON of a record: ASCII, no white space, fields in schema order.

    Raises:
        ValueError: A float is NaN or infinite; unknown is `None`, never NaN.
    """
    return _CANONICAL.encode(msgspec.to_builtins(record)).encode()


def encode_pretty(record: msgspec.Struct) -> bytes:
    """Return the JSON of a single-record file: indented, ASCII, ending in a newline.

    Raises:
        ValueError: A float is NaN or infinite.
    """
    # As json.dumps(indent=1) writes it, which is Python and takes ten times as long.
    return msgspec.json.format(encode(record), indent=1) + b"\n"


def decode_row(payload: bytes, kind: type[R], place: str) -> R:
    """Read one row strictly: it must be exactly what `encode` writes.

    Comparing with the canonical form catches, in one check, what a JSON parser forgives: a key
    twice, a missing field that has a default, `1` for `1.0`, white space, text that is not escaped.

    Args:
        payload: JSON bytes of one row, without its newline.
        kind: The record type expected.
        place: `file:line`, for the error message.

    Raises:
        RecordError: The bytes are not such a row; the message names place and field.
    """
    return _decode(payload, kind, place, encode)


def _is_plain(payload: bytes, kind: object) -> bool:
    """Say whether bytes that msgspec writes are those that `encode` writes."""
    return payload.isascii() and b"\x7f" not in payload and not _holds_float(kind)


@cache
def _holds_float(kind: object) -> bool:
    """Say whether a float may stand somewhere in a type: those are written in more than one way."""
    parts: list[Any] = [msgspec.inspect.type_info(kind)]
    seen: set[object] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, msgspec.inspect.FloatType | msgspec.inspect.AnyType):
            return True
        if isinstance(part, msgspec.inspect.StructType):
            if part.cls not in seen:
                parts += [field.type for field in part.fields]
            seen.add(part.cls)
        for name in ("types", "item_types"):
            parts += getattr(part, name, ())
        parts += [
            getattr(part, n) for n in ("item_type", "key_type", "value_type") if hasattr(part, n)
        ]
    return False


def decode_file(payload: bytes, kind: type[R], place: str) -> R:
    """Read a single-record file strictly: it must be exactly what `encode_pretty` writes.

    Raises:
        RecordError: The bytes are not such a record; the message names place and field.
    """
    return _decode(payload, kind, place, encode_pretty)


def _decode(
    payload: bytes, kind: type[R], place: str, canonical: Callable[[msgspec.Struct], bytes]
) -> R:
    name = getattr(kind, "__name__", str(kind))
    try:
        record = msgspec.json.decode(payload, type=kind)
        if _MAYBE_BEYOND.search(payload):
            json.loads(payload, parse_int=_require_64_bits, parse_float=_require_near)
        if (
            canonical is encode
            and _is_plain(payload, kind)
            and msgspec.json.encode(record) == payload  # ten times as fast
        ):
            return record
        written = canonical(cast(msgspec.Struct, record))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RecordError(f"{place}: expected a {name} record, found: {error}.") from error
    if written != payload:
        at = next((i for i, (a, b) in enumerate(zip(written, payload, strict=False)) if a != b), -1)
        raise RecordError(
            f"{place}: expected a {name} record in canonical form, found a difference at byte "
            f"{at if at >= 0 else min(len(written), len(payload))} (a key twice, a field missing, "
            "or text edited by hand?)."
        )
    return record


def _require_64_bits(digits: str) -> None:
    """Refuse a whole number that floats, databases and other languages' readers can't hold."""
    if not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"a whole number of more than 64 bits, {digits[:40]}")


def _require_near(digits: str) -> None:
    """Refuse a number whose square, or a sum of whose squares, no float holds."""
    if not abs(float(digits)) <= FURTHEST:
        raise ValueError(f"a number beyond {FURTHEST:g}, {digits[:40]}")


def digest(record: msgspec.Struct) -> str:
    """Return the sha256 of a record's canonical JSON, as `sha256:` and 64 hex digits."""
    return digest_bytes(encode(record))


def digest_bytes(payload: bytes) -> str:
    """Return the sha256 of bytes, as `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(payload).hexdigest()


def to_plain(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as plain dicts and lists, as its JSON would read back."""
    built: dict[str, Any] = msgspec.to_builtins(record)
    return built
