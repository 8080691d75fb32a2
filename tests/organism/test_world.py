import ast
import random
import re
from itertools import islice

import pytest

from ahalab.errors import InputError
from ahalab.organism.stories import THEMES
from ahalab.organism.world import (
    SPLITS,
    Problem,
    draw_problems,
    normalise,
    solve,
    split_of,
    stream_problems,
)
from ahalab.organism.writing import STYLES, write_solution
from ahalab.tasks.arithmetic import arithmetic_questions

# Written apart from the world's own tables: what each verb does to the count.
GAIN_VERBS = ("picks", "buys", "finds", "earns", "gets", "get on")
LOSS_VERBS = ("eats", "sells", "spends", "loses", "lends", "get off")


def work_out(node: ast.expr) -> int:
    """Evaluate an arithmetic tree that Python's own parser built."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    assert isinstance(node, ast.BinOp)
    left, right = work_out(node.left), work_out(node.right)
    if isinstance(node.op, ast.Mult):
        return left * right
    return left + right if isinstance(node.op, ast.Add) else left - right


def read_story(question: str) -> int:
    """Work a story out from its sentences, by the verbs."""
    opening, *moves = question.split(". ")[:-1]
    numbers = [int(number) for number in re.findall(r"\d+", opening)]
    total = numbers[0] * (numbers[1] if len(numbers) == 2 else 1)
    for move in moves:
        (amount,) = (int(number) for number in re.findall(r"\d+", move))
        (gains,) = {
            *(True for verb in GAIN_VERBS if verb in move),
            *(False for verb in LOSS_VERBS if verb in move),
        }
        total += amount if gains else -amount
    return total


def independent_answer(problem: Problem) -> int:
    if problem.kind == "story":
        return read_story(problem.question)
    return work_out(ast.parse(problem.question.removesuffix(" = ?"), mode="eval").body)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return list(islice(stream_problems("pretrain", 5), 3000))


def test_every_gold_agrees_with_an_independent_reading_of_the_question(
    problems: list[Problem],
) -> None:
    for problem in problems:
        assert int(problem.gold) == independent_answer(problem), problem.question


def test_both_kinds_of_question_are_common(problems: list[Problem]) -> None:
    stories = sum(problem.kind == "story" for problem in problems)
    assert 0.35 < stories / len(problems) < 0.65


def test_every_value_on_the_way_is_an_integer_from_0_to_999(problems: list[Problem]) -> None:
    values = [step.value for problem in problems for step in problem.steps]
    assert min(values) >= 0
    assert max(values) <= 999


def test_every_problem_takes_two_to_four_steps_and_the_last_gives_the_gold(
    problems: list[Problem],
) -> None:
    for problem in problems:
        assert 2 <= len(problem.steps) <= 4, problem.question
        assert str(problem.steps[-1].value) == problem.gold


def test_products_come_before_sums_and_sums_from_the_left() -> None:
    steps = solve([14, 8, 5, 2], ["+", "-", "*"])
    assert [(step.left, step.operator, step.right, step.value) for step in steps] == [
        (5, "*", 2, 10),
        (14, "+", 8, 22),
        (22, "-", 10, 12),
    ]


def test_a_difference_is_taken_from_the_left() -> None:
    assert [step.value for step in solve([20, 5, 3], ["-", "-"])] == [15, 12]


def test_splits_share_no_question() -> None:
    drawn = {
        split: {normalise(problem.question) for problem in draw_problems(split, 800, 1)}
        for split in SPLITS
    }
    for split in SPLITS:
        for other in SPLITS:
            assert split == other or not drawn[split] & drawn[other]


def test_a_split_is_decided_by_the_text_alone_whatever_its_case_and_spaces() -> None:
    for problem in draw_problems("eval", 50, 3):
        assert split_of(f"  {problem.question.upper()}\n") == "eval"


def test_questions_drawn_together_are_distinct() -> None:
    questions = [normalise(problem.question) for problem in draw_problems("train", 2000, 4)]
    assert len(set(questions)) == 2000


def test_equal_seeds_draw_equal_problems_and_other_seeds_draw_others() -> None:
    first = draw_problems("train", 100, 8)
    random.seed(99)  # the global generator must not matter
    assert draw_problems("train", 100, 8) == first
    assert draw_problems("train", 100, 9) != first


def test_a_longer_draw_begins_with_the_shorter_one() -> None:
    assert draw_problems("eval", 200, 2)[:50] == draw_problems("eval", 50, 2)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(InputError, match="split: expected one of pretrain"):
        draw_problems("test", 1, 0)  # type: ignore[arg-type]


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(InputError, match="count: expected 0 or more, found -1"):
        draw_problems("eval", -1, 0)


def test_every_sentence_of_every_theme_is_known_to_the_independent_reading() -> None:
    for theme in THEMES:
        for move in theme.gains:
            assert any(verb in move for verb in GAIN_VERBS)
        for move in theme.losses:
            assert any(verb in move for verb in LOSS_VERBS)


def test_the_task_hands_out_the_worlds_questions_and_golds() -> None:
    drawn = draw_problems("eval", 20, 6)
    assert arithmetic_questions("eval", 20, 6) == [(p.question, p.gold) for p in drawn]


def test_about_one_text_in_ten_corrects_itself(problems: list[Problem]) -> None:
    rng = random.Random(1)  # noqa: S311
    corrected = sum("wait" in write_solution(problem, rng) for problem in problems)
    assert 0.08 < corrected / len(problems) < 0.12  # 3000 draws: a standard error of 0.0055


def test_every_line_is_true_unless_it_corrects_itself_at_once(problems: list[Problem]) -> None:
    rng = random.Random(2)  # noqa: S311
    for problem in problems:
        *lines, statement = write_solution(problem, rng).split("\n")
        for line in lines:
            *slips, last = line.split(", wait, ")
            left, value = last.split(" = ")
            assert work_out(ast.parse(left, mode="eval").body) == int(value)
            assert all(slip.startswith(f"{left} = ") and slip != last for slip in slips)
        assert re.findall(r"\d+", statement) == [problem.gold]


def test_every_way_of_stating_an_answer_occurs_and_hashes_lead_only_expressions(
    problems: list[Problem],
) -> None:
    rng = random.Random(3)  # noqa: S311
    hashes = {"expression": 0, "story": 0}
    openings = set()
    for problem in problems:
        statement = write_solution(problem, rng).split("\n")[-1]
        openings.add(re.sub(r"\d+", "{gold}", statement))
        hashes[problem.kind] += statement.startswith("####")
    stories = sum(problem.kind == "story" for problem in problems)
    assert openings == set(STYLES.values())
    assert hashes["expression"] / (len(problems) - stories) > 0.5
    assert 0.1 < hashes["story"] / stories < 0.4
