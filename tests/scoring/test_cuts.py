"""Where a completion is cut before a marker, with tokens written out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tokenizers import Tokenizer

from ahalab.scoring.cuts import Cut, Spellings, find_cut, spelled, tokens_before
from ahalab.scoring.reflection import Marker, first_marker, reflection_markers
from ahalab.store.models import organism_folder

PIECES = ["It is 5", ".", " Wait", "Wait", ",wait", " let", " me", " check", ", no", " Wa", "it"]


def text_of(ids: Sequence[int]) -> str:
    return "".join(PIECES[i] for i in ids)


def ids_of(*pieces: str) -> list[int]:
    return [PIECES.index(piece) for piece in pieces]


def cut_of(*pieces: str) -> Cut | None:
    ids = ids_of(*pieces)
    return find_cut(ids, text_of(ids), text_of)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("It is 5", ".", " Wait", ", no"), Cut(2, 3, "wait")),
        (("Wait", ", no"), Cut(0, 1, "wait")),
        (("It is 5", ",wait", ", no"), Cut(1, 2, "wait")),  # the comma goes with its token
        (("It is 5", ".", " let", " me", " check"), Cut(2, 5, "let me check")),
        (("It is 5", " Wa", "it", "."), Cut(1, 3, "wait")),
        (("It is 5", " let", " me"), None),
    ],
)
def test_a_cut_lies_on_the_last_boundary_before_the_marker(
    pieces: tuple[str, ...], expected: Cut | None
) -> None:
    assert cut_of(*pieces) == expected


def test_of_several_markers_the_first_one_is_cut() -> None:
    assert cut_of("It is 5", ".", " let", " me", " check", " Wait") == Cut(2, 5, "let me check")


def test_a_character_cut_within_is_no_boundary() -> None:
    # "é" is two bytes, a token each; the first alone decodes to a stand-in.
    pieces = [b"caf", b"\xc3", b"\xa9", b" wait"]

    def decode(ids: Sequence[int]) -> str:
        return b"".join(pieces[i] for i in ids).decode("utf-8", "replace")

    ids, text = [0, 1, 2, 3], "caf\u00e9 wait"
    assert find_cut(ids, text, decode) == Cut(3, 4, "wait")
    assert tokens_before(ids, text, 4, decode) == 3
    assert tokens_before(ids, text, 3, decode) == 1


def test_a_text_that_is_not_that_of_its_ids_is_cut_at_its_beginning() -> None:
    assert tokens_before([0, 1], "Another text, wait", 14, text_of) == 0


def test_tokens_that_say_nothing_stay_before_the_cut() -> None:
    silent = ["It is 5", "", "", " Wait"]
    cut = find_cut([0, 1, 2, 3], "It is 5 Wait", lambda ids: "".join(silent[i] for i in ids))
    assert cut == Cut(3, 4, "wait")


def test_a_long_text_is_decoded_a_few_times_only() -> None:
    ids, asked = [*[1] * 4096, 2], 0

    def counted(part: Sequence[int]) -> str:
        nonlocal asked
        asked += 1
        return text_of(part)

    assert find_cut(ids, text_of(ids), counted) == Cut(4096, 4097, "wait")
    assert asked < 40


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (" Wait", "wait"),
        (",wait", "wait"),
        ("\n\nWAIT,", "wait"),
        ("re-", "re"),
        (" ,", ""),
        ("", ""),
    ],
)
def test_a_token_says_its_word_whatever_stands_around_it(text: str, word: str) -> None:
    assert spelled(text) == word


def test_every_spelling_of_a_word_is_known_and_nothing_else() -> None:
    spellings = Spellings([" Wait", "Wait", ",wait", " waiting", " Wa", "it", "", ",", "wait"])
    assert spellings.of(0) == spellings.of(8) == (0, 1, 2, 8)
    assert spellings.of(3) == (3,)
    assert spellings.of(6) == (6,)  # without a word, the token alone
    assert spellings.of(99) == (99,)


def test_the_organisms_tokens_are_cut_where_its_text_says() -> None:
    tokenizer = Tokenizer.from_file(str(organism_folder() / "tokenizer.json"))
    text = "7 + 8 = 14, wait, 7 + 8 = 15\n#### 15"
    ids = tokenizer.encode(text).ids
    cut = find_cut(ids, text, lambda part: tokenizer.decode(list(part)))
    assert cut is not None
    assert tokenizer.decode(ids[: cut.at]) in ("7 + 8 = 14,", "7 + 8 = 14, ")
    assert tokenizer.decode(ids[cut.at : cut.end]).strip() == "wait"


def test_the_first_marker_is_the_first_of_all_markers() -> None:
    text = "Hmm, so. Wait!"
    assert first_marker(text) == Marker(0, 3, "hmm")
    assert reflection_markers(text) == ("hmm", "wait")
    assert first_marker("The waiter came.") is None
