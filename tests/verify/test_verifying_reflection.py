# ruff: noqa: E501 (a table of mutations, a line each)
"""Answers that were cut before their markers, as evidence: what is changed in them is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reflection_builder import InventedCheck, add_continuations

from ahalab.cli.reflection_table import print_reflection
from ahalab.plan.cells import BASE
from ahalab.records.base import decode_file, digest
from ahalab.records.reflection import (
    ArmReflection,
    Continuation,
    Ending,
    GroupAccuracy,
    MarkedAccuracy,
    MarkerBucket,
    Reflection,
    ReflectionEffect,
    ReflectionProtocol,
    SideMarkers,
    SideReflection,
    TrainingMarkers,
    Turn,
)
from ahalab.store.layout import StudyPaths
from ahalab.verify.answers import Sets, answers_to_check, check_answers, finish_answers
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.journals import JournalFacts, check_journals
from ahalab.verify.reading import Study
from ahalab.verify.reflection import Cuts, check_continuations
from ahalab.verify.reflection_figures import check_reflection
from ahalab.verify.study import verify_study
from ahalab.verify.workers import ALONE, Workers
from lab import environment
from mutations.kinds import Mutation, record, remove, rows, swap
from study_builder import build
from tampering import Row, edit_json, edit_row, mend_journals, read_lines, rebuild, reseal

PLAN = """
name: synthetic
model: {id: organism}
task: {name: arithmetic, train_prompts: 6, eval_prompts: 40}
arms: [historical, random]
control: random
seeds: [1, 2]
grpo: {max_steps: 2, num_generations: 4, per_device_train_batch_size: 8, max_completion_length: 48,
  save_steps: 2}
lora: {r: 2, lora_alpha: 4, target_modules: [q_proj]}
evaluation: {max_new_tokens: 48, batch_size: 4, floor_batch_size: 6}
"""
ROWS = "reflection/base/continuations.jsonl"
PROTOCOL = "reflection/base/continuations.protocol.json"
FOUND = "analysis/reflection.json"


class StoppedError(Exception):
    """Raised in place of a kill."""


def stop(count: int) -> None:
    raise StoppedError


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole study whose every side was cut; no test may write to it."""
    return add_continuations(build(tmp_path_factory.mktemp("cut") / "synthetic", PLAN))


