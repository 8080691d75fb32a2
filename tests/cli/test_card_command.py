"""`ahalab card` as a person runs it, on a copy of the committed study."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import Call
from huggingface_hub import ModelCard

STUDY = Path(__file__).parents[2] / "results/quickstart"
NO_ENTRY = "No .eval_results entry: the questions are of no benchmark of the Hub (openai/gsm8k)."


def test_the_committed_study_gives_a_folder_that_can_be_uploaded(
    call: Call, tmp_path: Path
) -> None:
    folder = tmp_path / "upload"
    said = call("card", STUDY, "--arm", "format_only", "--seed", "1", "--to", folder)
    assert (said.code, said.out) == (0, f"{folder}/README.md\n")
    assert said.err == f"{NO_ENTRY}\nUpload: hf upload OWNER/NAME {folder}\n"
    assert ModelCard.load(folder / "README.md").data.model_name == "quickstart-format_only-seed-1"
    again = call("card", STUDY, "--arm", "format_only", "--seed", "1", "--to", folder)
    assert again.code == 2
    assert again.line.startswith(f"ahalab: --to {folder}: expected a new or an empty folder")


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (["--arm", "none", "--seed", "1"], 2, "ahalab: --arm: expected one of historical, "),
        (["--arm", "random", "--seed", "7"], 2, "ahalab: --seed: expected one of 1, 2, 3; found 7"),
        (["--arm", "random"], 2, "ahalab: Missing option '--seed'"),
    ],
)
def test_a_wrong_adapter_is_one_clear_line(
    call: Call, tmp_path: Path, options: list[str], code: int, expected: str
) -> None:
    said = call("card", STUDY, "--to", tmp_path / "upload", *options)
    assert said.code == code
    assert said.line.startswith(expected)
    assert not (tmp_path / "upload").exists()


def test_a_study_that_is_not_sealed_is_incomplete(call: Call, tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir()
    shutil.copy(STUDY / "study.yaml", root)
    said = call("card", root, "--arm", "random", "--seed", "1")
    assert said.code == 4
    assert said.line == (
        f"ahalab: {root}: expected a sealed study, found no manifest.json. `ahalab run` finishes "
        "it, `ahalab report` seals it."
    )
