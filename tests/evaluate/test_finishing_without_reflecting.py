"""`ahalab reflect --causal` on real models: cut, finished, killed, resumed, refused."""

from __future__ import annotations

import json
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from waiting_model import make

from ahalab.evaluate.backends import Opening
from ahalab.records.answer import Answer
from ahalab.records.base import decode_file, encode_pretty
from ahalab.records.reflection import Continuation, Reflection, ReflectionProtocol
from ahalab.scoring.reflection import first_marker
from ahalab.store.layout import StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.models import organism_folder
from ahalab.store.reading import journal_path, read_rows
from ahalab.verify.study import verify_study
from lab import PLAN, SAMPLED, Answerer, Trained, WarmLab, batches_in, plan_of

pytestmark = pytest.mark.train
CAP = 64
# The base alone is evaluated: no adapter is needed, and no training.
GREEDY = PLAN.replace("max_new_tokens: 40", f"max_new_tokens: {CAP}").replace(
    "replay: true", "replay: false"
)
WARM = (
    SAMPLED.replace("max_new_tokens: 40", f"max_new_tokens: {CAP}")
    .replace("temperature: 0.8", "temperature: 1.2")
    .replace("eval_prompts: 12", "eval_prompts: 40")
)


def evaluated(warm: WarmLab, folder: Path, text: str) -> Trained:
    """Return a study of which the base alone has answered."""
    folder.mkdir(parents=True, exist_ok=True)
    plan_file, plan = folder / "study.yaml", plan_of(text)
    plan_file.write_text(text, "utf-8")
    paths = StudyPaths(folder / "results" / plan.name)
    warm.run("evaluate", plan_file, "--out", folder / "results", "--templates", "--limit", 2)
    shutil.rmtree(paths.root / "templates")
    (paths.root / "analysis/templates.json").unlink()
    warm.run("evaluate", paths.root, "--cell", "base")
    return Trained(plan, plan_file, paths)


def copied(study: Trained, folder: Path) -> StudyPaths:
    """Return a copy that a test may change, at the same place within its results folder."""
    return StudyPaths(Path(shutil.copytree(study.paths.root, folder / "results" / study.plan.name)))


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return make(tmp_path_factory.mktemp("model") / "waiting")


