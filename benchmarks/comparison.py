"""How long one paired comparison takes: tests, intervals, bootstrap, what could go unseen, verdict.

Run as `python -m benchmarks.comparison`. Each is the statistics of `ahalab compare` for one
reading, from the answers' outcomes in memory to the verdict; the last one is all that `ahalab
analyze` compares in a study. Reading files is in none of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ahalab.analyze.compare import compare
from ahalab.analyze.pair import DRAWS, Judged, Rules, judge
from benchmarks.synthetic_study import ARMS, SEEDS, study_answers

FloatArray = npt.NDArray[np.float64]
RULES = Rules(margin_points=2.0)
SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Timed:
    """One comparison, timed."""

    name: str
    questions: int
    samples: int
    rounds: int
    best_ms: float  # wall
    median_ms: float  # wall
    cpu_ms: float  # best, of this process
    target_ms: float


def outcomes(questions: int, samples: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw correctness, 0 or 1, of two sides, shape (questions, samples): 5 % lost, 5 % gained."""
    rng = np.random.default_rng(seed)
    base = (rng.random((questions, samples)) < 0.4).astype(np.float64)
    changed = rng.random((questions, samples)) < 0.1
    adapter = np.where(changed, rng.random((questions, samples)) < 0.4, base)
    return base, adapter.astype(np.float64)


def compared(base: FloatArray, adapter: FloatArray) -> Judged:
    """Compare two sides: means by question, then all that `ahalab compare` says of a reading."""
    return judge(base.mean(axis=1), adapter.mean(axis=1), RULES)


def timed_pair(name: str, shape: tuple[int, int], rounds: int, target_ms: float) -> Timed:
    """Time a comparison, of other answers in each round."""
    sides = [outcomes(*shape, seed) for seed in range(min(rounds, 20))]
    works = [partial(compared, *sides[number % len(sides)]) for number in range(rounds)]
    return timed(name, shape, works, target_ms)


def timed_study(questions: int, rounds: int) -> Timed:
    """Time the comparisons of a study: adapters, arms against base and control, rates."""
    study = study_answers(questions, SAMPLES)
    works = [partial(compare, study)] * rounds
    return timed(f"{len(ARMS)} arms x {SEEDS} seeds", (questions, SAMPLES), works, 2_000.0)


def timed(
    name: str, shape: tuple[int, int], works: Sequence[Callable[[], object]], target_ms: float
) -> Timed:
    """Time each piece of work, after one that warms up."""
    works[0]()
    walls, cpus = zip(*map(_stopwatch, works), strict=True)
    best, median = min(walls), statistics.median(walls)
    return Timed(name, *shape, len(works), best, median, min(cpus), target_ms)


def _stopwatch(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--questions", type=int, default=1_319)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of the large comparison")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args(arguments)
    questions, rounds = options.questions, options.rounds
    few = max(1, rounds // 10)
    found = [
        timed_pair("one comparison", (questions, 1), rounds, 20.0),
        timed_pair("eight answers a question", (questions, SAMPLES), rounds, 20.0),
        timed_pair("many pairs", (options.pairs, 1), few, 1_000.0),
        timed_study(questions, few),
    ]
    print(f"{'':<26}{'questions':>10}{'k':>3}{'best':>10}{'median':>10}{'CPU':>10}{'target':>10}")
    for one in found:
        times = (one.best_ms, one.median_ms, one.cpu_ms, one.target_ms)
        told = "".join(f"{ms:>7.1f} ms" for ms in times)
        print(f"{one.name:<26}{one.questions:>10,}{one.samples:>3}{told}")
    print(f"{DRAWS:,} bootstrap draws in each of the first three.")
    print(json.dumps(figures(found)))
    return 0


def figures(found: Sequence[Timed]) -> Mapping[str, object]:
    """Gather the figures for the last line."""
    return {
        "benchmark": "comparison",
        "draws": DRAWS,
        "comparisons": [asdict(one) for one in found],
        "met": all(one.cpu_ms <= one.target_ms for one in found),  # CPU: others share the machine
    }


if __name__ == "__main__":
    sys.exit(main())
