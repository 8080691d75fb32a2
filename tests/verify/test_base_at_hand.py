"""Where the base lies, by what a plan calls it; no name there ends verify."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ahalab.plan.load import load_plan
from ahalab.store.models import organism_folder
from ahalab.verify.texts import decoder_for, model_folder

PLAN = load_plan(Path(__file__).parents[2] / "studies/quickstart.yaml")


def test_the_embedded_model_lies_in_the_package_and_any_other_in_its_folder(tmp_path: Path) -> None:
    named = replace(PLAN, model=replace(PLAN.model, id=str(tmp_path)))
    assert (model_folder(PLAN), model_folder(named)) == (organism_folder(), tmp_path)


@pytest.mark.parametrize("name", ["owner/name", "x" * 5_000, "~nobody-of-this-name/model"])
def test_a_name_that_is_no_folder_here_is_a_hubs(name: str) -> None:
    plan = replace(PLAN, model=replace(PLAN.model, id=name))
    assert model_folder(plan) is None
    assert decoder_for(plan, "sha256:0") is None
