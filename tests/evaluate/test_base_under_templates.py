"""`ahalab evaluate --templates` on the organism: killed, resumed, repeated, refused."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, digest
from ahalab.records.prompt import Prompt
from ahalab.records.templates import TemplateComparison
from ahalab.store.layout import StudyPaths
from ahalab.store.models import organism_folder
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.generation import batches
from ahalab.tasks.prepare import read_prompts
from ahalab.verify.study import verify_study
from lab import SAMPLED, Answerer, Trained, WarmLab, batches_in, plan_of

pytestmark = pytest.mark.train
# A sampled plan, so that greedy answers are seen to be the templates' own doing.
LISTED = SAMPLED.replace(
    "seed: 5",
    'seed: 5, templates: {bare: {template: "{question}", system: Count.}, '
    'steps: {template: "{question} Think."}}',
)
NAMES = ("plan", "bare", "steps")


def files(paths: StudyPaths) -> dict[str, bytes]:
    """Return what must repeat to the byte: journals tell of attempts."""
    return {
        str(path.relative_to(paths.root)): path.read_bytes()
        for folder in ("templates", "analysis")
        for path in (paths.root / folder).rglob("*")
        if path.is_file() and "journal" not in path.name
    }


@pytest.fixture(scope="session")
def tried(warm: WarmLab, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A study of which the base alone was tried, uninterrupted. No test may write to it."""
    folder = tmp_path_factory.mktemp("tried")
    plan_file = folder / "study.yaml"
    plan_file.write_text(LISTED, "utf-8")
    said = warm.run("evaluate", plan_file, "--out", folder / "results", "--templates", "--limit", 9)
    assert "9 of 12 training questions, drawn by seed and answered greedily" in said
    assert "The plan's template" in said or "does not move the base" in said
    return Trained(plan_of(LISTED), plan_file, StudyPaths(folder / "results" / "sampled"))


@pytest.fixture
def done(tried: Trained, tmp_path: Path) -> StudyPaths:
    """A copy that a test may change."""
    return StudyPaths(Path(shutil.copytree(tried.paths.root, tmp_path / "results" / "sampled")))


def answers_of(paths: StudyPaths, name: str) -> list[Answer]:
    return [row for _, row in read_rows(paths.template_answers(name).answers, Answer)]


def test_only_the_prompts_differ_between_templates_and_each_question_has_one_greedy_answer(
    tried: Trained,
) -> None:
    paths, protocols = tried.paths, []
    offered = {p.prompt_id for p in read_prompts(paths, "train")}
    for name in NAMES:
        path = paths.template_answers(name).protocol
        protocols.append(decode_file(path.read_bytes(), Protocol, str(path)))
        rows = answers_of(paths, name)
        assert len(rows) == len({row.prompt_id for row in rows}) == 9
        assert {row.prompt_id for row in rows} <= offered
        assert {(row.side, row.sample, row.protocol) for row in rows} == {
            ("base", 0, digest(protocols[-1]))
        }
    assert len({p.prompts_digest for p in protocols}) == 3
    plain = [{**json.loads(json.dumps(p.generation)), "seed": p.seed} for p in protocols]
    assert plain[0] == plain[1] == plain[2]
    first = protocols[0]
    assert (first.generation["do_sample"], first.samples, first.limit) == (False, 1, 9)
    assert (first.batch_size, first.plan_digest) == (4, digest(tried.plan))


def test_the_answers_are_what_the_evaluations_own_generator_says(tried: Trained) -> None:
    path = tried.paths.template_prompts("steps")
    prompts = [row for _, row in read_rows(path, Prompt)]
    assert all(row.question.endswith("?") for row in prompts)
    greedy = plan_of(LISTED.replace("temperature: 0.8, samples: 2", "temperature: 0"))
    answerer = Answerer(greedy, organism_folder())
    expected = [
        completion.ids
        for batch in batches(prompts, 1, 4)
        for completion in answerer.generate([p.prompt_ids for p, _ in batch], 0)
    ]
    assert [row.completion_ids for row in answers_of(tried.paths, "steps")] == expected


def test_nothing_in_it_is_wrong_by_the_verifier(tried: Trained) -> None:
    verification = verify_study(tried.paths.root)
    assert [c.name for c in verification.checks if c.status == "failed"] == []


def test_again_it_changes_nothing_and_prints_the_same(done: StudyPaths, warm: WarmLab) -> None:
    before = {p: p.stat().st_mtime_ns for p in done.root.rglob("*") if p.is_file()}
    said = warm.run("evaluate", done.root, "--templates", "--format", "json", "--quiet")
    found = json.loads(said.splitlines()[0])
    path = done.template_comparison
    record = decode_file(path.read_bytes(), TemplateComparison, str(path))
    assert found == json.loads(path.read_bytes())
    assert [t.name for t in record.templates] == list(NAMES)
    assert {p: p.stat().st_mtime_ns for p in done.root.rglob("*") if p.is_file()} == before


def test_killed_anywhere_and_resumed_it_leaves_the_same_bytes(
    fresh: Callable[[str], Trained], tried: Trained, warm: WarmLab
) -> None:
    study = fresh(LISTED)
    ask = ("evaluate", study.plan_file, "--out", study.paths.root.parent, "--templates")
    target = study.paths.template_answers

    def committed(name: str, count: int) -> bool:
        return batches_in(journal_path(target(name).answers)) >= count

    moments: list[Callable[[], bool]] = [
        study.paths.template_set.exists,
        *(partial(committed, *at) for at in (("plan", 1), ("plan", 2), ("bare", 1), ("steps", 2))),
    ]
    for number, moment in enumerate(moments):
        limit = ("--limit", 9) if number == 0 else ()  # later calls follow what was begun
        assert warm.start(*ask, *limit).kill_when(moment) == -signal.SIGKILL
    warm.run(*ask)
    assert files(study.paths) == files(tried.paths)


def test_what_does_not_fit_what_was_begun_is_refused_in_one_line(
    done: StudyPaths, warm: WarmLab
) -> None:
    for wrong, said in (
        (("--batch-size", 2), "--batch-size: expected 4"),
        (("--limit", 3), "--limit: expected 9"),
        (("--cell", "base"), "--templates: expected no --cell beside it"),
    ):
        text = warm.run("evaluate", done.root, "--templates", *wrong, code=2)
        assert said in text
        assert len(text.strip().splitlines()) == 1
    text = warm.run("evaluate", done.root, "--format", "json", code=2)
    assert "--format: expected --templates with json" in text
