"""`ahalab demo` as a person runs it: in a pipe, and on a terminal with keys."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_study import LETTERS, make_answers, make_protocol, put_answers, write_study

from ahalab.cli import main
from ahalab.records.base import digest_bytes

BASE = "CWCFUT"
ADAPTER = "CCWCWC"
DEMO = [sys.executable, "-m", "ahalab", "demo"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "small"
    write_study(root, BASE, {("correctness", 0): ADAPTER, ("random", 0): BASE})
    return root


def demo(study: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [*DEMO, "--run", str(study), *options],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


class Called:
    """The command called in this process, which spares the start of an interpreter."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], study: Path
    ) -> None:
        self.study, self.monkeypatch, self.capsys = study, monkeypatch, capsys

    def __call__(self, *options: str) -> tuple[int, str, str]:
        command = ["ahalab", "demo", "--run", str(self.study), *options]
        self.monkeypatch.setattr(sys, "argv", command)
        code = main()
        told = self.capsys.readouterr()
        return code, told.out, told.err


@pytest.fixture
def called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], study: Path
) -> Called:
    return Called(monkeypatch, capsys, study)


def heads(text: str) -> list[str]:
    return re.findall(r"^\[\d+\] (.*) \(", text, flags=re.MULTILINE)


def test_a_pipe_gets_plain_lines_and_a_count(study: Path) -> None:
    done = demo(study)
    assert (done.returncode, done.stderr) == (0, "")
    assert heads(done.stdout) == ["both right", "gained", "lost", "gained", "both wrong", "gained"]
    assert done.stdout.splitlines()[-1] == (
        "Scored live by strict reading: 1 both right, 1 both wrong, 3 gained, 1 lost."
    )
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", "gained"], ["gained"] * 3),
        (["--only", "lost"], ["lost"]),
        (["--only", "changed", "--by", "lenient"], ["gained", "lost", "gained"]),
        (["--only", "changed", "--limit", "2"], ["gained", "lost"]),
        (["--cell", "arms/random/seed-0", "--only", "changed"], []),
    ],
)
def test_pairs_are_filtered_and_limited(
    called: Called, options: list[str], expected: list[str]
) -> None:
    code, out, _ = called("--plain", *options)
    assert (code, heads(out)) == (0, expected)


def test_no_such_pair_is_said(called: Called) -> None:
    _, out, _ = called("--plain", "--cell", "arms/random/seed-0", "--only", "lost")
    assert out == "Scored live by strict reading: no such pair.\n"


def test_a_wrong_cell_or_folder_is_one_clear_line(called: Called) -> None:
    code, _, err = called("--plain", "--cell", "arms/none/seed-0")
    assert code == 2
    assert err.startswith("ahalab: --cell: expected one of base, floor, ")
    assert err.count("\n") == 1
    called.study /= "none"
    assert called("--plain")[0] == 2


