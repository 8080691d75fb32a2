"""Datasets of the hub, from local copies and from its cache, read by the library itself."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import InputError, MissingError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.hub import _fetched
from ahalab.tasks.questions import load_questions, offers_validation, question_origin

datasets = pytest.importorskip("datasets", reason="the [train] extra is not installed")
pytestmark = [
    pytest.mark.train,
    # The library leaves files and pools to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    _fetched.cache_clear()
    yield tmp_path / "cache"
    _fetched.cache_clear()


def task(name: str = "gsm8k", path: Path | None = None, **more: Any) -> TaskSpec:
    return TaskSpec(name=name, path=path and str(path), train_prompts=4, eval_prompts=4, **more)


def rows(word: str, count: int) -> Any:
    texts = [{"question": f"{word} {n}?", "answer": f"so\n#### 1,00{n}"} for n in range(count)]
    return datasets.Dataset.from_list(texts)


def two_splits(word: str = "main") -> Any:
    splits = {"train": rows(f"{word} train", 3), "test": rows(f"{word} test", 2)}
    return datasets.DatasetDict(splits)


def hub_layout(folder: Path, *subsets: str) -> Path:
    for subset in subsets:
        (folder / subset).mkdir(parents=True)
        for name, split in two_splits(subset).items():
            split.to_parquet(str(folder / subset / f"{name}-00000-of-00001.parquet"))
    return folder


def read(task: TaskSpec, split: Any = "train") -> list[tuple[str, str]]:
    return [(q.question, q.gold) for q in load_questions(task, split)]


def refused(task: TaskSpec, split: Any = "train", kind: type[Exception] = InputError) -> str:
    with pytest.raises(kind) as caught:
        load_questions(task, split)
    assert "\n" not in str(caught.value)
    return str(caught.value)


TRAIN = [("main train 0?", "1000"), ("main train 1?", "1001"), ("main train 2?", "1002")]
TEST = [("main test 0?", "1000"), ("main test 1?", "1001")]


def test_gsm8k_is_read_from_the_hubs_own_folders(tmp_path: Path) -> None:
    folder = hub_layout(tmp_path / "gsm8k", "main", "socratic")
    for place in (folder, folder / "main"):
        assert read(task(path=place)) == TRAIN
        assert read(task(path=place), "eval") == TEST
    assert load_questions(task(path=folder), "eval")[1].source == f"{folder}/test:2"
    socratic = task(path=folder, subset="socratic")
    assert read(socratic, "eval")[0] == ("socratic test 0?", "1000")
    assert not offers_validation(task(path=folder))


def test_gsm8k_is_read_from_a_folder_that_save_to_disk_wrote(tmp_path: Path) -> None:
    two_splits().save_to_disk(str(tmp_path / "saved"))
    assert read(task(path=tmp_path / "saved")) == TRAIN
    assert read(task(path=tmp_path / "saved"), "eval") == TEST
    rows("alone", 2).save_to_disk(str(tmp_path / "alone"))
    assert "found one that was saved without" in refused(task(path=tmp_path / "alone"))


def test_jsonl_files_come_before_a_copy_of_the_hubs(tmp_path: Path) -> None:
    folder = hub_layout(tmp_path / "gsm8k", "main")
    (folder / "train.jsonl").write_text('{"question": "own?", "answer": "#### 5"}')
    assert read(task(path=folder)) == [("own?", "5")]


def test_subsets_are_never_mixed(tmp_path: Path) -> None:
    folder = hub_layout(tmp_path / "d", "main", "socratic")
    assert "expected task.subset to name one of main, socratic, found none" in refused(
        task("hub", folder)
    )
    assert "found nope" in refused(task("hub", folder, subset="nope"))
    found = read(task("hub", folder, subset="socratic"))
    assert [question for question, _ in found] == [f"socratic train {n}?" for n in range(3)]
    assert found[0][1] == "so\n#### 1,000"  # only gsm8k cuts the answer after its mark


def test_a_readme_says_which_files_a_subset_has(tmp_path: Path) -> None:
    folder = hub_layout(tmp_path / "d", "x", "y")
    (folder / "README.md").write_text(
        "---\nconfigs:\n"
        "- config_name: main\n  data_files:\n  - split: train\n    path: y/train-*\n"
        "  - split: held\n    path: x/test-*\n"
        "- config_name: other\n  data_files: x/train-*\n---\n"
    )
    named = task("hub", folder, subset="main", splits={"eval": "held", "validation": "train"})
    assert read(named)[0][0] == "y train 0?"
    assert read(named, "eval")[0][0] == "x test 0?"
    assert offers_validation(named)
    assert read(named, "validation") == read(named)
    without = refused(task("hub", folder, subset="main"), "eval")
    assert without.endswith(
        "expected a split 'test' for eval, found held, train. Name the splits in task.splits."
    )


def test_fields_are_named_by_the_plan_and_a_bad_row_by_its_split_and_number(
    tmp_path: Path,
) -> None:
    split = datasets.Dataset.from_list([{"q": "a?", "a": 1.5}, {"q": None, "a": 2.0}])
    datasets.DatasetDict({"train": split, "test": split.select([0])}).save_to_disk(
        str(tmp_path / "d")
    )
    named = task("hub", tmp_path / "d", question_field="q", gold_field="a")
    assert read(named, "eval") == [("a?", "1.5")]
    assert refused(named).startswith(f"{tmp_path / 'd'}/train:2: expected a value in `q`")


def test_what_is_no_dataset_is_told_on_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "main").mkdir()
    for name in ("train", "test"):
        pointer = tmp_path / "main" / f"{name}-00000-of-00001.parquet"
        pointer.write_text("version https://git-lfs.github.com/spec/v1\nsize 230\n")
    assert "Parquet magic bytes not found in footer" in refused(task(path=tmp_path))
    assert "found no such folder" in refused(task("hub", tmp_path / "none"))
    assert "found a file" in refused(task("hub", Path(__file__)))
    shutil.rmtree(tmp_path / "main")
    assert "or a copy of the hub's dataset (main/train-*.parquet" in refused(task(path=tmp_path))
    assert capfd.readouterr() == ("", "")  # the library's own log stays off the terminal


def test_without_the_library_the_line_to_type_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hub_layout(tmp_path / "gsm8k", "main")
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'ahalab[train]'" in refused(task(path=folder), kind=MissingError)


# The hub, through its cache: what an earlier download left there ----------------------------------


def cached(cache: Path, commit: str) -> None:
    """Put GSM8K where the library looks for what it downloaded, made by the library itself."""
    layout = hub_layout(cache / "source", "main")
    builder = datasets.load_dataset_builder(str(layout / "main"), cache_dir=str(cache / "build"))
    builder.download_and_prepare()
    place = cache / "openai___gsm8k" / "main" / "0.0.0" / commit
    place.parent.mkdir(parents=True)
    shutil.copytree(builder.cache_dir, place)
    for file in place.glob("*.arrow"):  # named after the dataset, as the cached one is
        file.rename(file.with_name(f"gsm8k-{file.name.rpartition('-')[2]}"))
    info = (place / "dataset_info.json").read_text()
    (place / "dataset_info.json").write_text(
        info.replace(f'"{builder.dataset_name}"', '"gsm8k"').replace('"default"', '"main"')
    )


def test_gsm8k_comes_from_the_hubs_cache_and_its_commit_is_recorded(cache: Path) -> None:
    cached(cache, COMMIT)
    for named in (task(), task(revision=COMMIT), task(revision="main")):
        assert read(named) == TRAIN
        assert read(named, "eval") == TEST
        assert question_origin(named) == {
            "dataset": "openai/gsm8k",
            "commit": COMMIT,
            "datasets": datasets.__version__,
        }


def test_another_commit_in_the_cache_than_the_plans_is_refused(cache: Path) -> None:
    # Offline the library takes what there is, and passes over the revision asked for.
    cached(cache, COMMIT)
    other = COMMIT[::-1]
    said = refused(task(revision=other), kind=MissingError)
    assert f"expected openai/gsm8k at {other}, found only {COMMIT} in the cache" in said


def test_offline_without_a_copy_says_what_to_do() -> None:
    said = refused(task("hub", dataset="some/thing"), kind=MissingError)
    assert "some/thing can't be read from the hub (Couldn't reach" in said
    assert said.endswith("Set task.path to a local copy of it, go online, or unset HF_HUB_OFFLINE")


def test_a_folder_that_is_named_like_a_hub_id_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_layout(tmp_path / "some" / "thing", "main")
    monkeypatch.chdir(tmp_path)
    assert "which is also a folder here" in refused(task("hub", dataset="some/thing"))
