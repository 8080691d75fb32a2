"""How fast the evaluation scorer is, what it keeps, and what a hostile response costs.

Run as `python -m benchmarks.scoring`; `--rows 10000000` streams ten million rows (minutes).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ahalab.scoring.answers import SCORER_VERSION, score_answer
from benchmarks.agreement import json_rows, shared_data
from benchmarks.hostile import MEGABYTE, SETTINGS, Batch, run


@dataclass(frozen=True, slots=True)
class Speed:
    """Responses a second: best round by CPU time, and the wall clock of that kind."""

    cpu_per_second: float
    wall_per_second: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory (MB) around a stream of rows."""

    rows: int
    rss_before_mb: float  # after a warm-up of 20,000 rows, so that caches are full
    rss_after_mb: float
    seconds: float


def plain_responses(count: int) -> list[tuple[str, str]]:
    """Take (response, gold) pairs of about 100 tokens: real ones, else made up.

    Real ones are GSM8K solutions of 250 to 450 characters.
    """
    path = shared_data() / "gsm8k_openai" / "example_model_solutions_long.jsonl"
    if path.exists():
        real = [(row["solution"], row["gold"]) for row in json_rows(path)]
        return [pair for pair in real if 250 <= len(pair[0]) <= 450][:count]
    return [(synthetic(number), str(3 * number)) for number in range(count)]


def synthetic(number: int) -> str:
    """Write a made-up solution of about 100 tokens."""
    return (
        f"Anna has {number} apples and buys {number} more, so she has {number} + {number} = "
        f"{2 * number} apples.\nHer brother brings another {number} apples from the garden on "
        f"Sunday, which makes {2 * number} + {number} = {3 * number} apples.\nShe gives none of "
        f"them away, and nothing is eaten before the evening of that day.\n#### {3 * number}"
    )


def ours(pairs: Sequence[tuple[str, str]]) -> None:
    """Score every pair with the full rules."""
    for response, gold in pairs:
        score_answer(response, gold)


def with_math_verify(pairs: Sequence[tuple[str, str]]) -> None:
    """Score every pair with math-verify as shipped."""
    from math_verify import parse, verify

    for response, gold in pairs:
        verify(parse(gold), parse(response))


def speed(
    score: Callable[[Sequence[tuple[str, str]]], None],
    pairs: Sequence[tuple[str, str]],
    rounds: int,
) -> Speed:
    """Time a scorer: the best of some rounds, each over all pairs."""
    cpu, wall = [], []
    for _ in range(rounds):
        cpu_started, wall_started = time.process_time(), time.perf_counter()
        score(pairs)
        cpu.append(time.process_time() - cpu_started)
        wall.append(time.perf_counter() - wall_started)
    return Speed(len(pairs) / min(cpu), len(pairs) / min(wall))


def math_verify_speed(pairs: Sequence[tuple[str, str]], rounds: int) -> Speed | None:
    """Time math-verify; None when it is not installed."""
    try:
        with_math_verify(pairs[:5])
    except ImportError:
        return None
    return speed(with_math_verify, pairs, rounds)


def streamed(rows: int) -> Memory:
    """Score a stream of differing rows and read the resident memory around it."""
    _score_stream(range(20_000))
    before = _rss_mb()
    started = time.perf_counter()
    _score_stream(range(20_000, 20_000 + rows))
    return Memory(rows, before, _rss_mb(), time.perf_counter() - started)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoring", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="rows streamed for the memory")
    parser.add_argument("--responses", type=int, default=2_000, help="responses timed")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts")
    parser.add_argument("--hostile-characters", type=int, default=4 * MEGABYTE)
    parser.add_argument("--seconds", type=float, default=2.0, help="a row's time at the worker")
    options = parser.parse_args(arguments)
    pairs = plain_responses(options.responses)
    own = speed(ours, pairs, options.rounds)
    theirs = math_verify_speed(pairs, min(options.rounds, 3))
    memory = streamed(options.rows)
    batches = [run(setting, options.hostile_characters, options.seconds) for setting in SETTINGS]
    print_tables(len(pairs), own, theirs, memory, batches)
    print(json.dumps(figures(len(pairs), own, theirs, memory, batches)))
    return 0


def print_tables(
    responses: int, own: Speed, theirs: Speed | None, memory: Memory, batches: Sequence[Batch]
) -> None:
    """Print what was measured."""
    print(f"{'responses a second':<28}{'CPU':>10}{'wall':>10}")
    name = f"ahalab ({responses} responses)"
    print(f"{name:<28}{own.cpu_per_second:>10,.0f}{own.wall_per_second:>10,.0f}")
    if theirs is None:
        print("math-verify is not installed: no ratio")
    else:
        print(f"{'math-verify':<28}{theirs.cpu_per_second:>10,.0f}{theirs.wall_per_second:>10,.0f}")
        print(f"{'ratio (CPU)':<28}{own.cpu_per_second / theirs.cpu_per_second:>10,.1f}")
    print(
        f"\n{memory.rows:,} rows streamed in {memory.seconds:.1f} s: resident memory "
        f"{memory.rss_before_mb:.1f} MB before, {memory.rss_after_mb:.1f} MB after\n"
    )
    print(f"{'hostile batch':<14}{'rows':>6}{'rows touched':>14}  worst row, CPU and wall (s)")
    for batch in batches:
        print(f"{batch.setting:<14}{batch.rows:>6}{batch.changed:>14}  {_worst(batch)}")
        print(f"{'':<34}  {', '.join(f'{n} x {status}' for status, n in batch.statuses.items())}")


def _worst(batch: Batch) -> str:
    cpu, wall = batch.worst_cpu, batch.worst_wall
    return (
        f"{cpu.cpu_seconds:.3f} {cpu.name} ({cpu.task}), "
        f"{wall.wall_seconds:.3f} {wall.name} ({wall.task})"
    )


def figures(
    responses: int, own: Speed, theirs: Speed | None, memory: Memory, batches: Sequence[Batch]
) -> Mapping[str, object]:
    """Gather the figures for the last line."""
    return {
        "benchmark": "scoring",
        "scorer_version": SCORER_VERSION,
        "responses": responses,
        "cpu_per_second": round(own.cpu_per_second, 1),
        "wall_per_second": round(own.wall_per_second, 1),
        "math_verify_cpu_per_second": None if theirs is None else round(theirs.cpu_per_second, 1),
        "ratio": None if theirs is None else round(own.cpu_per_second / theirs.cpu_per_second, 2),
        "memory": asdict(memory),
        "hostile": [asdict(batch) for batch in batches],
    }


def _score_stream(numbers: range) -> None:
    for number in numbers:
        score_answer(synthetic(number), str(3 * number))


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


if __name__ == "__main__":
    sys.exit(main())
