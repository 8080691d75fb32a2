"""A study whose answers came from an endpoint that tells no token ids."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ahalab.records.base import decode_file
from ahalab.records.comparison import Comparison
from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from mutations.kinds import ANSWERS, BASE, COMPARISON, Tamper, record, row
from study_builder import PLAN, build
from tampering import edit_row, read_lines, reseal

ENDPOINT = {"url": "http://localhost:8000/v1", "base": "base", "adapter": "{arm}-{seed}"}
TEXT = PLAN.replace("replay: true}", f"backend: openai, endpoint: {json.dumps(ENDPOINT)}}}")


@pytest.fixture(scope="module")
def sound_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("endpoint") / "synthetic", TEXT)


@pytest.fixture
def served(sound_endpoint: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound_endpoint, tmp_path / "synthetic")


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def comparison_of(root: Path) -> Comparison:
    path = root / COMPARISON
    return decode_file(path.read_bytes(), Comparison, str(path))


def test_it_passes_and_says_what_could_not_be_checked(sound_endpoint: Path) -> None:
    found = verify_study(sound_endpoint)
    assert [(c.name, c.failures) for c in found.checks if c.failed] == []
    assert found.result == "PASSED"
    checks = {check.name: check for check in found.checks}
    for name in ("tokens", "finish", "tokens.text"):
        assert checks[name].status == "not checked"
        assert f"{BASE}: the endpoint told no token ids" in checks[name].note
    assert "which weights an endpoint served can't be seen" in checks["origin.generation"].note


def test_the_end_of_training_completions_is_checked_all_the_same(served: Path) -> None:
    rollouts = "arms/historical/seed-1/rollouts.jsonl"
    edit_row(served / rollouts, 1, completion_ids=[5, 1], finish="length")
    reseal(served)
    check = by_name(served)["finish"]
    assert (check.status, check.failures[0].file) == ("failed", rollouts)


def test_a_length_that_nobody_knows_is_unknown_in_analysis_and_report(sound_endpoint: Path) -> None:
    assert {rate.mean_tokens for rate in comparison_of(sound_endpoint).rates} == {None}
    report = (sound_endpoint / "report.html").read_text(encoding="utf-8")
    assert "mean length in tokens" in report
    assert ">None<" not in report


def test_the_noise_floor_compares_texts_where_there_are_no_token_ids(sound_endpoint: Path) -> None:
    floor = comparison_of(sound_endpoint).floor
    assert floor is not None
    texts = [
        {r["prompt_id"]: r["completion"] for r in map(json.loads, read_lines(sound_endpoint / n))}
        for n in (BASE, "base/floor.jsonl")
    ]
    assert texts[0] == texts[1]
    assert floor.changed_completions == 0


@pytest.mark.parametrize(
    ("tamper", "check", "file"),
    [
        (row(ANSWERS, 3, completion_ids=[5, 1]), "tokens", ANSWERS),
        *(
            (record("base/answers.protocol.json", *path, to=value), "protocol",
             "base/answers.protocol.json")
            for path, value in (
                (("backend",), "transformers"),
                (("decoder",), "rows"),
                (("device",), "cpu, 1 threads"),
                (("generation", "api"), "chat"),
                (("generation", "prompt"), "token_ids"),
                (("generation", "temperature"), 0.7),
                (("generation", "max_tokens"), 4000),
                (("generation", "presence_penalty"), 1.0),
            )
        ),
        (row(ANSWERS, 3, finish="content_filter"), "regrade", ANSWERS),
    ],
)  # fmt: skip
def test_tampering_with_what_an_endpoint_leaves_is_named(
    served: Path, tamper: Tamper, check: str, file: str
) -> None:
    tamper(served)
    reseal(served)
    found = by_name(served)[check]
    assert found.status == "failed"
    assert file in {failure.file for failure in found.failures}
