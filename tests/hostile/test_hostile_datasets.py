"""Local copies of datasets: tables that end who reads them, bombs, and names that lead outside."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import TaskSpec
from ahalab.tasks import copies
from ahalab.tasks.questions import load_questions

datasets = pytest.importorskip("datasets", reason="the [train] extra is not installed")
pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # the library leaves files open
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
QUESTIONS = [f"{n} + 1?" for n in range(4)]  # 6 bytes each


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def table(questions: list[str] = QUESTIONS) -> Any:
    rows = {"question": questions, "answer": ["1"] * len(questions)}
    return datasets.Dataset.from_dict(rows)


def read(folder: Path, subset: str | None = None) -> list[str]:
    task = TaskSpec(name="hub", path=str(folder), train_prompts=1, eval_prompts=1)
    if subset is not None:
        task = TaskSpec(
            name="hub", path=str(folder), train_prompts=1, eval_prompts=1, subset=subset
        )
    return [question.question for question in load_questions(task, "train")]


def refused(folder: Path, subset: str | None = None) -> str:
    with pytest.raises(InputError) as error:
        read(folder, subset)
    assert str(error.value).isprintable()
    assert str(error.value).startswith(str(folder))
    return str(error.value)


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """A folder as the hub has it, with a file beside it that is not for others."""
    (tmp_path / "secret.jsonl").write_text('{"question": "secret?", "answer": "1"}\n')
    folder = tmp_path / "layout"
    folder.mkdir()
    table().to_parquet(str(folder / "train-00000-of-00001.parquet"))
    return folder


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder as save_to_disk writes it."""
    datasets.DatasetDict({"train": table()}).save_to_disk(str(tmp_path / "saved"))
    return tmp_path / "saved"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.jsonl",
        "../../**",
        "x/../../secret.jsonl",
        "{root}/secret.jsonl",
        "https://example.invalid/x.parquet",
        "file://{root}/secret.jsonl",
        "zip://*::https://example.invalid/x.zip",
    ],
)
def test_a_readme_names_nothing_outside_of_its_folder(layout: Path, path: str) -> None:
    named = path.format(root=layout.parent)
    files = [{"split": "train", "path": ["train-*", named]}]
    for config in ({"data_files": files}, {"data_files": named}, {"data_dir": named}):
        text = json.dumps({"configs": [{"config_name": "main", **config}]})  # YAML, too
        (layout / "README.md").write_text(f"---\n{text}\n---\n")
        assert "expected files within the dataset's folder, found" in refused(layout, "main")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "local:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "zip://*::https://example.invalid/x.zip",
        "simplecache::hf://datasets/a/b/x.parquet",
    ],
)
def test_a_dataset_of_the_hub_that_names_a_file_from_elsewhere_is_refused(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SimpleNamespace(data_files={"train": ["hf://datasets/a/b/x.parquet", elsewhere]})
    builder = SimpleNamespace(config=config, hash="0" * 40)
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_, **__: builder)
    task = TaskSpec(name="hub", dataset="evil/names", train_prompts=1, eval_prompts=1)
    with pytest.raises(
        InputError, match=re.escape(f"expected files of the hub, found {elsewhere!r}")
    ):
        load_questions(task, "train")


@pytest.mark.parametrize(
    "readme",
    ["---\nconfigs: [\n---\n", "---\nconfigs: \x10\n---\n",
     "---\nconfigs: !!python/name:os.system x\n---\n", "---\n" + "[" * 100_000 + "\n---\n"],
)  # fmt: skip
def test_a_readme_that_is_malformed_is_refused(layout: Path, readme: str) -> None:
    (layout / "README.md").write_text(readme)
    assert "README.md: expected metadata in YAML, found: " in refused(layout)


def test_a_kind_of_file_that_may_hold_code_is_refused(layout: Path) -> None:
    (layout / "train-00000-of-00001.parquet").unlink()
    (layout / "train.tar").write_bytes(b"\0" * 10_240)
    assert "expected files of the kinds .parquet" in refused(layout)


@pytest.mark.parametrize("name", ["../../secret.jsonl", "/etc/passwd", "..", "", "a/b", "\0", 7])
def test_a_saved_dataset_names_plain_files_beside_its_records(saved: Path, name: Any) -> None:
    state = saved / "train" / "state.json"
    state.write_text(json.dumps({"_data_files": [{"filename": name}]}))
    assert "state.json: expected plain names of what lies beside it, found" in refused(saved)
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": [name]}))
    assert "dataset_dict.json: expected plain names" in refused(saved)


def test_an_arrow_file_that_ends_its_reader_is_refused(saved: Path) -> None:
    (file,) = (saved / "train").glob("*.arrow")
    whole = file.read_bytes()
    offsets = struct.pack("<5i", 0, 6, 12, 18, 24)
    assert offsets in whole
    assert read(saved) == QUESTIONS
    for wrong in ((0, 6, 2**31 - 1, 18, 24), (-(2**31), 6, 12, 18, 24), (0, 6, 12, 18, 2**30)):
        file.write_bytes(whole.replace(offsets, struct.pack("<5i", *wrong)))
        assert f"{file}: expected a table, found: " in refused(saved)
    file.write_bytes(whole)
    assert read(saved) == QUESTIONS


@pytest.mark.parametrize("size", [0, 3, 7, 100, -1])
def test_a_table_that_is_cut_is_refused(layout: Path, saved: Path, size: int) -> None:
    (parquet,) = layout.glob("*.parquet")
    (arrow,) = (saved / "train").glob("*.arrow")
    for folder, file in ((layout, parquet), (saved, arrow)):
        whole = file.read_bytes()
        file.write_bytes(whole[:size] if size >= 0 else whole[:-20])
        assert file.name in refused(folder)


def test_a_few_kilobytes_of_very_many_rows_are_refused(
    layout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = layout.glob("*.parquet")
    table(["x" * 1_000] * 100_000).to_parquet(str(file))  # 100 MB
    assert file.stat().st_size < 1_000_000
    monkeypatch.setattr(copies, "MAX_ROWS", 99_999)
    assert "at most 99999 rows and 4 GiB" in refused(layout)
    monkeypatch.setattr(copies, "MAX_ROWS", 100_000)
    monkeypatch.setattr(copies, "MAX_BYTES", 50 << 20)
    assert "expected tables of at most 100000 rows" in refused(layout)


@pytest.mark.parametrize("kind", ["numpy", "no such format"])
def test_a_format_that_a_saved_dataset_asks_for_does_not_matter(saved: Path, kind: str) -> None:
    state = saved / "train" / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_bytes()), "_format_type": kind}))
    if kind == "no such format":
        assert "expected a dataset" in refused(saved)
    else:
        assert read(saved) == QUESTIONS
