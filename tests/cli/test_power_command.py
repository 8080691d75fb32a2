"""`ahalab power` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Call, run_without
from rich.console import Console
from small_study import pair, write_study

from ahalab.cli import power_screen

GIVEN = ("--discordance", "14", "--seed-sd", "1")


def table(call: Call, *arguments: str | Path) -> dict[str, Any]:
    said = call("power", *arguments, "--format", "json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def test_the_power_of_the_primary_test_is_the_published_one(call: Call) -> None:
    found = table(call, "--discordance", "14", "--effect", "4", "--questions", "500")
    (design,) = found["designs"]  # nothing is said of a reward without a spread over seeds
    assert design["claim"] == "adapter"
    assert design["power"] == pytest.approx(0.68, abs=0.02)
    assert any("nothing can be said of a reward" in told for told in found["assumptions"]["told"])


def test_one_seed_is_never_enough_for_a_reward(call: Call) -> None:
    found = table(call, *GIVEN, "--seeds", "1", "--seeds", "5", "--questions", "1000000")
    power = {(d["claim"], d["seeds"]): d["power"] for d in found["designs"]}
    assert power["reward", 1] == 0.0
    assert power["reward", 5] > 0.9
    need = {(n["claim"], n["seeds"]): n for n in found["needs"]}
    assert need["reward", 1]["questions"] is None
    enough = need["reward", 5]
    assert enough["answers"] == 6 * enough["questions"]  # five adapters and the base
    told = " ".join(found["assumptions"]["told"])
    assert "One seed carries no claim on a reward, whatever the number of questions." in told


def test_a_pilot_is_measured_and_numbers_stand_over_it(call: Call, tmp_path: Path) -> None:
    base, adapter = pair(8, 4, 60)
    other = pair(8, 4, 60)[1][::-1]
    write_study(tmp_path / "s", base, {("format_only", 0): adapter, ("format_only", 1): other})
    measured = table(call, tmp_path / "s", "--effect", "2")["assumptions"]
    changed = [sum(a != b for a, b in zip(base, x, strict=True)) / 60 for x in (adapter, other)]
    assert measured["discordance"] == pytest.approx(sum(changed) / 2)
    assert measured["source"] == str(tmp_path / "s")
    assert measured["seed_sd_points"] is not None
    given = table(call, tmp_path / "s", "--effect", "2", "--discordance", "30", "--seed-sd", "2")
    assert given["assumptions"]["discordance"] == 0.3
    assert given["assumptions"]["seed_sd_points"] == 2.0


def test_the_base_alone_gives_the_worst_case(call: Call) -> None:
    found = table(call, "--base-accuracy", "40", "--effect", "4")["assumptions"]
    assert found["discordance"] == pytest.approx(0.4 * 0.56 + 0.44 * 0.6)
    assert "the worst case" in found["told"][0]


def test_the_text_fits_80_columns(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_screen, "results_console", lambda: Console(width=80, highlight=False))
    said = call("power", *GIVEN, "--samples", "1", "--samples", "8", "--sampling-share", "50")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    assert "…" not in said.out
    assert "N for 80 %  answers" in said.out


def test_the_picture_is_written_where_it_is_asked_for(call: Call, tmp_path: Path) -> None:
    picture = tmp_path / "power.svg"
    said = call("power", *GIVEN, "--seeds", "3", "--questions", "500", "--out", picture)
    assert (said.code, said.err) == (0, f"Wrote {picture}\n")
    assert picture.read_bytes().startswith(b"<?xml")
    assert [path.name for path in tmp_path.iterdir()] == ["power.svg"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "expected a pilot (STUDY), --discordance or --base-accuracy, found none"),
        (("--discordance", "3"), "--effect: expected at most the 3.0 % of questions that change"),
        (("--discordance", "nan"), "--discordance: expected a number from 0 to 100, found nan."),
        (("--base-accuracy", "98"), "--effect: expected at most what a base of 98.0 % leaves"),
        (
            ("--discordance", "60", "--base-accuracy", "10"),
            "32.0 % would be gained and 28.0 % lost",
        ),
        (("--discordance", "9", "--effect", "0"), "--effect: expected a change to be found"),
        (("--discordance", "9", "--samples", "4"), "Give --sampling-share"),
        (("--discordance", "9", "--seeds", "0"), "--seeds: expected 1 to 1,000, found 0."),
        (("--discordance", "9", "--questions", "1"), "--questions: expected 2 to 1,000,000"),
        (("--discordance", "9", "--power", "1"), "--power: expected a number between 0 and 1"),
        (("--discordance", "9", "--alpha", "0"), "--alpha: expected a level from 1e-09 to 0.5"),
        (("--discordance", "9", "--arm", "x"), "--arm x: expected a pilot that has the arm"),
        (("--discordance", "9", "--out", "x.png"), "expected a file name that ends in .svg"),
        (("--discordance", "9", "--out", "/nope/x.svg"), "expected a file in a folder"),
        (("nowhere",), "nowhere: expected a study's folder, found none."),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    call: Call, arguments: tuple[str, ...], told: str
) -> None:
    said = call("power", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.line


def test_a_pilot_in_which_nothing_changed_is_refused(call: Call, tmp_path: Path) -> None:
    write_study(tmp_path / "s", "CWCW", {("format_only", 0): "CWCW"})
    said = call("power", tmp_path / "s")
    assert said.code == 2
    assert "the pilot's adapters answer as its base does" in said.line


def test_it_needs_neither_torch_nor_the_training_libraries() -> None:
    hidden = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")
    said = run_without(hidden, "power", *GIVEN, "--questions", "200", "--seeds", "3")
    assert (said.code, said.err) == (0, "")
