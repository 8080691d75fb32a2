"""Adds continuations to an invented study: their texts are invented, all else is real code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ahalab.evaluate.backends import Opening, Side
from ahalab.evaluate.reflection import ReflectionCheck
from ahalab.plan.cells import BASE, Cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import ReflectionProtocol
from ahalab.scoring.cuts import TURNS
from ahalab.scoring.reflection import MARKERS_VERSION
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.generation import Completion, completion_of
from ahalab.tasks.places import answer_paths
from ahalab.tasks.prepare import read_prompts
from study_builder import END, LIMIT, TOKENIZER, finish, seeded

AGAIN = ("Hmm, no.", "Actually, no.", "Oops.", "Aha.", "Recheck.", "Hold on.", "On second thought.",
         "That is wrong.", "I made a mistake.", "Double check.", "Reconsider.")  # fmt: skip


class Stage:
    """What `ReflectionCheck` asks of the evaluation."""

    def __init__(self, tokenizer: object) -> None:
        self.tokenizer = tokenizer

    def side_of(self, cell: Cell) -> Side:
        return Side(cell.name)

    def check_base(self) -> None:
        """Nothing was loaded."""


class Words:
    """The organism's tokenizer as transformers would hand it over."""

    def __len__(self) -> int:
        return int(TOKENIZER.get_vocab_size())

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        text: str = TOKENIZER.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text


class Author:
    """Finishes completions: a free one mostly as it was, others with and without a marker."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.golds = {prompt.prompt_ids: prompt.gold for prompt in prompts}
        self.side = ""
        self.answers: Mapping[tuple[int, ...], list[Answer]] = {}

    def serve(self, sides: Sequence[Side]) -> None:
        self.side = sides[0].name

    def finish(self, openings: Sequence[Opening], seed: int) -> list[Completion]:
        return [self.one(opening, seed) for opening in openings]

    def one(self, opening: Opening, seed: int) -> Completion:
        gold = self.golds[opening.prompt_ids]
        rng = seeded(f"{self.side}|{opening.prompt_ids}|{seed}")
        value = gold if rng.random() < 0.5 else "7"
        kind = rng.choice(["plain", "plain", "plain", "forward", "back", "never", "cut"])
        if not opening.forbidden:
            answer = rng.choice(self.answers[opening.prompt_ids])
            text = f"No.\n#### {value}" if rng.random() < 0.3 else answer.completion
        elif kind == "never":
            text = self.marked(opening)
        elif kind == "cut":
            text = f"So {value} and then " * LIMIT
        elif kind == "forward" and not opening.ids:
            text = f"I see. Wait, no.\n#### {value}"
        elif kind == "back" and self.text(opening).strip() == "Let me":
            space = "" if self.text(opening).endswith(" ") else " "
            text = f"{space}check it.\n#### {value}"
        elif kind == "back" and self.first("Let") not in opening.forbidden:
            text = f"Let me double-check it.\n#### {value}"
        else:
            text = f" So it is.\n#### {value}"
        ids = [*opening.ids, *TOKENIZER.encode(text).ids]
        ids = ids[:LIMIT] if len(ids) >= LIMIT else [*ids, END]
        return completion_of(ids, frozenset({END}), Words())

    def marked(self, opening: Opening) -> str:
        """Return a text that reflects, and begins with nothing that is forbidden."""
        free = (text for text in AGAIN if self.first(text) not in opening.forbidden)
        return next(free, "Yes. Hmm, no.")

    def first(self, text: str) -> int:
        return int(TOKENIZER.encode(text).ids[0])

    def text(self, opening: Opening) -> str:
        return Words().decode(opening.ids)


class InventedCheck(ReflectionCheck):
    """The causal check with an author in place of a model."""

    def __init__(self, root: Path) -> None:
        self.paths = StudyPaths(root)
        self.plan = load_plan(self.paths.plan)
        prompts = read_prompts(self.paths, "eval")
        self.prompts = {prompt.prompt_id: prompt for prompt in prompts}
        self.stage = Stage(Words())  # type: ignore[assignment]
        self.author = Author(prompts)
        self.__dict__["backend"] = self.author

    def _protocol(self, cell: Cell) -> ReflectionProtocol:
        target = answer_paths(self.paths, cell)
        answered = decode_file(target.protocol.read_bytes(), Protocol, str(target.protocol))
        answers: dict[tuple[int, ...], list[Answer]] = {}
        for _, row in read_rows(target.answers, Answer):
            answers.setdefault(self.prompts[row.prompt_id].prompt_ids, []).append(row)
        self.author.answers = answers
        return ReflectionProtocol(
            answers=digest(answered),
            answering=replace(answered, cells_per_batch=1, companions=()),
            markers=MARKERS_VERSION,
            turns=TURNS,
        )


def add_continuations(root: Path, cells: Sequence[Cell] | None = None) -> Path:
    """Cut every answer with a marker, then analyse, report and seal the study again."""
    check = InventedCheck(root)
    check.finish_answers(cells or [BASE, *training_cells(check.plan)], lambda count: None)
    finish(check.plan, check.paths)
    return root
