"""Fuzzing of whatever reads what others wrote: each target for so many seconds.

A third of the time goes to hypothesis, which makes what it finds small, a third to mutations of
the corpus, and a third to atheris, which follows coverage, where it is installed (`pip install
'ahalab[fuzz]'`; else its share goes to the mutations). Targets and corpus: tests/fuzz. A finding
is any end but a result or an error of our own on one line: another exception, a warning, more than
5 s of CPU, a program or code run, a file written elsewhere. Findings are kept as files; exit code
1 when there is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky

from benchmarks import at_least_one

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzz"))

from fuzz_inputs import inputs, mutant
from fuzz_judging import Finding, Judge
from fuzz_seeds import seeds
from fuzz_targets import TARGETS, Target

EXAMPLES = 500  # of one round of hypothesis


class NewFindingError(Exception):
    """A finding of a kind that was not known."""


class Kept:
    """Findings, one of a kind, each a file to run again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: dict[tuple[str, str], Finding] = {}

    def keep(self, finding: Finding) -> None:
        """Keep a finding of a new kind, or a smaller one of a known kind."""
        key = (finding.target, finding.where)
        known = self.found.get(key)
        if known is not None and len(known.payload) <= len(finding.payload):
            return
        if known is None:
            print(f"  found: {finding.target}: {finding.where}: {finding.told}")
        self.found[key] = finding
        name = "".join(c if c.isalnum() else "-" for c in finding.where)[:60]
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{finding.target}-{name}.bin").write_bytes(finding.payload)


def mutate(target: Target, seconds: float, seed: int, judge: Judge, kept: Kept) -> None:
    """Run mutations of the corpus for so long; the corpus itself first."""
    corpus, rng, until = seeds(target.name), random.Random(seed), time.monotonic() + seconds  # noqa: S311
    waiting = list(corpus)
    while time.monotonic() < until:
        payload = waiting.pop() if waiting else mutant(rng, corpus, target.pieces)
        finding = judge.judge(target, payload)
        if finding is not None:
            kept.keep(finding)


def draw(target: Target, seconds: float, seed: int, judge: Judge, kept: Kept) -> None:
    """Run what hypothesis draws for so long; a kind that is known does not stop it again."""
    until, corpus = time.monotonic() + seconds, seeds(target.name)

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=tuple(HealthCheck),
    )
    @given(inputs(corpus, target.pieces))
    def once(payload: bytes) -> None:
        if time.monotonic() > until:
            return
        finding = judge.judge(target, payload)
        if finding is not None:
            new = (target.name, finding.where) not in known
            kept.keep(finding)
            if new:
                raise NewFindingError  # and hypothesis makes it small

    while time.monotonic() < until:
        known = set(kept.found)
        seed += 1
        try:
            seeded(seed)(once)()
        except (NewFindingError, Flaky):  # the time may end while it is made small
            continue


def guided(target: Target, seconds: float, seed: int, kept: Kept) -> int:
    """Have atheris run for so long in a process of its own; return its executions."""
    command = [sys.executable, "-m", "benchmarks.fuzz_guided", target.name, str(seconds), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.rstrip("\n").split("\n")
    try:
        told = json.loads(lines[-1])
    except ValueError:
        raise SystemExit(f"atheris ended without a figure:\n{done.stderr[-2_000:]}") from None
    for row in told["findings"]:
        payload = bytes.fromhex(row["payload"])
        kept.keep(Finding(target.name, row["where"], row["told"], payload))
    return int(told["executions"])


def fuzz(target: Target, seconds: int, seed: int, kept: Kept) -> dict[str, object]:
    """Run one target for so many seconds, and return its figures."""
    judge = _judge()
    judge.warm(target, seeds(target.name))
    share, before, began = seconds / 3, judge.executions, len(kept.found)
    has_atheris = importlib.util.find_spec("atheris") is not None
    draw(target, share, seed, judge, kept)
    by_hypothesis = judge.executions - before
    mutate(target, share if has_atheris else 2 * share, seed, judge, kept)
    by_mutation = judge.executions - before - by_hypothesis
    by_atheris = guided(target, share, seed, kept) if has_atheris else None
    return {"hypothesis": by_hypothesis, "mutations": by_mutation, "atheris": by_atheris,
            "findings": len(kept.found) - began}  # fmt: skip


_JUDGES: list[Judge] = []  # one in a process: what watches it can't be taken back


def _judge() -> Judge:
    if not _JUDGES:
        _JUDGES.append(Judge())
    return _JUDGES[0]


def fuzz_apart(names: Sequence[str], given_: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Fuzz each target in a process of its own, several at a time.

    Returns:
        The figures of each target, and whether there was a finding.
    """

    def one(name: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable, "-m", "benchmarks.fuzz", "--target", name, "--keep", str(given_.keep),
            "--seconds", str(given_.seconds), "--seed", str(given_.seed),
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=False)

    figures: dict[str, object] = {}
    findings = False
    with ThreadPoolExecutor(given_.jobs) as pool:
        for done in pool.map(one, names):
            *told, last = done.stdout.rstrip("\n").split("\n")
            if done.returncode not in (0, 1) or not last.startswith("{"):
                raise SystemExit(f"a target ended without a figure:\n{done.stderr[-2_000:]}")
            print(*told, sep="\n", flush=True)
            figures |= json.loads(last)["targets"]
            findings |= done.returncode == 1
    return figures, findings


def fuzz_here(names: Sequence[str], given_: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Fuzz one target after the other in this process; see `fuzz_apart`."""
    kept = Kept(given_.keep)
    figures: dict[str, object] = {}
    for name in names:
        found = fuzz(TARGETS[name], given_.seconds, given_.seed, kept)
        figures[name] = found
        print(f"{name}: " + ", ".join(f"{what} {n}" for what, n in found.items()), flush=True)
    if kept.found:
        print(f"Findings are kept in {given_.keep}; tests/fuzz/corpus takes what was mended.")
    return figures, bool(kept.found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, print a line a target, and end with the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=at_least_one, default=60, help="for each target")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="findings go there")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="targets at a time")
    given_ = parser.parse_args(arguments)
    names = given_.target or list(TARGETS)
    run = fuzz_apart if given_.jobs > 1 else fuzz_here
    figures, findings = run(names, given_)
    print(json.dumps({"seconds": given_.seconds, "seed": given_.seed, "targets": figures}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
