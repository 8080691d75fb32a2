"""Which files a local copy of a dataset names, and whether they can be read: before they are.

A copy's own files say what belongs to it: a README the patterns of each subset, `save_to_disk` the
names of each split. They may name nothing outside of the folder, and no address.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.killable import Worker
from ahalab.store.json_files import read_object

SAVED = "dataset_dict.json"  # what `DatasetDict.save_to_disk` writes
KINDS = (".parquet", ".json", ".jsonl", ".csv")
MAX_ROWS = 10_000_000  # of a dataset
MAX_BYTES = 4 << 30  # of a dataset, unpacked
NOT_PLAIN = frozenset("/\\\0")
READ_SECONDS = 600.0  # for a dataset
_READER = Worker("ahalab.tasks.table_worker")


def saved_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder that `DatasetDict.save_to_disk` wrote.

    Raises:
        InputError: Its records are malformed, or name something else than a file of a split.
    """
    files = []
    for split in _names(folder / SAVED, "splits"):
        state = folder / split / "state.json"
        entries = read_object(state).get("_data_files")
        listed = [e.get("filename") if isinstance(e, dict) else e for e in _list(entries)]
        files += [folder / split / name for name in _plain(state, listed)]
    return files


def _names(path: Path, field: str) -> list[str]:
    return _plain(path, _list(read_object(path).get(field)))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _plain(path: Path, names: Iterable[object]) -> list[str]:
    """Return names that stay in their folder."""
    found = []
    for name in names:
        if not isinstance(name, str) or name in ("", ".", "..") or not NOT_PLAIN.isdisjoint(name):
            raise InputError(
                f"{path}: expected plain names of what lies beside it, found {name!r:.80}. Copy "
                "the dataset again."
            )
        found.append(name)
    return found


def require_patterns_within(folder: Path) -> None:
    """Refuse a README whose subsets name an address or something outside of the folder.

    Raises:
        InputError: It does, or its metadata can't be read.
    """
    from huggingface_hub import metadata_load
    from yaml import YAMLError  # type: ignore[import-untyped]

    readme = folder / "README.md"
    try:
        metadata = metadata_load(readme)
    except (OSError, ValueError, RecursionError, YAMLError) as error:
        told = " ".join(str(error).split())[:200]
        raise InputError(f"{readme}: expected metadata in YAML, found: {told}.") from error
    configs = metadata.get("configs") if isinstance(metadata, dict) else None
    for config in _list(configs):
        for key in ("data_files", "data_dir"):
            for text in _texts(config.get(key) if isinstance(config, dict) else None):
                if "://" in text or "::" in text or not _within(folder, folder / text):
                    raise _outside(readme, text)


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _texts(part)


def _within(folder: Path, path: Path) -> bool:
    # By name alone: in the hub's cache every file of a copy is a link to one elsewhere.
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))


def _outside(place: Path, found: str) -> InputError:
    return InputError(
        f"{place}: expected files within the dataset's folder, found {found!r:.200}. Copy what it "
        "names into the folder, and mend the name."
    )


def require_files_within(folder: Path, files: list[str]) -> list[Path]:
    """Return the files that a dataset would be read from.

    Raises:
        InputError: One lies outside of the folder, or is of a kind that is not read.
    """
    for name in files:
        if not _within(folder, Path(name)):
            raise _outside(folder, name)
        if not name.endswith(KINDS):
            raise InputError(
                f"{folder}: expected files of the kinds {', '.join(KINDS)}, found {name!r:.200}. "
                "Convert it, or take it out of the folder."
            )
    return [Path(name) for name in files]


def require_readable(files: list[Path]) -> None:
    """Have tables read to their end in a process that may die of them, and under bounds.

    Args:
        files: Of a dataset; of others than Parquet and Arrow nothing is read here.

    Raises:
        InputError: One can't be, or they hold too much.
    """
    tables = [str(path) for path in files if path.suffix in (".parquet", ".arrow")]
    if not tables:
        return
    bounds = {"rows": MAX_ROWS, "bytes": MAX_BYTES}
    reply = _READER.ask({"files": tables, **bounds}, READ_SECONDS)
    if "bound" in reply:
        raise InputError(
            f"{files[0].parent}: expected tables of at most {MAX_ROWS} rows and "
            f"{MAX_BYTES >> 30} GiB, read within {READ_SECONDS:g} s, found {reply['bound']}. Take "
            "fewer rows, or copy the dataset again."
        )
    if "refused" in reply:
        told = " ".join(str(reply["refused"]).split())[:200].rstrip(".")
        raise InputError(
            f"{reply['file']}: expected a table, found: {told}. Copy the dataset again."
        )
