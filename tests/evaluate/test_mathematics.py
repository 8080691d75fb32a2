r"""LaTeX that only the worker can decide: one verdict in training, evaluation and verification.

`\sqrt{8}` is `2\sqrt{2}`; without the worker their texts differ, and the answer would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ahalab.errors import InputError
from ahalab.evaluate.backends import BackendFacts
from ahalab.evaluate.protocol import BatchPlan, Weights, make_protocol
from ahalab.evaluate.resume import AnswerSet, score_pairs
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.scoring import worker
from ahalab.scoring.arms import resolve_arm
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, RowWriter
from ahalab.tasks.generation import Completion
from ahalab.tasks.questions import Question, asked_of, check_golds
from ahalab.train.response_logger import ResponseLogger, RewardTerms
from ahalab.verify.grading import Grader, Put
from lab import PLAN, plan_of

MATH = plan_of(
    PLAN.replace("task: {name: arithmetic,", "task: {name: jsonl, path: nowhere,").replace(
        "name: tiny", "name: maths\nanswer_format: boxed"
    )
)
ASKED = asked_of(MATH.task, MATH.answer_format)
GOLD, RIGHT, WRONG = r"2\sqrt{2}", r"It is \boxed{\sqrt{8}}.", r"It is \boxed{\sqrt{7}}."
HANGS = r"It is \boxed{y+3}."  # put to the worker as a question that it never ends
TOWER = r"5^{(5^{(5^{(5^5)})}-4)}"


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """One worker of a short time for all stages, and none left behind."""
    before, worker._SHARED[:] = list(worker._SHARED), [worker.LatexPool()]
    yield
    worker._SHARED[0].close()
    worker._SHARED[:] = before


def test_the_evaluation_asks_the_worker() -> None:
    prompt = Prompt(
        prompt_id="p0", question="What is the root of 8?", gold=GOLD, source="here", split="eval",
        prompt_ids=(1,), prompt_tokens=1,
    )  # fmt: skip
    facts = BackendFacts("fake", "rows", "cpu", {}, {})
    batch = BatchPlan(size=2, cells=1, seed=0)
    protocol = make_protocol(MATH, [prompt], Weights("t", "k", "b"), facts, batch)
    paths = StudyPaths(Path("s"))
    answers = AnswerSet(MATH, paths, paths.base_answers(), protocol, "base")
    completions = [Completion(text, (1,), "eos") for text in (RIGHT, WRONG)]
    rows = score_pairs(answers, [(prompt, 0), (prompt, 1)], completions)
    assert [row.strict for row in rows] == ["correct", "wrong"]


def test_training_asks_the_worker_and_a_timeout_is_no_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = worker._SHARED[0]
    compare = pool.compare

    def slow(stated: str, gold: str, seconds: float, spent: list[float]) -> worker.LatexVerdict:
        hangs = "y" in stated
        return compare(TOWER if hangs else stated, gold, 0.5 if hangs else seconds, spent)

    monkeypatch.setattr(pool, "compare", slow)
    file = RowFile(tmp_path / "s/rollouts.jsonl", "rollout/1", "plan", "run", tmp_path / "broken")
    with RowWriter[Rollout](file) as writer:
        logger = ResponseLogger(
            RewardTerms(resolve_arm("correctness"), "stop", seed=0, asked=ASKED, group_size=4),
            frozenset({9}), writer,
        )  # fmt: skip
        handed = logger(
            completions=[RIGHT, WRONG, HANGS, RIGHT], completion_ids=[[9]] * 4,
            prompt_id=["p0"] * 4, gold=[GOLD] * 4,
            question=["What?"] * 4, trainer_state=SimpleNamespace(global_step=0),
        )  # fmt: skip
        assert handed == pytest.approx([1.0, 0.0, 2 / 3, 1.0])
        logger.commit([0.0] * 4, handed)
    rows = [row for _, row in read_rows(file.path, Rollout)]
    assert [r.strict for r in rows] == ["correct", "wrong", "error", "correct"]
    assert [r.reward for r in rows] == [1.0, 0.0, None, 1.0]
    assert rows[2].status == rows[2].components["correct_strict"].status == "error: timeout"


def test_verification_asks_the_worker() -> None:
    grader = Grader(ASKED)
    outcomes = [
        grader.grade(Put(text, GOLD, "What?", "eos")).score.strict.outcome
        for text in (RIGHT, WRONG)
    ]
    assert outcomes == ["correct", "wrong"]


@pytest.mark.parametrize("gold", [r"x^{", r"\sqrt", r"2^{3^{4^{5}}}", r"\frac{}{}"])
def test_a_gold_that_the_worker_can_not_compare_is_refused_with_its_line(gold: str) -> None:
    questions = [Question("a", GOLD, "f:1"), Question("b", gold, "f:2")]
    with pytest.raises(InputError, match=r"f:2: expected a gold answer that can be scored"):
        check_golds(questions, "math")


def test_sound_golds_of_mathematics_pass() -> None:
    golds = (r"\frac{1}{2}", r"(-\infty, 3)", r"x^2+1", r"\text{Evelyn}", "4:30", r"\pi", "12")
    check_golds([Question("a", gold, "f:1") for gold in golds], "math")


def test_other_tasks_never_start_a_worker() -> None:
    assert worker.row_decider("gsm8k") is None
    assert worker.row_decider("countdown") is None
    assert worker._SHARED[0]._worker is None
