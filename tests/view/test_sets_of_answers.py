from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from every_set import begin_again, validating, validation_of
from msgspec.structs import replace
from viewer_server import Running, wait_for_index

from ahalab.analyze.templates import compare_templates
from ahalab.errors import InputError, ProtocolError
from ahalab.plan.cells import BASE, answer_cells, find_cell, training_cells
from ahalab.records.answer import Answer
from ahalab.records.base import decode_file, encode_pretty
from ahalab.records.reflection import Continuation, ReflectionProtocol
from ahalab.scoring.reflection import first_marker
from ahalab.statistics.validation import validation_points
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.tasks.places import answer_paths
from ahalab.view.answers import search_answers, whole_answer
from ahalab.view.compare import Beside, PairQuery, Pairs, pair, pairs
from ahalab.view.curves import Curves, curves
from ahalab.view.database import index_path, open_for_reading
from ahalab.view.index import Indexer
from ahalab.view.runs import study_state
from ahalab.view.sets import AnswerSet, answer_files, find_set
from ahalab.view.sources import Study, find_studies
from foreign_replay import put_rows, read_protocol

VALIDATION = "arms/correctness/seed-1/validation"


@contextmanager
def indexed(root: Path) -> Iterator[tuple[Study, sqlite3.Connection]]:
    (study,), _ = find_studies([root])
    Indexer(study).sync()
    with closing(open_for_reading(index_path(root))) as database:
        yield study, database


@pytest.fixture
def every(whole: Path, cache: Path) -> Iterator[tuple[Study, sqlite3.Connection]]:
    with indexed(whole) as found:
        yield found


@pytest.fixture
def copy(whole: Path, cache: Path, tmp_path: Path) -> Path:
    """A study with every kind of answers, to be changed."""
    return shutil.copytree(whole, tmp_path / "results" / "rich")


def beside(study: Study, before: str, after: str) -> Beside:
    names = (find_set(study.plan, study.paths, name) for name in (before, after))
    return Beside(*names)


def compared(
    study: Study, database: sqlite3.Connection, before: str, after: str, query: str = ""
) -> Pairs:
    asked = PairQuery("strict", "all", query, 1)
    return pairs(study, database, beside(study, before, after), asked)


def rows_of(path: Path) -> list[Answer]:
    return [row for _, row in read_rows(path, Answer)]


def texts(database: sqlite3.Connection, query: str, of: str = "") -> list[str]:
    """Return the texts that a filter finds, of every page, on one line and in order."""
    first = search_answers(database, query, "place", 1, of)
    pages = [search_answers(database, query, "place", n, of) for n in range(1, first.pages + 1)]
    found = [one.text for page in pages for one in page.found]
    assert len(found) == first.total
    return sorted(found)


def lines(rows: Sequence[Any]) -> list[str]:
    return sorted(" ".join(row.completion.split()) for row in rows)


