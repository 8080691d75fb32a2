"""Simulated studies without a true effect: how often does the verdict on a reward claim one?

Run as `python -m benchmarks.simulate [--studies 2000] [--write FILE]` (`make simulate` writes
docs/statistics.md). Two tables: every cell of seed SD x questions x answers x seeds, judged by the
functions that judge a real study; and the mistakes that other tools make, on the same generators,
beside the figures that ../shared/STATISTICS.md gives for them.

Generators (STATISTICS.md): question ability p ~ Beta(.6, .9). An adapter redraws 10 % of the base's
answers with mean accuracy + shift / .10, shift ~ N(0, seed SD). With k answers the log-odds of a
question are shifted by N(0, 1) between the sides, and the sides swapped at random.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from ahalab.statistics.by_question import by_question
from ahalab.statistics.multiplicity import holm
from ahalab.statistics.paired import mcnemar_exact, mcnemar_midp
from ahalab.statistics.power import mcnemar_power
from ahalab.statistics.seeds import SeedEstimate, arm_against_control, reward_claim
from ahalab.statistics.verdict import decide
from benchmarks import at_least_one

Floats = npt.NDArray[np.float64]
REDRAWN = 0.10  # of the base's answers
MEAN = 0.6 / (0.6 + 0.9)  # accuracy
ALPHA, CONFIDENCE, MARGIN = 0.05, 0.95, 0.02
FALSE_BOUND, COVER_BOUND, MONTE_CARLO = 0.055, 0.94, 0.999
SEED_SDS, QUESTIONS, ANSWERS, SEEDS = (0.0, 0.01, 0.02), (200, 500, 1319), (1, 8), (1, 3, 5)
MARKS = ("<!-- simulate: begin -->", "<!-- simulate: end -->")


@dataclass(frozen=True, slots=True)
class Design:
    """One cell."""

    seed_sd: float  # fraction of accuracy
    questions: int
    answers: int
    seeds: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What the verdicts on one simulated study came to."""

    false_base: bool  # improved or worse against the base, alone, without Holm
    false_any: bool  # any planned comparison of the study, after Holm
    covered: tuple[bool, ...]  # 0 within each interval there is
    detectable: float | None  # points


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell over all its studies."""

    design: Design
    studies: int
    false_base: float
    false_any: float
    coverage: float | None  # None: one seed gives no interval
    detectable_points: float | None  # median
    failed: bool


def sides(rng: np.random.Generator, n: int, k: int) -> tuple[Floats, Floats]:
    """Return the chances of base and adapter to answer each question, no effect on average (N,)."""
    ability = rng.beta(0.6, 0.9, n)
    if k == 1:
        return ability, ability
    other = special.expit(special.logit(ability) + rng.normal(0.0, 1.0, n))
    swap = rng.random(n) < 0.5
    return np.where(swap, other, ability), np.where(swap, ability, other)


def adapter_answers(
    rng: np.random.Generator, base: npt.NDArray[np.bool_], chance: Floats, seed_sd: float
) -> npt.NDArray[np.bool_]:
    """Return one adapter's answers, shape (N, K): the base's with k = 1, a tenth drawn again."""
    n, k = base.shape
    answers = base if k == 1 else rng.random((n, k)) < chance[:, None]
    again = rng.random((n, k)) < REDRAWN
    accuracy = np.clip(MEAN + rng.normal(0.0, seed_sd) / REDRAWN, 0.0, 1.0)
    return np.where(again, rng.random((n, k)) < accuracy, answers)


def arm(
    rng: np.random.Generator, base: npt.NDArray[np.bool_], chance: Floats, design: Design
) -> Floats:
    """Return adapter minus base by seed and question, shape (S, N)."""
    means = base.mean(axis=1)
    rows = [
        adapter_answers(rng, base, chance, design.seed_sd).mean(axis=1) - means
        for _ in range(design.seeds)
    ]
    return np.array(rows)


def judge(rng: np.random.Generator, design: Design) -> Judged:
    """Simulate one study of a treatment and a control arm, and judge it as a real one is judged."""
    chance, changed = sides(rng, design.questions, design.answers)
    base = rng.random((design.questions, design.answers)) < chance[:, None]
    treatment, control = (arm(rng, base, changed, design) for _ in range(2))
    estimates = [
        reward_claim(treatment, None, CONFIDENCE),
        reward_claim(control, None, CONFIDENCE),
        arm_against_control(treatment, control, None, CONFIDENCE),
    ]
    adjusted = holm([e.p_value for e in estimates])
    verdicts = [_claims(e, p) for e, p in zip(estimates, adjusted, strict=True)]
    first = estimates[0]
    detectable = first.detectable()
    return Judged(
        false_base=_claims(first, first.p_value),
        false_any=any(verdicts),
        covered=tuple(not e.interval.excludes_zero for e in estimates if e.interval is not None),
        detectable=None if detectable is None else 100 * detectable,
    )


def _claims(estimate: SeedEstimate, p_adjusted: float | None) -> bool:
    """Say whether the verdict is that the reward changed accuracy."""
    verdict = decide(
        p_adjusted, estimate.interval, margin=MARGIN, alpha=ALPHA, p_value=estimate.p_value
    )
    return verdict.name in ("improved", "worse")


def run_cell(design: Design, studies: int) -> CellResult:
    """Simulate every study of a cell; a cell's random numbers depend on nothing but the cell."""
    entropy = [round(1000 * design.seed_sd), design.questions, design.answers, design.seeds]
    rng = np.random.default_rng(entropy)
    judged = [judge(rng, design) for _ in range(studies)]
    false_base, false_any = (
        sum(getattr(j, name) for j in judged) for name in ("false_base", "false_any")
    )
    covered = [c for j in judged for c in j.covered[:1]]
    known = [j.detectable for j in judged if j.detectable is not None]
    too_many = max(bound(count, studies, lower=True) for count in (false_base, false_any))
    too_few = covered and bound(sum(covered), len(covered), lower=False) < COVER_BOUND
    return CellResult(
        design=design,
        studies=studies,
        false_base=false_base / studies,
        false_any=false_any / studies,
        coverage=sum(covered) / len(covered) if covered else None,
        detectable_points=float(np.median(known)) if known else None,
        failed=too_many > FALSE_BOUND or bool(too_few),
    )


