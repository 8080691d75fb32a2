import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahalab.errors import InputError, MissingError
from ahalab.records.plan import TaskSpec
from ahalab.tasks.questions import Question, check_golds, load_questions, scoring_task
from ahalab.tasks.selection import check_overlap, draw, prompt_id
from ahalab.tasks.text import normalised

SHARED = Path(os.environ.get("AHALAB_SHARED", Path(__file__).parents[2].parent / "shared"))
GSM8K = SHARED / "data" / "gsm8k_openai"
needs_gsm8k = pytest.mark.skipif(
    not (GSM8K / "train.jsonl").is_file(), reason=f"no GSM8K files at {GSM8K} (AHALAB_SHARED)"
)
WriteRows = Callable[..., TaskSpec]


def spec(name: str, path: Path | None, **more: Any) -> TaskSpec:
    fields = {"name": name, "path": path and str(path), "train_prompts": 4, "eval_prompts": 4}
    return TaskSpec(**fields, **more)


@pytest.fixture
def rows(tmp_path: Path) -> WriteRows:
    """Write the lines of train.jsonl beside a sound eval.jsonl; return the task that reads them."""

    def write(*lines: object, name: str = "jsonl", **more: Any) -> TaskSpec:
        text = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        (tmp_path / "train.jsonl").write_bytes(b"\n".join(text))
        (tmp_path / "eval.jsonl").write_bytes(b'{"question":"7 * 6 = ?","answer":"#### 42"}\n')
        return spec(name, tmp_path, **more)

    return write


def ask(*texts: str, gold: str = "1", source: str = "f") -> list[Question]:
    return [Question(text, gold, f"{source}:{n}") for n, text in enumerate(texts, start=1)]


def refused(task: TaskSpec) -> str:
    with pytest.raises(InputError) as caught:
        load_questions(task, "train")
    message = str(caught.value)
    assert "\n" not in message
    return message


NUMBERED = ask(*(f"question {n}" for n in range(200)))


def test_a_draw_is_seeded_in_file_order_and_never_the_first_ones() -> None:
    drawn = draw(NUMBERED, 20, 0, "train")
    assert drawn == draw(list(NUMBERED), 20, 0, "train")
    assert len(set(drawn)) == 20
    assert drawn == sorted(drawn, key=NUMBERED.index)
    draws = [draw(NUMBERED, 20, seed, split) for seed in range(30) for split in ("train", "eval")]
    assert len({tuple(d) for d in draws}) == 60  # each seed and split draws its own
    assert NUMBERED[:20] not in draws
    # Every question is within reach, the last as well as the first.
    assert {q for d in draws for q in d} == set(NUMBERED)


def test_a_draw_of_as_many_as_there_are_or_more_is_all_in_order() -> None:
    for count in (200, 201, 10**9):
        assert draw(NUMBERED, count, 3, "eval") == NUMBERED
    assert draw(NUMBERED, 0, 3, "eval") == []


def test_a_draw_does_not_touch_the_global_generator() -> None:
    import random

    random.seed(1)
    before = random.getstate()
    draw(NUMBERED, 20, 0, "train")
    assert random.getstate() == before


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("How many apples?", "HOW MANY APPLES"),
        ("How many apples?", "  How   many\tapples ?\n"),
        ("Tom's cat, the old one.", "Tom’s cat the old one"),
        ("12 + 30 = ?", "１２ + ３０ = ？"),
        ("It costs $1,000.", "It costs 1000"),
        ("3 − 2", "3 - 2"),
        ("ﬁve eggs", "five eggs"),
        ("STRASSE", "straße"),
        ("a\u00a0b\u2028c", "a b c"),
    ],
)
def test_questions_that_differ_in_form_only_are_the_same(left: str, right: str) -> None:
    assert normalised(left) == normalised(right)
    with pytest.raises(InputError, match=r"found 1: e:1 = t:1 "):
        check_overlap(ask(left, source="t"), ask(right, source="e"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("3 - 2", "3 + 2"),
        ("3 * 2", "3 / 2"),
        ("3 − 2", "3 × 2"),
        ("3 × 2", "3 ÷ 2"),
        ("3 ^ 2", "3 % 2"),
        ("x < 3", "x > 3"),
        ("1.5 litres", "15 litres"),
        ("1,5", "15"),
        ("Tom has 3 eggs", "Tom has 4 eggs"),
        ("Tom has 3 eggs", "Tim has 3 eggs"),
        ("what is 12 3", "what is 1 23"),
    ],
)
def test_questions_that_differ_in_more_are_different(left: str, right: str) -> None:
    assert normalised(left) != normalised(right)
    check_overlap(ask(left), ask(right))


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(question: str) -> None:
    assert normalised(normalised(question)) == normalised(question)


