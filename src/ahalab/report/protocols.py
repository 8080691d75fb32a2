"""Under which protocols the answers came about, and what came of generating them again."""

from __future__ import annotations

from collections.abc import Iterator

from ahalab.records.replay import Replay, ReplayedAnswers
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table


def protocol_held(study: Study) -> tuple[str, bool]:
    """Return whether one protocol was kept, and in what not."""
    excepted = [f"{a.field} of {_set(a.answers)}" for a in study.comparison.allowed or ()]
    if excepted:
        return f"differs by exception (--allow) in {', '.join(excepted)}", False
    if study.unequal:
        return f"differs in {', '.join(study.unequal)}", False
    return "equal for every answer set", True


def exception_lines(study: Study) -> Iterator[str]:
    """Yield every exception to the one protocol, with both values."""
    for a in study.comparison.allowed or ():
        yield f"{a.field}: {a.found} for {_set(a.answers)}, {a.base} for the base"


def replay_held(replay: Replay) -> tuple[str, bool]:
    """Return in one line what came of the replay, and whether it speaks for the evaluation."""
    fields = sorted({one.field for replayed in replay.sets for one in replayed.protocol})
    told = f"{replay.equal:,} of {replay.n:,} answers equal"
    told += f", under another {', '.join(fields)}" if fields else ", under the same protocol"
    if replay.equal < replay.n:
        told += f"; strict {_flips(replay, 'strict')}, lenient {_flips(replay, 'lenient')}"
    ends = {
        "stands": f"the conclusion stands ({replay.verdicts} verdicts)",
        "changed": f"{len(replay.changed)} of {replay.verdicts} verdicts change",
        "not drawn": f"no conclusion, not generated again: {', '.join(replay.missing)}",
    }
    held = replay.conclusion != "changed" and all(s.equal == s.n or s.protocol for s in replay.sets)
    return f"{told}; {ends[replay.conclusion]}", held


def replay_lines(study: Study) -> Iterator[str]:
    """Yield the replay's line, and one for each field in which its protocols differ."""
    if study.replay is None:
        return
    yield replay_held(study.replay)[0]
    for replayed in study.replay.sets:
        for one in replayed.protocol:
            yield f"{one.field}: {one.again}, was {one.first}"
    for change in study.replay.changed:
        seed = "" if change.seed is None else f", seed {change.seed}"
        whom = f"{change.arm}{seed} against {change.against}, {change.metric}"
        yield f"verdict of {whom}: {change.again}, was {change.first}"


def replay_table(study: Study) -> Table | None:
    """Return each answer set beside its replay; the row of all prints claims."""
    if study.replay is None:
        return None
    sets = tuple(
        _row(_set(one.answers), one, place=f"sets/{at}/")
        for at, one in enumerate(study.replay.sets)
    )
    return Table(
        caption="Answers generated again from saved weights, beside the evaluation's.",
        columns=(
            "answer set", "answers", "equal", "strict, now correct", "strict, no longer",
            "lenient, now correct", "lenient, no longer",
        ),
        rows=(*sets, _row("all", study.replay, "replay.")),
        files=("analysis/replay.json",) * (len(sets) + 1),
    )  # fmt: skip


def _row(
    name: str, found: Replay | ReplayedAnswers, prefix: str = "", place: str = ""
) -> tuple[Cell, ...]:
    fields = ("n", "equal", "strict_gained", "strict_lost", "lenient_gained", "lenient_lost")
    return (
        Cell(name),
        *(
            Cell(
                f"{getattr(found, field):,}",
                claim=f"{prefix}{field}" if prefix else None,
                field=f"{place}{field}" if place else None,
            )
            for field in fields
        ),
    )


def _flips(replay: Replay, metric: str) -> str:
    gained, lost = (getattr(replay, f"{metric}_{way}") for way in ("gained", "lost"))
    return f"+{gained} \N{MINUS SIGN}{lost}"


def _set(answers: str) -> str:
    return answers.removesuffix("/answers")
