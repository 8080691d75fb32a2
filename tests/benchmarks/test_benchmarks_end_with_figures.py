from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import agreement, comparison, damage, scoring, tampering, viewer


def _figures(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    last = capsys.readouterr().out.rstrip("\n").split("\n")[-1]
    figures: dict[str, Any] = json.loads(last)
    return figures


def test_the_scoring_benchmark_ends_with_its_figures_on_a_tiny_slice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--rows", "50", "--responses", "10", "--rounds", "1"]
    hostile = ["--hostile-characters", "2000", "--seconds", "0.2"]
    assert scoring.main([*arguments, *hostile]) == 0
    figures = _figures(capsys)
    assert figures["responses"] == 10
    assert figures["memory"]["rows"] == 50
    assert figures["cpu_per_second"] > 0
    settings = ["main thread", "other thread", "fork", "spawn"]
    assert [batch["setting"] for batch in figures["hostile"]] == settings
    for batch in figures["hostile"]:
        assert batch["changed"] == 0
        assert batch["rows"] > 80
        assert batch["worst_cpu"]["cpu_seconds"] > 0
        assert batch["statuses"] == {"error: timeout": 4}


def test_the_agreement_benchmark_counts_a_slice_of_every_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not agreement.shared_data().is_dir():
        pytest.skip(f"{agreement.shared_data()} is not here; set AHALAB_SHARED")
    assert agreement.main(["--limit", "40"]) == 0
    sources = _figures(capsys)["sources"]
    assert {name: source["rows"] for name, source in sources.items()} == {
        "gsm8k_openai": 40,
        "curious_qwen2": 40,
        "qwen25math": 40,
    }
    # Problem 3 of qwen25math: the label lost the "p.m." of all eight answers.
    assert sources["qwen25math"]["strict_agree"] == 32


def test_absent_data_are_named_and_leave_no_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AHALAB_SHARED", "/nowhere")
    assert agreement.main([]) == 2
    assert _figures(capsys)["absent"] == ["gsm8k_openai", "curious_qwen2", "qwen25math"]


def test_the_comparison_benchmark_ends_with_its_figures_on_small_sides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert comparison.main(["--questions", "60", "--pairs", "400", "--rounds", "2"]) == 0
    figures = _figures(capsys)
    assert figures["draws"] == 9999
    shapes = [(c["questions"], c["samples"]) for c in figures["comparisons"]]
    assert shapes == [(60, 1), (60, 8), (400, 1), (60, 8)]
    assert all(c["cpu_ms"] > 0 and c["best_ms"] <= c["median_ms"] for c in figures["comparisons"])


def test_the_damage_benchmark_counts_every_kind_of_row_file_and_finds_no_wrong_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", os.fsync)  # the benchmark replaces it
    quickstart = Path(__file__).parents[2] / "results/quickstart"
    assert damage.main([str(quickstart), "--every", "1500", "--sectors", "1"]) == 0
    figures = _figures(capsys)
    assert (figures["files"], figures["wrong"]) == (5, 0)
    for end in ("rows lost: refused", "torn: resumed", "journal cut: resumed"):
        assert figures["ends"][end] > 0


def test_the_tampering_benchmark_tells_in_every_column_what_was_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tampering.main(["--only", "14"]) == 0
    out = capsys.readouterr().out
    figures: dict[str, Any] = json.loads(out.rstrip("\n").split("\n")[-1])
    assert figures["sound_flagged"] is False
    assert (figures["root_held"], figures["without"], figures["owner_reseals"]) == (1, 1, 1)
    assert "regrade arms/correctness/seed-1/answers.jsonl:" in out


def test_the_viewer_benchmark_ends_with_its_figures_on_a_small_study(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert viewer.main(["--rollouts", "4000"]) == 0
    figures = _figures(capsys)
    assert figures["rows"] == 20 * 512 + 2_000 + 20  # rollouts, prompts, steps
    by_filter = {one["what"]: one["found"] for one in figures["filters"]}
    assert by_filter["tokens>200 outcome=wrong reward>0.8"] == "0"
    assert int(by_filter["tokens>200 outcome=wrong reward<0.8"].replace(",", "")) > 0
    assert all(one["seconds"] > 0 for one in figures["pages"])
    assert figures["memory_mib"]["indexed"] > 0
