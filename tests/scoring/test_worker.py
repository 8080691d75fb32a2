"""LaTeX equality in a process that is killed after its time."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ahalab.scoring.answers import Asked, Reading, score_answer
from ahalab.scoring.beyond import is_mathematics
from ahalab.scoring.deciding import MathVerdict
from ahalab.scoring.equality import equal_math, read_math_gold
from ahalab.scoring.worker import LatexPool

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("AHALAB_SHARED", ROOT.parent / "shared"))
TOWER = r"5^{(5^{(5^{(5^5)})}-4)}"  # from a report: math-verify 0.9.0 ran past its own limit of 3 s
EIGHT, ROOTS = r"\sqrt{8}", r"2\sqrt{2}"
SHORT = 0.5
LATE = 6.0  # seconds: the kill, and another start of the worker on a busy machine


@pytest.fixture(scope="module")
def pool() -> Iterator[LatexPool]:
    with LatexPool(seconds=20.0) as shared:  # roomy: only the tests of the clock mean the clock
        yield shared


def verdict(pool: LatexPool, stated: str, gold: str) -> MathVerdict:
    read = read_math_gold(gold)
    assert read is not None
    return equal_math(stated, read, pool)


def boxed(pool: LatexPool, stated: str, gold: str) -> Reading:
    response = f"So it is \\boxed{{{stated}}}."
    return score_answer(response, gold, asked=Asked("boxed", "math"), latex_equal=pool).strict


EQUAL = [
    (EIGHT, ROOTS),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt3}"),
    ("x^2+2x+1", "(x+1)^2"),
    (r"\frac{x}{2}", "0.5x"),
    ("x^{12}", "x^{6}x^{6}"),
    (r"[0,\sqrt{4})", "[0,2)"),
    (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 1)"),
    (r"\{1, \sqrt{8}\}", r"\{2\sqrt{2}, 1\}"),
    (r"1+\sqrt2, 1-\sqrt2", r"1 \pm \sqrt{2}"),
    (r"(2,3) \cup (4,5)", r"(4,5) \cup (2,3)"),
    (r"\begin{pmatrix} \frac12 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 0.5 \\ 2 \end{pmatrix}"),
    ("x<3", r"(-\infty, 3)"),
    ("6x-2y+26=0", "3x-y+13=0"),
    (r"x = \sqrt{8}", ROOTS),
    (r"2\sqrt{2} \text{ cm}", EIGHT),
    (r"\sum_{n=1}^{3} n", "6"),
    (r"S = \sum_{n=1}^{3} n", "6"),
    (r"\prod_{n=1}^{2} (n+x)", "(1+x)(2+x)"),
    (r"\frac{\sqrt{3}}{3}", "0.577"),  # 0.57735: a gold in three places may be a rounding
]
DIFFERENT = [
    ("x^2+2x+1", "(x+2)^2"),
    (r"-\sqrt{8}", ROOTS),
    (r"4\sqrt(2)", "4"),
    (r"(1, \sqrt{8})", r"(2\sqrt{2}, 1)"),
    (r"[0,\sqrt{4}]", "[0,2)"),
    (r"\{1\}", r"\{1, \sqrt{2}\}"),
    ("3x+4y+14=0", "3x-y+13=0"),
    ("1.414214", r"\sqrt{2}"),  # math-verify itself rounds to six places
    (r"\frac{\sqrt{2}}{2^{98}}", r"\frac{\sqrt{2}}{2^{99}}"),
    ("52_8", "52_9"),
    (r"\text{I do not know}", ROOTS),
    (r"\frac{1}{", ROOTS),
    ("__import__('os').getpid()", ROOTS),
]


@pytest.mark.parametrize(("stated", "gold"), EQUAL)
def test_what_mathematics_says_is_equal_is_equal(pool: LatexPool, stated: str, gold: str) -> None:
    assert verdict(pool, stated, gold) == "equal"


@pytest.mark.parametrize(("stated", "gold"), DIFFERENT)
def test_what_differs_in_value_stays_different(pool: LatexPool, stated: str, gold: str) -> None:
    assert verdict(pool, stated, gold) == "different"


def test_a_response_is_right_where_only_the_worker_can_say_so(pool: LatexPool) -> None:
    assert boxed(pool, EIGHT, ROOTS).outcome == "correct"
    assert boxed(pool, r"\sqrt{18}", ROOTS).outcome == "wrong"


def test_the_worker_is_asked_only_what_the_exact_rules_leave_open() -> None:
    def never(stated: str, gold: str) -> MathVerdict:
        raise AssertionError((stated, gold))

    for stated, gold in [("7", "8"), ("3:2", "2:3"), ("(1,2)", "(2,1)"), ("1728", "1331, 1728"),
                         (EIGHT, EIGHT), (r"\text{Bob}", r"\text{Evelyn}")]:  # fmt: skip
        read = read_math_gold(gold)
        assert read is not None
        equal_math(stated, read, never)  # type: ignore[arg-type]


def test_a_question_without_an_end_is_killed_and_the_next_one_is_answered() -> None:
    with LatexPool() as pool:
        assert pool(EIGHT, ROOTS) == "equal"
        started = time.monotonic()
        assert pool.compare(TOWER, "5", SHORT) == "timeout"
        assert SHORT <= time.monotonic() - started < SHORT + LATE
        assert pool(EIGHT, ROOTS) == "equal"


def test_a_kill_is_an_error_with_its_status_and_never_wrong() -> None:
    asked = Asked("boxed", "math")
    with LatexPool() as pool:

        def decide(stated: str, gold: str) -> MathVerdict:
            return pool.compare(TOWER, gold, SHORT)

        read = score_answer(r"\boxed{y+3}", "x+3", asked=asked, latex_equal=decide)  # type: ignore[arg-type]
    assert (read.strict.outcome, read.strict.status) == ("error", "error: timeout")
    assert (read.lenient.outcome, read.lenient.status) == ("error", "error: timeout")


def test_the_questions_of_one_row_share_one_time() -> None:
    with LatexPool() as pool:
        decide = pool.within(SHORT)
        assert decide(TOWER, "5") == "timeout"
        assert decide(EIGHT, ROOTS) == "timeout"  # nothing is left
        assert pool.within(20.0)(EIGHT, ROOTS) == "equal"


@pytest.mark.parametrize("stated", [TOWER, "10^{10^8}", r"10^{10^{8}} \sqrt{2}", "99999!",
                                    "(" * 40 + "x" + ")" * 40, "7" * 400 + "x",
                                    "x+" * 600 + "1"])  # fmt: skip
def test_bounds_decide_before_any_clock_and_start_no_process(stated: str) -> None:
    with LatexPool() as pool:
        reading = boxed(pool, stated, ROOTS)
        assert (reading.outcome, reading.status) == ("error", "error: bounds")
        assert pool._worker is None


@pytest.mark.parametrize("gold", [r"\frac{1}{", r"\sqrt{"])
def test_a_gold_that_has_no_reading_is_an_error_of_the_gold(pool: LatexPool, gold: str) -> None:
    reading = boxed(pool, EIGHT, gold)
    assert (reading.outcome, reading.status) == ("error", "error: gold")


def test_without_math_verify_the_status_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('hidden by a test')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with LatexPool() as pool:
        reading = boxed(pool, EIGHT, ROOTS)
        assert (reading.outcome, reading.status) == (
            "error", "error: math-verify is not installed",
        )  # fmt: skip
        assert boxed(pool, "7", "7").outcome == "correct"  # a number needs no worker


def test_two_threads_are_answered_each_its_own_while_one_question_is_killed() -> None:
    with LatexPool(20.0) as pool, ThreadPoolExecutor(3) as threads:
        killed = threads.submit(pool.compare, TOWER, "5", SHORT)
        equal = [threads.submit(pool, EIGHT, ROOTS) for _ in range(10)]
        other = [threads.submit(pool, f"x+{n}", ROOTS) for n in range(10)]
        assert killed.result() == "timeout"
        assert {answer.result() for answer in equal} == {"equal"}
        assert {answer.result() for answer in other} == {"different"}


def _in_child(pool: LatexPool | None) -> None:
    with pool or LatexPool() as used:
        said = [used(EIGHT, ROOTS), used.compare(TOWER, "5", SHORT), used("x+1", ROOTS)]
    sys.exit(0 if said == ["equal", "timeout", "different"] else 1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_asks_a_worker_of_its_own(method: str) -> None:
    with LatexPool(20.0) as pool:
        assert pool(EIGHT, ROOTS) == "equal"
        assert pool._worker is not None
        before = pool._worker.process.pid
        with pool._lock:  # as if another thread asked at the moment of the fork
            context = multiprocessing.get_context(method)
            child = context.Process(target=_in_child, args=(pool if method == "fork" else None,))  # type: ignore[attr-defined]
            child.start()
        child.join(60)
        assert child.exitcode == 0
        assert pool("x+1", "1+x") == "equal"
        assert pool._worker.process.pid == before


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


AFTER_A_KILL = (
    "from ahalab.scoring.worker import LatexPool\n"
    "pool = LatexPool(20.0)\n"
    f"pool.compare({TOWER!r}, '5', {SHORT})\n"
    "pool('x', 'y')\n"
    "print(pool._worker.process.pid, pool._spare.process.pid, flush=True)\n"
)


def _all_end(pids: list[int]) -> bool:
    until = time.monotonic() + 10
    while any(map(_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(_running, pids))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_worker_and_spare_end_with_their_parent_even_when_it_is_killed_during_a_question() -> None:
    program = AFTER_A_KILL + f"pool.compare({TOWER!r}, '5', 1.0 * 60)\n"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        assert all(map(_running, workers))
        time.sleep(0.2)
        parent.send_signal(signal.SIGKILL)
    assert _all_end(workers)


def _asks_for_a_minute(pool: LatexPool | None, pids: Connection) -> None:
    used = pool or LatexPool(20.0)
    used.compare(TOWER, "5", SHORT)
    used("x", "y")
    assert used._worker is not None
    assert used._spare is not None
    pids.send([used._worker.process.pid, used._spare.process.pid])
    used.compare(TOWER, "5", 60.0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_and_spare_of_a_killed_child_end_and_those_of_its_parent_go_on(method: str) -> None:
    with LatexPool(20.0) as pool:
        assert pool.compare(TOWER, "5", SHORT) == "timeout"
        assert pool("x+1", "1+x") == "equal"
        assert pool._worker is not None
        assert pool._spare is not None
        own = [pool._worker.process.pid, pool._spare.process.pid]
        context = multiprocessing.get_context(method)
        reader, writer = context.Pipe(duplex=False)
        inherited = pool if method == "fork" else None
        child = context.Process(target=_asks_for_a_minute, args=(inherited, writer))  # type: ignore[attr-defined]
        child.start()
        assert reader.poll(60)
        workers = reader.recv()
        assert all(map(_running, workers))
        child.kill()
        child.join()
        assert _all_end(workers)
        assert all(map(_running, own))
        assert pool("x+1", "1+x") == "equal"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("close", ["", "pool.close()\n"])
def test_worker_and_spare_end_with_the_interpreter_also_when_nothing_closes_the_pool(
    close: str,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", AFTER_A_KILL + close], capture_output=True, check=True, timeout=60
    )
    assert _all_end([int(pid) for pid in ended.stdout.split()])


def test_after_a_kill_a_spare_worker_answers_and_closing_ends_every_process() -> None:
    with LatexPool(20.0) as pool:
        assert pool(EIGHT, ROOTS) == "equal"
        assert pool._spare is None  # a batch without a kill pays for one process
        assert pool.compare(TOWER, "5", SHORT) == "timeout"
        spare = pool._spare
        assert spare is not None
        assert pool(EIGHT, ROOTS) == "equal"
        assert pool._worker is spare
        assert pool._spare is not None
        processes = [spare.process, pool._spare.process]
    assert [process.poll() for process in processes] == [-signal.SIGKILL] * 2


def test_a_spare_worker_killed_from_outside_is_replaced() -> None:
    with LatexPool(20.0) as pool:
        assert pool.compare(TOWER, "5", SHORT) == "timeout"
        assert pool._spare is not None
        os.kill(pool._spare.process.pid, signal.SIGKILL)
        pool._spare.process.wait()
        assert pool(EIGHT, ROOTS) == "equal"


def test_a_worker_killed_from_outside_is_started_again() -> None:
    with LatexPool(20.0) as pool:
        assert pool(EIGHT, ROOTS) == "equal"
        assert pool._worker is not None
        os.kill(pool._worker.process.pid, signal.SIGKILL)
        time.sleep(0.2)
        assert pool(EIGHT, ROOTS) == "equal"


def test_the_order_of_the_questions_changes_no_verdict(pool: LatexPool) -> None:
    pairs = [*EQUAL, *DIFFERENT]
    forwards = [verdict(pool, *pair) for pair in pairs]
    with LatexPool(20.0) as fresh:
        backwards = [verdict(fresh, *pair) for pair in reversed(pairs)]
    assert forwards == backwards[::-1]


def test_the_caller_never_imports_math_verify() -> None:
    program = (
        "import sys\n"
        "from ahalab.scoring.worker import LatexPool\n"
        f"with LatexPool() as pool: assert pool({EIGHT!r}, {ROOTS!r}) == 'equal'\n"
        "assert not {'math_verify', 'sympy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_every_gold_of_math_500_equals_itself_also_by_the_worker_alone(pool: LatexPool) -> None:
    path = SHARED / "data" / "math500" / "test.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here; set AHALAB_SHARED to the folder that holds data/")
    golds = [json.loads(line)["answer"] for line in path.read_bytes().split(b"\n") if line]
    unlike, unread, asked = [], [], 0
    for text in golds:
        gold = read_math_gold(text)
        if gold is None or equal_math(text, gold, pool) != "equal":
            unlike.append(text)
        elif gold.number is None and is_mathematics(gold.latex):
            asked += 1
            if pool(gold.latex, gold.latex) != "equal":
                unread.append(text)
    assert len(golds) == 500
    assert (unlike, unread) == ([], [])
    assert asked == 95  # the rest are plain numbers and words


def test_shared_cases_are_scored_right_with_the_worker_too(pool: LatexPool) -> None:
    path = SHARED / "cases" / "scoring_dev.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here; set AHALAB_SHARED to the folder that holds cases/")
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    failing = []
    for case in rows:
        if case["task"] != "math":
            continue
        asked = Asked(task="math", prompt=case.get("prompt"))
        scored = score_answer(case["response"], case["gold"], asked=asked, latex_equal=pool)
        if (scored.lenient.outcome == "correct") != (case["expected"] == "correct"):
            failing.append(case["id"])
    assert failing == []
