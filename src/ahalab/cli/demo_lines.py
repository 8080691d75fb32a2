"""The demo as lines: saved answers into a pipe, and answers of one's own from stdin."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import typer

from ahalab.cli.output import harmless
from ahalab.demo.pairs import READINGS, ScoredPair, score_text
from ahalab.errors import InputError
from ahalab.records.terms import Metric
from ahalab.scoring.answers import Score

ASKED = {"hashes": "#### N", "boxed": r"\boxed{N}", "answer_tag": "<answer>N</answer>"}
AROUND = 24  # characters shown before and after a span


def show_lines(pairs: Iterable[ScoredPair], metric: Metric) -> None:
    """Print every pair, then how many changed and whether the recorded outcomes came out again."""
    counts: Counter[str] = Counter()
    differing = 0
    scorers: set[str] = set()
    for number, scored in enumerate(pairs, start=1):
        pair, change = scored.pair, scored.change(metric)
        counts[change] += 1
        differing += len(scored.differing())
        scorers.add(pair.scorer_version)
        _echo(f"[{number}] {change} ({metric})")
        _echo(f"question: {pair.question}")
        _echo(f"gold:     {pair.gold}")
        _echo(f"base: {pair.base_completion!r}")
        _echo(f"    {told(pair.base_completion, scored.base)}")
        _echo(f"{pair.arm}, seed {pair.seed}: {pair.adapter_completion!r}")
        _echo(f"    {told(pair.adapter_completion, scored.adapter)}")
        for one in scored.differing():
            _echo(f"    recorded otherwise, {one} (scorer {pair.scorer_version})")
        typer.echo()
    listed = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
    typer.echo(f"Scored live by {metric} reading: {listed or 'no such pair'}.")
    if counts:
        typer.echo(again(4 * counts.total(), differing, scorers))


def again(outcomes: int, differing: int, scorers: Iterable[str]) -> str:
    """Say how many of the recorded outcomes the installed scorer gives too."""
    by = f"Recorded by scorer {', '.join(sorted(scorers))}"
    if not differing:
        return f"{by}: all {outcomes} outcomes come out again."
    return f"{by}: {differing} of {outcomes} outcomes do not come out again."


def told(text: str, score: Score) -> str:
    """Return one line on a scored answer: outcomes, rule, and the span within its surroundings."""
    outcomes = ", ".join(f"{metric} {getattr(score, metric).outcome}" for metric in READINGS)
    taken = score.lenient
    if taken.span is None:
        return f"{outcomes}; no answer taken ({taken.status})"
    start, end = taken.span
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    if start > AROUND:
        before = "…" + before
    if end + AROUND < len(text):
        after += "…"
    marked = f"{before}[{text[start:end]}]{after}".replace("\n", " ")
    return f"{outcomes}; rule {taken.rule}, characters {start} to {end}: {marked}"


def ask(pairs: Iterable[ScoredPair], *, prompting: bool) -> None:
    """Put each question, read a line as the answer to it, and score it; until the input ends."""
    right: Counter[str] = Counter()
    count = 0
    lines = iter(typed_line, None) if prompting else _piped_lines()
    for number, scored in enumerate(pairs, start=1):
        pair = scored.pair
        _echo(f"[{number}] {pair.question}")
        if number == 1:
            form = ASKED.get(pair.answer_format, pair.answer_format)
            _echo(f"    Asked format: {form} (strict); stated otherwise it counts as lenient.")
        text = next(lines, None)
        if text is None:
            typer.echo()
            break
        own = score_text(pair, text)
        count += 1
        right.update(m for m in READINGS if getattr(own, m).outcome == "correct")
        _echo(f"    {told(text, own)}")
        base, adapter = (s.lenient.extracted for s in (scored.base, scored.adapter))
        _echo(f"    gold {pair.gold}; base answered {base}, {pair.arm} {adapter}\n")
    typer.echo(
        f"Yours: {right['strict']} of {count} strict, {right['lenient']} of {count} lenient."
    )


def typed_line() -> str | None:
    """Read a line that a person types, with line editing; None at the end of the input.

    Raises:
        InputError: It is not UTF-8.
    """
    import readline  # noqa: F401 - gives `input` its line editing

    try:
        return input("your answer> ")
    except EOFError:
        return None
    except UnicodeDecodeError as error:
        raise InputError(f"stdin: expected UTF-8 text, found: {error.reason}.") from error


def _piped_lines() -> Iterator[str]:
    """Yield the lines of stdin; split on bytes, since a text may hold U+2028.

    Raises:
        InputError: A line is not UTF-8.
    """
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"stdin:{number}: expected UTF-8 text, found a bad byte at {error.start}."
            ) from error


def _echo(text: str) -> None:
    typer.echo(harmless(text))
