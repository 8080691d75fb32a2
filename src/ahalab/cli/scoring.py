"""`ahalab score`: score one response, or a JSONL file, from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ahalab.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from ahalab.scoring.worker import LatexPool

MAX_TIME_LIMIT_S = 600


def score(
    source: Annotated[
        str,
        typer.Argument(
            help="A JSONL file, `-` for stdin, or a response with --gold.", metavar="FILE"
        ),
    ],
    gold: Annotated[
        str | None, typer.Option(help="Gold answer: FILE is then one response's text.")
    ] = None,
    answer_format: Annotated[
        str, typer.Option(help="Asked format: hashes, boxed, answer_tag.")
    ] = "hashes",
    task: Annotated[str, typer.Option(help="gsm8k, math or countdown.")] = "gsm8k",
    output: FormatOption = Format.text,
) -> None:
    """Score responses, showing the rule and the span taken."""
    from ahalab.scoring.worker import LatexPool

    rows: Iterator[tuple[str, dict[str, Any]]]
    if gold is not None:
        response = _stdin_text() if source == "-" else source
        rows = iter([("response", {"response": response, "gold": gold})])
    else:
        rows = _rows(source)
    defaults = {"answer_format": answer_format, "task": task}
    with LatexPool() as pool:  # starts a process at the first row that needs one
        for place, row in rows:
            given = {key: value for key, value in row.items() if value is not None}
            _print(_scored(place, {**defaults, **given}, pool), output)


def _stdin_text() -> str:
    from ahalab.errors import InputError

    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"-: expected UTF-8 text, found a bad byte at {error.start}.") from error


def _rows(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    from ahalab.errors import InputError
    from ahalab.records.foreign import MAX_LINE_BYTES, read_json

    try:
        file = sys.stdin.buffer if source == "-" else Path(source).open("rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{source}: expected a JSONL file, found: {error.strerror}.") from error
    empty = True
    with file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES + 1), b"")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = f"{source}:{number}"
            try:
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")
                row = read_json(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{place}: expected a JSON object, found: {error}.") from error
            if not isinstance(row, dict) or "response" not in row or "gold" not in row:
                raise InputError(f"{place}: expected an object with `response` and `gold`.")
            empty = False
            yield place, row
    if empty:
        raise InputError(f"{source}: expected at least one row, found an empty file.")


def _time_limit(place: str, row: dict[str, Any]) -> float:
    from ahalab.errors import InputError
    from ahalab.scoring.worker import DEFAULT_SECONDS

    limit = row.get("time_limit_s", DEFAULT_SECONDS)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise InputError(f"{place}: expected seconds in `time_limit_s`, found {limit!r:.80}.")
    if not 0 < limit <= MAX_TIME_LIMIT_S:  # nor NaN
        raise InputError(
            f"{place}: expected time_limit_s above 0 and at most {MAX_TIME_LIMIT_S}, "
            f"found {limit!r:.80}."
        )
    return float(limit)


def _scored(place: str, row: dict[str, Any], pool: LatexPool) -> dict[str, Any]:
    from ahalab.errors import InputError
    from ahalab.records.terms import Finish
    from ahalab.scoring.answers import Asked, score_answer

    finish = row.get("finish_reason") or "eos"
    if finish not in get_args(Finish):
        raise InputError(
            f"{place}: expected finish_reason {', '.join(get_args(Finish))}, found {finish!r}."
        )
    response, gold = row.get("response"), row.get("gold")
    if not isinstance(response, str):
        raise InputError(f"{place}: expected text in `response`, found {type(response).__name__}.")
    for key in ("answer_format", "task", "prompt"):
        if not isinstance(row.get(key), str | None):
            raise InputError(f"{place}: expected text in `{key}`, found {row[key]!r:.80}.")
    asked = Asked(answer_format=row["answer_format"], task=row["task"], prompt=row.get("prompt"))
    text = gold if isinstance(gold, str) else json.dumps(gold)
    decider = pool.within(_time_limit(place, row))  # asked only in mathematics
    try:
        scored = score_answer(response, text, cast("Finish", finish), asked, decider)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error
    return {
        "id": row.get("id"),
        **({"sample": row["sample"]} if "sample" in row else {}),
        "strict": scored.strict.outcome,
        "lenient": scored.lenient.outcome,
        "extracted": scored.lenient.extracted,
        "rule": scored.lenient.rule,
        "status": scored.lenient.status,
        "span": scored.lenient.span,
        "response": response,
    }


def _print(scored: dict[str, Any], output: Format) -> None:
    from ahalab.cli.output import print_score

    if output is Format.json:
        keys = ("id", "sample", "strict", "lenient", "extracted", "rule", "status")
        shown = {key: scored[key] for key in keys if key in scored}  # a row may have no `sample`
        typer.echo(json.dumps(shown, separators=(",", ":")))
    else:
        print_score(scored)
