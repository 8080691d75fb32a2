"""`ahalab compare` as a user calls it, on real answers where they are at hand."""

from __future__ import annotations

import json
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from command import Call, run_without
from rich.console import Console
from small_study import write_study
from statsmodels.stats.contingency_tables import mcnemar

from ahalab.cli import compare_screen

DATA = Path(os.environ.get("AHALAB_SHARED", Path(__file__).parents[3] / "shared")) / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not here; set AHALAB_SHARED")
CONTRACT = {"n", "base_correct", "adapter_correct", "gained", "lost", "difference_points",
            "interval_points", "p_value", "verdict", "sentence"}  # fmt: skip
REWARDS = {1.0: "correct", 0.0: "wrong", -1.0: "unparsed"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(call: Call, path: Path, rows: list[dict[str, Any]]) -> Path:
    """Score responses with `ahalab score`, into a file."""
    said = call("score", write(path.with_suffix(".in"), rows), "--format", "json")
    assert said.code == 0
    path.write_text(said.out)
    return path


@needs_data
def test_the_real_null_reads_as_one(call: Call, tmp_path: Path) -> None:
    rows = rows_of(DATA / "curious_qwen2_0p5b_base_vs_grpo" / "paired_long.jsonl")
    files = {}
    for model in ("base", "grpo_checkpoint"):
        labelled = [
            {"id": r["i"], "strict": REWARDS[r["reward"]], "lenient": REWARDS[r["reward"]]}
            for r in rows
            if r["model"] == model
        ]
        files[model] = write(tmp_path / f"{model}.jsonl", labelled)
    found = json.loads(call("compare", *files.values(), "--format", "json").out)["strict"]
    assert (found["n"], found["gained"], found["lost"]) == (1319, 28, 34)
    assert round(found["p_exact"], 4) == 0.5258
    assert found["verdict"] == "no evidence"
    assert found["sentence"].startswith("strict: no evidence that these answers")


@needs_data
def test_our_own_scores_of_the_real_null_read_as_one_too(call: Call, tmp_path: Path) -> None:
    rows = rows_of(DATA / "curious_qwen2_0p5b_base_vs_grpo" / "paired_long.jsonl")
    files = [
        scored(
            call,
            tmp_path / f"{model}.jsonl",
            [
                {"id": r["i"], "response": r["completion"], "gold": str(r["gold"]),
                 "answer_format": "answer_tag"}
                for r in rows
                if r["model"] == model
            ],
        )
        for model in ("base", "grpo_checkpoint")
    ]  # fmt: skip
    found = json.loads(call("compare", *files, "--format", "json").out)
    assert {found[m]["verdict"] for m in ("strict", "lenient")} == {"no evidence"}


@needs_data
def test_six_pairs_of_real_models_come_out_as_their_labels_say(call: Call, tmp_path: Path) -> None:
    rows = rows_of(DATA / "gsm8k_openai" / "example_model_solutions_long.jsonl")
    models = sorted({r["model"] for r in rows})
    right = {m: {r["i"]: r["is_correct"] for r in rows if r["model"] == m} for m in models}
    files = {
        m: scored(
            call,
            tmp_path / f"{m}.jsonl",
            [
                {"id": r["i"], "response": r["solution"], "gold": r["gold"],
                 "answer_format": r"pattern:\nA:[ \t]*([^\n]*)"}
                for r in rows
                if r["model"] == m
            ],
        )
        for m in models
    }  # fmt: skip
    for one, other in combinations(models, 2):
        pairs = [(right[one][i], right[other][i]) for i in right[one]]
        gained, lost = pairs.count((False, True)), pairs.count((True, False))
        strict = json.loads(call("compare", files[one], files[other], "--format", "json").out)[
            "strict"
        ]
        assert strict.keys() >= CONTRACT
        assert (strict["n"], strict["gained"], strict["lost"]) == (1319, gained, lost)
        assert strict["base_correct"] == sum(right[one].values())
        assert strict["adapter_correct"] == sum(right[other].values())
        oracle = mcnemar([[0, gained], [lost, 0]], exact=True).pvalue
        assert strict["p_exact"] == pytest.approx(oracle, rel=1e-9)
        assert strict["verdict"] == ("improved" if gained > lost else "worse")  # all p < .003


def two_files(folder: Path) -> list[Path]:
    return [
        write(
            folder / name,
            [{"id": n, "strict": word, "lenient": word} for n, word in enumerate(words)],
        )
        for name, words in {
            "a.jsonl": ["correct", "wrong"] * 40,
            "b.jsonl": ["correct", "correct"] * 4 + ["correct", "wrong"] * 36,
        }.items()
    ]


def test_scored_samples_keep_their_number(call: Call, tmp_path: Path) -> None:
    rows = [{"id": "q", "sample": n, "response": "#### 7", "gold": "7"} for n in range(2)]
    file = scored(call, tmp_path / "s.jsonl", rows)
    assert [row["sample"] for row in rows_of(file)] == [0, 1]
    found = json.loads(call("compare", file, file, "--format", "json").out)
    assert (found["answers"], found["samples"], found["strict"]["n"]) == (2, 2, 1)


def test_the_text_fits_80_columns_and_says_what_it_is_about(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        compare_screen, "results_console", lambda: Console(width=80, highlight=False)
    )
    said = call("compare", *two_files(tmp_path), "--metric", "lenient")
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.splitlines()[3:])) <= 80
    text = " ".join(said.out.split())
    assert "lenient: no evidence that these answers of A and B differ" in text
    assert text.index("lenient: no") < text.index("Exploratory, strict:")
    assert "55.0 % (B) against 50.0 % (A) of 80 questions" in text
    assert "(strict)" in text
    assert "interval p exact p gained lost lenient" in text
    assert "flip p" not in text
    assert "…" not in said.out


