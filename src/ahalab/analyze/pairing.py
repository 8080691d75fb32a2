# Axis suffixes: N questions.
"""Lines up two files of answers: by key, never by position, and under one protocol if they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ahalab.analyze.answer_files import AnswerFile
from ahalab.analyze.protocols import FIXED, check_allowed, require_comparable
from ahalab.errors import InputError
from ahalab.records.answer import Protocol
from ahalab.records.comparison import AllowedDifference
from ahalab.records.terms import Metric

OWN_PROMPT_ID = re.compile(r"\d{5,}-([0-9a-f]{12})")
"""Position in the set, digest of question and gold (tasks/selection.py)."""
# Two studies may ask the same questions in the same way under two plans: files may, if told to.
ALWAYS_EQUAL = tuple(field for field in FIXED if field != "plan_digest")
SHOWN = 3
"""Keys named in an error."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Made:
    """A file that has a protocol beside it."""

    name: str
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class Paired:
    """Two files whose answers pair one to one."""

    base: AnswerFile
    adapter: AnswerFile
    keys: tuple[tuple[str, int], ...]  # in the order of the first file
    question: npt.NDArray[np.int64]  # number of each pair's question, shape (pairs,)
    samples: int  # answers to each prompt

    def correct(self, side: AnswerFile, metric: Metric) -> FloatArray:
        """Return the share of right answers to each different question, shape (N,)."""
        right = [getattr(side.rows[key], metric) == "correct" for key in self.keys]
        return np.asarray(
            np.bincount(self.question, weights=np.array(right, dtype=np.float64))
            / np.bincount(self.question),
            dtype=np.float64,
        )


def pair_files(base: AnswerFile, adapter: AnswerFile) -> Paired:
    """Pair the answers of two files by prompt and sample.

    Raises:
        InputError: An answer stands in one file only, or the number of answers differs between
            prompts.
    """
    for one, other in ((base, adapter), (adapter, base)):
        if alone := [key for key in one.rows if key not in other.rows]:
            raise InputError(
                f"{other.name}: expected an answer to each of the {len(one.rows)} in {one.name}, "
                f"found none to {_told(alone)}. Only the same questions can be compared: complete "
                "the file, or take those rows out of the other one and say so."
            )
    counts = Counter(prompt for prompt, _ in base.rows)
    (most, samples), (fewest, fewer) = counts.most_common(1)[0], counts.most_common()[-1]
    if samples != fewer:
        raise InputError(
            f"{base.name}: expected as many answers to every prompt, found {samples} to {most!r} "
            f"and {fewer} to {fewest!r}."
        )
    own = "answers" in (base.kind, adapter.kind)  # the ids of others are theirs to read
    labels = [_question(prompt) if own else prompt for prompt, _ in base.rows]
    numbers: dict[str, int] = {}
    question = [numbers.setdefault(label, len(numbers)) for label in labels]
    return Paired(base, adapter, tuple(base.rows), np.array(question, dtype=np.int64), samples)


def _question(prompt: str) -> str:
    """Return what identifies a question of ours: the digest in its id, after the position."""
    own = OWN_PROMPT_ID.fullmatch(prompt)
    return own.group(1) if own else prompt


def _told(keys: Sequence[tuple[str, int]]) -> str:
    """Name the first keys: `q7`, or `q7 sample 2`."""
    named = [f"{prompt!r}" + (f" sample {sample}" if sample else "") for prompt, sample in keys]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return ", ".join(named[:SHOWN]) + more


def allowed_differences(
    base: AnswerFile, adapter: AnswerFile, allow: Sequence[str]
) -> tuple[AllowedDifference, ...]:
    """Compare the protocols beside two files, where both have one.

    Args:
        base: The first file.
        adapter: The second file.
        allow: Fields that may differ, as `device` or `versions.torch`.

    Returns:
        What differs and was allowed to.

    Raises:
        ProtocolError: More than the adapter differs; each field is named with both values.
        InputError: An allowed field is none of a protocol, or never an exception.
    """
    if base.protocol is None or adapter.protocol is None:
        if allow:
            raise InputError(
                f"--allow {allow[0]}: expected a protocol beside both files, found none to compare."
            )
        return ()
    check_allowed(allow, base.protocol, ALWAYS_EQUAL)
    first, second = _Made(base.name, base.protocol), _Made(adapter.name, adapter.protocol)
    return tuple(require_comparable(first, second, allow, "ahalab compare A B", ALWAYS_EQUAL))
