"""A full disk during training is one plain line, whatever the library that met it says."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ahalab.errors import AlarmError, InputError
from ahalab.train.checkpoints import full_disk_told


def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 102144 vs 102036"),
        Exception("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
    ids=["torch", "safetensors"],
)
def test_what_torch_and_safetensors_say_of_a_full_disk_becomes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    full(monkeypatch)
    with pytest.raises(InputError, match=r"No space left on device\. Free space") as caught:  # noqa: SIM117
        with full_disk_told(tmp_path):
            raise error
    assert str(caught.value).startswith(f"{tmp_path}: ")
    assert list(tmp_path.iterdir()) == []


def test_the_same_words_where_there_is_room_are_a_bug_and_stay_one(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="unexpected pos"), full_disk_told(tmp_path):
        raise RuntimeError("unexpected pos 102144 vs 102036")
    with pytest.raises(RuntimeError), full_disk_told(tmp_path / "not there yet"):
        raise RuntimeError


@pytest.mark.parametrize("error", [AlarmError("stopped"), OSError(errno.EIO, "I/O error")])
def test_what_says_itself_what_it_is_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    full(monkeypatch)
    with pytest.raises(type(error)), full_disk_told(tmp_path):
        raise error