def test_where_a_question_has_several_answers_the_p_of_sign_flips_stands_beside(
    call: Call, tmp_path: Path
) -> None:
    # d = .5 in six questions: of their 64 signs, two give a sum as large
    for name, second in (("a.jsonl", "wrong"), ("b.jsonl", "correct")):
        rows = [
            {"id": n, "sample": k, "strict": word, "lenient": "wrong"}
            for n in range(6)
            for k, word in enumerate(("wrong", second))
        ]
        write(tmp_path / name, rows)
    said = " ".join(call("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl").out.split())
    assert "flip p" in said
    found = json.loads(
        call("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--format", "json").out
    )["strict"]
    assert found["p_sign_flip"] == pytest.approx(2 / 64, abs=0.006)


def test_level_and_margin_are_recorded(call: Call, tmp_path: Path) -> None:
    options = ["--alpha", "0.2", "--margin-points", "50", "--format", "json"]
    found = json.loads(call("compare", *two_files(tmp_path), *options).out)
    assert (found["alpha"], found["confidence"], found["margin_points"]) == (0.2, 0.8, 50.0)
    # 4 gained, none lost: mid-p 1/16
    assert found["strict"]["p_value"] == 0.0625
    assert found["strict"]["notes"] == ["smaller than the margin"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--alpha", "0"], "--alpha: expected a level from 1e-09 to 0.5, found 0."),
        (["--alpha", "1e-17"], "--alpha: expected a level from 1e-09 to 0.5, found 1e-17."),
        (["--alpha", "0.51"], "--alpha: expected"),
        (["--alpha", "nan"], "--alpha: expected"),
        (["--margin-points", "-1"], "--margin-points: expected points between 0 and 100"),
        (["--metric", "both"], "--metric"),
        (["--allow", "dtype"], "expected a protocol beside both files"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    call: Call, tmp_path: Path, options: list[str], told: str
) -> None:
    said = call("compare", *two_files(tmp_path), *options)
    assert said.code == 2
    assert told in said.line


def test_an_exception_that_is_not_needed_is_told(call: Call, tmp_path: Path) -> None:
    _, paths = write_study(tmp_path / "s", "CWCW", {("format_only", 0): "CCCW"})
    files = [paths.base_answers().answers, paths.answers("format_only", 0).answers]
    said = call("compare", *files, "--allow", "dtype")
    assert (said.code, said.line) == (0, "--allow dtype: the protocols do not differ in it.")


def test_it_needs_neither_torch_nor_the_training_libraries(tmp_path: Path) -> None:
    hidden = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")
    said = run_without(hidden, "compare", *two_files(tmp_path))
    assert (said.code, said.err) == (0, "")
