from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from viewed_study import Viewed, write_viewed

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))  # for `command`

from command import run, run_without


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_remedy_is_one_line_and_exit_code_5(missing: str) -> None:
    said = run_without((missing,), "view", "results")
    assert said.code == 5
    assert said.line == (
        f"ahalab: {missing}: the viewer needs it, and it is not installed. "
        "Install it: pip install 'ahalab[view]'"
    )


def test_a_folder_without_a_study_is_wrong_input(tmp_path: Path) -> None:
    said = run("view", tmp_path)
    assert said.code == 2
    assert said.line.startswith(f"ahalab: {tmp_path}: expected a study.yaml there or one folder")


def test_a_port_that_is_taken_is_named_with_the_remedy(viewed: Viewed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("view", viewed.paths.root, "--port", str(port))
    assert said.code == 2
    assert said.line == (
        f"ahalab: --port {port}: expected a free port of 127.0.0.1, found: Address already in use. "
        "Leave --port out for any free one."
    )


def test_a_cache_that_cannot_be_written_is_shown_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahalab.view.follow import Follower

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    viewed = write_viewed(tmp_path / "results" / "small", steps=1)
    follower = Follower([viewed.paths.root], lambda *_: None)
    follower.look()
    (fault,) = follower.catalogue.faults
    assert "expected a cache folder to keep the index in" in fault
