import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analyze"))  # for `small_study`
sys.path.insert(0, str(Path(__file__).parent))  # for `command`

from command import Call, Said

from ahalab.cli import main


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the flush to the disk: these tests write many small studies and kill nothing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["ahalab", *map(str, arguments)])
        code = main()
        told = capsys.readouterr()
        return Said(code, told.out, told.err)

    return called
