from __future__ import annotations

from pathlib import Path

import pytest

from rich_study import build_rich
from study_builder import build
from template_builder import add_templates


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two whole, sealed studies, which together use every feature; nobody may write to them."""
    folder = tmp_path_factory.mktemp("sound")
    plain = add_templates(build(folder / "synthetic"))
    return {"synthetic": plain, "rich": build_rich(folder / "rich")}
