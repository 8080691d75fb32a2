"""`ahalab rescore`: another scorer over saved answers, by the real command and real kills."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.store.journal import read_journal
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows, sealed_path
from ahalab.verify.checks import Check
from ahalab.verify.study import verify_study
from lab import environment
from study_builder import build
from tampering import edit_json, edit_row, edit_rows, reseal

OTHER = Path(__file__).with_name("another_scorer.py")
NEW = "99"
SMALL = """
name: small
model: {id: organism}
task: {name: arithmetic, train_prompts: 6, eval_prompts: 12}
arms: [historical, random]
control: random
seeds: [1]
grpo: {max_steps: 2, num_generations: 4, per_device_train_batch_size: 8, max_completion_length: 48,
  save_steps: 2}
lora: {r: 2, lora_alpha: 4, target_modules: [q_proj]}
evaluation: {max_new_tokens: 48, batch_size: 5, floor_batch_size: 4, replay: true}
"""
RUN = "arms/historical/seed-1"
KEPT = f"rescored/scorer-{SCORER_VERSION}"
KILLS = """
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import another_scorer
another_scorer.install("99")
from ahalab.cli import main

def command(root, event):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        sys.argv = ["ahalab", "rescore", str(root), "--write", "--quiet"]
        count = another_scorer.die_at(event)
        code = main()
        (root.parent / "events").write_text(str(count[0]))
    finally:
        os._exit(code)

sound, folder, every = Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
def copied(name):
    return Path(shutil.copytree(sound, folder / name / "small"))
def content(root):
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*")
            if p.is_file() and not p.name.endswith(".journal.jsonl")
            and p.name not in ("manifest.json", "report.html")}

whole = copied("whole")
assert command(whole, 0) == 0
expected, events = content(whole), int((folder / "whole" / "events").read_text())
for event in range(1, events + 1, every):
    root = copied(f"at-{event}")
    assert command(root, event) == -9, event
    assert command(root, 0) == 0, event
    assert content(root) == expected, (event, content(root).keys() ^ expected.keys())
    if event % 3:
        shutil.rmtree(root.parent)
print(events)
"""


def other(*arguments: object, version: str = NEW) -> subprocess.CompletedProcess[str]:
    """Run a command of an `ahalab` that has another scorer."""
    return subprocess.run(
        [sys.executable, str(OTHER), version, *(str(a) for a in arguments)],
        capture_output=True, text=True, timeout=300, check=False, env=environment(),
    )  # fmt: skip


def listed(root: Path, *arguments: object) -> dict[str, Any]:
    done = other("rescore", root, "--format", "json", "--quiet", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def answers(path: Path) -> list[Answer]:
    return [row for _, row in read_rows(path, Answer)]


def by_name(root: Path) -> dict[str, Check]:
    return {check.name: check for check in verify_study(root).checks}


def content(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture(scope="session")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("small") / "results" / "small", SMALL)


@pytest.fixture(scope="session")
def rescored_study(small_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study under the other scorer; nobody may write to it."""
    root = tmp_path_factory.mktemp("rescored") / "results" / "small"
    shutil.copytree(small_study, root)
    done = other("rescore", root, "--write")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def small(small_study: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_study, tmp_path / "results" / "small"))


@pytest.fixture
def rescored(rescored_study: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rescored_study, tmp_path / "results" / "small"))


# Listing ------------------------------------------------------------------------------------------


def test_without_write_every_change_is_listed_and_nothing_is_written(small: Path) -> None:
    before = content(small)
    told = listed(small)
    assert content(small) == before
    assert (told["scorer_version"], told["written"], told["unlike"]) == (NEW, False, [])
    # The other scorer takes the asked format alone: exactly the answers that another rule took.
    expected = set()
    for name in ("base/answers", "base/floor", f"{RUN}/answers", "arms/random/seed-1/answers"):
        for row in answers(small / f"{name}.jsonl"):
            if row.rule not in ("hashes", "none"):
                expected.add((name, row.prompt_id, row.lenient, row.extracted, row.rule))
    assert expected
    found = {
        (c["answers"], c["prompt_id"], c["before"]["lenient"], c["before"]["extracted"],
         c["before"]["rule"])
        for c in told["changed"]
    }  # fmt: skip
    assert found == expected
    assert {(c["after"]["lenient"], c["after"]["rule"]) for c in told["changed"]} == {
        ("unparsed", "none")
    }
    for change in told["changed"]:
        row = answers(small / f"{change['answers']}.jsonl")[change["line"] - 1]
        assert (row.prompt_id, row.sample) == (change["prompt_id"], change["sample"])


