"""`ahalab verify` as a user meets it: exit codes, one claim, a summary, progress."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command import Call

from ahalab.cli import verification_progress
from ahalab.cli.verification_progress import ERASE, VerificationProgress
from study_builder import build

ROOT = Path(__file__).parents[2] / "results" / "quickstart"
CLAIM = "arm.correctness.base.strict.difference_points"


def test_the_exit_code_is_the_result_and_never_says_more(call: Call, tmp_path: Path) -> None:
    study = build(tmp_path / "study")
    passed = call("verify", study)
    assert passed.code == 0
    assert passed.out.rstrip().splitlines()[-1].startswith("PASSED: ")
    (study / "manifest.json").unlink()
    unsealed = call("verify", study)
    assert unsealed.code == 4
    assert unsealed.out.rstrip().splitlines()[-1].startswith("INCOMPLETE: ")
    assert " incomplete, " in unsealed.out.rstrip().splitlines()[-1]
    (study / "claims.json").write_bytes(b"{}\n")
    failed = call("verify", study, "--format", "json")
    assert failed.code == 1
    assert json.loads(failed.out)["result"] == "FAILED"
    assert call("verify", study, "--format", "vsa").code == 4  # nothing to make a statement on


def test_one_claim_is_told_with_its_rows_and_its_value_worked_out_again(call: Call) -> None:
    told = call("verify", ROOT, "--claim", CLAIM)
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == f"claim       {CLAIM}"
    assert "inputs      prompts/eval.jsonl: 500 rows" in lines
    assert "            arms/correctness/seed-3/answers.jsonl: 500 rows" in lines
    again = next(line for line in lines if line.startswith("recomputed"))
    value = next(line for line in lines if line.startswith("value")).split()[1]
    assert again.endswith("points: equal")
    assert float(again.split()[1]) == pytest.approx(float(value))
    assert lines[-1].startswith("study       PASSED: ")


def test_an_unknown_claim_is_one_line_with_near_ones_and_code_2(call: Call) -> None:
    refused = call("verify", ROOT, "--claim", "arm.corectness.base.strict.difference_points")
    assert (refused.code, refused.out) == (2, "")
    assert f"Near ones: {CLAIM}" in refused.line


def test_a_claim_has_no_summary_of_its_own(call: Call) -> None:
    refused = call("verify", ROOT, "--claim", CLAIM, "--format", "vsa")
    assert (refused.code, refused.out) == (2, "")
    assert "expected --format text or json" in refused.line


class Terminal:
    """A stderr that takes down what is written."""

    def __init__(self, *, terminal: bool) -> None:
        self.text = ""
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        """Nothing is held back."""


def shown(monkeypatch: pytest.MonkeyPatch, moments: list[float], *, terminal: bool) -> str:
    """Return what stderr holds after an update at each moment, 100 rows each, and the end."""
    screen, clock = Terminal(terminal=terminal), iter([0.0, *moments])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(verification_progress.time, "monotonic", lambda: next(clock))
    with VerificationProgress() as progress:
        for number, _ in enumerate(moments, start=1):
            progress.update(100 * number, 1000)
    return screen.text


def test_a_short_verification_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, [0.5, 1.9], terminal=True) == ""


def test_a_terminal_shows_one_line_with_rate_and_time_left_and_is_left_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = shown(monkeypatch, [1.0, 4.0], terminal=True)
    assert text == f"{ERASE}checking: 200 of 1,000 rows, 50/s, 16 s left{ERASE}"


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, [2.0, 5.0, 16.0, 17.5], terminal=False)
    assert text.splitlines() == [
        "checking: 100 of 1,000 rows, 50/s, 18 s left",
        "checking: 400 of 1,000 rows, 23/s, 26 s left",
    ]