def test_an_overlap_is_refused_and_the_first_pairs_are_listed() -> None:
    train = ask(*(f"question {n}" for n in range(20)), source="train.jsonl")
    evaluation = ask("new", *(f"Question {n}?" for n in range(10, 18)), source="eval.jsonl")
    with pytest.raises(InputError) as caught:
        check_overlap(train, evaluation)
    message = str(caught.value)
    assert (
        "found 8: eval.jsonl:2 = train.jsonl:11 ('Question 10?'); eval.jsonl:3 = train.jsonl:12"
        in message
    )
    assert message.count(" = ") == 5
    assert "and 3 more" in message
    assert "\n" not in message


def test_a_question_twice_within_one_split_is_no_overlap() -> None:
    check_overlap(ask("a", "a"), ask("b", "b"))


def test_prompt_ids_are_unique_though_a_question_stands_twice() -> None:
    twice = ask("same", "same", "other")
    ids = [prompt_id(position, question) for position, question in enumerate(twice)]
    assert len(set(ids)) == 3
    assert ids[0].partition("-")[2] == ids[1].partition("-")[2] != ids[2].partition("-")[2]
    assert ids == sorted(ids)
    assert prompt_id(0, Question("same", "2", "f:1")) != ids[0]  # the gold is part of it
    assert prompt_id(0, Question("same", "1", "elsewhere:9")) == ids[0]  # where it lay is not


@needs_gsm8k
def test_gsm8k_has_7473_training_and_1319_test_questions_that_do_not_overlap() -> None:
    task = spec("gsm8k", GSM8K)
    train, evaluation = load_questions(task, "train"), load_questions(task, "eval")
    assert (len(train), len(evaluation)) == (7473, 1319)
    assert evaluation[0].question.startswith("Janet’s ducks lay 16 eggs per day.")
    assert evaluation[0].gold == "18"
    assert evaluation[0].source == f"{GSM8K / 'test.jsonl'}:1"
    check_golds(evaluation, scoring_task(task))
    check_golds(train, scoring_task(task))
    check_overlap(train, evaluation)
    ids = {prompt_id(n, q) for n, q in enumerate(train)}
    assert len(ids) == 7473


@needs_gsm8k
def test_every_gsm8k_gold_is_the_number_after_the_last_marker() -> None:
    lines = (GSM8K / "train.jsonl").read_bytes().split(b"\n")
    answers = [json.loads(line)["answer"] for line in lines if line]
    golds = [question.gold for question in load_questions(spec("gsm8k", GSM8K), "train")]
    assert golds == [answer.split("#### ")[-1].strip().replace(",", "") for answer in answers]
    assert all(gold.removeprefix("-").replace(".", "", 1).isdigit() for gold in golds)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"question": "q", "answer": "no marker"}, "expected an answer that ends in `#### N`"),
        ({"question": "q", "answer": "#### "}, "expected an answer that ends in `#### N`"),
        ({"question": "q"}, "expected a value in `answer`, found none (keys: question)"),
        ({"question": "q", "answer": None}, "expected a value in `answer`, found none"),
        ({"question": "q", "answer": ""}, "expected a value in `answer`, found an empty one"),
        (
            {"question": "", "answer": "#### 1"},
            "expected a value in `question`, found an empty one",
        ),
        ({"question": "  ", "answer": "#### 1"}, "expected text in `question`"),
        ({"question": ["q"], "answer": "#### 1"}, "expected text in `question`"),
        ({"question": 5, "answer": "#### 1"}, "expected text in `question`"),
        ({"question": "q", "answer": True}, "expected text or a number in `answer`, found True"),
        ({"question": "q", "answer": ["1"]}, "expected text or a number in `answer`"),
        (b'{"question":"a\\ud800","answer":"#### 1"}', "expected text, found half of a character"),
        ([1], "expected a JSON object, found list"),
        ("text", "expected a JSON object, found str"),
        (b"{", "expected a JSON object, found: "),
        (b"\xff", "expected a JSON object, found: "),
        (b"[" * 100_000, "expected a JSON object, found: "),
        (b'{"question":"q","answer":' + b"9" * 5000 + b"}", "expected a JSON object, found: "),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(
    rows: WriteRows, tmp_path: Path, line: object, said: str
) -> None:
    sound = {"question": "1 + 1 = ?", "answer": "#### 2"}
    task = rows(sound, b"", sound, line, sound, name="gsm8k")  # line 2 is empty and is skipped
    assert refused(task).startswith(f"{tmp_path / 'train.jsonl'}:4: {said}")


