"""The answers that the page holds, base beside adapter, as one compact block for its script.

Every text stands once, however many adapters wrote it. The script builds elements from it as a
reader asks for them, by `textContent` alone, so nothing in it can become markup.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup

from ahalab.records.answer import Answer
from ahalab.records.prompt import Prompt
from ahalab.records.terms import METRICS, Metric, Outcome
from ahalab.report.sources import Study
from ahalab.report.tables import Cell, Table
from ahalab.report.wording import MAX_TEXT, is_plain, marked
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.reading import read_rows, stored_size

MAX_BYTES = 2_400_000  # of answers, of the page's 5 MB
ANSWER_OVERHEAD = 34  # bytes of numbers beside the text of one answer, roughly
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CHANGES = ("gained", "lost", "both right", "both wrong")


@dataclass(frozen=True, slots=True)
class Browser:
    """What the page holds of the answers."""

    block: Markup  # JSON
    questions: int  # on the page
    of: int
    pairs: int  # base and adapter answers on the page
    sampled: Table | None  # what the sample holds, per adapter; None: the page holds everything
    listed: tuple[str, ...]  # prompt ids of the sample, in its order


def browser(paths: StudyPaths, study: Study) -> Browser | None:
    """Return the answers of as many whole questions as fit; None when the base did not answer.

    Questions that some adapter changed come first, in the order of the SHA-256 of their prompt id,
    then the others in the same order: an order that has nothing to do with what was answered. Each
    comes with every arm and seed, so that they can be read side by side.
    """
    if stored_size(paths.base_answers().answers) is None:
        return None
    cells = tuple(
        (arm.name, seed)
        for arm in study.plan.arms
        for seed in study.plan.seeds
        if stored_size(paths.answers(arm.name, seed).answers) is not None
    )
    prompts = [prompt for _, prompt in read_rows(paths.prompts("eval"), Prompt)]
    sets = [paths.base_answers(), *(paths.answers(arm, seed) for arm, seed in cells)]
    kept = _sample(prompts, sets, {c.prompt_id for c in study.changed.changed})
    texts = _Texts()
    shown = [prompt for prompt in prompts if prompt.prompt_id in kept]
    base, *adapters = (_answers(one, kept) for one in sets)
    kinds = _kinds(study)
    block = {
        "outcomes": OUTCOMES,
        "questions": [
            [p.prompt_id, texts.add(p.question), texts.add(p.gold, lines=False)] for p in shown
        ],
        "samples": study.plan.evaluation.samples,
        "sampled": len(shown) < len(prompts),
        "base": [_rows(base.get(p.prompt_id, []), texts) for p in shown],
        "adapters": [
            {
                "arm": arm,
                "seed": seed,
                "answers": [_rows(own.get(p.prompt_id, []), texts) for p in shown],
                "kinds": kinds.get((arm, seed), {}),
            }
            for (arm, seed), own in zip(cells, adapters, strict=True)
        ],
        "texts": texts.held,
    }
    sampled = len(shown) < len(prompts)
    changes = _changes(base, list(zip(cells, adapters, strict=True))) if sampled else {}
    return Browser(
        # ASCII without `<`: no text ends the element, or opens another.
        block=Markup(  # noqa: S704
            json.dumps(block, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
        ),
        questions=len(shown),
        of=len(prompts),
        pairs=sum(len(answers) for own in adapters for answers in own.values()),
        sampled=_table(study, changes) if sampled else None,
        listed=tuple(p for p in kept if sampled),
    )


class _Texts:
    """Texts, each once."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self._places: dict[str, int] = {}

    def add(self, text: str | None, *, lines: bool = True) -> int:
        """Return the place of a text as the page shows it; -1: there is none."""
        if text is None:
            return -1
        shown = marked(text, lines=lines)
        place = self._places.setdefault(shown, len(self.held))
        if place == len(self.held):
            self.held.append(shown)
        return place


