"""Datasets of the Hugging Face hub, and local copies of one, read by the `datasets` library."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import UNSET

from ahalab.errors import InputError, MissingError
from ahalab.plan.tasks import HUB_SPLITS
from ahalab.records.plan import TaskSpec
from ahalab.records.terms import Split
from ahalab.tasks.copies import (
    SAVED,
    require_files_within,
    require_patterns_within,
    require_readable,
    saved_files,
)
from ahalab.tasks.files import Row

GSM8K = ("openai/gsm8k", "main")
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_FILES = "hf://datasets/"
SAVED_ALONE = "state.json"  # what `Dataset.save_to_disk` writes: one split, without its name
COPY = "a copy of the hub's dataset (main/train-*.parquet, or as save_to_disk writes)"
# Folders that the library reads as splits, or as data: no subsets.
NO_SUBSETS = {"data", "train", "training", "test", "testing", "eval", "evaluation", "dev"}
NO_SUBSETS |= {"validation", "val", "valid"}
INSTALL = "Type: pip install 'ahalab[train]'"


@dataclass(frozen=True, slots=True)
class Source:
    """Which dataset, and where it lies."""

    dataset: str  # hub id; with a folder only a name
    subset: str | None
    revision: str | None
    folder: str | None  # None: on the hub


@dataclass(frozen=True, slots=True)
class Opened:
    """A dataset at hand."""

    splits: dict[str, Any]  # name -> rows
    commit: str | None  # of the hub's repository; None: a local copy


def source_of(task: TaskSpec) -> Source:
    """Return where a `gsm8k` or `hub` task is read from."""

    def given(value: Any) -> Any:
        return None if value is UNSET else value

    subset, dataset = given(task.subset), given(task.dataset)
    if task.name == "gsm8k":
        dataset, subset = GSM8K[0], subset or GSM8K[1]
    folder = None if task.path is None else str(Path(task.path).expanduser())
    return Source(dataset or str(folder), subset, given(task.revision), folder)


def is_copy(folder: Path, subset: str) -> bool:
    """Say whether a folder looks like a local copy of a hub dataset."""
    if (folder / SAVED).is_file() or (folder / SAVED_ALONE).is_file():
        return True
    places = (folder, folder / subset, folder / "data")
    return any(next(place.glob("*.parquet"), None) is not None for place in places)


def hub_rows(task: TaskSpec, split: Split) -> list[Row]:
    """Return the rows of a split with their places, in the dataset's order.

    Raises:
        InputError: There is no such dataset, subset, revision or split, or it can't be read.
        MissingError: `datasets` is not installed, or the hub can't be reached.
    """
    source = source_of(task)
    names = HUB_SPLITS if task.splits is UNSET else task.splits
    name = names.get(split, split)
    opened = _fetched(source) if source.folder is None else _local(source)
    where = source.folder or source.dataset
    if name not in opened.splits:
        raise InputError(
            f"{where}: expected a split {name!r} for {split}, found "
            f"{', '.join(sorted(opened.splits)) or 'none'}. "
            + (
                "Name the splits in task.splits."
                if task.name == "hub"
                else "Take `name: hub` with task.splits for a dataset of other splits."
            )
        )
    with _quiet(), _faults_told(where):
        rows = opened.splits[name].with_format(None)
        return [(dict(row), f"{where}/{name}:{n}") for n, row in enumerate(rows, 1)]


def hub_origin(task: TaskSpec) -> dict[str, str]:
    """Return which commit of the hub's dataset was read, and with which `datasets`.

    Raises:
        InputError, MissingError: See `hub_rows`.
    """
    source = source_of(task)
    commit = _fetched(source).commit
    return {"dataset": source.dataset, "commit": str(commit), "datasets": _library().__version__}


def _library() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingError(
            f"task: reading a dataset of the hub, or a copy of one, needs `datasets`. {INSTALL}; "
            "or set task.path to a folder with train.jsonl and test.jsonl"
        ) from error
    return datasets


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's bars and advice off the terminal."""
    datasets = _library()
    level, bars = datasets.logging.get_verbosity(), not datasets.are_progress_bars_disabled()
    hub = logging.getLogger("huggingface_hub")  # it warns of a README without metadata
    hub_level = hub.level
    hub.setLevel(logging.CRITICAL)
    datasets.logging.set_verbosity(logging.CRITICAL)  # what went wrong is raised, and told once
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            datasets.enable_progress_bars()


def _prepared(builder: Any) -> dict[str, Any]:
    builder.download_and_prepare()
    return {name: builder.as_dataset(split=name) for name in builder.info.splits or {}}


