"""/dev/full is a disk without room: what can't be printed changes no exit code into another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command import AHALAB

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "out", "err"),
    [
        (["plan", "absent.yaml"], "/dev/null", "/dev/full"),
        (["freeze", str(ROOT / "studies/quickstart.yaml")], "/dev/full", None),
        (["freeze", str(ROOT / "studies/quickstart.yaml")], "/dev/full", "/dev/full"),
    ],
    ids=["messages", "results", "both"],
)
def test_a_full_device_is_wrong_input_and_no_traceback(
    arguments: list[str], out: str, err: str | None
) -> None:
    with Path(out).open("wb") as stdout, Path(err or "/dev/null").open("wb") as stderr:
        done = subprocess.run(
            [*AHALAB, *arguments], stdout=stdout, stderr=stderr if err else subprocess.PIPE,
            check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    if done.stderr is not None:
        assert done.stderr.startswith(b"ahalab: ")
        assert done.stderr.count(b"\n") == 1
        assert b"No space left on device" in done.stderr
