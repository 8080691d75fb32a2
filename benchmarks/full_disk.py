"""Each stage on a disk too small, then on a larger one: a plain refusal, then the same bytes?

Run as `python -m benchmarks.full_disk [--stage all] [--step 16]`, on Linux. The disk is a real
tmpfs in a mount namespace of this benchmark's own (`unshare`), so no root is needed where user
namespaces are allowed, and nothing is left mounted. Its size begins at what the stage finds there
and grows by --step kB until the stage fits: training, evaluation, and analysis with report and
seal. At last `ahalab run`, from nothing, on 1 MB.

A stage must end with exit code 0, or with 2 and one line that says the disk is full; after the
disk was enlarged the same command must end with 0 and leave the bytes of an undisturbed run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import at_least_one
from benchmarks.kills import ANSWERS, CELLS, PLAN, STUDY, TRAIN, TRAINING, start, wait

INSIDE = "AHALAB_BENCHMARK_IN_NAMESPACE"
PAGE_KB = 4
ROOMY_KB = 64 << 10
EVALUATE = ("evaluate", STUDY, *CELLS, "--quiet")
OTHER = (*TRAIN[:5], "random", *TRAIN[6:], "--like", f"{STUDY}/arms/historical/seed-1")
RUN = ("run", "study.yaml", "--out", "results")
SEALED = tuple(
    f"{STUDY}/{name}"
    for name in (
        "analysis/comparison.json",
        "analysis/changed_responses.json",
        "analysis/ablation.json",
        "claims.json",
        "report.html",
        "manifest.json",
    )
)


@dataclass(frozen=True, slots=True)
class Stage:
    """What meets the small disk."""

    before: tuple[tuple[str, ...], ...]  # commands that a sound disk has seen already
    arguments: tuple[str, ...]
    repeated: tuple[str, ...]  # must repeat to the byte


STAGES = {
    "train": Stage((), TRAIN, TRAINING.repeated),
    "evaluate": Stage((TRAIN,), EVALUATE, ANSWERS),
    "finish": Stage((TRAIN, OTHER, EVALUATE, ("evaluate", STUDY, "--quiet")), RUN, SEALED),
    "run": Stage((), RUN, (*TRAINING.repeated, *ANSWERS)),
}


class Disk:
    """A tmpfs of a given size; what lies on it goes with it."""

    def __init__(self, place: Path, kilobytes: int) -> None:
        self.place = place
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place], check=True
        )

    def grow(self) -> None:
        """Make room."""
        subprocess.run(
            ["mount", "-o", f"remount,size={ROOMY_KB}k", "tmpfs", self.place], check=True
        )

    def close(self) -> None:
        """Unmount."""
        subprocess.run(["umount", self.place], check=True)


def used_kilobytes(folder: Path) -> int:
    """Return what a folder takes on a tmpfs: whole pages, folders none."""
    sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return sum(-(-size // (PAGE_KB << 10)) * PAGE_KB for size in sizes)


@dataclass(slots=True)
class Trial:
    """The disks that one stage met."""

    name: str
    folder: Path
    wrong: list[str] = field(default_factory=list)
    refused: int = 0
    disks: int = 0

    def prepare(self) -> dict[str, bytes]:
        """Make the folder in which the stage begins; return what it must leave."""
        stage, begin = STAGES[self.name], self.folder / "begin"
        begin.mkdir()
        (begin / "study.yaml").write_text(PLAN % "", "utf-8")
        for arguments in stage.before:
            self._soundly(begin, arguments)
        whole = shutil.copytree(begin, self.folder / "whole")
        self._soundly(whole, stage.arguments)
        return {name: (whole / name).read_bytes() for name in stage.repeated}

    def _soundly(self, where: Path, arguments: tuple[str, ...]) -> None:
        if wait(start(where, arguments, log=self.folder / "log")) != 0:
            raise SystemExit((self.folder / "log").read_text("utf-8"))

    def run(self, kilobytes: int, expected: dict[str, bytes]) -> bool:
        """Meet one disk; say whether the stage fitted."""
        stage, place, log = STAGES[self.name], self.folder / "disk", self.folder / "said"
        place.mkdir(exist_ok=True)
        log.unlink(missing_ok=True)
        disk = Disk(place, kilobytes)
        try:
            where = Path(shutil.copytree(self.folder / "begin", place / "work"))
            code = wait(start(where, stage.arguments, log=log))
            self.disks += 1
            self.refused += code == 2
            self.wrong += [f"{self.name}, {kilobytes} kB: {w}" for w in _unplain(code, log)]
            disk.grow()
            again = wait(start(where, stage.arguments, log=log))
            if again != 0:
                told = log.read_text("utf-8")[-400:]
                self.wrong.append(f"{self.name}, {kilobytes} kB: exit code {again} after: {told}")
                return code == 0
            differ = [n for n, b in expected.items() if (where / n).read_bytes() != b]
            left = [str(p.relative_to(where)) for p in where.rglob("*.partial")]
            self.wrong += [f"{self.name}, {kilobytes} kB: {n} differs" for n in differ]
            self.wrong += [f"{self.name}, {kilobytes} kB: {n} is left" for n in left]
            return code == 0
        finally:
            disk.close()


def _unplain(code: int, log: Path) -> list[str]:
    """Say what is not plain about how a stage ended on a small disk."""
    said = log.read_text("utf-8")
    last = (said.strip().splitlines() or [""])[-1]
    if code == 0:
        return []
    plain = code == 2 and last.startswith("ahalab: ") and "No space left on device" in last
    return [] if plain and "Traceback" not in said else [f"exit code {code}: {said[-400:]}"]


def in_own_namespace() -> None:
    """Become the same command in a mount namespace of its own.

    Raises:
        SystemExit: This machine allows none.
    """
    if INSIDE in os.environ:
        return
    os.environ[INSIDE] = "1"
    unshare = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        raise SystemExit("full_disk: expected `unshare --mount --map-root-user`, found it refused.")
    ourselves = [sys.executable, "-m", "benchmarks.full_disk", *sys.argv[1:]]
    os.execvp("unshare", [*unshare, *ourselves])  # noqa: S606 - no shell is wanted


def main() -> None:
    """Try each stage on each disk and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stage", choices=[*STAGES, "all"], default="all")
    parser.add_argument("--step", type=at_least_one, default=16, help="kB between two disks")
    options = parser.parse_args()
    in_own_namespace()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import datasets  # noqa: F401 - imported once, before the forks
    import peft  # noqa: F401
    import trl

    _ = trl.GRPOTrainer
    figures, wrong = {}, []
    for name in STAGES if options.stage == "all" else [options.stage]:
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(name, Path(folder))
            expected = trial.prepare()
            kilobytes = 1024 if name == "run" else used_kilobytes(Path(folder) / "begin") + PAGE_KB
            while not trial.run(kilobytes, expected) and name != "run":
                kilobytes += options.step
                print(f"{name}: {kilobytes} kB, {len(trial.wrong)} wrong", file=sys.stderr)
        wrong += trial.wrong
        figures[name] = {
            "disks": trial.disks, "refused": trial.refused, "largest_kb": kilobytes,
            "wrong": len(trial.wrong),
        }  # fmt: skip
        print(f"{name}: {trial.disks} disks up to {kilobytes} kB, {trial.refused} refused plainly")
    for line in wrong:
        print(line)
    print(f"{len(wrong)} ends that are wrong")
    print(json.dumps(figures))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
