"""`ahalab demo` as a person runs it: in a pipe, and on a terminal with keys."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from demo_terminal import ESCAPES, HOSTILE, write_hostile
from msgspec.structs import replace
from small_study import LETTERS, make_answers, make_protocol, put_answers, write_study

from ahalab.cli import main
from ahalab.demo.pairs import packaged_pairs, score_pair
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
    assert done.stdout.splitlines()[-2:] == [
        "Scored live by strict reading: 1 both right, 1 both wrong, 3 gained, 1 lost.",
        "Recorded by scorer 1: all 24 outcomes come out again.",
    ]
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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile(tmp_path_factory.mktemp("results") / "hostile")


def test_a_hostile_answer_is_shown_escaped_in_a_pipe(hostile: Path) -> None:
    done = demo(hostile)
    assert done.returncode == 0
    assert "[/answer] [bold red]" in done.stdout
    assert not set(done.stdout) & ESCAPES


def test_what_is_typed_into_a_pipe_is_scored_with_rule_and_span(study: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--run", str(study), "--type"],
        input=f"#### 7\n\nThe answer is 7.\n{HOSTILE}\n".encode(),
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    scored = [line.strip() for line in lines if line.startswith("    strict")]
    assert scored[:3] == [
        "strict correct, lenient correct; rule hashes, characters 5 to 6: #### [7]",
        "strict unparsed, lenient unparsed; no answer taken (unparsed)",
        "strict unparsed, lenient correct; rule statement, characters 14 to 15: The answer is [7].",
    ]
    assert "strict correct, lenient correct; rule hashes" in scored[3]
    assert not set(done.stdout.decode()) & ESCAPES
    assert lines[-1] == "Yours: 2 of 4 strict, 3 of 4 lenient."


def test_typed_bytes_that_are_no_text_are_refused_by_their_line(study: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--run", str(study), "--type"],
        input=b"#### 7\n\xff\n", capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == b"ahalab: stdin:2: expected UTF-8 text, found a bad byte at 0.\n"


def test_an_outcome_that_does_not_come_out_again_is_told(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "results" / "other", "CW", {("random", 0): "CW"})
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random0"))
    rows = make_answers(paths, "CW", protocol)
    rows[1] = replace(rows[1], strict="correct")
    put_answers(plan, paths, paths.answers("random", 0), rows, protocol)
    lines = demo(paths.root).stdout.splitlines()
    assert "    recorded otherwise, random, strict: correct (scorer 1)" in lines
    assert lines[-1] == "Recorded by scorer 1: 1 of 8 outcomes do not come out again."


def test_the_packaged_run_comes_out_again() -> None:
    scored = [score_pair(pair) for pair in packaged_pairs()]
    assert len(scored) == 60
    assert [one.differing() for one in scored] == [()] * 60
    assert {one.change("strict") for one in scored} == {
        "gained", "lost", "both right", "both wrong"
    }  # fmt: skip


def test_a_cell_without_a_run_is_refused(called: Called) -> None:
    called.monkeypatch.setattr(sys, "argv", ["ahalab", "demo", "--cell", "arms/random/seed-0"])
    assert main() == 2
    assert called.capsys.readouterr().err == (
        "ahalab: --cell: expected with --run DIR, found alone. The packaged run has one.\n"
    )


def test_letters_are_what_the_studies_here_are_made_of() -> None:
    assert set(BASE + ADAPTER) <= set(LETTERS)
