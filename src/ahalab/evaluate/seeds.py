"""Seeds of single rows, for backends that are handed one row at a time."""

from __future__ import annotations

import hashlib


def row_seed(seed: int, row: int, sample: int) -> int:
    """Return the seed of one row: its batch's, its place there, and the sample.

    31 bits: some servers read a seed as a signed number, and one takes 2^32 - 1 for "none".
    """
    text = f"{seed}|{row}|{sample}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1