@pytest.mark.parametrize("option", [["--limit", "0"], ["--only", "some"], ["--nope"]])
def test_a_wrong_option_is_a_usage_error(called: Called, option: list[str]) -> None:
    code, _, err = called(*option)
    assert code == 2
    assert err.startswith("ahalab: ")
    assert err.endswith(" demo --help\n")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_ends_the_demo_quietly(study: Path, tmp_path: Path) -> None:
    long = tmp_path / "long"
    write_study(long, "C" * 1200, {("random", 0): "W" * 1200})  # more than a pipe's 64 KB
    command = f"{sys.executable} -m ahalab demo --run {long} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "[1] lost (strict)\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_answer_comes_within_two_seconds(study: Path) -> None:
    took = []
    for _ in range(2):
        began = time.monotonic()
        with subprocess.Popen(
            [*DEMO, "--run", str(study)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "[1] both right (strict)\n"
            took.append(time.monotonic() - began)
            process.stdout.read()
    assert min(took) < 2


def test_the_demo_needs_no_torch_no_numpy_and_no_network(study: Path) -> None:
    driver = (
        "import socket, sys; sys.argv = ['ahalab', 'demo', '--run', sys.argv[1]]\n"
        "socket.socket.connect = None\n"
        "from ahalab.cli import main; code = main()\n"
        "heavy = {'torch', 'transformers', 'numpy', 'scipy', 'matplotlib'}\n"
        "sys.exit(f'loaded: {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", driver, str(study)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Terminal:
    """The demo on a terminal of 80 x 40, driven by keys."""

    def __init__(self, *options: str) -> None:
        self.screen, inside = pty.openpty()
        self.process = subprocess.Popen(
            [*DEMO, *options], stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
            env={**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(inside)

    def until(self, text: str) -> str:
        """Return what is shown until a text appears, without colours."""
        shown, end = b"", time.monotonic() + 20
        while text not in (plain := re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())):
            ready, _, _ = select.select([self.screen], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not appear in {plain!r}"
            shown += os.read(self.screen, 65536)
        return plain

    def press(self, key: str) -> None:
        time.sleep(0.05)
        os.write(self.screen, key.encode())

    def ended(self) -> int:
        """Return the exit code."""
        while True:
            try:
                if not os.read(self.screen, 65536):
                    break
            except OSError:  # the terminal is gone with the process
                break
        os.close(self.screen)
        return self.process.wait(20)


KEYS = "q quit"


def test_keys_step_filter_and_quit(study: Path) -> None:
    terminal = Terminal("--run", str(study))
    first = terminal.until(KEYS)
    assert "1  both right  (by the strict reading; showing all)" in first
    assert "What is 0 + 7 - 0?" in first
    assert "base" in first
    assert "correctness, seed 0" in first
    terminal.press(" ")
    assert "2  gained" in terminal.until(KEYS)
    terminal.press("l")
    lost = terminal.until(KEYS)
    assert "1  lost  (by the strict reading; showing lost)" in lost
    assert "What is 2 + 7 - 2?" in lost
    terminal.press(" ")
    assert "End of the 1 pairs (lost, by the strict reading)." in terminal.until(KEYS)
    terminal.press("g")
    assert "What is 1 + 7 - 1?" in terminal.until(KEYS)
    terminal.press("x")  # no such key: nothing happens
    terminal.press("a")
    assert "showing all" in terminal.until(KEYS)
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
    assert "End of the 1 pairs (by the strict reading)." in terminal.until(KEYS)
    terminal.press("q")
    assert terminal.ended() == 0


HOSTILE = "[/answer] [bold red]\x1b[31m \x1b]52;c;aGk=\x07 \u202e7 #### \x00 [link=file:///etc] 7"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from msgspec.structs import replace

    root = tmp_path_factory.mktemp("results") / "hostile"
    plan, paths = write_study(root, "C", {("random", 0): "C"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = [replace(r, completion=HOSTILE) for r in make_answers(paths, "C", protocol)]
    put_answers(plan, paths, paths.answers("random", 0), rows, protocol)
    return root


def test_a_hostile_answer_is_shown_escaped_in_a_pipe(hostile: Path) -> None:
    done = demo(hostile)
    assert done.returncode == 0
    assert "[/answer] [bold red]" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\x07", "\u202e", "\x00"}


def test_a_hostile_answer_is_shown_escaped_on_a_terminal(hostile: Path) -> None:
    terminal = Terminal("--run", str(hostile))
    shown = terminal.until(KEYS)
    terminal.press("q")
    assert terminal.ended() == 0
    assert "[/answer]" in shown
    assert "^[" in shown
    assert "\\u202e" in shown
    assert "^@" in shown
    assert not set(shown) & {"\x07", "\u202e", "\x00"}
    assert "]52;c" in shown.replace("\x1b]52;c", "")  # as text, not as a command


def test_letters_are_what_the_studies_here_are_made_of() -> None:
    assert set(BASE + ADAPTER) <= set(LETTERS)
