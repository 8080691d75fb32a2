"""Results are written by the store alone: everyone else hands it bytes or rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ahalab

SOURCE = Path(ahalab.__file__).parent
# What writes elsewhere than into a study's results, and where.
ELSEWHERE = {
    "cli/counterfactual.py": "the file that --rows names",
    "killable.py": "a pipe",
    "evaluate/backends/spool.py": ".work: replies whose rows are not committed yet",
    "organism/digests.py": "the folder of a model",
    "organism/recipe.py": "the folder of a model",
    "organism/tokenizer.py": "the folder of a model",
    "plain_files.py": "nowhere: it opens to read",
    "pipeline/cards.py": "the folder that --to names",
    "pipeline/workers.py": ".work: logs",
    "plan/field_tables.py": "this package, by a maintainer",
    "records/document.py": "docs/artefacts.md, by a maintainer",
    "report/power_picture.py": "memory",
    "view/database.py": "the cache folder: the index",
    "train/trackers.py": ".work: what trackers write",
}
WRITES = {
    "write_text", "write_bytes", "touch", "savefig", "save_pretrained", "save_model", "tofile",
    "mkdir", "symlink_to", "hardlink_to", "copyfile", "copytree", "copy2", "copyfileobj", "move",
    "symlink", "link", "rename", "makedirs", "truncate", "ftruncate", "mkfifo",
}  # fmt: skip
# Names that other modules export for writing; only the store may take them.
PACKAGES = ("zstandard", "fcntl", "tempfile")


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, what) of every call that may open, make or move a file for writing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            yield from ((node.lineno, str(n)) for n in names if n in PACKAGES)
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open":
            yield from _opened(node, node.args[1:2])
        if not isinstance(function, ast.Attribute):
            continue
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr == "open" and owner == "os":
            yield node.lineno, "os.open"
        elif function.attr == "open":
            yield from _opened(node, node.args[:1])
        elif function.attr in WRITES or (owner == "os" and function.attr == "write"):
            yield node.lineno, function.attr
        elif function.attr == "replace" and (owner == "os" or _one_path(node)):
            yield node.lineno, "replace"


def _opened(node: ast.Call, positional: list[ast.expr]) -> Iterator[tuple[int, str]]:
    modes = positional + [k.value for k in node.keywords if k.arg == "mode"]
    for mode in modes:
        if not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+"):
            yield node.lineno, "open for writing"


def _one_path(node: ast.Call) -> bool:
    """`path.replace(target)` renames; `text.replace(old, new)` and `structs.replace(x, y=)` not."""
    return len(node.args) == 1 and not node.keywords


def test_no_module_outside_the_store_writes_a_file_of_the_results() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("store/") or name in ELSEWHERE:
            continue
        wrong += [f"{name}:{line}: {what}" for line, what in writes(ast.parse(path.read_bytes()))]
    assert wrong == []


def test_every_exception_is_still_one() -> None:
    idle = [n for n in ELSEWHERE if not list(writes(ast.parse((SOURCE / n).read_bytes())))]
    assert idle == [], "these write nothing any more: drop them from the list"


@pytest.mark.parametrize(
    "line",
    [
        "open(p, 'w')", "open(p, mode='ab')", "p.open('r+b')", "open(p, mode)", "p.write_bytes(b)",
        "os.open(p, os.O_RDWR)", "os.write(1, b)", "p.replace(q)", "os.replace(p, q)",
        "shutil.copyfile(p, q)", "figure.savefig(p)", "import zstandard",
        "from tempfile import mkstemp", "def f():\n    with p.open('xb') as g:\n        pass",
    ],
)  # fmt: skip
def test_each_way_of_writing_is_seen(line: str) -> None:
    assert list(writes(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    ["open(p)", "p.open('rb')", "p.read_bytes()", "text.replace('a', 'b')", "replace(x, y=1)",
     "structs.replace(row, protocol='')", "sys.stdout.write(text)"],
)  # fmt: skip
def test_reading_is_no_writing(line: str) -> None:
    assert not list(writes(ast.parse(line)))