@pytest.fixture(scope="module")
def never_cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same study before anything was cut; no test may write to it."""
    return build(tmp_path_factory.mktemp("whole") / "synthetic", PLAN)


@pytest.fixture
def cut(sound: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return shutil.copytree(sound, tmp_path / "synthetic")


def base_rows(root: Path) -> list[Row]:
    return [json.loads(line) for line in read_lines(root / ROWS)]


def of(kind: Callable[[Row], bool]) -> Callable[[Path], int]:
    """Return what finds the line of the first row of a kind."""

    def line(root: Path) -> int:
        return next(n for n, found in enumerate(base_rows(root), start=1) if kind(found))

    return line


def one_turn(found: Row) -> bool:
    return len(found["turns"]) == 1 and not found["reflects"]


def turn(**fields: Any) -> Callable[[Row], None]:
    return lambda found: found["turns"][0].update(fields)


def ending(which: str, **fields: Any) -> Callable[[Row], None]:
    return lambda found: found[which].update(fields)


def longer(found: Row) -> None:
    found["turns"] = [*found["turns"], found["turns"][-1]]


def allowed_again(found: Row) -> None:
    found["turns"][0]["forbidden"] = found["turns"][0]["forbidden"][1:]


def other_beginning(found: Row) -> None:
    found["kept"]["completion_ids"] = found["kept"]["completion_ids"][1:]


# What is changed in the row of one turn; each by the check that must tell.
IN_A_ROW: list[tuple[str, Callable[[Row], None], str]] = [
    ("protocol", lambda r: r.update(protocol="sha256:0"), "pair.key"),
    ("side", lambda r: r.update(side="adapter"), "pair.key"),
    ("prompt_id", lambda r: r.update(prompt_id="00000-000000000000"), "reflection"),
    ("sample", lambda r: r.update(sample=1), "reflection"),
    ("turns", longer, "reflection"),
    ("reflects", lambda r: r.update(reflects=True), "reflection"),
    ("turns.at", turn(at=1), "reflection"),
    ("turns.marker", turn(marker="hmm"), "reflection"),
    ("turns.wrote", turn(wrote=[5]), "reflection"),
    ("turns.forbidden", allowed_again, "reflection"),
    ("kept", other_beginning, "tokens.text"),
    ("without", ending("without", completion_ids=[1]), "tokens.text"),
    ("completion", ending("without", completion="So.\n#### 1"), "tokens.text"),
    ("completion_ids", ending("kept", completion_ids=[5, 1]), "tokens.text"),
    ("finish", ending("without", finish="length"), "finish"),
    ("extracted", ending("without", extracted="12345"), "extract"),
    ("rule", ending("kept", rule="nothing"), "extract"),
    ("status", ending("without", status="nothing"), "grade.status"),
    ("strict", ending("without", strict="error"), "regrade"),
    ("lenient", ending("kept", lenient="error"), "regrade"),
]


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def failed(root: Path) -> dict[str, str]:
    """Return the first failure of every check that fails."""
    checks = verify_study(root).checks
    return {c.name: f"{c.failures[0].file}: {c.failures[0].expected}" for c in checks if c.failures}


def answers_of(study: Study, journals: dict[str, JournalFacts]) -> Sets:
    """Check the answers alone."""
    sets, same = answers_to_check(study, journals)
    with Workers(study, sets, ALONE) as workers:
        return check_answers(study, journals, workers.answers(sets), same)[0]


def told(root: Path, mutation: Mutation) -> None:
    """Check answers and continuations alone, and that the right check names the right place."""
    ledger = Ledger(None)
    study = Study(root, ledger)
    journals = check_journals(study)
    answers = answers_of(study, journals)
    cuts = check_continuations(study, journals, answers)
    finish_answers(study)
    check_reflection(study, answers, cuts)
    check = next(c for c in ledger.verification().checks if c.name == mutation.check)
    assert check.status == "failed"
    lines = {f.line for f in check.failures if f.file.removesuffix(".zst") == mutation.file}
    assert mutation.line in lines, check.failures
    assert all(f.expected and f.found for f in check.failures)


def test_a_sound_study_passes_and_holds_every_kind_of_row(sound: Path) -> None:
    verification = verify_study(sound)
    assert [(c.name, c.failures[:2]) for c in verification.checks if c.failed] == []
    assert verification.result == "PASSED"
    lines = [read_lines(p) for p in sound.glob("reflection/**/continuations.jsonl")]
    found = [json.loads(line) for one in lines for line in one]
    cuts = [[turn["at"] for turn in one["turns"]] for one in found]
    assert any(len(at) == 1 for at in cuts)
    assert any(at != sorted(at) for at in cuts)  # cut again, further back
    assert any(at[-1] > 0 for at in cuts)  # cut again, further on
    assert any(len(at) > 1 and len(set(at)) == 1 for at in cuts)  # cut again where it was
    assert {one["reflects"] for one in found} == {False, True}
    assert {one["without"]["finish"] for one in found} == {"eos", "length"}


def test_a_study_without_it_says_nothing_of_it(never_cut: Path) -> None:
    root = never_cut
    assert not (root / "reflection").exists()
    assert not (root / FOUND).exists()
    check = by_name(root)["reflection"]
    assert (check.status, check.note) == ("passed", "no answer was cut")


@pytest.mark.parametrize(
    ("field", "edit", "check"), IN_A_ROW, ids=lambda x: x if type(x) is str else ""
)
def test_tampering_with_a_row_is_named_with_its_line(
    cut: Path, field: str, edit: Callable[[Row], None], check: str
) -> None:
    line = of(one_turn)(cut)
    found = base_rows(cut)[line - 1]
    edit(found)
    edit_row(cut / ROWS, line, **found)
    mend_journals(cut)
    told(cut, Mutation(field, lambda root: None, check, ROWS, line))


def test_every_field_of_a_row_is_tampered_with() -> None:
    fields = {f for kind in (Continuation, Turn, Ending) for f in kind.__struct_fields__}
    assert {name.rpartition(".")[2] for name, _, _ in IN_A_ROW} == fields - {"schema"}


FILES = [
    Mutation("a continuation is deleted", rows(ROWS, lambda x: x[:-1]), "reflection", ROWS),
    Mutation("a continuation is doubled", rows(ROWS, lambda x: [*x, x[-1]]), "reflection", ROWS, -1),
    Mutation("continuations are reordered", rows(ROWS, swap), "reflection", ROWS, 3),
    Mutation("the protocol is removed", remove(PROTOCOL), "arms.all", ROWS),
    Mutation("the plan knows no such side", lambda root: shutil.copytree(root / "reflection/base", root / "reflection/other") and None, "arms.all", "reflection/other/continuations.jsonl"),
    Mutation("the answers that were cut are removed", remove("base/answers.jsonl", "base/answers.journal.jsonl"), "arms.all", ROWS),
    Mutation("the continuations are removed, what they say is kept", remove("reflection"), "stat.n", FOUND),
    Mutation("the protocol is of other answers", record(PROTOCOL, "answers", to="sha256:0"), "reflection", PROTOCOL),
    Mutation("the protocol allows fewer turns", record(PROTOCOL, "turns", to=7), "reflection", PROTOCOL),
    Mutation("it was sampled", record(PROTOCOL, "answering", "generation", "do_sample", to=True), "reflection", PROTOCOL),
    Mutation("it had more tokens", record(PROTOCOL, "answering", "generation", "max_new_tokens", to=64), "reflection", PROTOCOL),
    Mutation("another adapter continued", record(PROTOCOL, "answering", "adapter_digest", to="sha256:0"), "reflection", PROTOCOL),
    Mutation("another base continued", record(PROTOCOL, "answering", "base_digest", to="sha256:0"), "reflection", PROTOCOL),
    Mutation("another batch size", record(PROTOCOL, "answering", "batch_size", to=5), "reflection", PROTOCOL),
    Mutation("an endpoint continued", record(PROTOCOL, "answering", "backend", to="openai"), "reflection", PROTOCOL),
    Mutation("the library's loop continued", record(PROTOCOL, "answering", "decoder", to="generate"), "reflection", PROTOCOL),
]  # fmt: skip


@pytest.mark.parametrize("mutation", FILES, ids=lambda m: m.name)
def test_tampering_with_files_and_protocol_is_named(cut: Path, mutation: Mutation) -> None:
    line = len(base_rows(cut)) + 1 if mutation.line == -1 else mutation.line
    mutation.tamper(cut)
    mend_journals(cut)
    told(cut, Mutation(mutation.name, mutation.tamper, mutation.check, mutation.file, line))


def test_another_list_of_markers_is_not_checked_and_says_so(cut: Path) -> None:
    record(PROTOCOL, "markers", to="0")(cut)
    for line in range(1, len(base_rows(cut)) + 1):
        path = StudyPaths(cut).continuations("base").protocol
        edit_row(cut / ROWS, line, protocol=digest_of(path))
    reseal(cut)
    checks = by_name(cut)
    assert [c.name for c in checks.values() if c.failed] == ["report.root"]
    assert checks["reflection"].status == "not checked"
    assert "cut by markers of version 0, here is 1" in checks["reflection"].note


def digest_of(path: Path) -> str:
    return digest(decode_file(path.read_bytes(), ReflectionProtocol, str(path)))


def test_another_machine_is_no_failure_and_is_told(cut: Path) -> None:
    record(PROTOCOL, "answering", "device", to="cuda")(cut)
    for line in range(1, len(base_rows(cut)) + 1):
        edit_row(cut / ROWS, line, protocol=digest_of(cut / PROTOCOL))
    reseal(cut)
    checks = by_name(cut)
    assert [c.name for c in checks.values() if c.failed] == ["report.root"]
    assert "continued under another device" in checks["reflection"].note


def test_the_owner_who_raises_an_outcome_and_concludes_again_is_caught(cut: Path) -> None:
    line = of(lambda r: r["without"]["strict"] == "wrong")(cut)
    found = base_rows(cut)[line - 1]["without"]
    edit_row(cut / ROWS, line, without={**found, "strict": "correct"})
    rebuild(cut)
    assert set(failed(cut)) == {"regrade"}


def test_what_is_not_finished_is_incomplete_and_no_failure(never_cut: Path, tmp_path: Path) -> None:
    root = shutil.copytree(never_cut, tmp_path / "synthetic")
    check = InventedCheck(root)

    with pytest.raises(StoppedError):
        check.finish_answers([BASE], stop)
    rebuild(root)
    verification = verify_study(root)
    assert verification.result == "INCOMPLETE"
    assert failed(root) == {}
    assert "not every answer with a marker was cut yet" in by_name(root)["reflection"].note
    check.finish_answers([BASE], lambda count: None)
    rebuild(root)
    assert verify_study(root).result == "PASSED"


def test_stopped_after_any_batch_it_goes_on_to_the_same_bytes(
    sound: Path, never_cut: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(never_cut, tmp_path / "synthetic")

    stops = 0
    for _ in range(50):
        try:
            InventedCheck(root).finish_answers([BASE], stop)
        except StoppedError:
            stops += 1
        else:
            break
    assert stops == -(-len(base_rows(sound)) // 4)
    assert (root / ROWS).read_bytes() == (sound / ROWS).read_bytes()
    assert (root / PROTOCOL).read_bytes() == (sound / PROTOCOL).read_bytes()


RESCORE = """
import sys
sys.path.insert(0, sys.argv[1])
import another_scorer
another_scorer.install("99")
from ahalab.cli import main
sys.argv = ["ahalab", "rescore", sys.argv[2], "--write", "--quiet"]
sys.exit(main())
"""


def test_a_rescore_would_leave_them_to_another_scorer_and_is_refused(cut: Path) -> None:
    before = {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", RESCORE, str(Path(__file__).parent), str(cut)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2
    assert "expected no continuations of answers, whose outcomes a rescore leaves" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()} == before


# What is concluded -------------------------------------------------------------------------------


Checked = tuple[Sets, Cuts]


@pytest.fixture(scope="module")
def rechecked(sound: Path) -> Checked:
    """What the verifier reads of rows, once."""
    study = Study(sound, Ledger(None))
    answers = answers_of(study, check_journals(study))
    return answers, check_continuations(study, check_journals(Study(sound, Ledger(None))), answers)


def leaves(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every value."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from leaves(value, (*path, at))
    else:
        yield path


def kinds_of_leaves(tree: Any) -> list[tuple[str | int, ...]]:
    """Return the first place of every kind of value."""
    found: dict[tuple[str, ...], tuple[str | int, ...]] = {}
    for place in leaves(tree):
        found.setdefault(tuple(s for s in place if isinstance(s, str)), place)
    return list(found.values())


def another(value: Any) -> Any:
    """Return another value of the same type."""
    if value is None:
        return 1.5
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    words = {"strict": "lenient", "lenient": "strict", "no evidence": "caused right answers",
             "caused right answers": "no evidence", "caused wrong answers": "no evidence"}  # fmt: skip
    return words.get(value, f"{value}9")


def test_no_value_of_what_is_concluded_may_be_another(cut: Path, rechecked: Checked) -> None:
    path = cut / FOUND
    tree, sound_bytes = json.loads(path.read_bytes()), path.read_bytes()
    passed, tried = [], 0
    for place in kinds_of_leaves(tree):
        if place[0] in ("schema", "markers"):  # another version: see below
            continue

        def edit(found: Row, place: tuple[str | int, ...] = place) -> None:
            here: Any = found
            for step in place[:-1]:
                here = here[step]
            here[place[-1]] = another(here[place[-1]])

        edit_json(path, edit)
        ledger = Ledger(None)
        check_reflection(Study(cut, ledger), *rechecked)
        statuses = {c.name: c.status for c in ledger.verification().checks}
        if "failed" not in statuses.values():
            passed.append(place)
        path.write_bytes(sound_bytes)
        tried += 1
    assert passed == []
    assert tried > 60


def test_every_field_of_what_is_concluded_has_a_value_there(sound: Path) -> None:
    kinds = (Reflection, TrainingMarkers, MarkerBucket, SideMarkers, MarkedAccuracy, GroupAccuracy,
             SideReflection, ReflectionEffect, ArmReflection)  # fmt: skip
    fields = {name for kind in kinds for name in kind.__struct_fields__}
    tree = json.loads((sound / FOUND).read_bytes())
    named = {step for place in leaves(tree) for step in place if isinstance(step, str)}
    assert fields <= named


@pytest.mark.parametrize("section", ["training", "sides", "causal", "arms"])
def test_nothing_that_is_concluded_may_be_left_out(cut: Path, section: str) -> None:
    record(FOUND, section, to=lambda found: found[1:])(cut)
    reseal(cut)
    assert f"{FOUND}: {section} (length)" in failed(cut)["outcome.missing"]


def test_a_missing_conclusion_is_incomplete(cut: Path) -> None:
    (cut / FOUND).unlink()
    reseal(cut)
    check = by_name(cut)["stat.n"]
    assert (check.status, check.failed) == ("incomplete", 0)
    assert f"{FOUND}: not written yet" in check.note


def test_a_conclusion_by_other_markers_is_not_checked(cut: Path) -> None:
    record(FOUND, "markers", to="0")(cut)
    reseal(cut)
    assert by_name(cut)["stat.recompute"].status == "not checked"


def test_the_tables_fit_eighty_columns_and_the_planned_reading_is_told(
    sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound / FOUND
    found = decode_file(path.read_bytes(), Reflection, str(path))
    print_reflection(found)
    said = capsys.readouterr().out
    tables = [line for line in said.splitlines() if "  " in line.strip()]
    assert len(tables) > 20
    assert max(map(len, tables)) <= 80
    told = {one.metric: one.sentence for side in found.causal for one in side.effects}
    assert told["strict"] in said
    assert told["lenient"] not in said
    assert "is an association, not a cause" in said