def bound(count: int, total: int, *, lower: bool) -> float:
    """Return the one-sided 99.9 % Clopper-Pearson bound of a share."""
    tail = 1 - MONTE_CARLO
    if lower:
        return 0.0 if count == 0 else float(stats.beta.ppf(tail, count, total - count + 1))
    return 1.0 if count == total else float(stats.beta.ppf(1 - tail, count + 1, total - count))


# The mistakes ------------------------------------------------------------------------------------

exact = lru_cache(maxsize=None)(mcnemar_exact)
midp = lru_cache(maxsize=None)(mcnemar_midp)


def _counts(base: npt.NDArray[np.bool_], adapter: npt.NDArray[np.bool_]) -> tuple[int, int]:
    return int((~base & adapter).sum()), int((base & ~adapter).sum())


def _significant(p: float | None) -> bool:
    return p is not None and p <= ALPHA


def pooled(rng: np.random.Generator) -> dict[str, bool]:
    """Take 8 answers to 200 questions as 1,600 observations, and by question."""
    chance, changed = sides(rng, 200, 8)
    base, adapter = (rng.random((200, 8)) < c[:, None] for c in (chance, changed))
    differences = adapter.astype(float) - base.astype(float)
    naive = float(stats.ttest_1samp(differences.ravel(), 0.0).pvalue)
    return {
        "k=8 pooled McNemar": _significant(exact(*_counts(base, adapter))),
        "k=8 naive t over N*k": _significant(naive),
        "k=8 by question": _significant(by_question(differences.mean(axis=1)).p_value),
    }


def one_seed(rng: np.random.Generator) -> dict[str, bool]:
    """McNemar on one adapter, read as a claim on the reward; and t over five seeds."""
    found = {}
    for n, sd in product((500, 1319), (0.01, 0.02)):
        ability = rng.beta(0.6, 0.9, n)
        base = (rng.random(n) < ability)[:, None]
        seeds = [adapter_answers(rng, base, ability, sd) for _ in range(5)]
        name = f"N={n:,}, seed SD {100 * sd:.0f} points"
        found[f"one seed, {name}"] = _significant(exact(*_counts(base, seeds[0])))
        changes = [float(s.mean() - base.mean()) for s in seeds]
        found[f"t over five seeds, {name}"] = _significant(
            float(stats.ttest_1samp(changes, 0.0).pvalue)
        )
    return found


def best_checkpoint(rng: np.random.Generator) -> dict[str, bool]:
    """The best of several checkpoints on one test set of 500 questions."""
    base = rng.random(500) < 0.4
    better = []
    for _ in range(20):
        again = rng.random(500) < 0.15
        checkpoint = np.where(again, rng.random(500) < 0.4, base)
        gained, lost = _counts(base, checkpoint)
        better.append((gained - lost, _significant(exact(gained, lost)) and gained > lost))
    return {f"best of {n} checkpoints": max(better[:n])[1] for n in (1, 5, 10, 20)}


def type_one(rng: np.random.Generator) -> dict[str, bool]:
    """5 % lost and 5 % gained of 200 questions: no effect, by three tests."""
    gained, lost, _ = rng.multinomial(200, [0.05, 0.05, 0.9])
    corrected = (abs(gained - lost) - 1) ** 2 / (gained + lost) if gained + lost else 0.0
    return {
        "type I at N=200, exact": _significant(exact(int(gained), int(lost))),
        "type I at N=200, mid-p": _significant(midp(int(gained), int(lost))),
        "type I at N=200, chi-square corrected": float(stats.chi2.sf(corrected, 1)) <= ALPHA,
    }