def _answers(paths: AnswerPaths, kept: dict[str, int]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for _, answer in read_rows(paths.answers, Answer):
        if answer.prompt_id in kept:
            found.setdefault(answer.prompt_id, []).append(answer)
    for answers in found.values():
        answers.sort(key=lambda answer: answer.sample)
    return found


def _rows(answers: list[Answer], texts: _Texts) -> list[list[int]]:
    """Return each sample as [sample, text, extracted, rule, strict, lenient]."""
    return [
        [
            a.sample, texts.add(a.completion), texts.add(a.extracted, lines=False),
            texts.add(a.rule, lines=False), OUTCOMES.index(a.strict), OUTCOMES.index(a.lenient),
        ]
        for a in answers
    ]  # fmt: skip


def _kinds(study: Study) -> dict[tuple[str, int], dict[str, str]]:
    """Return what stood between a changed answer and a correct one, by `prompt sample metric`."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    for c in study.changed.changed:
        found.setdefault((c.arm, c.seed), {})[f"{c.prompt_id} {c.sample} {c.metric}"] = c.kind
    return found


def _sample(prompts: list[Prompt], sets: list[AnswerPaths], changed: set[str]) -> dict[str, int]:
    """Return the prompt ids kept, in the order in which they were taken, with their bytes."""
    sizes = {p.prompt_id: _bytes(p.question + p.gold) for p in prompts}
    seen: set[int] = set()  # hashes of texts that the block will hold once
    for one in sets:
        for _, answer in read_rows(one.answers, Answer):
            if answer.prompt_id not in sizes:
                continue
            sizes[answer.prompt_id] += ANSWER_OVERHEAD
            text = hash((answer.prompt_id, answer.completion))
            if text not in seen:
                seen.add(text)
                sizes[answer.prompt_id] += _bytes(answer.completion)
    kept: dict[str, int] = {}
    size = 0
    for prompt in sorted(
        sizes, key=lambda p: (p not in changed, hashlib.sha256(p.encode()).digest())
    ):
        size += sizes[prompt]
        if size > MAX_BYTES and kept:
            break
        kept[prompt] = sizes[prompt]
    return kept


def _bytes(text: str) -> int:
    """Return how many bytes a text takes in the block."""
    return len(json.dumps(text[:MAX_TEXT] if is_plain(text) else marked(text)))


Counts = dict[tuple[str, int, Metric], dict[str, int]]


def _changes(
    base: dict[str, list[Answer]], adapters: list[tuple[tuple[str, int], dict[str, list[Answer]]]]
) -> Counts:
    """Return how many pairs of each kind the page holds, per adapter and reading."""
    counts: Counts = {}
    for (arm, seed), own in adapters:
        for metric, change in _pairs(base, own):
            of = counts.setdefault((arm, seed, metric), dict.fromkeys(CHANGES, 0))
            of[change] += 1
    return counts


def _pairs(
    base: dict[str, list[Answer]], own: dict[str, list[Answer]]
) -> Iterator[tuple[Metric, str]]:
    for prompt, answers in own.items():
        for before, after in zip(base.get(prompt, []), answers, strict=False):
            for metric in METRICS:
                right: tuple[bool, ...] = tuple(
                    getattr(a, metric) == "correct" for a in (before, after)
                )
                yield metric, _CHANGE[right]


_CHANGE: dict[tuple[bool, ...], str] = {
    (False, True): "gained", (True, False): "lost",
    (True, True): "both right", (False, False): "both wrong",
}  # fmt: skip


def _table(study: Study, counts: Counts) -> Table:
    known: dict[str, Any] = {c.id: c.value for c in study.claims.claims}
    rows = []
    for (arm, seed, metric), held in counts.items():
        cells = [Cell(arm), Cell(str(seed)), Cell(metric)]
        for change in CHANGES:
            claim = f"adapter.{arm}.{seed}.{metric}.{change.replace(' ', '_')}"
            whole = known.get(claim)
            cells.append(Cell(f"{held[change]:,}"))
            cells.append(Cell("–") if whole is None else Cell(f"{whole:,}", claim))
        rows.append(tuple(cells))
    columns = [name for change in CHANGES for name in (f"{change}: here", "of")]
    return Table(
        "What the sample holds of each kind of pair.",
        ("arm", "seed", "reading", *columns), tuple(rows), heads=3,
        numbers=len(columns) + 3,  # none: counts of this page name nothing in the evidence
    )  # fmt: skip