def test_text_after_a_line_separator_stays_in_its_question(rows: WriteRows) -> None:
    text = "one\u2028two\u0085three\x0bfour"
    line = json.dumps({"question": text, "answer": 3}, ensure_ascii=False).encode()
    (question,) = load_questions(rows(line), "train")
    assert (question.question, question.gold) == (text, "3")


def test_fields_are_named_by_the_plan_and_numbers_become_text(
    rows: WriteRows, tmp_path: Path
) -> None:
    task = rows({"q": "a", "g": 1.5}, {"q": "b", "g": 7}, question_field="q", gold_field="g")
    assert [(q.question, q.gold, q.source) for q in load_questions(task, "train")] == [
        ("a", "1.5", f"{tmp_path / 'train.jsonl'}:1"),
        ("b", "7", f"{tmp_path / 'train.jsonl'}:2"),
    ]
    assert "expected a value in `question`, found none (keys: q, g)" in refused(
        rows({"q": "a", "g": 1})
    )


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \n"])
def test_an_empty_file_is_refused(rows: WriteRows, tmp_path: Path, content: bytes) -> None:
    assert refused(rows(content)) == (
        f"{tmp_path / 'train.jsonl'}: expected at least one question, found an empty file."
    )


def test_a_missing_folder_and_a_folder_without_the_split_are_refused(tmp_path: Path) -> None:
    for name in ("gsm8k", "jsonl"):
        missing = refused(spec(name, tmp_path / "none"))
        assert f"{tmp_path / 'none'}: expected train.jsonl " in missing
        assert missing.endswith(" for the train split, found no such folder.")
        assert refused(spec(name, tmp_path)).endswith("found nothing.")
    (tmp_path / "training.json").touch()
    assert refused(spec("jsonl", tmp_path)).endswith("found training.json.")
    assert "task.path: expected a folder" in refused(spec("jsonl", None))


def test_the_evaluation_split_may_be_called_test(tmp_path: Path) -> None:
    row = b'{"question":"a","answer":"1"}'
    (tmp_path / "test.jsonl").write_bytes(row)
    assert len(load_questions(spec("jsonl", tmp_path), "eval")) == 1
    (tmp_path / "eval.jsonl").write_bytes(row + b"\n" + row)
    assert len(load_questions(spec("jsonl", tmp_path), "eval")) == 2


@pytest.mark.parametrize("gold", ["", "many", "NaN"])
def test_a_gold_that_cannot_be_scored_is_refused_with_its_line(gold: str) -> None:
    questions = [Question("a", "12", "f:1"), Question("b", gold, "f:2"), Question("c", "3", "f:3")]
    with pytest.raises(
        InputError, match=r"^f:2: expected a gold answer that can be scored, found "
    ):
        check_golds(questions, "gsm8k")


def test_golds_that_can_be_scored_pass() -> None:
    check_golds([Question("a", gold, "f:1") for gold in ("12", "-3", "1.5", "0")], "gsm8k")


def test_the_embedded_arithmetic_needs_no_file_and_its_splits_never_overlap() -> None:
    task = TaskSpec(name="arithmetic", train_prompts=300, eval_prompts=200, seed=4)
    train, evaluation = load_questions(task, "train"), load_questions(task, "eval")
    assert (len(train), len(evaluation)) == (300, 200)
    check_golds([*train, *evaluation], scoring_task(task))
    check_overlap(train, evaluation)
    assert load_questions(task, "train") == train


def test_gsm8k_from_the_hub_without_the_extra_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingError, match=r"pip install 'ahalab\[train\]'.*task\.path"):
        load_questions(spec("gsm8k", None), "train")


def test_a_jsonl_task_may_hold_countdown_and_its_golds_are_read_as_such(tmp_path: Path) -> None:
    rows = [
        {"question": "Make 24 of 4, 6, 1.", "answer": {"numbers": [4, 6, 1], "target": 24}},
        {"question": "Make 7 of 4, 3.", "answer": {"numbers": [4, 3]}},
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    task = spec("jsonl", tmp_path, scoring="countdown")
    questions = load_questions(task, "train")
    assert scoring_task(task) == "countdown"
    check_golds(questions[:1], scoring_task(task))
    with pytest.raises(InputError, match=r"train\.jsonl:2: .*numbers"):
        check_golds(questions, scoring_task(task))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("arithmetic", "gsm8k"),
        ("gsm8k", "gsm8k"),
        ("jsonl", "math"),
        ("csv", "math"),
        ("hub", "math"),
        ("reasoning_gym", "math"),
    ],
)
def test_a_task_that_does_not_say_how_its_golds_are_read(name: str, kind: str) -> None:
    assert scoring_task(TaskSpec(name=name, train_prompts=1, eval_prompts=1)) == kind
