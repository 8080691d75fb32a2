"""What a reader sees: each printed number and sentence against the claim or field that it names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any

from ahalab.plain_files import read_plain
from ahalab.records.manifest import Claim
from ahalab.verify.reading import Study
from ahalab.verify.report_page import Printed
from ahalab.visible import plain

FILE = "report.html"
_FIGURE = re.compile(r"([+\u2212-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+))(?:e([+-]?\d+))?")
_POWER = re.compile(r"(\d(?:\.\d+)?) × 10(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RECORDS = re.compile(r"analysis/\w+\.json|arms/[^/]+/seed-\d+/(?:run|diagnostics)\.json")
_STEPS = re.compile(r"arms/[^/]+/seed-\d+/steps\.jsonl")
_ABSENT = object()


def check_printed(study: Study, printed: Iterable[Printed], claims: dict[str, Claim]) -> None:
    """Compare what the page prints with what it names; a table's number must name something."""
    tally = study.ledger["report.bind"]
    files = _Files(study)
    for one in printed:
        values = _claimed(one, claims) if one.claims else files.values(one)
        if not one.claims and not one.fields:
            if figures_in(one.text):
                tally.fail(FILE, one.line, "a number that names a claim or a field", one.text)
            continue
        if values is None:
            what = "a claim of claims.json" if one.claims else f"a field of {one.file}"
            tally.fail(FILE, one.line, what, " ".join(one.claims or one.fields))
        elif _prints(one.text, values):
            tally.passed()
        else:
            named = zip(one.claims or one.fields, values, strict=True)
            told = ", ".join(f"{name} = {value!r}" for name, value in named)
            tally.fail(FILE, one.line, told, one.text)


def _claimed(one: Printed, claims: dict[str, Claim]) -> list[Any] | None:
    if any(name not in claims for name in one.claims):
        return None
    return [claims[name].value for name in one.claims]


def _prints(text: str, values: list[Any]) -> bool:
    """Say whether a text prints these values: a sentence as it is, numbers rounded, in order."""
    if len(values) == 1 and isinstance(values[0], str):
        return _words(text) == _words(values[0])
    if any(not isinstance(value, int | float) for value in values if value is not None):
        return False
    figures, numbers = figures_in(text), [value for value in values if value is not None]
    scale = 100.0 if "%" in text else 1.0
    return all(
        figure is not None and number is not None and rounds_to(number, figure, scale)
        for figure, number in zip_longest(figures, numbers)
    )


def rounds_to(number: float, figure: tuple[float, float], scale: float = 1.0) -> bool:
    """Say whether a number is the printed figure, (value, rounding error), in units of 1/scale."""
    try:
        return abs(scale * number - figure[0]) <= figure[1]
    except OverflowError:  # a whole number that no float holds
        return False


def _words(text: str) -> str:
    """Return a text on one line; what is written out in the page is written out here as well."""
    return plain(" ".join(text.split()))


def figures_in(text: str) -> list[tuple[float, float]]:
    """Return (value, rounding error) of every number that a text prints."""
    power = _POWER.search(text)
    if power:
        return [_figure(power[1], power[2].translate(_SUPERSCRIPTS))]
    return [_figure(match[1], match[2] or "0") for match in _FIGURE.finditer(text)]


def _figure(mantissa: str, exponent: str) -> tuple[float, float]:
    """Return (value, rounding error); what is too large for a float is the rounding of nothing."""
    mantissa = mantissa.replace(",", "").replace("\u2212", "-")
    decimals = len(mantissa.partition(".")[2])
    value, error = float(f"{mantissa}e{exponent}"), 0.51 * 10.0**-decimals * float(f"1e{exponent}")
    return (value, error) if math.isfinite(value) and math.isfinite(error) else (math.inf, 0.0)


class _Files:
    """Values in the study's own files, each read once; other checks recompute these files."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._trees: dict[str, Any] = {}

    def values(self, one: Printed) -> list[Any] | None:
        """Return the values that an element names; None when one is not there."""
        if one.file is None:
            return None
        found = [_walk(self._tree(one.file), name.split("/")) for name in one.fields]
        return None if _ABSENT in found else found

    def _tree(self, name: str) -> Any:
        if name not in self._trees:
            self._trees[name] = self._read(name)
        return self._trees[name]

    def _read(self, name: str) -> Any:
        if ".." in PurePosixPath(name).parts:
            return None
        path = self._study.root / name
        try:
            if _STEPS.fullmatch(name):
                rows = (json.loads(line) for _, line in self._study.lines(path))
                return {str(row["step"]): row for row in rows}
            if _RECORDS.fullmatch(name):
                return json.loads(read_plain(path))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass  # whatever is wrong with the file, other checks say
        return None


def _walk(tree: Any, names: list[str]) -> Any:
    """Return the value at a JSON pointer; a count of outcomes that is not written is 0."""
    for at, raw in enumerate(names):
        name = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, list) and name.isdecimal() and int(name) < len(tree):
            tree = tree[int(name)]
        elif isinstance(tree, dict) and name in tree:
            tree = tree[name]
        elif (
            isinstance(tree, dict)
            and at == len(names) - 1
            and names[at - 1] in ("strict", "lenient")
        ):
            return 0
        else:
            return _ABSENT
    return tree
