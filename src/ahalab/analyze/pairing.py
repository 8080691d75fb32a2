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
from ahalab.errors import InputError, ProtocolError
from ahalab.records.answer import Protocol, without_adapter
from ahalab.records.base import to_plain
from ahalab.records.pair import FieldPair
from ahalab.records.terms import Metric

OWN_PROMPT_ID = re.compile(r"\d{5,}-([0-9a-f]{12})")
"""Position in the set, digest of question and gold (tasks/selection.py)."""
SHOWN = 3
"""Keys named in an error."""

FloatArray = npt.NDArray[np.float64]


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
) -> tuple[FieldPair, ...]:
    """Compare the protocols beside two files, where both have one.

    Args:
        base: The first file.
        adapter: The second file.
        allow: Fields that may differ, nested ones as `generation.max_new_tokens`.

    Returns:
        What differs and was allowed to.

    Raises:
        ProtocolError: More than the adapter differs; each field is named with both values.
        InputError: An allowed field is none of a protocol.
    """
    if base.protocol is None or adapter.protocol is None:
        if allow:
            raise InputError(
                f"--allow {allow[0]}: expected a protocol beside both files, found none to compare."
            )
        return ()
    ours, theirs = _fields(base.protocol), _fields(adapter.protocol)
    known = ours.keys() | theirs.keys()
    for field in allow:
        if field not in known:
            raise InputError(
                f"--allow {field}: expected a field of the protocol, as {', '.join(sorted(known))}."
            )
    differ = [
        FieldPair(field=field, base=ours.get(field, "absent"), adapter=theirs.get(field, "absent"))
        for field in sorted(known)
        if ours.get(field) != theirs.get(field)
    ]
    if refused := [pair for pair in differ if pair.field not in allow]:
        told = "; ".join(f"{pair.field}: {pair.base} and {pair.adapter}" for pair in refused)
        raise ProtocolError(
            f"{base.name} and {adapter.name}: expected one protocol, found different {told}. "
            "Evaluate both under one plan on one machine, or name what may differ: "
            + " ".join(f"--allow {pair.field}" for pair in refused)
        )
    return tuple(differ)


def _fields(protocol: Protocol) -> dict[str, str]:
    """Return all fields but the adapter, nested ones as `generation.max_new_tokens`."""
    found: dict[str, str] = {}
    for key, value in to_plain(without_adapter(protocol)).items():
        inner = {f"{key}.{name}": v for name, v in value.items()} if isinstance(value, dict) else {}
        found |= {name: str(v) for name, v in (inner or {key: value}).items()}
    del found["adapter_digest"], found["companions"]
    return found
