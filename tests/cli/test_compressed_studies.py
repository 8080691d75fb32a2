"""A study whose every row file is compressed: each command says what it says of a plain one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import Call

import ahalab.store.rows as rows_module
from ahalab.pipeline.run import seal_study
from ahalab.plan.load import load_plan
from ahalab.store.layout import StudyPaths
from ahalab.store.rows import compress_sealed
from study_builder import build

RUN = "arms/historical/seed-1"
# Arguments after the study's folder, which stands for DIR.
COMMANDS = (
    ("analyze", "DIR"),
    ("ablate", "DIR"),
    ("diagnose", f"DIR/{RUN}"),
    ("counterfactual", f"DIR/{RUN}"),
    ("compare", "DIR/base/answers.jsonl", f"DIR/{RUN}/answers.jsonl"),
    ("rescore", "DIR"),
    ("power", "DIR"),
    ("report", "DIR"),
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("plain") / "study")


@pytest.fixture(scope="module")
def packed(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = shutil.copytree(plain, tmp_path_factory.mktemp("packed") / "study")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows_module, "COMPRESS_FROM_BYTES", 1)
        for path in study.rglob("*.jsonl"):
            if not path.name.endswith(".journal.jsonl"):
                compress_sealed(path)
    assert {p.name.count("journal") for p in study.rglob("*.jsonl")} == {1}
    (study / "manifest.json").unlink()
    seal_study(load_plan(study / "study.yaml"), StudyPaths(study))
    return study


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_a_command_prints_the_same_of_a_compressed_study(
    plain: Path, packed: Path, call: Call, command: tuple[str, ...]
) -> None:
    name, *arguments = command
    printed = []
    for study in (plain, packed):
        said = call(name, *(a.replace("DIR", str(study)) for a in arguments))
        assert said.code == 0, said.err
        printed.append(said.out.replace(str(study), "DIR"))
    assert printed[0] == printed[1]
    assert printed[0] or name == "report"


def test_a_compressed_study_verifies(packed: Path, call: Call) -> None:
    said = call("verify", packed)
    assert said.code == 0, [line for line in said.out.splitlines() if line.startswith("failed")]