def test_counts_per_side_and_verdicts_are_those_of_both_scorers(small: Path) -> None:
    told = listed(small)
    for side in told["sides"]:
        rows = answers(small / f"{side['answers']}.jsonl")
        assert (side["n"], side["scorer_version"]) == (12, SCORER_VERSION)
        assert side["lenient_correct_before"] == sum(r.lenient == "correct" for r in rows)
        kept = [r for r in rows if r.rule == "hashes"]
        assert side["lenient_correct"] == sum(r.lenient == "correct" for r in kept)
        gone = [r for r in rows if r.rule not in ("hashes", "none") and r.lenient == "correct"]
        assert side["kinds"].get("lenient correct -> unparsed", 0) == len(gone)
    correct = {s["answers"]: (s["lenient_correct_before"], s["lenient_correct"]) for s in
               told["sides"]}  # fmt: skip
    verdict = next(
        v for v in told["verdicts"]
        if (v["arm"], v["against"], v["metric"]) == ("historical", "base", "lenient")
    )  # fmt: skip
    for at, field in enumerate(("difference_points_before", "difference_points")):
        change = correct[f"{RUN}/answers"][at] - correct["base/answers"][at]
        assert verdict[field] == pytest.approx(100 * change / 12)


def test_the_text_names_answers_rules_accuracies_verdicts_and_the_next_step(small: Path) -> None:
    done = other("rescore", small)
    assert done.returncode == 0
    assert f"version {NEW}" in done.stdout
    assert f"scored by version {SCORER_VERSION}" in done.stdout
    assert "lenient correct -> unparsed" in done.stdout
    assert "-> nothing, rule " in done.stdout
    assert "historical against base, strict: " in done.stdout
    assert f"ahalab rescore {small} --write" in done.stderr


def test_under_the_same_scorer_there_is_nothing_to_do(small: Path) -> None:
    before = content(small)
    # The other scorer under the installed one's name is what tampering looks like.
    done = other("rescore", small, "--write", version=SCORER_VERSION)
    assert done.returncode == 1
    assert "expected what scorer version" in done.stderr
    same = subprocess.run(
        [sys.executable, "-m", "ahalab", "rescore", str(small), "--write"],
        capture_output=True, text=True, timeout=300, check=False, env=environment(),
    )  # fmt: skip
    assert same.returncode == 0
    assert "It says the same of every answer." in same.stdout
    assert "Nothing to do" in same.stderr
    assert content(small) == before


