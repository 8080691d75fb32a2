import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "analyze"), str(Path(__file__).parent)]


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the flush to the disk: these tests write many small studies and kill nothing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
