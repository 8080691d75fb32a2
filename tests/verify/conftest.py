from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from study_builder import build
from template_builder import add_templates


@pytest.fixture(scope="session")
def sound_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole, sealed study, its base tried under templates; nobody may write to it."""
    return add_templates(build(tmp_path_factory.mktemp("sound") / "synthetic"))


@pytest.fixture
def study(sound_study: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return shutil.copytree(sound_study, tmp_path / "synthetic")
