"""The first stage as a whole, with a tokenizer made up here, so that no torch is needed."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ahalab.tasks.prepare as prepare
from ahalab.errors import InputError, LockedError, PlanError
from ahalab.plan.resolve import resolve
from ahalab.records.base import decode_file, digest
from ahalab.records.plan import ArmSpec, EvaluationSpec, ModelSpec, Plan, TaskSpec
from ahalab.records.prompt import Selection
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.tasks.prepare import prepare_prompts, prompts_ready, read_prompts
from ahalab.tasks.render import messages


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
    def render(tokenizer: object, task: TaskSpec, question: str) -> tuple[int, ...]:
        return tuple("|".join(m["content"] for m in messages(task, question)).encode())

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
