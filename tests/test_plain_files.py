from __future__ import annotations

import ast
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import ahalab
from ahalab.errors import InputError
from ahalab.plain_files import read_plain

SOURCE = Path(ahalab.__file__).parent
# What only this package, the system or the person at the keyboard puts there.
OWN = {
    "plain_files.py",
    "cli/plans.py",  # packaged presets
    "demo/pairs.py",  # the packaged run
    "organism/digests.py",  # the packaged model
    "plan/fields.py",  # packaged tables
    "records/document.py",  # sources
    "report/html.py",  # packaged templates
    "store/memory.py",  # /proc
    "view/liveness.py",  # /proc
    "view/server.py",  # the packaged page
    "killable.py",  # /proc
    "cli/scoring.py",  # `ahalab score` reads pipes: they are its input
}


@pytest.fixture(autouse=True)
def _no_test_waits() -> Iterator[None]:
    """End a test that waits for a writer of a pipe."""
    signal.alarm(20)
    yield
    signal.alarm(0)


def test_a_plain_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"bytes\n")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "file") == read_plain(tmp_path / "link") == b"bytes\n"


def test_a_pipe_a_folder_and_a_device_are_refused_in_one_line_and_nobody_waits(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    before = open_files()
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match=f"^{path}: expected a plain file, found: [^\n]*$"):
            read_plain(path)
    assert open_files() == before


def test_what_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "none")


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def reads(path: Path) -> list[str]:
    """Return the calls of a module that read a file's bytes by any other door."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if node.func.attr in ("read_bytes", "read_text") or (
                node.func.attr == "open" and modes == ["rb"]
            ):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    return found


def test_files_of_others_are_read_by_this_door_alone() -> None:
    modules = [p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).as_posix() not in OWN]
    assert [place for path in modules for place in reads(path)] == []
    assert all(reads(SOURCE / name) or name == "plain_files.py" for name in OWN)
