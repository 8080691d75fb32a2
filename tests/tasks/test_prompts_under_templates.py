"""The same questions under every template, with a tokenizer made up here: no torch is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import ahalab.tasks.templates as tasks
from ahalab.errors import InputError
from ahalab.plan.load import parse_plan
from ahalab.records.base import digest
from ahalab.records.plan import Plan, TaskSpec
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Split
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.store.rows import RowFile, write_rows
from ahalab.tasks.chat_template import TemplateRefusedError
from ahalab.tasks.render import messages
from ahalab.tasks.templates import prepare_templates, read_template_set
from lab import PLAN

VALIDATED = PLAN + "validation: {prompts: 6}\n"
LISTED = PLAN.replace(
    "replay: true", 'templates: {a: {template: "{question}!", system: "Be brief."}}'
)


def under(
    tokenizer: object, task: TaskSpec, questions: list[str], arguments: object = None
) -> list[tuple[int, ...]]:
    asked = ["|".join(m["content"] for m in messages(task, q)) for q in questions]
    return [tuple(text.encode()) for text in asked]


def no_system(
    tokenizer: object, task: TaskSpec, questions: list[str], arguments: object = None
) -> list[tuple[int, ...]]:
    if task.system is not None:
        raise TemplateRefusedError("System role\nnot supported")
    return under(tokenizer, task, questions)


@pytest.fixture(autouse=True)
def _rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "render", under)


def study(root: Path, text: str = PLAN, offered: int = 12) -> tuple[Plan, StudyPaths]:
    """Write training prompts, and validation prompts where the plan asks for them."""
    plan, paths = parse_plan(text, "study.yaml"), StudyPaths(root / "results" / "tiny")
    splits: list[Split] = ["train", "validation"] if plan.validation else ["train"]
    for split in splits:
        count = offered if split == "train" else 6
        rows = [prompt(plan, split, n) for n in range(count)]
        file = RowFile(
            paths.prompts(split), "prompt/1", digest(plan), f"prompts/{split}", paths.broken
        )
        write_rows(file, rows)
    return plan, paths


def prompt(plan: Plan, split: Split, number: int) -> Prompt:
    question = f"{split} {number}?"
    (ids,) = under(None, plan.task, [question])
    return Prompt(
        prompt_id=f"{number:05d}-{split}", question=question, gold=str(number), source="here",
        split=split, prompt_ids=ids, prompt_tokens=len(ids),
    )  # fmt: skip


def test_every_template_asks_the_same_questions_and_its_prompts_hold_its_words(
    tmp_path: Path,
) -> None:
    plan, paths = study(tmp_path, LISTED)
    asked, prompts = prepare_templates(plan, paths, None, 5)
    assert [t.name for t in asked.templates] == ["plan", "a"]
    assert (asked.split, asked.questions, asked.available) == ("train", 5, 12)
    chosen = [row.prompt_id for row in prompts["plan"]]
    assert chosen == sorted(chosen)
    assert chosen != [f"{n:05d}-train" for n in range(5)]  # never the first ones
    assert [row.prompt_id for row in prompts["a"]] == chosen
    for row in prompts["a"]:
        assert bytes(row.prompt_ids).decode() == f"Be brief.|{row.question}!"
        assert row.prompt_tokens == len(row.prompt_ids)
    for name, rows in prompts.items():
        assert [row for _, row in read_rows(paths.template_prompts(name), Prompt)] == rows


def test_the_questions_are_those_of_the_validation_where_there_is_one(tmp_path: Path) -> None:
    asked, prompts = prepare_templates(*study(tmp_path, VALIDATED), None, None)
    assert (asked.split, asked.questions) == ("validation", 6)
    assert {row.split for rows in prompts.values() for row in rows} == {"validation"}


def test_a_hundred_questions_unless_more_are_asked_for(tmp_path: Path) -> None:
    for limit, expected in ((None, 100), (130, 130)):
        plan, paths = study(tmp_path / str(limit), offered=130)
        assert prepare_templates(plan, paths, None, limit)[0].questions == expected


def test_a_second_call_changes_nothing_and_follows_the_first_number(tmp_path: Path) -> None:
    plan, paths = study(tmp_path)
    first = prepare_templates(plan, paths, None, 5)
    before = {p: p.stat().st_mtime_ns for p in paths.root.rglob("*") if p.is_file()}
    assert prepare_templates(plan, paths, None, None) == first
    assert prepare_templates(plan, paths, None, 5) == first
    assert {p: p.stat().st_mtime_ns for p in paths.root.rglob("*") if p.is_file()} == before
    # A kill between the set and the last prompts leaves the set only.
    path = paths.template_prompts("steps")
    content = path.read_bytes()
    path.unlink()
    journal_path(path).unlink()
    prepare_templates(plan, paths, None, None)
    assert path.read_bytes() == content


def test_a_built_in_template_that_the_chat_template_refuses_is_left_out_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "render", no_system)
    plan, paths = study(tmp_path)
    asked, prompts = prepare_templates(plan, paths, None, 2)
    assert asked.left_out == ("system_question", "system_format")
    assert [t.name for t in asked.templates] == list(prompts)
    assert not set(asked.left_out) & set(prompts)
    assert read_template_set(paths) == asked


def refused(plan: Plan, paths: StudyPaths, limit: int | None = None) -> str:
    with pytest.raises(InputError) as caught:
        prepare_templates(plan, paths, None, limit)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_template_of_the_plan_that_is_refused_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "render", no_system)
    said = refused(*study(tmp_path, LISTED))
    assert "template a: expected messages that the model's chat template takes" in said
    assert "found: System role not supported. Drop its system message." in said


@pytest.mark.parametrize("limit", [0, -3, 13])
def test_more_questions_than_there_are_or_none_are_refused(tmp_path: Path, limit: int) -> None:
    said = refused(*study(tmp_path), limit)
    assert said.startswith("--limit: expected 1 to 12, ")
    assert f"found {limit}." in said


def test_another_number_than_before_is_refused(tmp_path: Path) -> None:
    plan, paths = study(tmp_path)
    prepare_templates(plan, paths, None, 5)
    said = refused(plan, paths, 6)
    assert said.startswith("--limit: expected 5, ")
    assert "remove that folder to begin again" in said


def test_prompts_that_are_rendered_otherwise_now_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, paths = study(tmp_path)
    prepare_templates(plan, paths, None, 5)
    monkeypatch.setattr(tasks, "render", lambda *asked: [(*ids, 1) for ids in under(*asked)])
    said = refused(plan, paths)
    assert "plan/prompts.jsonl: expected the prompts as they are rendered now" in said


def test_a_folder_that_is_no_template_of_the_set_is_refused(tmp_path: Path) -> None:
    plan, paths = study(tmp_path)
    prepare_templates(plan, paths, None, 5)
    (paths.template_set.parent / "mine").mkdir()
    assert "found mine" in refused(plan, paths)


def test_a_set_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, paths = study(tmp_path)
    prepare_templates(plan, paths, None, 5)
    monkeypatch.setattr(tasks, "SET_VERSION", "2")
    assert "templates.json: expected the templates of this version" in refused(plan, paths)
