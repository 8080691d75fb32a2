"""The demo on a real terminal: keys, sizes, colours, hostile answers, and how it ends."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from demo_terminal import CONTROL, ESCAPES, HOSTILE, Terminal, write_hostile
from msgspec.structs import replace
from rich.console import Console
from small_study import write_study

from ahalab.cli import demo_keys
from ahalab.cli.demo import Only
from ahalab.cli.demo_screen import Own, page
from ahalab.demo.pairs import ScoredPair, packaged_pairs
from ahalab.scoring.answers import Reading, Score

BASE = "CWCFUT"
ADAPTER = "CCWCWC"
KEYS = "q quit"
ALTERNATE, ORDINARY = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "small"
    write_study(root, BASE, {("correctness", 0): ADAPTER, ("random", 0): BASE})
    return root


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile(tmp_path_factory.mktemp("results") / "hostile")


def test_keys_step_back_filter_and_quit(study: Path) -> None:
    terminal = Terminal("--run", str(study))
    first = terminal.until(KEYS)
    assert "1  both right: before and after training  (strict reading, showing all)" in first
    assert "What is 0 + 7 - 0?" in first
    assert "base of small" in first
    assert "correctness, seed 0" in first
    assert "scored now; as scorer 1 had recorded it" in first
    terminal.press(" ")
    assert "2  gained" in terminal.until(KEYS)
    terminal.press("p")
    assert "1  both right" in terminal.until(KEYS)
    terminal.press("l")
    lost = terminal.until(KEYS)
    assert "1  lost: right only before training  (strict reading, showing lost)" in lost
    assert "What is 2 + 7 - 2?" in lost
    terminal.press(" ")
    end = terminal.until(KEYS)
    assert "End of the 1 pair (lost, by the strict reading)." in end
    assert "    1 lost" in end
    terminal.press("m")
    assert "lenient reading, showing lost" in terminal.until(KEYS)
    terminal.press("a")
    assert "showing all" in terminal.until(KEYS)
    terminal.press("x")  # no such key
    assert "1  both right" in terminal.until(KEYS)
    terminal.press("?")
    assert "the characters taken as the answer" in terminal.until(KEYS)
    terminal.press("\x1b")
    terminal.until(KEYS)
    terminal.press("q")
    assert terminal.ended() == 0
    assert terminal.raw.rstrip().endswith("all 4 outcomes come out again.")


def test_a_typed_answer_is_scored_with_rule_and_span(study: Path) -> None:
    terminal = Terminal("--run", str(study))
    terminal.until(KEYS)
    terminal.press("t")
    asked = terminal.until("your answer>")
    assert ORDINARY in terminal.raw
    assert "What is 0 + 7 - 0?" in asked
    terminal.press("The answer is 7.\r")
    shown = terminal.until(KEYS)
    assert "your answer" in shown
    assert "strict unparsed" in shown
    assert "rule: statement, at 14-15" in shown
    assert "\x1b[7m7" in terminal.raw  # the span is marked
    terminal.press("t")
    terminal.until("your answer>")
    terminal.press("\x04")  # the end of the input: back to the page
    terminal.until(KEYS)
    terminal.press("q")
    assert terminal.ended() == 0


def test_a_filter_without_pairs_says_so_and_the_end_of_input_quits(study: Path) -> None:
    terminal = Terminal("--run", str(study), "--cell", "arms/random/seed-0", "--only", "gained")
    assert "No such pair (gained, by the strict reading)." in terminal.until(KEYS)
    terminal.press("\x04")
    assert terminal.ended() == 0


def test_the_limit_holds_on_a_terminal_too(study: Path) -> None:
    terminal = Terminal("--run", str(study), "--limit", "1")
    terminal.until(KEYS)
    terminal.press(" ")
    assert "End of the 1 pair (by the strict reading)." in terminal.until(KEYS)
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize("prompted", [False, True])
def test_an_interrupt_ends_it_and_leaves_the_terminal_as_it_was(
    study: Path, prompted: bool
) -> None:
    terminal = Terminal("--run", str(study))
    terminal.until(KEYS)
    if prompted:
        terminal.press("t")
        terminal.until("your answer>")
    terminal.press("\x03")
    terminal.until("interrupted")
    assert prompted or ORDINARY in terminal.raw
    assert "Traceback" not in terminal.raw
    assert terminal.ended() == 130


def test_a_resize_draws_the_page_again_with_the_answers_below_each_other(study: Path) -> None:
    terminal = Terminal("--run", str(study))
    assert "╮ ╭" in terminal.until(KEYS)
    terminal.resize(40, 30)
    narrow = terminal.until(KEYS)
    assert "╮ ╭" not in narrow
    assert max(len(line) for line in narrow.split("\r\n")) <= 40
    terminal.press("q")
    assert terminal.ended() == 0


def test_what_does_not_fit_is_scrolled_to(study: Path) -> None:
    terminal = Terminal("--run", str(study), columns=40, rows=10)
    first = terminal.until("q quit")
    assert "more lines: space" in first
    assert "seed 0" not in first
    shown = ""
    for _ in range(6):
        terminal.press(" ")
        shown = terminal.until("q quit")
        if "scored now" in shown:
            break
    assert "scored now" in shown
    terminal.press(" ")
    assert "2  gained" in terminal.until("q quit")
    terminal.press("q")
    assert terminal.ended() == 0


def test_a_terminal_too_small_for_anything_is_no_error(study: Path) -> None:
    terminal = Terminal("--run", str(study), columns=8, rows=3)
    terminal.until("1  both")
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize(("colour", "expected"), [(None, True), ("1", False)])
def test_colours_are_left_out_where_none_are_wanted(
    study: Path, colour: str | None, expected: bool
) -> None:
    environment = {} if colour is None else {"NO_COLOR": colour}
    terminal = Terminal("--run", str(study), environment=environment)
    terminal.until(KEYS)
    assert ("\x1b[32m" in terminal.raw) is expected
    terminal.press("q")
    assert terminal.ended() == 0


def test_a_terminal_that_can_only_print_gets_lines(study: Path) -> None:
    terminal = Terminal("--run", str(study), environment={"TERM": "dumb"})
    terminal.until("outcomes come out again.")
    assert "\x1b" not in terminal.raw
    assert terminal.ended() == 0


def test_a_hostile_answer_is_shown_escaped_and_obeyed_by_nothing(hostile: Path) -> None:
    terminal = Terminal("--run", str(hostile))
    shown = terminal.until(KEYS)
    pieces = ["[/answer] [bold red]", "^[[31m", "^[[2J", "^[]52;c;aGk=^G", "\\x9b31m", "\\x90q"]
    pieces += [
        "\\u202e",
        "\\u2066",
        "\\u200b",
        "\\ufeff",
        "^H",
        "^?",
        "^M",
        "^@",
        "[link=file:///etc]x",
    ]
    page = "".join(shown.replace("│", "").split())  # the panel wraps wherever it must
    assert [piece for piece in pieces if piece.replace(" ", "") not in page] == []
    assert not set(shown) & ESCAPES
    assert "\x1b[31m\x1b[2J" not in terminal.raw
    assert "\x1b]" not in terminal.raw
    assert terminal.raw.startswith(ALTERNATE)
    terminal.press("q")
    assert terminal.ended() == 0


def test_a_hostile_question_is_shown_escaped_too() -> None:
    pair = replace(
        next(packaged_pairs()), question=HOSTILE, gold=HOSTILE, answer_format=f"pattern:({HOSTILE})"
    )
    nothing = Reading("unparsed", None, None, "none", "unparsed")
    score = Score(nothing, nothing)
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=200, color_system=None)
    console.print(page(ScoredPair(pair, score, score), Own(HOSTILE, score), 200))
    assert not set(text.getvalue()) & ESCAPES
    assert "\x1b" not in CONTROL.sub("", text.getvalue())
    assert text.getvalue().count("[/answer]") == 4  # question, gold, format, typed


def test_a_search_that_takes_its_time_says_how_far_it_is(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_keys, "TELL_SECONDS", -1.0)
    pairs = list(packaged_pairs())
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        browser = demo_keys.Browser(pairs, Only.lost, "strict", None)
    text = io.StringIO()
    browser._console = Console(file=text, width=60)
    assert browser._deck.at(0) is not None
    assert f"scoring pair 1 of {len(pairs)} …" in text.getvalue()
