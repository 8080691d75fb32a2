"""The browsable changed responses: one card per pair of answers, and which the page holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from ahalab.records.comparison import ChangedAnswer, ChangedResponses
from ahalab.records.plan import Plan
from ahalab.report.tables import Cell, Table
from ahalab.report.wording import excerpt, visible

MAX_CARDS = 1_500
MAX_CARD_BYTES = 3_000_000  # of the page's 5 MB
CARD_OVERHEAD = 1_100  # bytes of markup of one card, roughly


@dataclass(frozen=True, slots=True)
class Change:
    """What one reading says of a pair."""

    metric: str
    change: str
    kind: str
    outcomes: str  # "wrong → correct"


@dataclass(frozen=True, slots=True)
class Card:
    """One question with both answers, and every reading in which they differ."""

    arm: str
    seed: int
    place: str  # prompt id, and the sample where there are several
    changes: tuple[Change, ...]
    summary: str
    question: Markup
    gold: Markup
    base: Markup
    adapter: Markup
    base_extracted: Markup
    adapter_extracted: Markup

    @property
    def keys(self) -> str:
        """What the filters look at: `strict-gained lenient-lost`."""
        return " ".join(f"{change.metric}-{change.change}" for change in self.changes)


@dataclass(frozen=True, slots=True)
class Browser:
    """The cards that the page holds, and how many there are altogether."""

    cards: tuple[Card, ...]
    total: int
    shown: Table | None  # cards per adapter, when the page holds a sample


def browser(changed: ChangedResponses, plan: Plan) -> Browser:
    """Return the cards in plan order; a sample of whole questions where all would be too many."""
    pairs = _pairs(changed.changed)
    keep = _sample(pairs)
    order = {arm.name: at for at, arm in enumerate(plan.arms)}
    kept = sorted(
        (key for key in pairs if key[2] in keep),
        key=lambda key: (order.get(key[0], len(order)), key[0], key[1], key[2], key[3]),
    )
    several = plan.evaluation.samples > 1
    cards = tuple(_card(pairs[key], several=several) for key in kept)
    sampled = len(kept) < len(pairs)
    return Browser(cards, len(pairs), _shown(pairs, kept) if sampled else None)


Key = tuple[str, int, str, int]  # arm, seed, prompt id, sample


def _pairs(changed: Iterable[ChangedAnswer]) -> dict[Key, list[ChangedAnswer]]:
    """Bring the strict and the lenient entry of a pair together; the texts are the same."""
    pairs: dict[Key, list[ChangedAnswer]] = {}
    for answer in changed:
        pairs.setdefault((answer.arm, answer.seed, answer.prompt_id, answer.sample), []).append(
            answer
        )
    return pairs


def _sample(pairs: dict[Key, list[ChangedAnswer]]) -> set[str]:
    """Return the questions kept, in the order of the digest of their id, as many as fit.

    A question is kept with all its arms and seeds, so that they can be read side by side; the
    digest has nothing to do with what was answered.
    """
    by_prompt: dict[str, list[Key]] = {}
    for key in pairs:
        by_prompt.setdefault(key[2], []).append(key)
    kept: set[str] = set()
    cards = size = 0
    for prompt in sorted(by_prompt, key=lambda p: hashlib.sha256(p.encode()).digest()):
        cards += len(by_prompt[prompt])
        size += sum(_size(pairs[key][0]) for key in by_prompt[prompt])
        if cards > MAX_CARDS or size > MAX_CARD_BYTES:
            break
        kept.add(prompt)
    return kept


def _size(answer: ChangedAnswer) -> int:
    texts = (answer.question, answer.gold, answer.base_completion, answer.adapter_completion)
    return CARD_OVERHEAD + sum(len(visible(text).encode()) for text in texts)


def _card(answers: list[ChangedAnswer], *, several: bool) -> Card:
    first = answers[0]
    return Card(
        arm=first.arm,
        seed=first.seed,
        place=f"{first.prompt_id}, sample {first.sample}" if several else first.prompt_id,
        changes=tuple(
            Change(a.metric, a.change, a.kind, f"{a.base_outcome} → {a.adapter_outcome}")
            for a in answers
        ),
        summary=excerpt(first.question),
        question=visible(first.question),
        gold=visible(first.gold, lines=False),
        base=visible(first.base_completion),
        adapter=visible(first.adapter_completion),
        base_extracted=_extracted(first.base_extracted),
        adapter_extracted=_extracted(first.adapter_extracted),
    )


def _extracted(text: str | None) -> Markup:
    return Markup("none") if text is None else visible(text, lines=False)


def _shown(pairs: dict[Key, list[ChangedAnswer]], kept: list[Key]) -> Table:
    adapters = sorted({key[:2] for key in pairs})
    questions = len({key[2] for key in kept})
    return Table(
        f"The sample: {questions:,} questions, those with the lowest SHA-256 of their prompt id, "
        "each with every arm and seed in which its answer changed.",
        ("arm", "seed", "shown", "changed"),
        tuple(
            (
                Cell(arm),
                Cell(str(seed)),
                Cell(f"{sum(key[:2] == (arm, seed) for key in kept):,}"),
                Cell(f"{sum(key[:2] == (arm, seed) for key in pairs):,}"),
            )
            for arm, seed in adapters
        ),
        heads=2,
        numbers=2,
    )
