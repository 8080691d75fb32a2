"""How a replay is printed: rows, words, and whether the verdicts stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ahalab.analyze.replay import changed_verdict
from ahalab.cli.output import harmless, results_console, results_table

if TYPE_CHECKING:
    from ahalab.records.replay import Replay, ReplayedAnswers

KEY = (
    "equal: to the byte, apart from the digest of the protocol. strict, lenient: answers that "
    "became correct (+) and that no longer are (\N{MINUS SIGN})."
)


def print_replay(replay: Replay) -> None:
    """Print a row per answer set, in what the protocols differ, and whether the verdicts stand."""
    table = results_table(("generated again",), ("answers", "equal", "share", "strict", "lenient"))
    for one in replay.sets:
        name = one.answers.removesuffix("/answers").removeprefix("arms/")
        table.add_row(harmless(name), *_figures(one))
    table.add_row("all", *_figures(replay))
    console = results_console()
    console.print(table)
    console.print(Text(f"\n{KEY}\n"))
    for line in _protocol_lines(replay.sets):
        console.print(Text(harmless(line)))
    console.print(Text(f"\n{harmless(conclusion(replay))}"))


def conclusion(replay: Replay) -> str:
    """Return in words whether the conclusion stands."""
    if replay.conclusion == "not drawn":
        return f"No conclusion is drawn: {', '.join(replay.missing)} not generated again."
    if replay.conclusion == "stands":
        return f"The conclusion stands: all {replay.verdicts} verdicts come out again."
    told = "".join(f"\n  {changed_verdict(change)}" for change in replay.changed)
    return (
        f"The conclusion DOES NOT stand: {len(replay.changed)} of {replay.verdicts} verdicts "
        f"change.{told}"
    )


def _figures(found: Replay | ReplayedAnswers) -> tuple[str, ...]:
    minus = "\N{MINUS SIGN}"
    return (
        str(found.n),
        str(found.equal),
        f"{share(found.equal, found.n)} %",
        f"+{found.strict_gained} {minus}{found.strict_lost}",
        f"+{found.lenient_gained} {minus}{found.lenient_lost}",
    )


def share(equal: int, n: int) -> str:
    """Return a share in percent, rounded down, so that 100 is said of all alone."""
    hundredths = 10_000 * equal // n
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def _protocol_lines(sets: Sequence[ReplayedAnswers]) -> list[str]:
    """Return in which fields of the protocol the sets differ from the evaluation's."""
    found: dict[tuple[str, str, str], int] = {}
    for one in sets:
        for d in one.protocol:
            key = (d.field, d.first, d.again)
            found[key] = found.get(key, 0) + 1
    if not found:
        return ["Protocol: the evaluation's, field for field."]
    return [
        "Protocol: other than the evaluation's in",
        *(
            f"  {field}: {again}, was {first}"
            + ("" if count == len(sets) else f" ({count} of {len(sets)} sets)")
            for (field, first, again), count in found.items()
        ),
    ]
