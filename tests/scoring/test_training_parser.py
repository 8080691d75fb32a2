from __future__ import annotations

import json
from pathlib import Path

import pytest

from ahalab.scoring.training_parser import TRAINING_PARSER_VERSION, historical_outcome, parse

GOLDEN = Path(__file__).with_name("golden_training_parser.jsonl")
ROWS = [json.loads(line) for line in GOLDEN.read_bytes().split(b"\n") if line]


def test_the_golden_file_holds_at_least_two_hundred_responses_of_every_outcome() -> None:
    assert len(ROWS) >= 200
    assert {row["outcome"] for row in ROWS} == {"correct", "wrong", "unparsed"}


def test_the_frozen_parser_takes_what_the_golden_file_says_and_judges_as_it_says() -> None:
    changed = [
        (row["response"], row["why"])
        for row in ROWS
        if (parse(row["response"]), historical_outcome(row["response"], row["gold"]))
        != (row["parsed"], row["outcome"])
    ]
    assert changed == []


def test_its_version_never_changes() -> None:
    assert TRAINING_PARSER_VERSION == "1"


@pytest.mark.parametrize(
    ("response", "gold", "outcome"),
    [
        ("#### 18.0", "18", "wrong"),  # no numeric comparison
        ("#### 42\n#### 43", "43", "wrong"),  # the first marker, though withdrawn
        ("#### 18 dollars", "18", "wrong"),  # the unit stays
        ("<think>\n#### 5\n</think>\n#### 6", "5", "correct"),  # the thinking pays
        ("She sold 18 on 3 days.", "3", "correct"),  # the last number, whatever it counts
        ("1, 2, 3", "3", "correct"),  # a list pays its last
        ("1,2,3", "123", "correct"),  # commas go, whatever they part
    ],
)
def test_its_faults_are_kept(response: str, gold: str, outcome: str) -> None:
    assert historical_outcome(response, gold) == outcome


def test_a_megabyte_of_digits_and_commas_takes_linear_time() -> None:
    assert historical_outcome("1," * 1_000_000, "1") == "wrong"
