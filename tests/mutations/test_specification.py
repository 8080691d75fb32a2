"""Every row of the specification's list has a mutation of the catalogue, under the check named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ahalab.verify.study import Held, verify_study
from mutations.by_hand import mutations_by_hand
from mutations.judging import by_name, root_of
from tampering import edit_row, reseal

MUST_CATCH = (
    ("file.hash", "a byte of a row file is flipped"),
    ("file.extra", "a file is added"),
    ("file.missing", "a file is removed"),
    ("file.path", "a file is renamed"),
    ("file.type", "a row file becomes a link to the same content"),
    ("file.type", "a file becomes a pipe"),
    ("path.safe", "the manifest leaves the folder"),
    ("manifest.unique", "a manifest entry stands twice"),
    ("manifest.closed", "an ignore list is added"),
    ("manifest.schema", "an unknown field is added"),
    ("chain", "a row is deleted"),
    ("chain", "rows are reordered"),
    ("row.unique", "a row is doubled"),
    ("seal", "the last batch is dropped"),
    ("seal", "a torn tail is called complete"),
    ("seal", "a row is appended after the seal"),
    ("chain.run", "rows of another run are spliced in"),
    ("attempts", "an attempt is erased"),
    ("json.strict", "a key stands twice in a row"),
    ("json.finite", "a reward is NaN"),
    ("schema.type", "a sample is true"),
    ("regrade", "a reward is raised"),
    ("regrade", "a correct completion is edited"),
    ("dataset.hash", "a gold answer is edited"),
    ("reward.sum", "a reward is not the sum of its components"),
    ("extract", "an extracted answer is edited"),
    ("finish", "a cut answer is called finished"),
    ("tokens", "a count of tokens is edited"),
    ("grade.status", "a component says that it timed out"),
    ("advantage", "an advantage is edited"),
    ("cover", "a question is dropped from the prompts"),
    ("cover", "a question is added to the prompts"),
    ("split", "a training question is evaluated"),
    ("prompt.hash", "a prompt is rendered otherwise"),
    ("plan.match", "the seeds of the plan change"),
    ("arm.config", "an arm was trained hotter"),
    ("plan.first", "rows are older than the plan"),
    ("outcome.missing", "a planned comparison is absent"),
    ("outcome.added", "another metric is called primary"),
    ("arms.all", "a run is left out"),
    ("plan.n", "a run stopped early"),
    ("adapter.fp", "adapters are swapped"),
    ("adapter.arm", "labels of two arms are exchanged"),
    ("base.pin", "a run was made on another base"),
    ("adapter.config", "alpha of an adapter is edited"),
    ("tensor.finite", "an adapter holds NaN"),
    ("adapter.effect", "an adapter is all zeros"),
    ("pair.key", "pairs are shifted by one"),
    ("stat.n", "a denominator is halved"),
    ("stat.recompute", "p is halved"),
    ("stat.recompute", "an interval is narrowed"),
    ("stat.recompute", "a sign is turned"),
    ("stat.method", "an interval is said to cover seeds"),
    ("report.bind", "the report binds another value"),
    ("report.quote", "a quoted answer stands in no log"),
    ("report.root", "the report is stale"),
)
"""Rows of ../shared/EVIDENCE.md, "What `ahalab verify` must catch", in its order.

`root.anchor` and `cli.exit` are below, `sig.*` in tests of signatures; nothing is imported yet.
"""


@pytest.mark.parametrize(("check", "name"), MUST_CATCH)
def test_the_catalogue_has_it_under_this_check(check: str, name: str) -> None:
    found = {one.mutation.name: one.mutation.check for one in mutations_by_hand()}
    assert found[name] == check


def test_a_flipped_byte_with_every_digest_mended_is_told_by_a_root_from_outside(
    studies: dict[str, Path], tmp_path: Path
) -> None:
    root = Path(shutil.copytree(studies["synthetic"], tmp_path / "copy"))
    edit_row(root / "arms/random/seed-1/timings.jsonl", 2, seconds=0.2)  # nothing rests on a clock
    reseal(root)
    published = root_of(studies["synthetic"])
    assert by_name(verify_study(root, Held(published)))["root.anchor"].status == "failed"
    assert by_name(verify_study(root))["root.anchor"].status == "not checked"


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_failure_is_never_printed_as_success(
    studies: dict[str, Path], tmp_path: Path, output: str
) -> None:
    root = Path(shutil.copytree(studies["synthetic"], tmp_path / "copy"))
    edit_row(root / "arms/random/seed-1/rollouts.jsonl", 1, reward=9.0)
    command = [sys.executable, "-m", "ahalab", "verify", str(root), "--format", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    if output == "json":
        assert json.loads(done.stdout)["result"] == "FAILED"
    else:
        assert "FAILED" in done.stdout
        assert "PASSED" not in done.stdout.splitlines()[-1]
