"""Inputs: a piece of the corpus with some edits, or bytes of the format's own pieces."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

LARGEST = 1 << 16  # of one input
Edit = tuple[int, int, bytes]  # where, how many bytes go, what comes instead


def edited(payload: bytes, edits: Sequence[Edit]) -> bytes:
    """Return bytes after some edits; each is placed modulo the length that it meets."""
    for at, gone, come in edits:
        start = at % (len(payload) + 1)
        payload = payload[:start] + come + payload[start + gone :]
    return payload[:LARGEST]


def inputs(corpus: Sequence[bytes], pieces: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return hypothesis's inputs of a target: what it finds, it makes small."""
    piece = st.sampled_from(pieces) | st.binary(max_size=4)
    edit = st.tuples(st.integers(0, LARGEST), st.integers(0, 40), piece)
    changed = st.builds(edited, st.sampled_from(corpus), st.lists(edit, max_size=6))
    return changed | st.lists(piece, max_size=30).map(b"".join)


def mutant(rng: random.Random, corpus: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """Return one input, ten times as fast as hypothesis draws it."""
    payload = rng.choice(corpus)
    for _ in range(1 << rng.randrange(4)):
        payload = rng.choice(_CHANGES)(rng, payload, corpus, pieces)
    return payload[:LARGEST]


def _flip(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    return edited(payload, [(rng.randrange(LARGEST), 1, bytes([rng.randrange(256)]))])


def _insert(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    return edited(payload, [(rng.randrange(LARGEST), rng.choice((0, 0, 1, 9)), rng.choice(pieces))])


def _cut(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    return edited(payload, [(rng.randrange(LARGEST), 1 << rng.randrange(9), b"")])


def _double(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    start = rng.randrange(len(payload) + 1)
    part = payload[start : start + (1 << rng.randrange(9))]
    return edited(payload, [(rng.randrange(LARGEST), 0, part * rng.choice((1, 1, 1, 50)))])


def _splice(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    other = rng.choice(corpus)
    return payload[: rng.randrange(len(payload) + 1)] + other[rng.randrange(len(other) + 1) :]


def _number(
    rng: random.Random, payload: bytes, corpus: Sequence[bytes], pieces: Sequence[bytes]
) -> bytes:
    """Put an odd number, or an odd value, in the place of a number."""
    digits = [at for at, byte in enumerate(payload) if 48 <= byte <= 57]
    if not digits:
        return payload
    start = end = rng.choice(digits)
    while end < len(payload) and 48 <= payload[end] <= 57:
        end += 1
    return edited(payload, [(start, end - start, rng.choice(_NUMBERS))])


_NUMBERS = (b"0", b"-1", b"1.5", b"1e400", b"-0.0", b"9223372036854775808", b"4294967296", b"[]",
            b"NaN", b"null", b"true", b'""', b"{}", b"9" * 400, b"9" * 5_000)  # fmt: skip
_Change = Callable[[random.Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]
_CHANGES: tuple[_Change, ...] = (_flip, _insert, _cut, _double, _splice, _number)
