import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))  # for `command`

from command import Call, Said

from ahalab.cli import main


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command in this process."""

    def called(*arguments: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["ahalab", *map(str, arguments)])
        code = main()
        told = capsys.readouterr()
        return Said(code, told.out, told.err)

    return called
