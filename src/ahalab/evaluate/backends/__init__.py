"""What generates answers: a backend serves the sides of a round and hands over `Completion`s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ahalab.records.prompt import Prompt
from ahalab.tasks.generation import Completion


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a backend may keep what it has of an answer set, until rows of it are committed."""

    path: Path
    journal: Path  # of those rows; what was kept under another journal is of other answers


@dataclass(frozen=True, slots=True)
class Side:
    """Who answers: the base, or the base with an adapter on top of it."""

    name: str  # of its cell
    adapter: Path | None = None  # folder of the adapter; None: the base
    kept: Kept | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What is generated at once: the same questions, put to every side of a round."""

    asked: tuple[tuple[Prompt, int], ...]  # (prompt, sample), B of them
    seed: int  # decides sampling, nothing else


@dataclass(frozen=True, slots=True)
class Opening:
    """A completion that stands up to a token, and is to be finished from there."""

    prompt_ids: tuple[int, ...]  # shape (T,)
    ids: tuple[int, ...]  # of the completion, fewer than its limit, no end token among them
    forbidden: tuple[int, ...]  # token ids that may not come next
    draws: int  # place in its batch: which random numbers it follows


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """What a backend adds to the protocol."""

    name: str
    decoder: str  # how it decodes; see `Protocol.decoder`
    device: str
    generation: dict[str, Any]  # every generation field, those included that a model could slip in
    versions: dict[str, str]


class Backend(Protocol):
    """One way to generate."""

    facts: BackendFacts

    def serve(self, sides: Sequence[Side]) -> None:
        """Make these sides ready to answer, and no other.

        Raises:
            InputError: An adapter is not one of this base.
            MissingError: A side is not where it should be.
        """

    def generate(self, batch: Batch) -> list[list[Completion]]:
        """Return one completion per side and question, in the order of `serve` and of the batch.

        Called while this process alone writes the sides' answers.
        """

    def check_weights(self) -> None:
        """Take every adapter off, and check that the base's weights are what they were.

        A backend that holds no weights here has nothing to check.

        Raises:
            InputError: Adapters left something behind; the tensors are named.
        """
