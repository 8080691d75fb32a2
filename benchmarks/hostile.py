"""What hostile responses cost, and whether they touch the ordinary rows between them.

The batch runs in the main thread, in another thread, and in processes made by fork and by spawn;
each asks a LaTeX worker of its own, as `ahalab score` does.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

from ahalab.scoring.answers import Asked, Score, score_answer
from ahalab.scoring.worker import LatexPool

SETTINGS: dict[str, Callable[[], Executor] | None] = {
    "main thread": None,
    "other thread": lambda: ThreadPoolExecutor(1),
    "fork": lambda: ProcessPoolExecutor(1, multiprocessing.get_context("fork")),
    "spawn": lambda: ProcessPoolExecutor(1, multiprocessing.get_context("spawn")),
}
GOLDS = {"gsm8k": "7", "math": "7", "countdown": '{"numbers": [7], "target": 7}'}
MEGABYTE = 1_000_000
_AMPLE = 60.0  # seconds for an ordinary row, which needs a few milliseconds

# Within every bound, so that only the worker's clock ends them: math-verify is at work for minutes.
ENDLESS = (
    r"5^{2\cdot 5^{2\cdot 5^{2\cdot 5}}}",
    r"5^{(2+5^{(2+5^{(2+5^5)})}-4)}",
    "(x+y+z+w+1)^{999}",
    r"\prod_{n=1}^{9999} (n+x)",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One response to score."""

    name: str
    response: str
    gold: str
    task: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What one row took."""

    name: str
    task: str
    characters: int
    cpu_seconds: float  # of the scoring thread; the worker's are not in it
    wall_seconds: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The hostile rows in one setting, with an ordinary row after each."""

    setting: str
    rows: int
    worst_cpu: Cost
    worst_wall: Cost
    statuses: dict[str, int]  # of the endless rows: "error: timeout" where the worker was killed
    changed: int  # ordinary rows whose score is not the one that they have alone


ORDINARY = (
    Row("a plain number", "He has 3 and buys 4.\n#### 7", "7", "gsm8k"),
    Row("a wrong number", "So the answer is 8.", "7", "gsm8k"),
    Row("the worker decides", r"It is \boxed{\sqrt{8}}.", r"2\sqrt{2}", "math"),
    Row("an expression", r"\boxed{7}", GOLDS["countdown"], "countdown"),
)


def responses(size: int) -> Iterator[tuple[str, str]]:
    """Write hostile responses of about `size` characters each."""
    yield "towers", "The answer is " + "9**9**9 and 9^{9^{9}} " * (size // 22)
    yield "one tower", "#### 9**9**9**9"
    yield "a million digits", "#### " + "9" * min(size, MEGABYTE)
    yield "nested boxes", "\\boxed{" * (size // 8) + "}" * (size // 8)
    yield "nested braces", "\\boxed{" + "{" * (size // 2) + "7" + "}" * (size // 2) + "}"
    yield "pairs of braces", "\\boxed{" + "{}" * (size // 2)
    yield "nested parentheses", "<answer>" + "(" * (size // 2) + "1" + ")" * (size // 2)
    yield "opened mathematics", "\\(" * (size // 2)
    yield "regex bomb: a's", "a" * size + "!"
    yield "regex bomb: spaces", "the answer is" + " " * size + "x"
    yield "regex bomb: separators", "#### " + "1," * (size // 2)
    yield "regex bomb: fractions", "1/" * (size // 2)
    yield "open tags", "<answer>" * (size // 8)
    yield "pairs of tags", "<answer></answer>" * (size // 17)
    yield "long boxes", ("\\boxed{" + "a, " * 1_600 + "}") * (size // 4_808)
    yield "long sentences", ("so " * 1_600 + ". ") * (size // 4_802)
    yield "a tag around letters", "<answer>" + "a" * size + "</answer>"
    yield "ends of turn", "</s>" * (size // 4)
    yield "statements", "#### 1\n" * (size // 7)
    yield "hedges", "The answer is " + "1 or 2 or " * (size // 10)
    yield "labels", "Answer: " * (size // 8)
    yield "phrases without an end", "answer to " * (size // 10)
    yield "corrections without a value", "wait it is " * (size // 11)
    yield "new questions", "#### 1\n" + "Question: 1\n" * (size // 12)
    yield "empty lines", "\n" * size
    yield "bidi marks", "\u202e5" * (size // 2)
    yield "digits of other scripts", "\u0661" * size
    yield "prose", "It takes 3 days and 4 more. " * (size // 28)
    yield "sentences without a number", "a. " * (size // 3)


def hostile_rows(size: int) -> Iterator[Row]:
    """Pair every hostile response with the three tasks; the endless ones are mathematics."""
    for name, response in responses(size):
        for task, gold in GOLDS.items():
            yield Row(name, response, gold, task)
    for number, latex in enumerate(ENDLESS, 1):
        yield Row(f"endless {number}", f"So it is \\boxed{{{latex}}}.", "x+1", "math")


def run(setting: str, size: int, seconds: float) -> Batch:
    """Score the hostile batch in one setting.

    Args:
        setting: A key of SETTINGS.
        size: Characters of a hostile response.
        seconds: Time of a row that goes to the worker.

    Returns:
        The costs, and how many ordinary rows were touched.
    """
    executor = SETTINGS[setting]
    if executor is None:
        return _score_all(setting, size, seconds)
    with executor() as made:
        return made.submit(_score_all, setting, size, seconds).result()


def _score_all(setting: str, size: int, seconds: float) -> Batch:
    costs, statuses, changed = [], Counter[str](), 0
    with LatexPool() as pool:
        alone = [_score(row, pool, _AMPLE) for row in ORDINARY]
        for number, row in enumerate(hostile_rows(size)):
            began = time.perf_counter(), time.thread_time()
            lenient = _score(row, pool, seconds).lenient
            wall, cpu = time.perf_counter() - began[0], time.thread_time() - began[1]
            costs.append(Cost(row.name, row.task, len(row.response), cpu, wall, lenient.outcome))
            if row.name.startswith("endless"):
                statuses[lenient.status] += 1
            turn = number % len(ORDINARY)
            changed += _score(ORDINARY[turn], pool, _AMPLE) != alone[turn]
    by_cpu = max(costs, key=lambda cost: cost.cpu_seconds)
    by_wall = max(costs, key=lambda cost: cost.wall_seconds)
    return Batch(setting, len(costs), by_cpu, by_wall, dict(statuses), changed)


def _score(row: Row, pool: LatexPool, seconds: float) -> Score:
    asked = Asked("boxed", row.task)
    return score_answer(row.response, row.gold, asked=asked, latex_equal=pool.within(seconds))
