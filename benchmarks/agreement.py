"""How far the evaluation scorer agrees with labels that others gave to real responses.

Run as `python -m benchmarks.agreement`. Each kind of disagreement is explained, with who is right,
in docs/scoring.md, "Agreement with others' labels".
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.scoring.answers import SCORER_VERSION, Asked, Score, score_answer

ROOT = Path(__file__).resolve().parents[1]
SHOWN = 20
"""Disagreements shown of each kind, without `--all`."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One response that others have labelled."""

    name: str  # where it stands in its source
    response: str
    gold: str
    asked: Asked
    right: bool  # the label, as a verdict on the answer
    label: str  # the label as it stands in the source
    label_read: str | None  # what the label's own extraction took, where the source says


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row on which at least one reading differs from the label."""

    kind: str
    readings: str  # strict, lenient or both
    row: Labelled
    score: Score

    def line(self) -> str:
        """Show the row compactly: id, gold, extracted, rule, outcomes, label."""
        lenient = self.score.lenient
        return (
            f"    {self.row.name}  gold={self.row.gold!r}  extracted={_cut(lenient.extracted)}"
            f"  rule={lenient.rule}  strict={self.score.strict.outcome}"
            f"  lenient={lenient.outcome}  label={self.row.label}"
            f"  label_read={_cut(self.row.label_read)}  differs={self.readings}"
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """What one source came to."""

    source: str
    rows: int
    strict: int  # rows whose strict outcome agrees with the label
    lenient: int
    disagreements: tuple[Disagreement, ...]

    def by_kind(self) -> dict[str, list[Disagreement]]:
        """Group the disagreements, most frequent kind first."""
        grouped: dict[str, list[Disagreement]] = defaultdict(list)
        for one in self.disagreements:
            grouped[one.kind].append(one)
        return dict(sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])))


def shared_data() -> Path:
    """Find the folder of real data: AHALAB_SHARED, by default `../shared`."""
    return Path(os.environ.get("AHALAB_SHARED", ROOT.parent / "shared")) / "data"


def json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read JSONL, split on bytes."""
    for line in path.read_bytes().split(b"\n"):
        if line:
            yield json.loads(line)


def gsm8k_openai(folder: Path) -> Iterator[Labelled]:
    """Four models of OpenAI, whose answers end in a line `A: N`."""
    asked_format = r"pattern:\nA:[ \t]*([^\n]*)"
    for row in json_rows(folder / "gsm8k_openai" / "example_model_solutions_long.jsonl"):
        yield Labelled(
            name=f"{row['i']}/{row['model']}",
            response=row["solution"],
            gold=row["gold"],
            asked=Asked(asked_format, prompt=row["question"]),
            right=row["is_correct"],
            label=str(row["is_correct"]).lower(),
            label_read=None,
        )


def curious_qwen2(folder: Path) -> Iterator[Labelled]:
    """Qwen2-0.5B before and after GRPO; the label is its strict training reward (1, 0, -1)."""
    path = folder / "curious_qwen2_0p5b_base_vs_grpo" / "paired_long.jsonl"
    for row in json_rows(path):
        yield Labelled(
            name=f"{row['row']}/{row['model']}",
            response=row["completion"],
            gold=str(row["gold"]),
            asked=Asked("answer_tag", prompt=row["question"]),
            right=row["reward"] == 1,
            label=f"{row['reward']:g}",
            label_read=None,
        )


def qwen25math(folder: Path) -> Iterator[Labelled]:
    """Eight answers to each of 100 MATH problems, labelled by Qwen2.5-Math's own grader."""
    for row in json_rows(folder / "qwen25math" / "math_cot_100.jsonl"):
        answers = zip(row["code"], row["score"], row["pred"], strict=True)
        for number, (response, label, read) in enumerate(answers):
            yield Labelled(
                name=f"{row['idx']}/{number}",
                response=response,
                gold=row["answer"],
                asked=Asked("boxed", "math", row["question"]),
                right=label,
                label=str(label).lower(),
                label_read=read,
            )


SOURCES = {
    "gsm8k_openai": gsm8k_openai,
    "curious_qwen2": curious_qwen2,
    "qwen25math": qwen25math,
}


