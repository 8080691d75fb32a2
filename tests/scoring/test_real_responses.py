"""Real responses that others have labelled, from the shared data."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.components import COMPONENTS, make_response

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("AHALAB_SHARED", ROOT.parent / "shared")) / "data"


def _rows(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not here; set AHALAB_SHARED to the folder that holds data/")
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_lenient_outcomes_agree_with_every_label_of_the_four_gsm8k_models() -> None:
    rows = _rows("gsm8k_openai/example_model_solutions_long.jsonl")
    disagreeing = [
        (row["i"], row["model"])
        for row in rows
        if (score_answer(row["solution"], row["gold"]).lenient.outcome == "correct")
        != row["is_correct"]
    ]
    assert len(rows) == 5_276
    assert disagreeing == []


def test_most_wrong_answers_of_the_gsm8k_models_are_worked_out_right() -> None:
    """What docs/arms.md says of `correct_steps`: arithmetic is not where these models fail."""
    paid: Counter[tuple[str, float | None]] = Counter()
    for row in _rows("gsm8k_openai/example_model_solutions_long.jsonl"):
        response = make_response(
            completion=row["solution"], gold=row["gold"], asked=Asked(prompt=row["question"])
        )
        [value] = COMPONENTS["correct_steps"]([response])
        paid[response.score.lenient.outcome, value.value] += 1
    right = sum(count for (outcome, _), count in paid.items() if outcome == "correct")
    wrong = sum(count for (outcome, _), count in paid.items() if outcome == "wrong")
    assert (right, wrong) == (2_001, 3_274)
    assert paid["correct", 1.0] / right == pytest.approx(0.91, abs=0.005)
    assert paid["wrong", 0.5] / wrong == pytest.approx(0.74, abs=0.005)


def test_the_only_disagreements_on_qwen_math_are_golds_that_its_own_grader_lost() -> None:
    r"""`4:30 \text{ p.m.}` and `10{,}000` are right; the labels say wrong (docs/scoring.md)."""
    disagreeing: Counter[str] = Counter()
    for row in _rows("qwen25math/math_cot_100.jsonl"):
        asked = Asked("boxed", "math", row["question"])
        for response, label in zip(row["code"], row["score"], strict=True):
            reading = score_answer(response, row["answer"], asked=asked).strict
            if (reading.outcome == "correct") != label:
                disagreeing[row["answer"]] += 1
    assert disagreeing == {r"\text{4:30 p.m.}": 8, "10{,}000": 1}


def test_strict_outcomes_differ_from_the_curious_rewards_only_as_explained() -> None:
    """What differs is an `<answer>` left open around the right value, and two rows (docs)."""
    other = []
    for row in _rows("curious_qwen2_0p5b_base_vs_grpo/paired_long.jsonl"):
        asked = Asked("answer_tag", prompt=row["question"])
        reading = score_answer(row["completion"], str(row["gold"]), asked=asked).strict
        left_open = row["reward"] == -1 and "</answer>" not in row["completion"]
        if (reading.outcome == "correct") != (row["reward"] == 1) and not left_open:
            other.append((row["reward"], row["gold"], reading.outcome))
    assert sorted(other, key=str) == [(0.0, other[0][1], "correct"), (1.0, other[1][1], "unparsed")]


def test_plain_number_responses_are_scored_fast_enough_for_a_training_step() -> None:
    rows = _rows("gsm8k_openai/example_model_solutions_long.jsonl")[:2_000]
    best = 0.0
    for _ in range(3):
        started = time.process_time()
        for row in rows:
            score_answer(row["solution"], row["gold"])
        best = max(best, len(rows) / (time.process_time() - started))
    assert best > 4_000  # 20,000 a second alone on a core; far less is a defect, not a busy machine
