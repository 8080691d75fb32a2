from __future__ import annotations

import ast
import sys
from pathlib import Path

import ahalab.scoring

WORKER = {"worker.py", "latex_worker.py"}  # the one exception (DESIGN.md, "Layers")
EVERY_FILE = sorted(Path(ahalab.scoring.__file__).parent.glob("*.py"))
FILES = [path for path in EVERY_FILE if path.name not in WORKER]
ALLOWED = {"ahalab.scoring", "ahalab.records"}
IMPURE = {"os", "io", "time", "datetime", "random", "subprocess", "socket", "threading", "pathlib"}


def _imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_scoring_imports_the_records_and_pure_parts_of_the_standard_library_only() -> None:
    for path in FILES:
        for name in _imports(path):
            top = name.split(".")[0]
            if top == "ahalab":
                assert ".".join(name.split(".")[:2]) in ALLOWED, (path.name, name)
            else:
                assert top in sys.stdlib_module_names - IMPURE, (path.name, name)


def test_the_rules_never_know_the_worker_and_only_the_worker_imports_math_verify() -> None:
    source = Path(ahalab.scoring.__file__).parents[1]
    for path in source.rglob("*.py"):
        names = _imports(path)
        if path in FILES:
            assert not names & {"ahalab.scoring.worker", "ahalab.scoring.latex_worker"}, path
        if path.name != "latex_worker.py":
            assert "math_verify" not in {name.split(".")[0] for name in names}, path


def test_nothing_is_passed_to_eval_or_exec() -> None:
    called = {
        node.func.id
        for path in EVERY_FILE
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "compile", "open", "__import__", "print", "input"}
