"""Word n-grams that evaluation and training share, counted by hand on sentences made up here."""

import os
import random
import time
from pathlib import Path

import pytest

from ahalab.records.plan import TaskSpec
from ahalab.records.prompt import Overlap, Prompt
from ahalab.tasks.ngrams import measure_overlap
from ahalab.tasks.questions import load_questions

SHARED = Path(os.environ.get("AHALAB_SHARED", Path(__file__).parents[2].parent / "shared"))
GSM8K = SHARED / "data" / "gsm8k_openai"


def prompts(*questions: str) -> list[Prompt]:
    fixed = {"gold": "1", "source": "s", "split": "eval", "prompt_ids": (), "prompt_tokens": 0}
    return [Prompt(prompt_id=f"{n}", question=q, **fixed) for n, q in enumerate(questions)]


def words(first: int, count: int) -> str:
    return " ".join(f"w{n}" for n in range(first, first + count))


def measured(train: list[str], evaluation: list[str]) -> Overlap:
    return measure_overlap(prompts(*train), prompts(*evaluation))


def told(overlap: Overlap) -> tuple[int, int, int]:
    return overlap.questions, overlap.sharing, overlap.mostly


def test_thirteen_words_in_a_row_are_shared_and_twelve_are_not() -> None:
    long = f"x {words(0, 30)} y"
    assert told(measured([long], [f"a {words(5, 12)} b"])) == (1, 0, 0)
    assert told(measured([long], [f"a {words(5, 13)} b c"])) == (1, 1, 0)


def test_the_share_of_a_questions_n_grams_is_what_is_compared_with_a_half() -> None:
    train = [words(0, 14)]  # two 13-grams
    overlap = measured(train, [f"{words(0, 14)} x y", f"{words(0, 14)} x y z", words(40, 20)])
    assert told(overlap) == (3, 2, 1)  # of 16 words 4 n-grams, 2 shared; of 17 words 5
    assert [(e.prompt_id, e.fraction) for e in overlap.examples] == [("0", 0.5), ("1", 0.4)]
    assert overlap.examples[0].words == words(0, 13)


def test_case_and_punctuation_do_not_hide_a_copy() -> None:
    text = "If a plane travels 1,200 miles in 3 hours, how far does it go in nine?"
    copied = "  IF a plane travels 1200 miles, in 3 hours; HOW far does it GO in ten?"
    assert told(measured([text], [copied])) == (1, 1, 1)


def test_a_short_question_counts_whole_and_a_very_short_one_not_at_all() -> None:
    train = [f"start {words(0, 11)} end"]
    assert told(measured(train, [words(0, 11)])) == (1, 1, 1)
    assert told(measured(train, [words(0, 8)])) == (1, 1, 1)
    assert told(measured(train, [f"{words(0, 7)} other"])) == (1, 0, 0)
    assert told(measured(train, [words(0, 7)])) == (0, 0, 0)


def test_wording_of_more_than_ten_training_questions_is_no_copy() -> None:
    def asked(n: int) -> str:
        return f"{words(0, 13)} number {n}"

    ten = [asked(n) for n in range(10)]
    assert told(measured(ten, [asked(99)])) == (1, 1, 1)  # 2 of 3 n-grams
    eleven = [*ten, asked(10)]
    assert told(measured(eleven, [asked(99)])) == (1, 0, 0)
    assert told(measured([f"{ten[0]} {ten[0]}" for _ in range(10)], [asked(99)])) == (1, 1, 1)
    assert told(measured([words(0, 13)] * 11, [words(0, 13)])) == (0, 0, 0)  # nothing is left


def test_the_example_is_the_training_question_that_most_stands_in() -> None:
    train = [f"{words(0, 13)} a", words(2, 20)]
    (example,) = measured(train, [words(0, 18)]).examples
    assert (example.train_prompt_id, example.words) == ("1", words(2, 13))
    assert example.fraction == round(5 / 6, 4)  # n-grams 0, 2, 3, 4, 5 of 0 to 5


def test_a_quadratic_search_finds_the_same() -> None:
    generator = random.Random(3)  # noqa: S311
    train, evaluation = (
        [" ".join(generator.choices("ab", k=generator.randint(5, 40))) for _ in range(60)]
        for _ in range(2)
    )
    sharing = measured_words = 0
    for question in evaluation:
        split = question.split()
        n = min(13, len(split))
        if n < 8:
            continue
        grams = {" ".join(split[at : at + n]) for at in range(len(split) - n + 1)}
        holders = [sum(f" {gram} " in f" {text} " for text in train) for gram in grams]
        measured_words += any(count <= 10 for count in holders)
        sharing += any(0 < count <= 10 for count in holders)
    found = measured(train, evaluation)
    assert (found.questions, found.sharing) == (measured_words, sharing)
    assert 0 < sharing < measured_words


@pytest.mark.skipif(not (GSM8K / "train.jsonl").is_file(), reason=f"no GSM8K files at {GSM8K}")
def test_all_of_gsm8k_takes_a_few_seconds_at_most() -> None:
    task = TaskSpec(name="gsm8k", path=str(GSM8K), train_prompts=1, eval_prompts=1)
    sets = [prompts(*(q.question for q in load_questions(task, s))) for s in ("train", "eval")]  # type: ignore[arg-type]
    began = time.monotonic()
    overlap = measure_overlap(*sets)
    assert time.monotonic() - began < 5
    assert told(overlap) == (1319, 3, 1)  # counted apart, by a search for substrings
    assert "1200 miles in 3 hours" in sets[1][int(overlap.examples[0].prompt_id)].question
