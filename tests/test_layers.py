"""An arrow points at what is imported, and never the other way (DESIGN.md, "Layers")."""

import ast
import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import ahalab

SOURCE = Path(ahalab.__file__).parent
STAGES = ("train", "evaluate", "analyze", "verify", "report", "importers")
LOWER = (
    "errors",
    "plain_files",
    "visible",
    "killable",
    "records",
    "scoring",
    "statistics",
    "store",
    "plan",
    "tasks",
    "organism",
)

# Layer -> what its files may import (a layer by itself is always allowed).
ALLOWED: dict[str, tuple[str, ...]] = {
    "__init__": (),
    "errors": (),
    "plain_files": ("errors",),
    "visible": (),
    "killable": (),
    "records": ("errors",),
    "scoring": ("records.terms", "killable"),
    "statistics": ("records",),
    "store": ("records", "plain_files", "errors"),
    "plan": ("records", "scoring", "statistics.alarms", "plain_files", "errors"),
    "tasks": (
        "records",
        "scoring",
        "store",
        "plan",
        "plain_files",
        "errors",
        "killable",
        "organism.world",
    ),
    "organism": ("errors", "records", "scoring", "store"),
    **dict.fromkeys(STAGES, LOWER),
    "demo": LOWER,
    "view": LOWER,
    "pipeline": (*LOWER, *STAGES),  # the stages in order
    "cli": (*LOWER, *STAGES, "demo", "view", "pipeline", "__init__"),
    "__main__": ("cli",),
}
HEAVY = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")
# Modules that train, generate, or make the embedded model: the only ones that may load torch.
TORCH = (
    "ahalab.train",
    "ahalab.evaluate.backends.decoding",
    "ahalab.evaluate.backends.memory",
    "ahalab.evaluate.backends.row_adapters",
    "ahalab.evaluate.backends.transformers",
    "ahalab.organism.recipe",
    "ahalab.organism.measure",
)
IMPURE = {"os", "io", "time", "datetime", "random", "subprocess", "socket", "pathlib"}
IMPURE |= {"torch", "signal", "multiprocessing", "threading"}
# The killable LaTeX worker (DESIGN.md), and the tool that writes docs/artefacts.md.
IMPURE_FILES = ("scoring/worker.py", "scoring/latex_worker.py", "records/document.py")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> list[tuple[int, str]]:
    """Return (line, module) of every import, also those inside functions."""
    package = ["ahalab", *path.relative_to(SOURCE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from ahalab import store` imports the layer that the name says.
            names = (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "ahalab"
                else [module]
            )
            found += [(node.lineno, name) for name in names]
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def within(name: str, layers: tuple[str, ...]) -> bool:
    return any(name == layer or name.startswith(layer + ".") for layer in layers)


def test_every_layer_is_known() -> None:
    assert {layer_of(path) for path in modules()} <= set(ALLOWED)


@pytest.mark.parametrize("layer", sorted(ALLOWED))
def test_no_arrow_runs_against_the_layers(layer: str) -> None:
    wrong = []
    for path in modules():
        if layer_of(path) != layer:
            continue
        for line, name in imports(path):
            target = name.removeprefix("ahalab.") if name.startswith("ahalab.") else None
            if name == "ahalab":
                target = "__init__"
            if target in (None, "__version__") or within(target, (layer,)):
                continue
            if not within(target, ALLOWED[layer]):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {target}")
    assert wrong == []


def test_the_stages_never_import_one_another() -> None:
    for stage in STAGES:
        assert not set(ALLOWED[stage]) & set(STAGES)
        assert not {"cli", "pipeline", "demo", "view"} & set(ALLOWED[stage])


@pytest.mark.parametrize("layer", ["scoring", "statistics", "records"])
def test_pure_layers_use_no_clock_file_or_process(layer: str) -> None:
    wrong = []
    for path in (SOURCE / layer).rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() in IMPURE_FILES:
            continue
        wrong += [
            f"{path.relative_to(SOURCE)}:{line} imports {name}"
            for line, name in imports(path)
            if name.partition(".")[0] in IMPURE
        ]
    assert wrong == []


def test_an_import_that_runs_the_other_way_would_be_seen(tmp_path: Path) -> None:
    # The test of the test: each way of writing an import is recognised.
    path = SOURCE / "store" / "example.py"
    code = (
        "import ahalab.train.arm\n"
        "from ahalab import cli\n"
        "from ..verify import checks\n"
        "def f():\n"
        "    from ahalab.report.html import x\n"
    )
    copy = tmp_path / "example.py"
    copy.write_text(code)

    class Standing(type(path)):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            return copy.read_bytes()

    assert [name for _, name in imports(Standing(path))] == [
        "ahalab.train.arm",
        "ahalab.cli",
        "ahalab.verify",
        "ahalab.report.html",
    ]


def light_modules() -> list[str]:
    names = [
        m.name for m in pkgutil.walk_packages(ahalab.__path__, "ahalab.", onerror=lambda _: None)
    ]
    return [name for name in names if not within(name, TORCH) and not name.endswith("__main__")]


def test_what_does_not_train_or_generate_loads_no_torch() -> None:
    # In one process, one module after the other, so that the culprit is named.
    program = (
        "import importlib, json, sys\n"
        "loaded = []\n"
        f"for name in {light_modules()!r}:\n"
        "    importlib.import_module(name)\n"
        f"    new = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "    if new:\n"
        "        loaded.append((name, new)); break\n"
        "print(json.dumps(loaded))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_list_of_light_modules_is_not_empty() -> None:
    names = light_modules()
    assert {
        "ahalab.store.rows",
        "ahalab.plan.load",
        "ahalab.tasks.prepare",
        "ahalab.records.run",
    } <= set(names)
    assert all(importlib.util.find_spec(name) for name in names)