@pytest.fixture(scope="module")
def greedy(warm: WarmLab, waiting: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A greedy study of the model that reflects. No test may write to it."""
    text = GREEDY.replace("id: organism", f"id: {waiting}")
    return evaluated(warm, tmp_path_factory.mktemp("greedy"), text)


@pytest.fixture(scope="module")
def sampled(warm: WarmLab, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A sampled study of the organism, which reflects now and then; two answers a question."""
    return evaluated(warm, tmp_path_factory.mktemp("sampled"), WARM)


@pytest.fixture(scope="module")
def finished(warm: WarmLab, sampled: Trained, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The sampled study, its causal check made without a kill. No test may write to it."""
    paths = copied(sampled, tmp_path_factory.mktemp("finished"))
    warm.run("reflect", paths.root, "--causal")
    return Trained(sampled.plan, sampled.plan_file, paths)


def answers_of(paths: StudyPaths) -> dict[tuple[str, int], Answer]:
    rows = [row for _, row in read_rows(paths.base_answers().answers, Answer)]
    return {(row.prompt_id, row.sample): row for row in rows}


def rows_of(paths: StudyPaths) -> list[Continuation]:
    return [row for _, row in read_rows(paths.continuations("base").answers, Continuation)]


def found_in(paths: StudyPaths) -> Reflection:
    return decode_file(paths.reflection.read_bytes(), Reflection, str(paths.reflection))


def failures(paths: StudyPaths) -> list[tuple[str, str]]:
    checks = verify_study(paths.root).checks
    return [(c.name, f"{c.failures[0].file}: {c.failures[0].expected}") for c in checks if c.failed]


def test_greedy_answers_continued_freely_are_the_same_to_the_byte(
    greedy: Trained, tmp_path: Path, warm: WarmLab
) -> None:
    paths = copied(greedy, tmp_path)
    said = warm.run("reflect", paths.root, "--causal")
    assert "answers came out the same to the token: the floor of this check is 0" in said
    answers, rows = answers_of(paths), rows_of(paths)
    assert len(rows) >= 8
    assert [(r.prompt_id, r.sample) for r in rows] == [
        key for key, row in answers.items() if first_marker(row.completion)
    ]
    for row in rows:
        answer, at = answers[row.prompt_id, row.sample], row.turns[0].at
        assert (row.kept.completion, row.kept.finish) == (answer.completion, answer.finish)
        assert row.without.completion_ids[:at] == (answer.completion_ids or ())[:at]
        assert row.without.completion_ids[at] not in row.turns[0].forbidden
        assert (first_marker(row.without.completion) is not None) == row.reflects
        assert len(row.without.completion_ids) <= CAP
    assert failures(paths) == []
    (side,) = found_in(paths).causal
    assert (side.marked, side.kept_same, side.kept_strict) == (len(rows), len(rows), 0)
    assert found_in(paths).arms == ()


def test_answers_cut_by_the_limit_keep_their_budget(
    warm: WarmLab, waiting: Path, tmp_path: Path
) -> None:
    text = GREEDY.replace("id: organism", f"id: {waiting}")
    study = evaluated(warm, tmp_path, text.replace(f"max_new_tokens: {CAP}", "max_new_tokens: 14"))
    warm.run("reflect", study.paths.root, "--causal")
    answers, rows = answers_of(study.paths), rows_of(study.paths)
    assert rows
    assert all(answers[row.prompt_id, row.sample].finish == "length" for row in rows)
    for row in rows:
        assert {row.kept.finish, row.without.finish} <= {"length", "eos"}
        assert len(row.kept.completion_ids) == 14
        assert len(row.without.completion_ids) <= 14
    assert any(row.without.finish == "length" for row in rows)
    assert failures(study.paths) == []
    (side,) = found_in(study.paths).causal
    assert side.truncated_with == side.marked - side.still


def test_killed_at_every_commit_and_resumed_it_leaves_the_same_bytes(
    sampled: Trained, finished: Trained, tmp_path: Path, warm: WarmLab
) -> None:
    paths = copied(sampled, tmp_path)
    target = paths.continuations("base")
    journal = journal_path(target.answers)
    whole = batches_in(journal_path(finished.paths.continuations("base").answers))
    assert whole >= 2

    def committed(count: int) -> bool:
        return batches_in(journal) >= count

    assert warm.start("reflect", paths.root, "--causal").kill_when(target.protocol.exists) == -9
    for count in range(1, whole):
        command = warm.start("reflect", paths.root, "--causal")
        assert command.kill_when(partial(committed, count)) == -signal.SIGKILL
    warm.run("reflect", paths.root, "--causal")
    for name in ("continuations.jsonl", "continuations.protocol.json"):
        ours, theirs = (p.root / "reflection/base" / name for p in (paths, finished.paths))
        assert ours.read_bytes() == theirs.read_bytes()
    assert paths.reflection.read_bytes() == finished.paths.reflection.read_bytes()
    assert failures(paths) == []


def test_of_several_answers_to_a_question_those_with_a_marker_are_cut_and_it_counts_once(
    finished: Trained,
) -> None:
    rows, (side,) = rows_of(finished.paths), found_in(finished.paths).causal
    assert {row.sample for row in rows} == {0, 1}
    assert side.n == 80
    strict = side.effects[0]
    usable = [row for row in rows if not row.reflects]
    assert strict.pairs == len(usable)
    assert strict.questions == len({row.prompt_id for row in usable})
    assert failures(finished.paths) == []


def test_again_it_changes_nothing_and_prints_what_it_wrote(
    finished: Trained, warm: WarmLab
) -> None:
    root = finished.paths.root
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}
    said = warm.run("reflect", root, "--causal", "--format", "json", "--quiet")
    assert json.loads(said.splitlines()[0]) == json.loads(finished.paths.reflection.read_bytes())
    told = warm.run("reflect", root, "--format", "json")
    assert json.loads(told) == json.loads(finished.paths.reflection.read_bytes())
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()} == before


def test_where_no_answer_reflects_that_is_the_result(warm: WarmLab, tmp_path: Path) -> None:
    study = evaluated(warm, tmp_path, GREEDY)
    said = warm.run("reflect", study.paths.root, "--causal")
    assert "No answer of the base reflects: none of 12 has a marker, so nothing was cut." in said
    assert rows_of(study.paths) == []
    assert failures(study.paths) == []
    (side,) = found_in(study.paths).causal
    assert {effect.verdict for effect in side.effects} == {"no answer reflected"}


def test_without_the_model_nothing_is_written(sampled: Trained, warm: WarmLab) -> None:
    before = sorted(sampled.paths.root.rglob("*"))
    said = warm.run("reflect", sampled.paths.root)
    assert "What a marker causes takes the model: ahalab reflect STUDY --causal" in said
    assert "is an association, not a cause" in said
    assert sorted(sampled.paths.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--cell", "base"), 2, "--cell: expected --causal beside it"),
        (
            ("--causal", "--cell", "floor"),
            2,
            "expected base or arms/ARM/seed-S, found floor",
        ),
        (("--causal", "--cell", "arms/random/seed-1"), 4, "expected whole answers of arms/random"),
        (("--causal", "--cell", "arms/none/seed-1"), 2, "--cell: expected one of base"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    sampled: Trained, warm: WarmLab, arguments: tuple[str, ...], code: int, told: str
) -> None:
    said = warm.run("reflect", sampled.paths.root, *arguments, code=code)
    assert told in said
    assert len(said.strip().splitlines()) == 1


def test_continuations_that_were_begun_otherwise_are_refused(
    finished: Trained, tmp_path: Path, warm: WarmLab
) -> None:
    paths = copied(finished, tmp_path)
    place = paths.continuations("base").protocol
    protocol = decode_file(place.read_bytes(), ReflectionProtocol, str(place))
    place.write_bytes(encode_pretty(replace(protocol, markers="0")))
    said = warm.run("reflect", paths.root, "--causal", code=2)
    assert "expected continuations of the answers that lie there, by markers 1" in said
    other = replace(protocol.answering, device="cuda")
    place.write_bytes(encode_pretty(replace(protocol, answering=other)))
    assert "'cuda' there" in warm.run("reflect", paths.root, "--causal", code=2)
    place.unlink()
    journal = journal_path(paths.continuations("base").answers)
    assert batches_in(journal)
    said = warm.run("reflect", paths.root, "--causal", code=2)
    assert "expected the protocol of the continuations that lie beside it" in said


def test_a_second_process_is_refused(sampled: Trained, tmp_path: Path, warm: WarmLab) -> None:
    paths = copied(sampled, tmp_path)
    with WriterLock(paths.work / "locks" / "reflection-base-continuations.lock"):
        assert "expected no other writer" in warm.run("reflect", paths.root, "--causal", code=2)


def test_a_row_of_its_own_limit_and_a_forbidden_beginning_leaves_the_others_alone() -> None:
    plan = plan_of(GREEDY)
    answerer = Answerer(plan, organism_folder())
    prompts = [(89, 87), (76, 132, 51), (51, 44)]
    free = [Opening(ids, (), (), n) for n, ids in enumerate(prompts)]
    whole = answerer.backend.finish(free, 0)
    first = (whole[1].ids or ())[0]
    changed = [free[0], Opening(prompts[1], (), (first,), 1), free[2]]
    again = answerer.backend.finish(changed, 0)
    assert (again[0], again[2]) == (whole[0], whole[2])
    assert (again[1].ids or ())[0] != first
    begun = (whole[0].ids or ())[:3]
    (done,) = answerer.backend.finish([Opening(prompts[0], begun, (), 0)], 0)
    assert done == whole[0]


def test_a_row_at_its_limit_is_cut_there_though_it_stays_in_the_batch() -> None:
    answerer = Answerer(plan_of(GREEDY), organism_folder())
    prompt = (51, 44)
    # One row in ten has ended: too few to be taken out of the batch.
    openings = [Opening(prompt, (20,) * (CAP - 2 if n == 0 else 0), (), n) for n in range(10)]
    done = answerer.backend.finish(openings, 0)
    assert len(done[0].ids or ()) == CAP
    assert done[0].finish == "length"
    assert len({completion.ids for completion in done[1:]}) == 1
