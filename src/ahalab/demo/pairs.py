"""Where the demo's pairs come from, and the live scoring of one pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ahalab.errors import InputError, MissingError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import find_cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, decode_row
from ahalab.records.demo import RecordedOutcomes, SavedPair
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Finish, Metric
from ahalab.scoring.answers import Asked, Score, score_answer
from ahalab.scoring.worker import row_decider
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.questions import scoring_task

Change = Literal["gained", "lost", "both right", "both wrong"]
READINGS: tuple[Metric, ...] = ("strict", "lenient")


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair with the verdicts of the scorer that is installed."""

    pair: SavedPair
    base: Score
    adapter: Score

    def change(self, metric: Metric) -> Change:
        """Say what the adapter did to this question."""
        before, after = (
            getattr(score, metric).outcome == "correct" for score in (self.base, self.adapter)
        )
        if before != after:
            return "gained" if after else "lost"
        return "both right" if after else "both wrong"

    def differing(self) -> tuple[str, ...]:
        """Name the readings whose outcome is not the recorded one, as `base, strict: wrong`."""
        sides = (
            ("base", self.base, self.pair.base_recorded),
            (self.pair.arm, self.adapter, self.pair.adapter_recorded),
        )
        return tuple(
            f"{name}, {metric}: {getattr(recorded, metric)}"
            for name, score, recorded in sides
            for metric in READINGS
            if getattr(score, metric).outcome != getattr(recorded, metric)
        )


def score_text(pair: SavedPair, text: str, finish: Finish = "eos") -> Score:
    """Score any answer to a pair's question, with the evaluation scorer."""
    asked = Asked(answer_format=pair.answer_format, task=pair.task, prompt=pair.question)
    return score_answer(text, pair.gold, finish, asked, row_decider(pair.task))


def score_pair(pair: SavedPair) -> ScoredPair:
    """Score both answers now, with the evaluation scorer."""
    return ScoredPair(
        pair,
        score_text(pair, pair.base_completion, pair.base_finish),
        score_text(pair, pair.adapter_completion, pair.adapter_finish),
    )


def packaged_pairs() -> Iterator[SavedPair]:
    """Yield the pairs of the run that ships with the package.

    Raises:
        MissingError: It was left out of this installation.
    """
    saved = files("ahalab.demo").joinpath("saved_run.jsonl")
    if not saved.is_file():
        raise MissingError(f"{saved}: the packaged run is not here. Show a study's: --run DIR.")
    payload = saved.read_bytes()
    for number, line in enumerate(payload.split(b"\n")[:-1], start=1):
        yield decode_row(line, SavedPair, f"saved_run.jsonl:{number}")


def study_pairs(study: Path, cell_name: str | None) -> Iterator[SavedPair]:
    """Yield the pairs of a study on disk: the base and one adapter (the first one by default).

    Raises:
        InputError: There is no such study or cell, or it has no answers yet.
    """
    paths = StudyPaths(study)
    plan = load_plan(paths.plan)
    cell = find_cell(plan, cell_name) if cell_name else training_cells(plan)[0]
    if cell.arm is None or cell.seed is None:
        raise InputError(f"--cell: expected an adapter (arms/ARM/seed-S), found {cell.name}.")
    prompts = {p.prompt_id: p for _, p in read_rows(paths.prompts("eval"), Prompt)}
    adapter = {
        (row.prompt_id, row.sample): row
        for _, row in read_rows(paths.answers(cell.arm, cell.seed).answers, Answer)
    }
    base = [row for _, row in read_rows(paths.base_answers().answers, Answer)]
    scorer_version = _scorer_version(paths)
    for row in sorted(base, key=lambda r: (r.prompt_id, r.sample)):
        other, prompt = adapter.get((row.prompt_id, row.sample)), prompts.get(row.prompt_id)
        if other is None or prompt is None:
            raise InputError(f"{study}: expected an answer to {row.prompt_id} from both sides.")
        yield SavedPair(
            study=plan.name,
            scorer_version=scorer_version,
            arm=cell.arm,
            seed=cell.seed,
            answer_format=plan.answer_format,
            task=scoring_task(plan.task),
            question=prompt.question,
            gold=prompt.gold,
            base_completion=row.completion,
            base_finish=row.finish,
            base_recorded=_recorded(row),
            adapter_completion=other.completion,
            adapter_finish=other.finish,
            adapter_recorded=_recorded(other),
        )


def _recorded(row: Answer) -> RecordedOutcomes:
    return RecordedOutcomes(strict=row.strict, lenient=row.lenient)


def _scorer_version(paths: StudyPaths) -> str:
    """Return the scorer that recorded the outcomes."""
    path = paths.base_answers().protocol
    if not path.is_file():
        raise InputError(f"{path}: expected the protocol of the answers beside it, found none.")
    return decode_file(read_plain(path), Protocol, str(path)).scorer_version


def select(
    pairs: Iterable[SavedPair], wanted: frozenset[str], metric: Metric
) -> Iterator[ScoredPair]:
    """Yield scored pairs whose change is wanted; all when nothing is wanted in particular."""
    for pair in pairs:
        scored = score_pair(pair)
        if not wanted or scored.change(metric) in wanted:
            yield scored


class Deck:
    """The pairs of one filter, each scored when it is first asked for, and then kept."""

    def __init__(self, source: Iterator[ScoredPair]) -> None:
        self._source = source
        self.seen: list[ScoredPair] = []

    def at(self, number: int) -> ScoredPair | None:
        """Return pair `number` (from 0); None behind the last one."""
        while len(self.seen) <= number:
            following = next(self._source, None)
            if following is None:
                return None
            self.seen.append(following)
        return self.seen[number]