def test_an_edited_outcome_is_named_and_refused_though_everything_was_mended(small: Path) -> None:
    row = answers(small / f"{RUN}/answers.jsonl")[2]
    outcome = "wrong" if row.strict == "correct" else "correct"
    edit_row(small / f"{RUN}/answers.jsonl", 3, strict=outcome)
    reseal(small)
    before = content(small)
    done = subprocess.run(
        [sys.executable, "-m", "ahalab", "rescore", str(small), "--write"],
        capture_output=True, text=True, timeout=300, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1
    assert f"{RUN}/answers.jsonl:3: expected what scorer version" in done.stderr
    assert f"strict {outcome} -> {row.strict}" in done.stdout
    assert content(small) == before


def test_rescoring_needs_no_torch(small: Path) -> None:
    program = (
        "import sys; from ahalab.cli import main; sys.argv = ['ahalab', 'rescore', sys.argv[1]]; "
        "code = main(); sys.exit(code or bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(small)], capture_output=True, text=True, timeout=60,
        check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# Writing ------------------------------------------------------------------------------------------


def test_written_the_study_stands_under_the_scorer_and_verifies_there(
    small_study: Path, rescored_study: Path
) -> None:
    verified = other("verify", rescored_study, "--format", "json")
    checks = {c["name"]: c for c in json.loads(verified.stdout)["checks"]}
    assert verified.returncode == 0, [c for c in checks.values() if c["failed"]]
    assert checks["rescored"]["status"] == "passed"
    assert checks["rescored"]["count"] > 7 * 12
    # Rewards were paid by the scorer of the training: of them, and of nothing else, it says so.
    assert checks["regrade"]["status"] == "not checked"
    assert "answers in" not in checks["regrade"]["note"]
    assert "a rescore leaves what was paid or seen in training" in checks["regrade"]["note"]
    for name in ("base/answers", "base/floor", f"{RUN}/answers", f"replay/{RUN}/answers"):
        old, new = (answers(root / f"{name}.jsonl") for root in (small_study, rescored_study))
        assert [r.completion_ids for r in new] == [r.completion_ids for r in old]
        assert [r.strict for r in new] == [r.strict for r in old]  # hashes is the asked format
        for was, now in zip(old, new, strict=True):
            taken = was.rule in ("hashes", "none")
            assert now.lenient == (was.lenient if taken else "unparsed")
        protocols = [
            decode_file((root / f"{name}.protocol.json").read_bytes(), Protocol, name)
            for root in (small_study, rescored_study)
        ]
        assert [p.scorer_version for p in protocols] == [SCORER_VERSION, NEW]
        journals = [
            read_journal(journal_path(root / f"{name}.jsonl"))
            for root in (small_study, rescored_study)
        ]
        sizes = [[b.rows for b in journal.batches] for journal in journals]
        assert sizes[0] == sizes[1]  # the batches that they were generated in


def test_the_answers_as_they_were_are_kept_to_the_byte(
    small_study: Path, rescored_study: Path
) -> None:
    for name in ("base/answers", f"{RUN}/answers", f"replay/{RUN}/answers"):
        kept, was = rescored_study / KEPT / f"{name}.jsonl", small_study / f"{name}.jsonl"
        assert answers(kept) == answers(was)
        assert sealed_path(kept).is_file()
        assert journal_path(kept).read_bytes() == journal_path(was).read_bytes()
        kept, was = kept.with_suffix(".protocol.json"), was.with_suffix(".protocol.json")
        assert kept.read_bytes() == was.read_bytes()


def test_brought_back_to_the_first_scorer_the_answers_are_the_first_ones(
    small_study: Path, rescored: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ahalab", "rescore", str(rescored), "--write"],
        capture_output=True, text=True, timeout=300, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("base/answers.jsonl", f"{RUN}/answers.jsonl", "analysis/comparison.json"):
        assert (rescored / name).read_bytes() == (small_study / name).read_bytes()
    assert verify_study(rescored).result == "PASSED"
    assert by_name(rescored)["regrade"].status == "passed"


def test_the_installed_scorer_says_what_it_cannot_check_and_what_to_do(
    rescored_study: Path,
) -> None:
    note = by_name(rescored_study)["regrade"].note
    scored = f"answers in 4 files: scored by version {NEW}, here is {SCORER_VERSION}; "
    assert scored in note
    assert "ahalab rescore STUDY --write" in note


def test_a_large_answer_set_crosses_into_its_compressed_form_and_back(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahalab.evaluate import rescore
    from ahalab.plan.load import load_plan
    from ahalab.store import rows
    from ahalab.tasks.prepare import read_prompts

    paths = StudyPaths(small)
    plan, path = load_plan(paths.plan), paths.base_answers().answers
    prompts, before = read_prompts(paths, "eval"), answers(path)
    for version, limit, there, gone in (
        ("77", 1, sealed_path(path), path),
        ("78", 1 << 20, path, sealed_path(path)),
    ):
        monkeypatch.setattr(rows, "COMPRESS_FROM_BYTES", limit)
        monkeypatch.setattr(rescore, "SCORER_VERSION", version)
        judged = rescore.rejudge_study(plan, paths, prompts, lambda n: None)
        base = next(one for one in judged if one.target.name == "base/answers")
        rescore.write_rescored(plan, paths, base)
        assert there.is_file()
        assert not gone.exists()
        assert [r.completion for r in answers(path)] == [r.completion for r in before]


def test_killed_at_any_write_fsync_rename_or_removal_the_same_command_ends_the_same(
    small_study: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(OTHER.parent), str(small_study), str(tmp_path), "97"],
        capture_output=True, text=True, timeout=500, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 150  # 7 answer sets, their copies, analysis, report, manifest
    left = sorted(tmp_path.glob("at-*/small"))
    assert left
    for root in left:
        verified = other("verify", root, "--format", "json")
        assert json.loads(verified.stdout)["result"] == "PASSED"
        assert not list(root.rglob("*.partial"))


# Refusals -----------------------------------------------------------------------------------------


def test_a_sealed_study_that_was_changed_is_refused(small: Path) -> None:
    edit_row(small / f"{RUN}/answers.jsonl", 1, completion="#### 1")
    done = other("rescore", small, "--write")
    assert done.returncode == 2
    assert "expected the file as it was sealed" in done.stderr
    assert not (small / "rescored").exists()


def test_rows_that_their_journal_does_not_seal_are_refused(small: Path) -> None:
    (small / "manifest.json").unlink()
    edit_row(small / f"{RUN}/answers.jsonl", 1, completion="#### 1")
    done = other("rescore", small, "--write")
    assert done.returncode == 2
    assert "expected the rows that its journal seals" in done.stderr


def test_answers_that_are_not_finished_are_refused_as_incomplete(small: Path) -> None:
    (small / "manifest.json").unlink()
    journal = small / f"{RUN}/answers.journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    done = other("rescore", small)
    assert done.returncode == 4
    assert f"{RUN}/answers.jsonl: expected whole answers" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_study_without_answers_is_incomplete(small: Path) -> None:
    for path in small.rglob("answers*"):
        path.unlink()
    for path in [small / "manifest.json", *small.rglob("floor*")]:
        path.unlink()
    assert other("rescore", small).returncode == 4


def test_answers_generated_anew_are_not_taken_for_those_that_are_kept(rescored: Path) -> None:
    """Back under the first scorer, but with other completions than `rescored/` holds."""
    for name in ("answers.jsonl", "answers.journal.jsonl", "answers.protocol.json"):
        shutil.copy(rescored / "arms/random/seed-1" / name, rescored / RUN / name)
    edit_json(
        rescored / RUN / "answers.protocol.json",
        lambda tree: tree.update(scorer_version=SCORER_VERSION),
    )
    (rescored / "manifest.json").unlink()
    done = other("rescore", rescored, "--write")
    assert done.returncode == 2
    assert "expected the completions that" in done.stderr


def test_a_version_that_would_leave_the_study_is_refused(small: Path) -> None:
    for protocol in small.rglob("*.protocol.json"):
        edit_json(protocol, lambda tree: tree.update(scorer_version="../../x"))
    (small / "manifest.json").unlink()
    done = other("rescore", small, "--write")
    assert done.returncode == 2
    assert "expected the version of a scorer" in done.stderr


# Tampering with what is kept ----------------------------------------------------------------------


def edit_kept(root: Path, **fields: object) -> None:
    """Change a row of the kept answers, which lie compressed; journal and manifest mended."""
    path = root / KEPT / f"{RUN}/answers.jsonl"
    edit_row(path, 4, **fields)


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (lambda root: edit_kept(root, completion="#### 12"), "the completion of today's answer"),
        (lambda root: (root / KEPT / "more.txt").write_text("x"), "an answer set of the plan"),
        (lambda root: (root / "rescored/scorer-7").write_text("x"), "an answer set of the plan"),
        (
            lambda root: (root / KEPT).rename(root / "rescored/scorer-1"),
            "scorer_version",
        ),
        (
            lambda root: edit_json(
                root / KEPT / "base/answers.protocol.json", lambda tree: tree.update(dtype="x")
            ),
            "dtype as in today's protocol",
        ),
        (
            lambda root: (root / KEPT / "base/answers.protocol.json").unlink(),
            "a protocol, and that of today's answers",
        ),
    ],
)
def test_tampering_with_kept_answers_is_named_though_all_was_mended(
    rescored: Path, tamper: Any, told: str
) -> None:
    tamper(rescored)
    reseal(rescored)
    check = by_name(rescored)["rescored"]
    assert check.status == "failed"
    assert any(failure.expected.startswith(told) for failure in check.failures), check.failures


def test_an_outcome_kept_from_the_installed_scorer_is_regraded(rescored: Path) -> None:
    row = answers(rescored / KEPT / f"{RUN}/answers.jsonl")[3]
    edit_kept(rescored, strict="wrong" if row.strict == "correct" else "correct")
    reseal(rescored)
    failures = by_name(rescored)["regrade"].failures
    assert [(f.file, f.line) for f in failures] == [(f"{KEPT}/{RUN}/answers.jsonl", 4)]


def test_a_kept_answer_that_was_dropped_is_named(rescored: Path) -> None:
    path = rescored / KEPT / f"{RUN}/answers.jsonl"
    edit_rows(path, lambda rows: rows[:-1])
    reseal(rescored)
    assert by_name(rescored)["rescored"].failures[0].expected == "as many answers as stand now"