def _named(builder: Any) -> list[str]:
    """Return the files that a dataset would be read from: paths, and addresses."""
    return [str(name) for files in (builder.config.data_files or {}).values() for name in files]


def _local(source: Source) -> Opened:
    """Open a local copy: the hub's own folders, or what `save_to_disk` wrote."""
    datasets, folder = _library(), Path(str(source.folder))
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected the folder of a dataset, found "
            f"{'a file' if folder.exists() else 'no such folder'}. Mend task.path."
        )
    if not (folder / SAVED).is_file() and (folder / SAVED_ALONE).is_file():
        raise InputError(
            f"{folder}: expected a dataset with splits, found one that was saved without. Save a "
            "DatasetDict with train and test."
        )
    with _quiet(), _faults_told(str(folder)):
        if (folder / SAVED).is_file():
            require_readable(saved_files(folder))
            return Opened(dict(datasets.load_from_disk(str(folder))), None)
        builder = _local_builder(datasets, folder, source.subset)
        require_readable(require_files_within(folder, _named(builder)))
        return Opened(_prepared(builder), None)


@contextlib.contextmanager
def _faults_told(where: str) -> Iterator[None]:
    """Tell on one line what the library makes of files of others, of which it checks little."""
    exceptions = _library().exceptions
    malformed = (OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError)
    try:
        yield
    except (*malformed, ImportError, exceptions.DatasetsError) as error:
        raise InputError(
            f"{where}: expected a dataset (parquet files of each split, or a folder that "
            f"save_to_disk wrote), found: {_reason(error)}. Mend task.path, or copy it again."
        ) from error


def _local_builder(datasets: Any, folder: Path, subset: str | None) -> Any:
    # A README may say which files a subset has; otherwise each has a folder of its own.
    if (folder / "README.md").is_file():
        require_patterns_within(folder)
        declared = datasets.get_dataset_config_names(str(folder))
        if len(declared) > 1 or subset in declared:
            return datasets.load_dataset_builder(str(folder), subset)
    inner = sorted(place.name for place in folder.iterdir() if _is_subset(place))
    if subset in inner:
        return datasets.load_dataset_builder(str(folder / str(subset)))
    # The library would read several as one. A subset's own folder may be what was named.
    if len(inner) > 1 or (inner and subset):
        raise InputError(
            f"{folder}: expected task.subset to name one of {', '.join(inner)}, found "
            f"{subset or 'none'}. Mend the key."
        )
    return datasets.load_dataset_builder(str(folder))


def _is_subset(place: Path) -> bool:
    if not place.is_dir() or place.name in NO_SUBSETS:
        return False
    return next(place.glob("*.parquet"), None) is not None


@lru_cache(maxsize=4)
def _fetched(source: Source) -> Opened:
    """Open a dataset of the hub; once, so that all splits come from one commit."""
    datasets = _library()
    if Path(source.dataset).exists():  # the library would read it in place of the hub's
        raise InputError(
            f"task.dataset: expected a hub id, found {source.dataset!r}, which is also a folder "
            "here. Set task.path to read the folder, or work elsewhere."
        )
    try:
        with _quiet():
            builder = datasets.load_dataset_builder(
                source.dataset, source.subset, revision=source.revision
            )
            elsewhere = [name for name in _named(builder) if not name.startswith(HUB_FILES)]
            if elsewhere:  # its README may name any path and any address
                raise InputError(
                    f"task: {source.dataset}: expected files of the hub, found "
                    f"{elsewhere[0]!r:.200}. Take another task.subset, or another dataset."
                )
            opened = Opened(_prepared(builder), str(builder.hash))
    except datasets.exceptions.DatasetNotFoundError as error:
        raise InputError(f"task: {_reason(error)}. Mend task.dataset or task.revision.") from error
    except (OSError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise MissingError(
            f"task: {source.dataset} can't be read from the hub ({_reason(error)}). Set task.path "
            "to a local copy of it, go online, or unset HF_HUB_OFFLINE"
        ) from error
    except ValueError as error:  # no such subset; the library lists those that there are
        raise InputError(f"task: {source.dataset}: {_reason(error)}. Mend task.subset.") from error
    pinned = source.revision
    # Offline the library takes whichever commit lies in its cache, whatever was asked for.
    if pinned is not None and COMMIT.fullmatch(pinned) and opened.commit != pinned:
        raise MissingError(
            f"task.revision: expected {source.dataset} at {pinned}, found only {opened.commit} in "
            "the cache. Go online, or unset HF_HUB_OFFLINE"
        )
    return opened


def _reason(error: BaseException) -> str:
    """Return the first line of what went wrong, at its root."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")[:300]
