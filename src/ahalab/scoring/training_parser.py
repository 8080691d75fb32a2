"""The historical parser of the widespread GSM8K GRPO recipe: frozen, faults included.

Rewards of historical runs were computed with it, so it is kept exactly as it was. It never decides
an evaluation (the evaluation scorer is `answers.py`), and its faults are listed in docs/scoring.md.
"""

from __future__ import annotations

import re

from ahalab.records.terms import Outcome

TRAINING_PARSER_VERSION = "1"
"""Never changes meaning: another rule would be another parser."""

_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


def parse(response: str) -> str | None:
    """Take the answer out of a response as the recipe did.

    Args:
        response: The completion, without its prompt.

    Returns:
        The treated answer (possibly empty), or None when the response holds no marker and no digit.
    """
    taken = _take(response)
    return None if taken is None else treat(taken)


def historical_outcome(response: str, gold: str) -> Outcome:
    """Say how the recipe judged a response; it knows nothing of truncation.

    Args:
        response: The completion, without its prompt.
        gold: The gold answer; treated as the response's answer is.

    Returns:
        `correct` when the two treated strings are the same, else `wrong`; `unparsed` when nothing
        was taken.
    """
    answer = parse(response)
    if answer is None:
        return "unparsed"
    return "correct" if answer == treat(gold) else "wrong"


def treat(text: str) -> str:
    """Strip white space, remove `,` and `$`, remove one trailing `.`; in this order, once."""
    return text.strip().replace(",", "").replace("$", "").removesuffix(".")


def _take(response: str) -> str | None:
    _, marker, rest = response.partition("####")
    if marker:
        return rest.partition("\n")[0]
    _, tag, rest = response.rpartition("<answer>")
    if tag:
        return rest.partition("</answer>")[0]
    taken = None
    for match in _NUMBER.finditer(response):
        taken = match.group()
    return taken
