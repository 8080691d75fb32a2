"""A base model's folder that asks for code to be run, or whose configuration is malformed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import ModelSpec
from ahalab.store.models import end_ids_of_folder, has_experts, load_model, organism_folder
from ahalab.tasks.render import load_tokenizer

EVIL = """\
from pathlib import Path
Path({marker!r}).touch()
class Evil:
    pass
"""
MODULES = {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}
READERS: dict[str, Callable[[Path], Any]] = {
    "weights": lambda folder: load_model(ModelSpec(id=str(folder)), folder),
    "experts": has_experts,
    "tokenizer": load_tokenizer,
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A sound base, with a module beside it that leaves a mark when it is run."""
    folder = tmp_path / "base"
    shutil.copytree(organism_folder(), folder)
    (folder / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "was-run")))
    return folder


def edit(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changed}))


@pytest.mark.train
@pytest.mark.parametrize("reader", ["weights", "experts"])
def test_a_base_that_needs_code_of_its_own_is_refused_and_the_code_is_not_run(
    base: Path, tmp_path: Path, reader: str
) -> None:
    pytest.importorskip("transformers")
    edit(base / "config.json", model_type="evil", auto_map=MODULES)
    with pytest.raises(InputError) as refused:
        READERS[reader](base)
    assert str(refused.value).startswith(f"{base}: expected a model")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.train
def test_code_beside_a_base_that_does_not_need_it_is_not_run(base: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    edit(base / "config.json", auto_map=MODULES)
    edit(base / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    assert not has_experts(base)
    load_model(ModelSpec(id=str(base)), base)
    assert type(load_tokenizer(base)).__name__ != "Evil"
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("config.json", "[]", "expected a JSON object, found a list"),
        ("generation_config.json", "{", "expected a JSON object, found: "),
        ("generation_config.json", "[" * 100_000, "expected a JSON object, found: "),
        ("generation_config.json", '{"eos_token_id": "1"}', "whole numbers in eos_token_id"),
        ("generation_config.json", '{"eos_token_id": [1, 1.5]}', "whole numbers in eos_token_id"),
        ("generation_config.json", '{"eos_token_id": {"a": 1}}', "whole numbers in eos_token_id"),
    ],
)
def test_malformed_settings_of_a_base_are_refused_in_one_line(
    base: Path, file: str, text: str, told: str
) -> None:
    if file == "config.json":
        (base / "generation_config.json").unlink()
    (base / file).write_text(text)
    with pytest.raises(InputError) as refused:
        end_ids_of_folder(base, 1)
    assert told in str(refused.value)
    assert str(base) in str(refused.value)
