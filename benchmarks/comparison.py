"""How long one paired comparison takes: tests, intervals, bootstrap, what could go unseen, verdict.

Run as `python -m benchmarks.comparison`. Each is the statistics of `ahalab compare` for one
reading, from the answers' outcomes in memory to the verdict; reading files is not in it.
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

from ahalab.analyze.pair import DRAWS, Judged, Rules, judge
from ahalab.statistics.by_question import mean_differences

FloatArray = npt.NDArray[np.float64]
RULES = Rules(margin_points=2.0)


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
    if base.shape[1] == 1:
        return judge(base[:, 0], adapter[:, 0], RULES)
    return judge(np.zeros(len(base)), mean_differences(base, adapter), RULES)


def timed(name: str, shape: tuple[int, int], rounds: int, target_ms: float) -> Timed:
    """Time the comparison of other answers in each round, after one that warms up."""
    sides = [outcomes(*shape, seed) for seed in range(min(rounds, 20))]
    walls, cpus = [], []
    compared(*sides[0])
    for number in range(rounds):
        wall, cpu = _stopwatch(partial(compared, *sides[number % len(sides)]))
        walls.append(wall)
        cpus.append(cpu)
    return Timed(name, *shape, rounds, min(walls), statistics.median(walls), min(cpus), target_ms)


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
    few = max(1, options.rounds // 10)
    found = [
        timed("one comparison", (options.questions, 1), options.rounds, 20.0),
        timed("eight answers a question", (options.questions, 8), options.rounds, 20.0),
        timed("many pairs", (options.pairs, 1), few, 1_000.0),
    ]
    print(f"{'':<26}{'questions':>10}{'k':>3}{'best':>10}{'median':>10}{'CPU':>10}{'target':>10}")
    for one in found:
        times = (one.best_ms, one.median_ms, one.cpu_ms, one.target_ms)
        told = "".join(f"{ms:>7.1f} ms" for ms in times)
        print(f"{one.name:<26}{one.questions:>10,}{one.samples:>3}{told}")
    print(f"{DRAWS:,} bootstrap draws in each.")
    print(json.dumps(figures(found)))
    return 0


def figures(found: Sequence[Timed]) -> Mapping[str, object]:
    """Gather the figures for the last line."""
    return {
        "benchmark": "comparison",
        "draws": DRAWS,
        "comparisons": [asdict(one) for one in found],
        "met": all(one.median_ms <= one.target_ms for one in found),
    }


if __name__ == "__main__":
    sys.exit(main())
