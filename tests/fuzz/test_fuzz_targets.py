"""A little of what `python -m benchmarks.fuzz` does at length, and that it would notice."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import fuzz_judging
import pytest
from fuzz_inputs import inputs, mutant
from fuzz_judging import Finding, Judge
from fuzz_seeds import kept, seeds
from fuzz_targets import TARGETS, Target
from hypothesis import HealthCheck, given, settings

from ahalab.errors import InputError
from benchmarks import fuzz

MUTANTS, DRAWN = 150, 40  # of each target


@pytest.fixture(scope="module")
def judge() -> Judge:
    made = Judge()
    for target in TARGETS.values():
        made.warm(target, seeds(target.name))
    return made


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_once_stays_mended_and_the_corpus_is_sound(name: str, judge: Judge) -> None:
    for payload in [*kept(name), *seeds(name)]:
        assert judge.judge(TARGETS[name], payload) is None, payload[:200]


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_real_files_end_or_are_refused(name: str, judge: Judge) -> None:
    rng, corpus = random.Random(7), seeds(name)  # noqa: S311
    for _ in range(MUTANTS):
        finding = judge.judge(TARGETS[name], mutant(rng, corpus, TARGETS[name].pieces))
        assert finding is None, finding


@pytest.mark.parametrize("name", TARGETS)
def test_what_hypothesis_makes_of_real_files_ends_or_is_refused(name: str, judge: Judge) -> None:
    @settings(max_examples=DRAWN, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(inputs(seeds(name), TARGETS[name].pieces))
    def once(payload: bytes) -> None:
        assert judge.judge(TARGETS[name], payload) is None

    once()


def crash(payload: bytes, folder: Path) -> None:
    raise KeyError("x")


def hang(payload: bytes, folder: Path) -> None:
    while True:
        pass


def sleep(payload: bytes, folder: Path) -> None:
    time.sleep(60)


def run_code(payload: bytes, folder: Path) -> None:
    exec("1")  # noqa: S102


def run_program(payload: bytes, folder: Path) -> None:
    with contextlib.suppress(Exception):  # a reader that hides it
        subprocess.run(["true"], check=False)


def write_elsewhere(payload: bytes, folder: Path) -> None:
    (folder.parent / "elsewhere").write_bytes(b"")


def warn(payload: bytes, folder: Path) -> None:
    warnings.warn("odd", stacklevel=1)


@pytest.mark.parametrize(
    ("run", "where"),
    [(crash, "KeyError"), (hang, "TookTooLongError"), (sleep, "TookTooLongError"),
     (run_code, "ForbiddenError"), (run_program, "ForbiddenError"),
     (write_elsewhere, "ForbiddenError"), (warn, "UserWarning")],
)  # fmt: skip
def test_whatever_no_reader_may_do_is_a_finding(
    run: Callable[[bytes, Path], None], where: str, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_judging, "CPU_SECONDS", 0.1)
    monkeypatch.setattr(fuzz_judging, "WALL_SECONDS", 1.0)
    finding = judge.judge(Target("planted", run, (b"a",)), b"payload")
    assert finding is not None
    assert finding.where.startswith(where)
    assert finding.payload == b"payload"


def test_an_error_of_our_own_is_no_finding(judge: Judge) -> None:
    def refuse(payload: bytes, folder: Path) -> None:
        raise InputError(f"{folder}: expected \x1b[31m\n, found {'9' * 9_000}.")

    assert judge.judge(Target("planted", refuse, (b"a",)), b"") is None


def test_the_runner_keeps_findings_as_files_and_ends_with_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(payload: bytes, folder: Path) -> None:
        assert b"NaN" not in payload

    monkeypatch.setitem(fuzz.TARGETS, "task", Target("task", fault, TARGETS["task"].pieces))
    arguments = ["--seconds", "6", "--target", "task", "--keep", str(tmp_path)]
    assert fuzz.main(arguments) == 1
    figures = json.loads(capsys.readouterr().out.rstrip("\n").split("\n")[-1])
    assert figures["targets"]["task"]["findings"] == 1
    assert figures["targets"]["task"]["hypothesis"] > 10
    assert figures["targets"]["task"]["mutations"] > 10
    (file,) = tmp_path.iterdir()
    assert b"NaN" in file.read_bytes()


def test_of_findings_of_one_kind_the_smallest_is_kept(tmp_path: Path) -> None:
    kept = fuzz.Kept(tmp_path)
    for payload, where in (
        (b"long one", "a:1"),
        (b"one", "a:1"),
        (b"longer one", "a:1"),
        (b"", "b:2"),
    ):
        kept.keep(Finding("task", where, "told", payload))
    found = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert found == {"task-a-1.bin": b"one", "task-b-2.bin": b""}


@pytest.mark.parametrize("code", [0, 1])
def test_several_at_a_time_say_what_one_after_the_other_says(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        name = command[command.index("--target") + 1]
        asked.append(command[command.index("--seconds") + 1])
        last = json.dumps({"targets": {name: {"findings": int(name == "rows")}}})
        ends = code if name == "rows" else 0
        return subprocess.CompletedProcess(command, ends, f"{name}: told\n{last}\n", "")

    monkeypatch.setattr(fuzz.subprocess, "run", run)
    assert fuzz.main(["--seconds", "7", "--jobs", "3"]) == code
    *told, last = capsys.readouterr().out.rstrip("\n").split("\n")
    assert told == [f"{name}: told" for name in TARGETS]
    assert list(json.loads(last)["targets"]) == list(TARGETS)
    assert asked == ["7"] * len(TARGETS)


def test_a_target_that_ends_without_a_figure_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, -11, "", "Segmentation fault")

    monkeypatch.setattr(fuzz.subprocess, "run", run)
    with pytest.raises(SystemExit, match="Segmentation fault"):
        fuzz.main(["--jobs", "2", "--target", "task"])


def test_atheris_runs_a_target_where_it_is_installed() -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", "benchmarks.fuzz_guided", "task", "1", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    told = json.loads(done.stdout.rstrip("\n").split("\n")[-1])
    assert told["executions"] > 10
    assert told["findings"] == []
