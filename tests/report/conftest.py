from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `synthetic`

from synthetic import ROOT, write_study

from ahalab.report.html import build_report
from ahalab.store.layout import StudyPaths


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    return write_study(tmp_path_factory.mktemp("results") / "synthetic")


@pytest.fixture(scope="session")
def page(study: StudyPaths) -> str:
    return build_report(study, ROOT)
