"""Benchmarks: each prints a table and, as its last line, one JSON object with its figures."""

from __future__ import annotations

import argparse


def at_least_one(text: str) -> int:
    """Read a count from the command line.

    Raises:
        ArgumentTypeError: It is no whole number from 1 on.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)
