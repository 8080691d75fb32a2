"""The first stage as a whole, with a tokenizer made up here, so that no torch is needed."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ahalab.tasks.prepare as prepare
from ahalab.errors import InputError, LockedError, PlanError
from ahalab.plan.resolve import resolve
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import ArmSpec, EvaluationSpec, ModelSpec, Plan, TaskSpec, ValidationSpec
from ahalab.records.prompt import Selection
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.tasks.prepare import prepare_prompts, prompts_ready, read_prompts
from ahalab.tasks.questions import Question
from ahalab.tasks.render import messages
from ahalab.tasks.selection import draw
from ahalab.tasks.text import normalised


@pytest.fixture
def plan() -> Plan:
    return resolve(
        Plan(
            name="demo",
            model=ModelSpec(id="organism"),
            task=TaskSpec(
                name="arithmetic",
                train_prompts=12,
                eval_prompts=9,
                template="Q: {question}",
                system="S",
            ),
            arms=(ArmSpec(name="random"),),
            control="random",
            seeds=(0,),
            grpo={"max_steps": 1},
            lora={},
            evaluation=EvaluationSpec(max_new_tokens=8),
        )
    )


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    def render(
        tokenizer: object, task: TaskSpec, questions: list[str], arguments: dict[str, Any]
    ) -> list[tuple[int, ...]]:
        asked = ["|".join(m["content"] for m in messages(task, q)) for q in questions]
        return [tuple(text.encode()) for text in asked]

    monkeypatch.setattr(prepare, "load_tokenizer", lambda folder: None)
    monkeypatch.setattr(prepare, "render", render)
    return StudyPaths(tmp_path / "results" / "demo")


def made(plan: Plan, paths: StudyPaths) -> dict[str, Any]:
    prepare_prompts(plan, paths, Path("model"))
    return {split: read_prompts(paths, split) for split in ("train", "eval")}  # type: ignore[arg-type]


def test_prompts_are_written_once_and_read_back(plan: Plan, paths: StudyPaths) -> None:
    assert not prompts_ready(plan, paths)
    prompts = made(plan, paths)
    assert prompts_ready(plan, paths)
    assert [len(prompts["train"]), len(prompts["eval"])] == [12, 9]
    for split, rows in prompts.items():
        assert [row.prompt_id[:6] for row in rows] == [f"{n:05d}-" for n in range(len(rows))]
        for row in rows:
            assert row.split == split
            assert row.prompt_ids == tuple(f"S|Q: {row.question}".encode())
            assert row.prompt_tokens == len(row.prompt_ids)
    before = {p: p.read_bytes() for p in paths.root.rglob("*.json*")}
    assert made(plan, paths) == prompts
    assert {p: p.read_bytes() for p in paths.root.rglob("*.json*")} == before


def test_a_prompt_over_the_limit_is_dropped_and_listed_and_never_cut(
    plan: Plan, paths: StudyPaths
) -> None:
    whole = made(plan, paths)
    lengths = sorted(row.prompt_tokens for rows in whole.values() for row in rows)
    limit = lengths[len(lengths) // 2]
    fewer = replace(plan, task=replace(plan.task, max_prompt_tokens=limit))
    other = StudyPaths(paths.root.with_name("fewer"))
    kept = made(fewer, other)
    for split, rows in kept.items():
        short = [row for row in whole[split] if row.prompt_tokens <= limit]
        assert rows == short  # with the positions, and so the ids, of the whole set
    selection = decode_file(other.prompt_report.read_bytes(), Selection, "selection.json")
    assert selection.plan_digest == digest(fewer)
    assert len(selection.dropped) == sum(length > limit for length in lengths) > 0
    assert all(f"more than max_prompt_tokens={limit}" in d.reason for d in selection.dropped)
    none = replace(plan, task=replace(plan.task, max_prompt_tokens=1))
    with pytest.raises(InputError, match="every train prompt exceeds max_prompt_tokens=1"):
        made(none, StudyPaths(paths.root.with_name("none")))


@pytest.mark.parametrize("killed_at", [0, 1, 2])
def test_a_kill_between_the_files_is_made_good_with_the_same_bytes(
    plan: Plan, paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    other = StudyPaths(paths.root.with_name("other"))
    made(plan, other)
    calls = 0

    def killed(write: Any) -> Any:
        def call(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls > killed_at:
                raise KeyboardInterrupt
            return write(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(prepare, "write_rows", killed(prepare.write_rows))
        patched.setattr(prepare, "replace_file", killed(prepare.replace_file))
        with pytest.raises(KeyboardInterrupt):
            made(plan, paths)
    assert not prompts_ready(plan, paths)
    made(plan, paths)
    for name in ("train.jsonl", "eval.jsonl", "selection.json"):
        assert (paths.root / "prompts" / name).read_bytes() == (
            other.root / "prompts" / name
        ).read_bytes()


def test_prompts_of_another_plan_are_refused(plan: Plan, paths: StudyPaths) -> None:
    made(plan, paths)
    with pytest.raises(PlanError, match="expected plan_digest="):
        made(replace(plan, seeds=(1,)), paths)


def test_a_second_process_may_not_write_prompts(plan: Plan, paths: StudyPaths) -> None:
    with WriterLock(paths.work / "locks" / "prompts.lock"), pytest.raises(LockedError):
        made(plan, paths)


def test_braces_in_a_question_are_text() -> None:
    task = TaskSpec(
        name="jsonl", train_prompts=1, eval_prompts=1, template="{question} {x} {question}"
    )
    assert (
        messages(task, "{0} {question!r}")[0]["content"] == "{0} {question!r} {x} {0} {question!r}"
    )


# Validation ---------------------------------------------------------------------------------------


def with_validation(plan: Plan, prompts: int, **task: Any) -> Plan:
    asked = replace(plan, validation=ValidationSpec(prompts=prompts))
    return resolve(replace(asked, task=replace(plan.task, **task)))


def prompt_files(paths: StudyPaths) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (paths.root / "prompts").iterdir()}


def questions(paths: StudyPaths, split: str) -> list[str]:
    return [row.question for row in read_prompts(paths, split)]  # type: ignore[arg-type]


def test_validation_adds_a_set_and_leaves_the_other_two_as_they_were(
    plan: Plan, paths: StudyPaths
) -> None:
    made(plan, paths)
    other = StudyPaths(paths.root.with_name("other"))
    asking = with_validation(plan, 7)
    made(asking, other)
    assert not (paths.root / "prompts" / "validation.jsonl").exists()
    assert b"validation" not in b"".join(prompt_files(paths).values())
    for name in ("train.jsonl", "eval.jsonl"):
        assert prompt_files(other)[name] == prompt_files(paths)[name]
    rows = read_prompts(other, "validation")
    assert [row.split for row in rows] == ["validation"] * 7
    sets = [set(questions(other, split)) for split in ("train", "eval", "validation")]
    assert len(set.union(*sets)) == 12 + 9 + 7
    selection = decode_file(other.prompt_report.read_bytes(), Selection, "selection.json")
    assert selection.drawn == selection.available == {"train": 12, "eval": 9, "validation": 7}
    (other.root / "prompts" / "validation.journal.jsonl").unlink()
    assert not prompts_ready(asking, other)


def folder_of(tmp_path: Path, **splits: list[str]) -> dict[str, Any]:
    folder = tmp_path / "task"
    folder.mkdir(exist_ok=True)
    for name, texts in splits.items():
        lines = [json.dumps({"question": text, "answer": "#### 1", "gold": "1"}) for text in texts]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return {"path": str(folder), "scoring": "gsm8k", "gold_field": "gold"}


def numbered(word: str, count: int) -> list[str]:
    return [f"{word} {n}?" for n in range(count)]


@pytest.mark.parametrize("name", ["gsm8k", "jsonl"])
def test_without_a_file_of_its_own_validation_takes_what_the_training_draw_left(
    plan: Plan, paths: StudyPaths, tmp_path: Path, name: str
) -> None:
    # The last training row repeats the first one in other letters: drawn or left, never both.
    rows = [*numbered("Train", 20), "TRAIN 0 ?"]
    task = folder_of(tmp_path, train=rows, test=numbered("Test", 9))
    asking = with_validation(plan, 5, name=name, train_prompts=12, **task)
    seen = set()
    for seed in range(12):
        place = StudyPaths(paths.root.with_name(f"seed-{seed}"))
        seeded = replace(asking, task=replace(asking.task, seed=seed))
        made(seeded, place)
        train, validation = (questions(place, split) for split in ("train", "validation"))
        assert (len(train), len(validation)) == (12, 5)
        seen.add(tuple(validation))
        selection = decode_file(place.prompt_report.read_bytes(), Selection, "selection.json")
        taken = {normalised(q) for q in train}
        assert not taken & {normalised(q) for q in validation}
        assert selection.available["validation"] == sum(normalised(q) not in taken for q in rows)
    assert len(seen) > 6  # drawn by seed


def test_too_few_training_rows_left_for_validation_are_refused_with_the_remedy(
    plan: Plan, paths: StudyPaths, tmp_path: Path
) -> None:
    task = folder_of(tmp_path, train=numbered("Train", 20), eval=numbered("Test", 9))
    asking = with_validation(plan, 9, name="jsonl", train_prompts=12, **task)
    with pytest.raises(InputError) as caught:
        made(asking, paths)
    assert str(caught.value) == (
        "validation.prompts: expected 9 training questions that the training draw did not take, "
        "found 8 of 20. Lower task.train_prompts or validation.prompts, or add validation.jsonl "
        "to the task's folder."
    )
    folder_of(tmp_path, validation=numbered("Own", 30))
    made(asking, paths)
    assert all(q.startswith("Own") for q in questions(paths, "validation"))
    assert len(questions(paths, "validation")) == 9


@pytest.mark.parametrize(("shared", "with_"), [("train 3", "training"), ("TEST 3?", "evaluation")])
def test_a_validation_question_that_another_split_holds_is_refused(
    plan: Plan, paths: StudyPaths, tmp_path: Path, shared: str, with_: str
) -> None:
    splits = {"train": numbered("Train", 12), "eval": numbered("Test", 9)}
    task = folder_of(tmp_path, **splits, validation=["Own 1?", shared])
    asking = with_validation(plan, 2, name="jsonl", **task)
    expected = f"expected no validation question among the {with_} questions, found 1:"
    with pytest.raises(InputError, match=expected):
        made(asking, paths)


def test_a_training_row_left_for_validation_that_the_evaluation_holds_is_refused(
    plan: Plan, paths: StudyPaths, tmp_path: Path
) -> None:
    rows = [*numbered("Train", 12), "Test 3"]
    task = folder_of(tmp_path, train=rows, eval=numbered("Test", 9))
    asked = [Question(text, "1", text) for text in rows]
    seed = next(n for n in range(99) if asked[-1] not in draw(asked, 12, n, "train"))
    asking = with_validation(plan, 1, name="jsonl", seed=seed, **task)
    with pytest.raises(InputError, match="no validation question among the evaluation questions"):
        made(asking, paths)


# Words that the evaluation shares with the training ----------------------------------------------

LINE = "a farmer sells two dozen eggs a day at the market for three dollars"


def sharing(plan: Plan, tmp_path: Path, **task: Any) -> Plan:
    lines = [f"{LINE} each?", *numbered("Test", 8)]
    folder = folder_of(tmp_path, train=[f"{LINE}?", *numbered("Train", 11)], eval=lines)
    return resolve(replace(plan, task=replace(plan.task, name="jsonl", **folder, **task)))


def test_shared_words_are_recorded_and_no_origin_of_a_file(
    plan: Plan, paths: StudyPaths, tmp_path: Path
) -> None:
    made(sharing(plan, tmp_path), paths)
    selection = decode_file(paths.prompt_report.read_bytes(), Selection, "selection.json")
    assert (selection.overlap.questions, selection.overlap.sharing) == (1, 1)  # type: ignore[union-attr]
    assert selection.overlap.examples[0].fraction == 0.6667  # type: ignore[union-attr]  # 2 of 3
    assert b"origin" not in paths.prompt_report.read_bytes()


def test_a_study_made_before_words_were_counted_reads_as_it_was() -> None:
    earlier = b'{\n "schema": "ahalab.selection/1",\n "plan_digest": "x",\n "available": {},\n'
    earlier += b' "drawn": {},\n "dropped": []\n}\n'
    assert decode_file(earlier, Selection, "selection.json").plan_digest == "x"


def test_a_plan_may_refuse_shared_words(plan: Plan, paths: StudyPaths, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        made(sharing(plan, tmp_path, max_overlap_fraction=0.5), paths)
    assert str(caught.value).startswith(
        "task.max_overlap_fraction: expected at most 0.5 of 1 evaluation questions to share 13 "
        "words in a row with a training question, found 1, such as 'a farmer sells two dozen"
    )
    assert not paths.prompt_report.exists()
    apart = folder_of(tmp_path, train=numbered("Train", 12), eval=numbered("Test", 9))
    strict = replace(plan.task, name="jsonl", max_overlap_fraction=0.0, **apart)
    made(replace(plan, task=strict), paths)