def power(rng: np.random.Generator) -> dict[str, bool]:
    """5 % lost and 9 % gained of 500 questions: +4 points, by three tests."""
    gained, lost, _ = (int(c) for c in rng.multinomial(500, [0.09, 0.05, 0.86]))
    right = rng.binomial(500 - gained - lost, 0.4) + lost
    before, after = right / 500, (right + gained - lost) / 500
    pooled_mean = (before + after) / 2
    z = (after - before) / np.sqrt(2 * pooled_mean * (1 - pooled_mean) / 500)
    return {
        "power for +4 points at N=500, unpaired z": 2 * float(stats.norm.sf(abs(z))) <= ALPHA,
        "power for +4 points at N=500, exact": _significant(exact(gained, lost)),
        "power for +4 points at N=500, mid-p": _significant(midp(gained, lost)),
    }


# Shares in percent, of ../shared/STATISTICS.md.
PUBLISHED = {
    "k=8 pooled McNemar": 11.7, "k=8 naive t over N*k": 12.5, "k=8 by question": 5.0,
    "one seed, N=500, seed SD 1 points": 11.7, "one seed, N=1,319, seed SD 1 points": 28.8,
    "one seed, N=500, seed SD 2 points": 32.0, "one seed, N=1,319, seed SD 2 points": 54.5,
    "best of 1 checkpoints": 1.7, "best of 5 checkpoints": 8.2, "best of 10 checkpoints": 14.8,
    "best of 20 checkpoints": 26.6, "type I at N=200, exact": 2.6, "type I at N=200, mid-p": 4.1,
    "type I at N=200, chi-square corrected": 2.3,
    "power for +4 points at N=500, unpaired z": 10.0,
    "power for +4 points at N=500, exact": 64.0, "power for +4 points at N=500, mid-p": 68.0,
}  # fmt: skip
MISTAKES: tuple[Callable[[np.random.Generator], dict[str, bool]], ...] = (
    pooled,
    one_seed,
    best_checkpoint,
    type_one,
    power,
)


def run_mistake(number: int, studies: int) -> dict[str, float]:
    """Return how often each claim of one generator is made, in percent."""
    rng = np.random.default_rng([7, number])
    counts: dict[str, int] = {}
    for _ in range(studies):
        for name, claimed in MISTAKES[number](rng).items():
            counts[name] = counts.get(name, 0) + claimed
    return {name: 100 * count / studies for name, count in counts.items()}


# The tables --------------------------------------------------------------------------------------


def cells_table(cells: Sequence[CellResult]) -> str:
    """Return the cells as Markdown."""
    lines = [
        "| seed SD, points | questions | answers | seeds | false, against the base alone | false, "
        "any of three after Holm | coverage of 95 % intervals | detectable change, points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        d = cell.design
        covered = "no interval" if cell.coverage is None else f"{100 * cell.coverage:.1f} %"
        points = "-" if cell.detectable_points is None else f"{cell.detectable_points:.1f}"
        lines.append(
            f"| {100 * d.seed_sd:.0f} | {d.questions:,} | {d.answers} | {d.seeds} | "
            f"{100 * cell.false_base:.1f} % | {100 * cell.false_any:.1f} % | {covered}"
            f"{' **failed**' * cell.failed} | {points} |"
        )
    return "\n".join(lines)


def mistakes_table(found: dict[str, float]) -> str:
    """Return the mistakes as Markdown."""
    lines = ["| what is done | claims made, % | expected, % |", "|---|---|---|"]
    for name, share in found.items():
        expected = PUBLISHED.get(name)
        told = "4.4 to 6.0" if expected is None else f"{expected:.1f}"
        lines.append(f"| {name} | {share:.1f} | {told} |")
    return "\n".join(lines)


def write_tables(file: Path, text: str) -> None:
    """Put the tables between their marks."""
    page = file.read_text("utf-8")
    before, _, rest = page.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    file.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print, and say whether any cell failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", type=at_least_one, default=2000)
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    designs = [Design(*cell) for cell in product(SEED_SDS, QUESTIONS, ANSWERS, SEEDS)]
    with ProcessPoolExecutor(options.jobs) as pool:
        cells = list(pool.map(partial(run_cell, studies=options.studies), designs))
        mistakes: dict[str, float] = {}
        for found in pool.map(partial(run_mistake, studies=options.studies), range(len(MISTAKES))):
            mistakes |= found
    total = sum(cell.false_any for cell in cells) / len(cells)
    head = f"{options.studies:,} studies a cell; over all cells together {100 * total:.2f} % false."
    text = f"{head}\n\n{cells_table(cells)}\n\n{mistakes_table(mistakes)}"
    print(text)
    if options.write:
        write_tables(options.write, text)
    figures: dict[str, Any] = {
        "studies": options.studies,
        "failed_cells": sum(cell.failed for cell in cells),
        "false_over_all_cells": total,
        "cells": [asdict(cell) for cell in cells],
        "mistakes_percent": mistakes,
        "exact_power_mid_p": mcnemar_power(0.09, 0.05, 500),
    }
    print(json.dumps(figures))
    return 1 if figures["failed_cells"] or total > ALPHA else 0


if __name__ == "__main__":
    raise SystemExit(main())
