"""Trains the organism with each supported set of libraries: `make test-compat`.

Each set of compat_sets.toml gets an environment of its own under build/compat/, in which
compat_checks.py trains and checks. What it found goes to docs/compatibility/, and from there into
the table of docs/compatibility.md. An environment that is there already is used again, so a run
that was stopped goes on where it was. Torch alone is shared with this interpreter's environment:
it is 0.8 to 5 GB, and no set changes it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "compat"
REFERENCE = BUILD / "reference"  # the newest set, trained on this machine
CHECKS = ROOT / "tools" / "compat_checks.py"
OUTCOMES = ROOT / "docs" / "compatibility"
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- table: make test-compat -->\n", "<!-- end of table -->\n"
SHARED = re.compile(r"torch|triton|nvidia-.*|cuda-.*")  # distributions that make up torch
COLUMNS = ("trl", "transformers", "peft", "accelerate", "datasets", "torch", "python")


@dataclass(frozen=True, slots=True)
class Set:
    """Versions that are tried together."""

    name: str
    trl: str
    transformers: str
    peft: str

    @property
    def pins(self) -> list[str]:
        """The set as pip's requirements."""
        return [f"trl=={self.trl}", f"transformers=={self.transformers}", f"peft=={self.peft}"]

    @property
    def outcome(self) -> Path:
        """Where what was found is kept."""
        return OUTCOMES / f"{self.name}.json"


def sets() -> list[Set]:
    """Return the supported sets, newest first."""
    text = (ROOT / "tools" / "compat_sets.toml").read_text("utf-8")
    return [Set(**entry) for entry in tomllib.loads(text)["set"]]


def chosen(names: list[str]) -> list[Set]:
    """Return the sets of these names; `newest` and `oldest` are names too, none means all."""
    known = sets()
    named = {one.name: one for one in known} | {"newest": known[0], "oldest": known[-1]}
    unknown = [name for name in names if name not in named]
    if unknown:
        raise SystemExit(f"{unknown[0]}: expected a set of {', '.join(named)}.")
    return list(dict.fromkeys(named[name] for name in names)) or known


# Environments.


def torch_folder() -> Path:
    """Return a folder of links to this interpreter's torch, and to nothing else of it."""
    folder = BUILD / "torch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for shared in distributions():
        if SHARED.fullmatch(shared.metadata["Name"]):
            for place in top_level(shared):
                if not (folder / place.name).exists():
                    (folder / place.name).symlink_to(place)
    return folder


def top_level(shared: Distribution) -> Iterator[Path]:
    """Yield the folders and modules of a distribution that lie in site-packages itself."""
    names = {file.parts[0] for file in shared.files or () if file.parts[0] != ".."}
    for name in sorted(names - {"__pycache__"}):
        yield Path(str(shared.locate_file(name)))


def environment(one: Set) -> Path:
    """Build the environment of a set, or find it, and return its interpreter.

    Raises:
        subprocess.CalledProcessError: pip could not install the set.
    """
    folder = BUILD / one.name
    python = folder / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*one.pins, f"torch=={version('torch')}", *project["dependencies"]]
    wanted += project["optional-dependencies"]["train"]
    ready = folder / "ready.json"  # written last
    if ready.exists() and json.loads(ready.read_text("utf-8")) == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], BUILD / f"{one.name}.log")
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    (packages / "torch.pth").write_text(f"{BUILD / 'torch'}\n", encoding="utf-8")
    install = ["--editable", f"{ROOT}[train]", f"torch=={version('torch')}", *one.pins]
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    run([*pip, "install", "--quiet", "--no-compile", *install], BUILD / f"{one.name}.log")
    ready.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def run(arguments: list[str], log: Path) -> None:
    """Run a command with its output in a log."""
    with log.open("ab") as output:
        subprocess.run(arguments, check=True, stdout=output, stderr=subprocess.STDOUT, env=clean())


def clean() -> dict[str, str]:
    """Return the environment variables without those that would lead to other packages."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


# Sets.


def check(python: Path | str, *places: Path) -> dict[str, Any]:
    """Train and check with an interpreter; return what compat_checks.py says."""
    done = subprocess.run(
        [str(python), str(CHECKS), *(str(place) for place in places)],
        stdout=subprocess.PIPE, text=True, check=False, env=clean(),
    )  # fmt: skip
    if done.returncode:
        return {"versions": {}, "checks": {"start": f"ended with exit code {done.returncode}"}}
    found: dict[str, Any] = json.loads(done.stdout.rstrip("\n").split("\n")[-1])
    return found


def try_set(one: Set) -> dict[str, Any]:
    """Build a set's environment, check in it, and keep what was found."""
    try:
        python = environment(one)
    except subprocess.CalledProcessError:
        log = (BUILD / f"{one.name}.log").read_text("utf-8", errors="replace").rstrip()
        sys.stderr.write(log[-3000:] + "\n")
        found: dict[str, Any] = {"versions": {}, "checks": {"install": "pip found no such set"}}
    else:
        found = check(python, BUILD / f"{one.name}-work", REFERENCE)
    found = {"name": one.name, "passed": passed(found), **found}
    OUTCOMES.mkdir(exist_ok=True)
    one.outcome.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


def passed(found: dict[str, Any]) -> bool:
    """Say whether every check of a set passed."""
    return all(outcome == "passed" for outcome in found["checks"].values())


def reference() -> None:
    """Train with this interpreter, which holds the newest set: the others compare with that."""
    newest = sets()[0]
    here = [f"{name}=={version(name)}" for name in ("trl", "transformers", "peft")]
    if here != newest.pins:
        raise SystemExit(f"expected {newest.pins} beside {sys.executable}, found {here}: make venv")
    found = check(sys.executable, REFERENCE)
    if not passed(found):
        raise SystemExit(f"the newest set fails by itself: {found['checks']}")


# The table.


def table() -> str:
    """Return the table of supported versions, from what was found."""
    lines = [
        f"| {' | '.join(('set', *COLUMNS, 'outcome'))} |",
        f"|{'---|' * (len(COLUMNS) + 2)}",
    ]
    for one in sets():
        found = json.loads(one.outcome.read_text("utf-8"))
        cells = [found["versions"].get(name, "?").split("+")[0] for name in COLUMNS]
        faults = [f"{n}: {told}" for n, told in found["checks"].items() if told != "passed"]
        outcome = "; ".join(faults) or f"{len(found['checks'])} checks passed"
        lines.append(f"| {' | '.join((one.name, *cells, outcome))} |")
    return "\n".join(lines) + "\n"


def write_table() -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


def main(names: list[str]) -> int:
    """Try the sets of these names; return 1 when one fails."""
    tried = chosen(names)
    torch_folder()
    sys.stderr.write("reference: the newest set, in this environment\n")
    reference()
    failed = []
    for number, one in enumerate(tried, 1):
        began = time.monotonic()
        sys.stderr.write(f"{number} of {len(tried)}: {one.name} ({', '.join(one.pins)})\n")
        found = try_set(one)
        if not found["passed"]:
            failed.append(one.name)
        said = "passed" if found["passed"] else f"FAILED {found['checks']}"
        sys.stderr.write(f"  {said}, {time.monotonic() - began:.0f} s\n")
    if all(one.outcome.exists() for one in sets()):
        write_table()
    print(f"{len(tried) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
