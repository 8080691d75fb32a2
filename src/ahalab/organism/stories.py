"""The sentences that the world's stories are told in."""

from dataclasses import dataclass

_PEOPLE = (
    ("Tom", "He"),
    ("Mia", "She"),
    ("Ben", "He"),
    ("Ana", "She"),
    ("Leo", "He"),
    ("Zoe", "She"),
)


@dataclass(frozen=True, slots=True)
class Theme:
    """One setting: who counts what, and how the count moves."""

    heroes: tuple[tuple[str, str], ...]  # (name, pronoun)
    start: str  # fields: name, count
    packed: str  # fields: name, packs, size
    gains: tuple[str, ...]  # fields: pronoun, count
    losses: tuple[str, ...]  # fields: pronoun, count
    ask: str


THEMES = (
    Theme(
        _PEOPLE,
        "{name} has {count} apples.",
        "{name} has {packs} bags of {size} apples.",
        ("{pronoun} picks {count} more.", "{pronoun} buys {count} more."),
        ("{pronoun} eats {count}.", "{pronoun} sells {count}."),
        "How many apples now?",
    ),
    Theme(
        _PEOPLE,
        "{name} has {count} coins.",
        "{name} has {packs} jars of {size} coins.",
        ("{pronoun} finds {count} more.", "{pronoun} earns {count} more."),
        ("{pronoun} spends {count}.", "{pronoun} loses {count}."),
        "How many coins now?",
    ),
    Theme(
        (("A bus", "it"), ("A train", "it")),
        "{name} has {count} riders.",
        "{name} has {packs} rows of {size} riders.",
        ("Then {count} get on.",),
        ("Then {count} get off.",),
        "How many riders now?",
    ),
    Theme(
        (("A shop", "It"), ("A school", "It")),
        "{name} has {count} books.",
        "{name} has {packs} boxes of {size} books.",
        ("{pronoun} gets {count} more.", "{pronoun} buys {count} more."),
        ("{pronoun} sells {count}.", "{pronoun} lends {count}."),
        "How many books now?",
    ),
)
