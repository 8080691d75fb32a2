"""Users' own rewards on disk: found by name without running them, frozen with a study, loaded.

The source of a reward is its top-level module, or every Python file of its top-level package. What
lies beside a plan is copied into the study, so that the study holds the code that paid.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.records.base import digest_bytes
from ahalab.store.durable import replace_file

MAX_COPIED_BYTES = 1 << 20
MAX_FILES = 5_000


@dataclass(frozen=True, slots=True)
class RewardSource:
    """The files of one reward's code, not run yet."""

    name: str  # package.module:function
    folder: Path  # what the import starts from
    files: tuple[str, ...]  # below the folder, sorted
    beside: bool  # it was found beside the plan, not among the installed packages

    @property
    def digest(self) -> str:
        """Digest of every file's name and bytes."""
        lines = [f"{digest_bytes(read_plain(self.folder / name))} {name}" for name in self.files]
        return digest_bytes("\n".join(lines).encode())


def find_reward(name: str, folders: Sequence[Path]) -> RewardSource:
    """Find the source of a reward without running it.

    Args:
        name: `package.module:function`.
        folders: Where to look first, in order; then among the installed packages.

    Raises:
        InputError: There is no such module, or it is not made of Python files.
    """
    top = name.partition(":")[0].partition(".")[0]
    for folder in folders:
        spec = PathFinder.find_spec(top, [str(folder.resolve())])
        if spec is not None:
            return _source(name, spec, beside=True)
    spec = PathFinder.find_spec(top)
    if spec is None:
        looked = ", ".join(str(folder) for folder in folders)
        raise InputError(
            f"{name}: expected a module {top} in {looked} or among the installed packages, found "
            f"none. Put {top}.py beside the plan."
        )
    return _source(name, spec, beside=False)


def _source(name: str, spec: ModuleSpec, *, beside: bool) -> RewardSource:
    if spec.submodule_search_locations:
        package = Path(next(iter(spec.submodule_search_locations)))
        files = sorted(file for file in package.rglob("*.py") if file.is_file())
        folder = package.parent
    else:
        files = [Path(str(spec.origin))] if str(spec.origin).endswith(".py") else []
        folder = files[0].parent if files else Path()
    if not 0 < len(files) <= MAX_FILES:
        raise InputError(f"{name}: expected a module of Python files, found {spec.origin}.")
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return RewardSource(name, folder, names, beside)


def copy_rewards(sources: Iterable[RewardSource], folder: Path) -> None:
    """Copy the code that lies beside a plan into a study.

    Raises:
        InputError: It is larger than a reward is.
    """
    for source in sources:
        if not source.beside or source.folder == folder.resolve():
            continue
        payloads = {name: read_plain(source.folder / name) for name in source.files}
        size = sum(len(payload) for payload in payloads.values())
        if size > MAX_COPIED_BYTES:
            raise InputError(
                f"{source.name}: expected at most {MAX_COPIED_BYTES >> 20} MB of code beside the "
                f"plan, found {size} bytes. Move the reward to a package of its own."
            )
        for name, payload in payloads.items():
            replace_file(folder / name, payload)


def load_reward(source: RewardSource) -> Callable[..., Any]:
    """Import a reward's module, which runs it, and return the function.

    Nothing is written beside the code; a coroutine function is run to its end at each call.

    Raises:
        InputError: The import fails, or there is no such function.
    """
    module_name, _, function_name = source.name.partition(":")
    _forget_others(source)
    without, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(source.folder))
    try:
        function = getattr(importlib.import_module(module_name), function_name, None)
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"{source.name}: expected a module that can be imported, found: {text}."
        ) from error
    finally:
        sys.path.remove(str(source.folder))
        sys.dont_write_bytecode = without
    if not callable(function):
        raise InputError(
            f"{source.name}: expected a function {function_name} in {module_name}, found "
            f"{'none' if function is None else type(function).__name__}."
        )
    return _finished(function) if inspect.iscoroutinefunction(function) else function


def accepted_arguments(
    name: str, function: Callable[..., Any], offered: Sequence[str]
) -> frozenset[str] | None:
    """Return the arguments that a reward takes by name; None when it takes whatever is offered.

    Raises:
        InputError: It needs an argument that is not offered.
    """
    named, takes_all = set(), False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.kind is parameter.POSITIONAL_ONLY or (
            parameter.default is parameter.empty
            and parameter.name not in offered
            and parameter.kind is not parameter.VAR_POSITIONAL
        ):
            raise InputError(
                f"{name}: expected arguments among {', '.join(offered)}, found "
                f"`{parameter.name}`. Rename it, or give it a default."
            )
        else:
            named.add(parameter.name)
    return None if takes_all else frozenset(named)


def _forget_others(source: RewardSource) -> None:
    """Forget a module of the same name that was loaded from elsewhere."""
    top = source.name.partition(":")[0].partition(".")[0]
    importlib.invalidate_caches()
    ours = {source.folder / name for name in source.files}
    loaded = {n: m for n, m in sys.modules.items() if n == top or n.startswith(f"{top}.")}
    files = (getattr(module, "__file__", None) for module in loaded.values())
    if source.beside and any(file and Path(file) not in ours for file in files):
        for name in loaded:
            del sys.modules[name]


def _finished(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # its signature is asked for later
    def call(**arguments: Any) -> Any:
        return asyncio.run(function(**arguments))

    return call