def test_every_file_of_answers_is_a_set_with_its_rows(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    kinds = {}
    for file in answer_files(study.plan, study.paths):
        rows = file.paths.answers.read_bytes().count(b"\n")
        assert search_answers(database, "", "place", 1, file.name).total == rows > 0, file.name
        kinds[file.kind] = kinds.get(file.kind, 0) + rows
    # 8 questions x 2 samples: base, floor, 6 adapters; 7 replays. 4 questions x 3 templates.
    # 5 questions x 2 checkpoints x 6 runs.
    marked = kinds.pop("without")
    assert kinds.pop("kept") == marked > 0
    assert kinds == {
        "evaluation": 7 * 16, "floor": 16, "replay": 7 * 16, "template": 12, "validation": 60,
    }  # fmt: skip
    total = search_answers(database, "", "place", 1).total
    assert total == sum(kinds.values()) + 2 * marked


def test_answers_are_found_by_what_their_rows_say(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    rows = {
        cell.name: validation_of(study.paths, str(cell.arm), int(cell.seed or 0))
        for cell in training_cells(study.plan)
    }
    all_rows = [row for found in rows.values() for row in found]
    assert texts(database, "kind=validation step=4 outcome=correct") == lines(
        [row for row in all_rows if row.step == 4 and row.strict == "correct"]
    )
    assert texts(database, "finish=length tokens>=48", VALIDATION) == lines(
        [r for r in rows["arms/correctness/seed-1"] if r.finish == "length"]
    )
    assert texts(database, "", f"{VALIDATION}/step-2") == lines(
        [row for row in rows["arms/correctness/seed-1"] if row.step == 2]
    )
    replayed = rows_of(study.paths.answers("mine", 2, "replay/").answers)
    assert texts(database, "kind=replay arm=mine seed=2 parts") == lines(
        [row for row in replayed if "parts" in row.completion]
    )
    still = [
        row
        for cell in (BASE, *training_cells(study.plan))
        for _, row in read_rows(study.paths.continuations(cell.name).answers, Continuation)
        if row.reflects
    ]
    assert texts(database, "still=yes") == lines([row.without for row in still])


def test_an_answer_of_a_validation_is_shown_with_its_question(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    found = search_answers(database, "", "place", 1, f"{VALIDATION}/step-4").found[0]
    one = whole_answer(study, database, found.id)
    (row,) = [
        row
        for row in validation_of(study.paths, "correctness", 1)
        if row.step == 4 and row.prompt_id == one.prompt
    ]
    assert one.set == f"{VALIDATION}/step-4"
    assert one.answer.taken.completion.text == row.completion
    assert (one.answer.strict, one.answer.rule) == (row.strict, row.rule)
    assert one.question is not None
    assert one.gold is not None


@pytest.mark.parametrize(
    "name",
    ["", "nowhere", "../base", "arms/correctness/seed-9", VALIDATION, f"{VALIDATION}/step-",
     f"{VALIDATION}/step-x", f"{VALIDATION}/step-9{'9' * 20}", "base/step-2", "templates/other",
     "reflection/floor/kept", "replay/floor"],
)  # fmt: skip
def test_what_names_no_set_is_refused(whole: Path, name: str) -> None:
    (study,), _ = find_studies([whole])
    with pytest.raises(InputError, match="expected a set of answers of the study, found"):
        find_set(study.plan, study.paths, name)


def test_an_arm_may_be_called_like_a_step(whole: Path) -> None:
    (study,), _ = find_studies([whole])
    arms = (replace(study.plan.arms[0], name="step-1"), *study.plan.arms[1:])
    plan = replace(study.plan, arms=arms)
    for name in ("arms/step-1/seed-1", "arms/step-1/seed-1/validation/step-3"):
        assert find_set(plan, study.paths, name).name == name


def test_a_template_set_that_cannot_be_read_leaves_the_rest(copy: Path) -> None:
    StudyPaths(copy).template_set.write_text("{")
    with indexed(copy) as (study, database):
        assert study_state(study, database).faults == ()
        assert texts(database, "kind=template") == []
        assert len(texts(database, "kind=validation")) == 60


def test_a_template_by_the_name_of_a_path_leads_nowhere(copy: Path, tmp_path: Path) -> None:
    path = StudyPaths(copy).template_set
    shutil.copytree(path.parent / "short", tmp_path / "elsewhere")
    path.write_bytes(path.read_bytes().replace(b'"short"', b'"../../../elsewhere"'))
    (study,), _ = find_studies([copy])
    names = [file.name for file in answer_files(study.plan, study.paths)]
    assert [name for name in names if "templates" in name] == []
    with pytest.raises(InputError, match=r"^[^:]*templates.json: expected names of 1 to 32 char"):
        compare_templates(study.plan, study.paths)


# Validation while a run trains


def checkpoints(found: Curves, run: str) -> list[tuple[int, float | None, float | None]]:
    curve = next(one for one in found.checkpoints if one.run == run)
    values = [curve.values.get(f"validation:{metric}", ()) for metric in ("strict", "lenient")]
    return list(zip(curve.steps, *values, strict=True))


def test_validation_stands_beside_the_reward_at_every_checkpoint(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    found = curves(study, database)
    told = [(figure.title, figure.unit, figure.heading) for figure in found.figures[:3]]
    assert told == [
        ("Reward", "", "reward"),
        ("Validation accuracy, strict", "%", "reward"),
        ("Validation accuracy, lenient", "%", "reward"),
    ]
    for cell in training_cells(study.plan):
        rows = validation_of(study.paths, str(cell.arm), int(cell.seed or 0))
        assert checkpoints(found, cell.name) == [
            (point.step, point.strict_fraction, point.lenient_fraction)
            for point in validation_points(rows)
        ]


def test_checkpoints_come_as_they_are_committed_and_go_when_they_are_taken_back(
    copy: Path,
) -> None:
    paths, run = StudyPaths(copy), "arms/correctness/seed-1"
    points = validation_points(validation_of(paths, "correctness", 1))
    first, second = begin_again(paths, "correctness", 1)

    def seen() -> list[int]:
        with indexed(copy) as (study, database):
            state = {row.name: row for row in study_state(study, database).answers}.get(VALIDATION)
            found = checkpoints(curves(study, database), run)
            if state is not None:
                assert state.strict_fraction == (found[-1][1] if found else None)
                assert state.answers == 5 * len(found)
                assert len(texts(database, "", VALIDATION)) == 5 * len(found)
            assert [value[1:] for value in found] == [
                (p.strict_fraction, p.lenient_fraction) for p in points[: len(found)]
            ]
            return [step for step, _, _ in found]

    with validating(paths, "correctness", 1) as writer:
        writer.append(first)
    assert seen() == [2]
    with validating(paths, "correctness", 1) as writer:
        writer.append(second)
    assert seen() == [2, 4]
    with validating(paths, "correctness", 1) as writer:
        writer.cut(1)  # as a resume from the checkpoint at step 2
    assert seen() == [2]
    with validating(paths, "correctness", 1) as writer:
        writer.append(second)
    assert seen() == [2, 4]


def test_files_are_listed_with_what_they_hold_and_will(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    found = {row.name: row for row in study_state(study, database).answers}
    assert list(found)[:8] == [cell.name for cell in answer_cells(study.plan)]
    one = found[VALIDATION]
    assert (one.kind, one.split, one.steps) == ("validation", "validation", (2, 4))
    assert (one.answers, one.answers_planned, one.status) == (10, 10, "done")
    last = validation_points(validation_of(study.paths, "correctness", 1))[-1]
    assert (one.strict_fraction, one.lenient_fraction) == (
        last.strict_fraction,
        last.lenient_fraction,
    )
    template = found["templates/short"]
    assert (template.answers, template.answers_planned) == (4, 4)
    assert found["replay/base"].answers_planned == 16
    assert found["reflection/base/without"].answers_planned is None


# Any two sets side by side


def test_a_replay_is_told_equal_to_the_byte_or_not(copy: Path) -> None:
    paths = StudyPaths(copy)
    target = paths.base_answers("replay/")
    rows = rows_of(target.answers)
    ids = rows[3].completion_ids
    assert ids is not None
    rows[3] = replace(rows[3], completion_ids=(*ids[:-1], ids[-1] + 1))  # the text stays
    rows[5] = replace(rows[5], completion=rows[5].completion + " And so on.")
    (study,), _ = find_studies([copy])
    put_rows(study.plan, paths, target, rows, read_protocol(target))
    with indexed(copy) as (study, database):
        found = compared(study, database, "base", "replay/base")
        assert (found.counts["all"], found.counts["same"], found.counts["not the same"]) == (
            16, 14, 2,
        )  # fmt: skip
        assert found.note == "Generated again elsewhere: the protocols differ in versions.torch."
        sets = beside(study, "base", "replay/base")
        asked = PairQuery("strict", "not the same", "", 1)
        others = pairs(study, database, sets, asked).pairs
        both = [pair(study, database, sets, one.id) for one in others]
    assert [one.same for one in both] == [False, False]
    same_text = [
        one.before.taken.completion.text == one.after.taken.completion.text for one in both
    ]
    assert sorted(same_text) == [False, True]


def test_a_replay_under_another_protocol_is_refused(copy: Path) -> None:
    path = StudyPaths(copy).base_answers("replay/").protocol
    path.write_bytes(path.read_bytes().replace(b'"dtype": "float32"', b'"dtype": "float16"'))
    with (
        indexed(copy) as (study, database),
        pytest.raises(ProtocolError, match=r"replay/base: .* of base, found another dtype"),
    ):
        compared(study, database, "base", "replay/base")


def test_the_base_is_compared_with_its_floor(every: tuple[Study, sqlite3.Connection]) -> None:
    study, database = every
    found = compared(study, database, "base", "floor")
    assert (found.counts["all"], found.counts["same"]) == (16, 16)  # invented so
    assert found.note == (
        "The noise floor: the base again, in other batches (differing in batch_size, seed)."
    )


def test_two_templates_are_compared_question_by_question(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    found = compared(study, database, "templates/plan", "templates/polite")
    before, after = (
        {
            row.prompt_id: row.strict == "correct"
            for row in rows_of(study.paths.template_answers(name).answers)
        }
        for name in ("plan", "polite")
    )
    assert found.counts["all"] == 4
    assert found.counts["gained"] == sum(after[q] and not before[q] for q in before)
    assert found.counts["lost"] == sum(before[q] and not after[q] for q in before)
    assert found.note == (
        "The base under two prompt templates: plan asks '{question}'; polite asks "
        "'{question} Please.', system 'Be brief.'."
    )


def test_a_template_is_read_beside_an_adapter_at_a_checkpoint_but_not_counted(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    found = compared(study, database, "templates/short", f"{VALIDATION}/step-4")
    assert found.counts["all"] == 4  # of the validation's five questions
    assert found.note.startswith("To read, not to count: ")


def test_answers_to_other_questions_are_refused(every: tuple[Study, sqlite3.Connection]) -> None:
    study, database = every
    with pytest.raises(ProtocolError) as raised:
        compared(study, database, "templates/short", "arms/correctness/seed-2")
    assert str(raised.value) == (
        "arms/correctness/seed-2: expected answers to the validation questions, as "
        "templates/short, found answers to the eval questions."
    )


def test_two_checkpoints_are_compared(every: tuple[Study, sqlite3.Connection]) -> None:
    study, database = every
    found = compared(study, database, f"{VALIDATION}/step-2", f"{VALIDATION}/step-4")
    right: dict[int, set[str]] = {2: set(), 4: set()}
    for row in validation_of(study.paths, "correctness", 1):
        if row.strict == "correct":
            right[row.step].add(row.prompt_id)
    assert (found.counts["gained"], found.counts["lost"], found.note) == (
        len(right[4] - right[2]),
        len(right[2] - right[4]),
        "",
    )


def test_an_answer_is_read_beside_what_it_is_without_its_marker(
    every: tuple[Study, sqlite3.Connection],
) -> None:
    study, database = every
    name = "arms/mine/seed-1"
    cell = find_cell(study.plan, name)
    rows = {
        (row.prompt_id, row.sample): row
        for _, row in read_rows(study.paths.continuations(name).answers, Continuation)
    }
    answers = {(r.prompt_id, r.sample): r for r in rows_of(answer_paths(study.paths, cell).answers)}
    sets = beside(study, name, f"reflection/{name}/without")
    found = pairs(study, database, sets, PairQuery("strict", "all", "", 1))
    assert found.counts["all"] == len(rows) > 1
    for one in found.pairs:
        seen = pair(study, database, sets, one.id)
        row, answer = rows[seen.prompt, seen.sample], answers[seen.prompt, seen.sample]
        marker = first_marker(answer.completion)
        assert marker is not None
        assert seen.before.taken.completion.text == answer.completion
        assert seen.before.marker == (marker.start, marker.end)
        assert seen.before.cuts == ()
        assert seen.after.taken.completion.text == row.without.completion
        assert seen.after.cuts == tuple(turn.marker for turn in row.turns)
        assert seen.after.still == row.reflects
        assert seen.after.strict == row.without.strict
    freely = beside(study, f"reflection/{name}/kept", f"reflection/{name}/without")
    assert pairs(study, database, freely, PairQuery("strict", "all", "", 1)).counts["all"] == len(
        rows
    )


def test_cut_answers_are_compared_with_nothing_but_what_they_were(
    every: tuple[Study, sqlite3.Connection], copy: Path
) -> None:
    study, database = every
    for other in ("floor", "replay/base", "arms/mine/seed-1", "reflection/arms/mine/seed-1/kept"):
        with pytest.raises(ProtocolError, match="expected the answers that were cut"):
            compared(study, database, other, "reflection/base/without")
    path = StudyPaths(copy).continuations("base").protocol
    made = decode_file(path.read_bytes(), ReflectionProtocol, str(path))
    path.write_bytes(encode_pretty(replace(made, answers="sha256:" + "0" * 64)))
    with (
        indexed(copy) as (study, database),
        pytest.raises(ProtocolError, match="found those of others, under another protocol"),
    ):
        compared(study, database, "base", "reflection/base/without")


# Over HTTP


def asked(running: Running, path: str) -> Any:
    study = wait_for_index(running)
    reply = running.ask(f"/api/study/{study}{path}")
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


@pytest.mark.parametrize(
    ("cell", "against"),
    [("base", "floor"), ("floor", "base"), ("arms/mine/seed-2", "base"),
     ("replay/arms/mine/seed-2", "arms/mine/seed-2"), ("templates/short", "templates/plan"),
     ("reflection/base/kept", "base"), (f"{VALIDATION}/step-4", f"{VALIDATION}/step-2"),
     (f"{VALIDATION}/step-2", f"{VALIDATION}/step-4")],
)  # fmt: skip
def test_a_set_is_beside_what_it_is_naturally_compared_with(
    served: Running, cell: str, against: str
) -> None:
    found = asked(served, f"/pairs?cell={cell}")
    assert (found["before"], found["after"]) == (against, cell)
    assert found["counts"]["all"] == found["total"] > 0


def test_answers_are_asked_for_by_set_filter_and_order(served: Running) -> None:
    found = asked(served, f"/answers?set={VALIDATION}&q={quote('step=4')}&sort=-tokens")
    tokens = [one["tokens"] for one in found["found"]]
    assert len(tokens) == found["total"] == 5
    assert tokens == sorted(tokens)
    assert {one["set"] for one in found["found"]} == {f"{VALIDATION}/step-4"}
    one = asked(served, f"/answer?id={found['found'][0]['id']}")
    assert one["set"] == f"{VALIDATION}/step-4"
    help_ = asked(served, "/filters")
    kinds = next(field for field in help_["answers"] if field["name"] == "kind")
    assert "validation" in kinds["choices"]


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/pairs?cell=nowhere", 400, "cell: expected a set of answers of the study, found 'nowh"),
        ("/pairs?against=..%2fbase", 400, "against: expected a set of answers of the study"),
        ("/pairs?cell=floor&against=templates/short", 409, "floor: expected answers to the"),
        ("/answers?sort=reward", 400, "sort: expected one of place, tokens, -tokens, found"),
        ("/answers?page=0", 400, "page: expected a number from 1 on, found 0."),
        ("/answers?q=kind%3Dall", 400, "filter:1: expected kind to be one of evaluation,"),
        ("/answer?id=999999", 400, "answer 999999: expected an answer of the study, found none."),
    ],
)
def test_what_cannot_be_answered_is_refused_on_one_line(
    served: Running, path: str, status: int, told: str
) -> None:
    study = wait_for_index(served)
    reply = served.ask(f"/api/study/{study}{path}")
    assert reply.status == status
    assert json.loads(reply.body)["error"].startswith(told)
    assert "\n" not in json.loads(reply.body)["error"]


def test_a_set_that_is_named_and_has_no_rows_is_found_empty(copy: Path) -> None:
    shutil.rmtree(StudyPaths(copy).answers("random", 2).answers.parent)
    with indexed(copy) as (study, database):
        name = AnswerSet(answer_files(study.plan, study.paths)[7]).name
        assert name == "arms/random/seed-2"
        assert compared(study, database, "base", name).counts["all"] == 0