def kind_of(row: Labelled, score: Score) -> str:
    """Name the kind of a disagreement, by rules on the row alone."""
    lenient = score.lenient
    if row.right:
        return "scorer read no value" if lenient.outcome != "wrong" else "scorer read another value"
    if score.strict.outcome != "correct":
        return "answer outside the asked format"
    if row.asked.answer_format == "answer_tag" and "</answer>" not in row.response:
        return "answer tag left open"
    if row.label_read is None:
        return "label read no value"
    if row.label_read == lenient.extracted:
        return "label did not read the gold"
    return "label lost part of the answer"


def agreement(source: str, rows: Iterator[Labelled], limit: int | None = None) -> Agreement:
    """Score one source and collect where the verdicts differ.

    Args:
        source: Its name.
        rows: Its labelled responses.
        limit: Rows to read; None reads all.

    Returns:
        The counts (rows) and every disagreement, in the source's order.
    """
    read = strict = lenient = 0
    differing = []
    for row in rows:
        if read == limit:
            break
        score = score_answer(row.response, row.gold, asked=row.asked)
        strict_agrees = (score.strict.outcome == "correct") == row.right
        lenient_agrees = (score.lenient.outcome == "correct") == row.right
        read, strict, lenient = read + 1, strict + strict_agrees, lenient + lenient_agrees
        if strict_agrees and lenient_agrees:
            continue
        readings = "lenient" if strict_agrees else "strict" if lenient_agrees else "both"
        differing.append(Disagreement(kind_of(row, score), readings, row, score))
    return Agreement(source, read, strict, lenient, tuple(differing))


def table(found: Sequence[Agreement]) -> str:
    """Lay out the agreement of every source."""
    lines = [f"{'source':<16}{'rows':>7}{'strict':>9}{'%':>8}{'lenient':>9}{'%':>8}"]
    for one in found:
        lines.append(
            f"{one.source:<16}{one.rows:>7,}{one.strict:>9,}{one.strict / one.rows:>8.2%}"
            f"{one.lenient:>9,}{one.lenient / one.rows:>8.2%}"
        )
    return "\n".join(lines)


def disagreements(one: Agreement, every: bool) -> str:
    """List the disagreements of a source, grouped by kind."""
    lines = []
    for kind, members in one.by_kind().items():
        lines.append(f"\n{one.source}: {kind} ({len(members)})")
        shown = members if every else members[:SHOWN]
        lines.extend(member.line() for member in shown)
        if len(shown) < len(members):
            lines.append(f"    ... and {len(members) - len(shown)} more (--all)")
    return "\n".join(lines)


def figures(found: Sequence[Agreement], absent: Sequence[str]) -> Mapping[str, object]:
    """Gather the figures for the last line."""
    sources = {
        one.source: {
            "rows": one.rows,
            "strict_agree": one.strict,
            "lenient_agree": one.lenient,
            "kinds": {
                kind: {
                    "rows": len(members),
                    "strict": sum(member.readings != "lenient" for member in members),
                    "lenient": sum(member.readings != "strict" for member in members),
                }
                for kind, members in one.by_kind().items()
            },
        }
        for one in found
    }
    return {
        "benchmark": "agreement",
        "scorer_version": SCORER_VERSION,
        "sources": sources,
        "absent": list(absent),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; exit 2 when no source is here."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--source", action="append", choices=sorted(SOURCES), help="only this one")
    parser.add_argument("--limit", type=int, help="only the first rows of each source")
    parser.add_argument("--all", action="store_true", help="list every disagreement")
    options = parser.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        parser.error(f"--limit: expected 1 or more rows, found {options.limit}.")
    folder = shared_data()
    found, absent = [], []
    for source in options.source or SOURCES:
        try:
            found.append(agreement(source, SOURCES[source](folder), options.limit))
        except FileNotFoundError as error:
            absent.append(source)
            print(
                f"{source}: {error.filename} is not here. Set AHALAB_SHARED to the shared folder."
            )
    if not found:
        print(json.dumps(figures(found, absent)))
        return 2
    print(table(found))
    for one in found:
        if one.disagreements:
            print(disagreements(one, options.all))
    print(json.dumps(figures(found, absent)))
    return 0


def _cut(text: str | None, width: int = 48) -> str:
    if text is None:
        return "-"
    return repr(text if len(text) <= width else text[: width - 3] + "...")


if __name__ == "__main__":
    sys.exit(main())
