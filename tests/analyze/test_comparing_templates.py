"""The base under templates, from letters: ranges, intervals and sentences worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import optimize, stats
from small_study import LETTERS, make_prompt, make_protocol, put, put_answers

from ahalab.analyze.templates import compare_templates
from ahalab.plan.load import dump_plan, parse_plan
from ahalab.plan.templates import asked_templates
from ahalab.records.answer import Answer
from ahalab.records.base import digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.templates import TemplateComparison, TemplateSet
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.store.rows import write_rows
from ahalab.tasks.templates import template_file

PLAN = """\
name: small
model: {id: organism}
task: {name: arithmetic, train_prompts: 16, eval_prompts: 8}
arms: [random]
control: random
seeds: [1]
grpo: {max_steps: 5}
lora: {r: 4}
evaluation:
  max_new_tokens: 16
  templates: {a: {template: "{question}!"}, b: {template: "{question}?"}}
"""


def tried(
    root: Path, letters: dict[str, str], texts: list[str] | None = None
) -> TemplateComparison:
    """Compare three templates whose answers are given as letters, one per question."""
    plan = parse_plan(PLAN, "small.yaml")
    paths = StudyPaths(root)
    put(paths.plan, dump_plan(plan).encode())
    count = len(letters["plan"])
    texts = texts or [f"What is {n} + 7 - {n}?" for n in range(count)]
    prompts = [make_prompt(n, text) for n, text in enumerate(texts)]
    asked = TemplateSet(
        plan_digest=digest(plan), source="plan", version="1", split="train", questions=count,
        available=count, templates=asked_templates(plan), left_out=(),
    )  # fmt: skip
    put(paths.template_set, encode_pretty(asked))
    for name, line in letters.items():
        write_rows(template_file(plan, paths, name), prompts)
        put_template(plan, paths, name, line)
    found = compare_templates(plan, paths)
    assert found is not None
    return found


def put_template(plan: Plan, paths: StudyPaths, name: str, line: str) -> None:
    protocol = make_protocol(plan)
    prompts = [p for _, p in read_rows(paths.template_prompts(name), Prompt)]
    rows = []
    for prompt, letter in zip(prompts, line, strict=True):
        text, finish, extracted, rule, strict, lenient = LETTERS[letter]
        rows.append(
            Answer(
                protocol=digest(protocol), side="base", prompt_id=prompt.prompt_id, sample=0,
                completion=text, completion_ids=tuple(text.encode()), finish=finish,
                extracted=extracted, rule=rule, status="ok", strict=strict, lenient=lenient,
            )
        )  # fmt: skip
    put_answers(plan, paths, paths.template_answers(name), rows, protocol)


def lower_bound(gained: int, n: int, level: float) -> float:
    """Tango's lower bound where no pair is lost, by inverting the score test as it is defined.

    With g gained of n and none lost, the likelihood under a difference d is
    (q + d)^g (1 - 2q - d)^(n - g), greatest where g (1 - 2q - d) = 2 (n - g) (q + d).
    """
    z = stats.norm.isf((1 - level) / 2)

    def excess(d: float) -> float:
        q = max(0.0, (gained * (1 - d) - 2 * (n - gained) * d) / (2 * n))
        return float((gained - n * d) / (n * (2 * q + d - d * d)) ** 0.5 - z)

    return float(optimize.brentq(excess, 1e-12, gained / n))


def test_best_worst_and_own_are_counted_and_compared_in_pairs(tmp_path: Path) -> None:
    found = tried(
        tmp_path,
        {"plan": "C" * 4 + "F" * 8 + "W" * 8, "a": "C" * 18 + "WW", "b": "T" * 16 + "U" * 4},
    )
    strict, lenient = found.ranges
    assert (found.questions, found.split, found.confidence) == (20, "train", 0.95)
    assert [t.strict_accuracy for t in found.templates] == [0.2, 0.9, 0.0]
    assert [t.lenient_accuracy for t in found.templates] == [0.6, 0.9, 0.0]
    assert found.templates[0].strict == {"correct": 4, "unparsed": 8, "wrong": 8}
    assert found.templates[2].lenient == {"truncated": 16, "unparsed": 4}
    # Bytes of the texts: `#### 7`, `The answer is 7.`, `#### 8` are 6, 16 and 6.
    assert found.templates[0].mean_tokens == (4 * 6 + 8 * 16 + 8 * 6) / 20
    assert (strict.worst, strict.best, strict.verdict) == ("b", "a", "better exists")
    assert (strict.spread_points, strict.lead_points) == pytest.approx((90.0, 70.0))
    assert strict.spread_interval_points is not None
    assert strict.lead_interval_points is not None
    # Three templates: three pairs, and two others than the plan's own.
    assert strict.spread_interval_points[0] == pytest.approx(
        100 * lower_bound(18, 20, 1 - 0.05 / 3)
    )
    assert strict.lead_interval_points[0] == pytest.approx(100 * lower_bound(14, 20, 1 - 0.05 / 2))
    assert strict.sentence.startswith(
        "The protocol alone moves the base from 0.0 % (b) to 90.0 % (a) strict accuracy over 20 "
        "questions, 90.0 points (95 % interval "
    )
    assert (
        "every pair of 3 templates). The plan's template stands at 20.0 %, 70.0 points below"
        in strict.sentence
    )
    assert strict.sentence.endswith("and the 2 others): a base under it is a straw man.")
    assert lenient.lead_points == pytest.approx(30.0)


def test_a_difference_that_chance_could_make_is_no_evidence(tmp_path: Path) -> None:
    found = tried(tmp_path, {"plan": "CCCWWW", "a": "CCCCWW", "b": "CCWWWW"}).ranges[0]
    assert found.verdict == "no evidence"
    assert found.sentence.startswith("The base stands between 33.3 % (b) and 66.7 % (a) strict ")
    assert ": no evidence that the protocol alone moves it. The plan's " in found.sentence
    assert found.sentence.endswith("no evidence that another is better.")


def test_of_equals_the_plans_own_is_the_best_and_nothing_moves(tmp_path: Path) -> None:
    found = tried(tmp_path, {"plan": "CCW", "a": "WCC", "b": "CWC"}).ranges[0]
    assert (found.best, found.worst, found.verdict) == ("plan", "plan", "own is best")
    assert (found.spread_interval_points, found.lead_interval_points) == (None, None)
    assert found.sentence == (
        "The protocol alone does not move the base: 66.7 % strict accuracy under each of 3 "
        "templates over 3 questions."
    )


def test_a_question_that_is_asked_twice_counts_once(tmp_path: Path) -> None:
    letters = {"plan": "WWWW", "a": "CCWW", "b": "WWWW"}
    once = tried(tmp_path / "once", letters).ranges[0].spread_interval_points
    doubled = {name: line + line for name, line in letters.items()}
    texts = [f"What is {n} + 7 - {n}?" for n in range(4)] * 2
    twice = tried(tmp_path / "twice", doubled, texts).ranges[0].spread_interval_points
    assert once is not None
    assert twice == pytest.approx(once)


def test_there_is_no_comparison_until_every_template_has_its_answers(tmp_path: Path) -> None:
    tried(tmp_path, {"plan": "CW", "a": "WW", "b": "CC"})
    paths = StudyPaths(tmp_path)
    paths.template_answers("b").answers.with_name("answers.journal.jsonl").unlink()
    assert compare_templates(parse_plan(PLAN, "small.yaml"), paths) is None
    assert compare_templates(parse_plan(PLAN, "small.yaml"), StudyPaths(tmp_path / "other")) is None
