from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ahalab.errors import InputError
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.store.models import organism_folder
from ahalab.store.safetensors import tensor_entries
from ahalab.verify import answers, base, completions, rollouts, validation
from ahalab.verify.checks import CHECKS, LISTED, Check, Verification
from ahalab.verify.study import Held, verify_study
from drawing import INSTALLED
from tampering import Row, edit_json, edit_row, edit_rows, read_lines, rebuild, reseal

SIGNATURE = {"sig.missing", "sig.payload", "sig.namespace", "sig.key"}  # none was asked for
NEVER_CHECKED = {"root.anchor", "plan.anchor", *SIGNATURE, "origin.generation", "origin.runs"}
RUN = "arms/historical/seed-1"


def by_name(verification: Verification) -> dict[str, Check]:
    return {check.name: check for check in verification.checks}


def test_an_untouched_study_passes_every_check_that_files_can_answer(sound_study: Path) -> None:
    verification = verify_study(sound_study, drawing=INSTALLED)
    assert verification.result == "PASSED"
    statuses = {c.name: c.status for c in verification.checks}
    assert {name for name, status in statuses.items() if status == "not checked"} == NEVER_CHECKED
    assert all(c.count > 0 for c in verification.checks if c.status == "passed")


def test_every_check_is_told_once_in_the_end_and_as_it_ends(sound_study: Path) -> None:
    told: list[Check] = []
    verification = verify_study(sound_study, on_check=told.append)
    assert [c.name for c in verification.checks] == list(CHECKS)
    assert sorted(c.name for c in told) == sorted(CHECKS)


def test_nothing_is_written(study: Path) -> None:
    before = sorted((p.as_posix(), p.stat().st_mtime_ns) for p in study.parent.rglob("*"))
    verify_study(study)
    assert before == sorted((p.as_posix(), p.stat().st_mtime_ns) for p in study.parent.rglob("*"))


def test_times_modes_a_moved_folder_and_empty_folders_are_not_flagged(
    study: Path, tmp_path: Path
) -> None:
    for path in study.rglob("*"):
        os.utime(path, (1, 1))
    (study / "claims.json").chmod(0o600)
    (study / "empty" / "below").mkdir(parents=True)
    moved = tmp_path / "elsewhere" / "under another name"
    shutil.move(study, moved)
    assert verify_study(moved).result == "PASSED"


def test_another_umask_time_zone_and_folder_order_are_not_flagged(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    copied = study.with_name("copied")
    for path in sorted(study.rglob("*"), reverse=True):
        if path.is_file():
            target = copied / path.relative_to(study)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    assert verify_study(copied).result == "PASSED"


def test_a_published_root_and_plan_are_compared(sound_study: Path) -> None:
    manifest = json.loads((sound_study / "manifest.json").read_bytes())
    found = by_name(verify_study(sound_study, Held(manifest["root"], manifest["plan_digest"])))
    assert (found["root.anchor"].status, found["plan.anchor"].status) == ("passed", "passed")


def test_a_study_resealed_by_its_owner_fails_against_a_published_root(study: Path) -> None:
    published = json.loads((study / "manifest.json").read_bytes())["root"]
    edit_row(study / f"{RUN}/timings.jsonl", 1, seconds=9.0)  # nothing else depends on a clock
    reseal(study)
    failed = [c for c in verify_study(study, Held(published)).checks if c.status == "failed"]
    assert [c.name for c in failed if c.name != "report.root"] == ["root.anchor"]
    assert failed[0].failures[0].expected.endswith(published)


def test_a_study_without_a_manifest_is_incomplete(study: Path) -> None:
    (study / "manifest.json").unlink()
    verification = verify_study(study)
    assert verification.result == "INCOMPLETE"
    assert by_name(verification)["manifest.schema"].status == "incomplete"
    assert by_name(verification)["regrade"].status == "passed"


def test_a_study_that_is_still_training_is_incomplete_and_no_failure(study: Path) -> None:
    for path in (study / "manifest.json", study / "claims.json", study / "report.html"):
        path.unlink()
    for folder in ("analysis", "base", "replay"):
        shutil.rmtree(study / folder)
    for folder in study.glob("arms/*/*"):
        for name in ("answers.jsonl", "answers.journal.jsonl", "answers.protocol.json", "run.json"):
            (folder / name).unlink()
    torn = study / f"{RUN}/steps.jsonl"
    torn.write_bytes(torn.read_bytes() + b'{"schema":"st')
    journal = study / f"{RUN}/steps.journal.jsonl"
    journal.write_bytes(b"".join(read_lines(journal)[:-2]))  # not sealed yet
    verification = verify_study(study)
    failed = [(c.name, c.failures) for c in verification.checks if c.status == "failed"]
    assert failed == []
    assert verification.result == "INCOMPLETE"


def test_an_empty_folder_is_incomplete_and_passes_nothing(tmp_path: Path) -> None:
    verification = verify_study(tmp_path)
    assert verification.result == "FAILED"  # no frozen plan
    assert not [c.name for c in verification.checks if c.status == "passed"]


def test_a_folder_that_does_not_exist_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folder of a study"):
        verify_study(tmp_path / "no")


def test_every_file_replaced_by_rubbish_is_a_failure_and_never_an_exception(study: Path) -> None:
    for rubbish in (b"", b"\xff\x00\n", b"[" * 100_000 + b"\n", b"null\n", b'{"a":NaN}\n'):
        for path in study.rglob("*"):
            if path.is_file():
                path.write_bytes(rubbish)
        assert verify_study(study).result == "FAILED"


@pytest.mark.parametrize("rubbish", [b"", b"{}\n", b"\xff\n", b"[" * 50_000 + b"]" * 50_000])
def test_each_file_on_its_own_may_be_rubbish(study: Path, rubbish: bytes) -> None:
    for name in (
        "study.yaml", "manifest.json", "prompts/eval.jsonl", f"{RUN}/run.json",
        f"{RUN}/rollouts.journal.jsonl", f"{RUN}/adapter/adapter_config.json",
        f"{RUN}/adapter/adapter_model.safetensors", "base/answers.protocol.json",
        "base/answers.jsonl", f"{RUN}/validation.jsonl", "prompts/validation.jsonl",
        "analysis/comparison.json", "claims.json", "report.html",
    ):  # fmt: skip
        sound = (study / name).read_bytes()
        (study / name).write_bytes(rubbish)
        assert verify_study(study).result == "FAILED", name
        (study / name).write_bytes(sound)


def test_the_json_keeps_the_contract(study: Path) -> None:
    edit_row(study / f"{RUN}/rollouts.jsonl", 3, advantage=9.0)
    tree = json.loads(verify_study(study).to_json())
    assert tree["result"] == "FAILED"
    check = next(c for c in tree["checks"] if c["name"] == "advantage")
    assert check["status"] == "failed"
    assert check["count"] == 192
    assert check["failures"][0].keys() == {"file", "line", "expected", "found"}
    assert check["failures"][0]["file"] == f"{RUN}/rollouts.jsonl"
    assert check["failures"][0]["line"] == 3


def test_listed_failures_are_capped_and_all_are_counted(study: Path) -> None:
    for line in range(1, 33):
        edit_row(study / f"{RUN}/rollouts.jsonl", line, advantage=9.0)
    check = by_name(verify_study(study))["advantage"]
    assert (check.failed, len(check.failures)) == (32, LISTED)


def test_another_scorer_version_is_not_checked_and_says_how_many_outcomes_change(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rollouts, completions, answers, validation):
        monkeypatch.setattr(module, "SCORER_VERSION", "999")
    edit_row(study / f"{RUN}/rollouts.jsonl", 1, strict="error")
    reseal(study)
    found = by_name(verify_study(study))
    assert found["regrade"].status == "not checked"
    note = found["regrade"].note
    assert f"rollouts in 6 files: scored by version {SCORER_VERSION} (training parser" in note
    assert "1 of 192 outcomes would change" in note  # 6 runs of 32
    assert "install that version" in note


def test_an_adapter_that_answers_as_the_base_did_is_said_to_have_learned_nothing(
    study: Path,
) -> None:
    """Its rows become the base's, in the evaluation and in the replay; all else is made again."""
    of_base = [json.loads(line) for line in read_lines(study / "base/answers.jsonl")]
    own = ("schema", "protocol", "side")

    def take(rows: list[Row]) -> None:
        for ours, theirs in zip(rows, of_base, strict=True):
            ours.update({key: value for key, value in theirs.items() if key not in own})

    for under in ("", "replay/"):
        edit_rows(study / f"{under}{RUN}/answers.jsonl", take)
    rebuild(study)
    assert verify_study(study).result == "PASSED"
    comparison = json.loads((study / "analysis/comparison.json").read_bytes())
    told = {
        (a["arm"], a["seed"]): a["sentence"]
        for a in comparison["adapters"]
        if a.get("same_answers")
    }
    assert list(told) == [("historical", 1)]
    assert "It learned nothing that shows" in told["historical", 1]
    done = subprocess.run(
        [sys.executable, "-m", "ahalab", "analyze", str(study)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "This adapter (historical, seed 1): It learned nothing that shows" in done.stdout
    edit_json(study / "analysis/comparison.json", lambda t: t["adapters"][0].pop("same_answers"))
    found = by_name(verify_study(study))
    assert "same_answers: True" in found["stat.n"].failures[0].expected


def test_an_effect_that_the_files_do_not_tell_is_not_checked(study: Path) -> None:
    edit_json(study / f"{RUN}/adapter/adapter_config.json", lambda t: t.update(use_dora=True))
    check = by_name(verify_study(study))["adapter.effect"]
    assert check.status == "not checked"
    assert "arms/historical/seed-1: not told by the files (use_dora" in check.note


def test_a_base_that_is_not_recorded_by_tensor_is_said_and_no_failure(study: Path) -> None:
    (study / "base/tensors.json").unlink()
    reseal(study)
    check = by_name(verify_study(study))["base.pin"]
    assert check.status == "passed"
    assert "a difference can't be named" in check.note


def test_another_base_at_hand_is_named_tensor_by_tensor(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(organism_folder(), tmp_path / "model"))
    path = folder / "model.safetensors"
    last = max(tensor_entries(path), key=lambda entry: entry.end)
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    monkeypatch.setattr(base, "model_folder", lambda _: folder)
    check = by_name(verify_study(study))["base.here"]
    assert check.status == "not checked"
    assert f"{last.name} differs" in check.note


def test_the_owner_who_hides_a_missing_arm_fails_and_who_tells_is_incomplete(study: Path) -> None:
    shutil.rmtree(study / RUN)
    shutil.rmtree(study / "replay" / RUN)
    reseal(study)
    hidden = by_name(verify_study(study))
    assert hidden["outcome.missing"].status == "failed"
    assert hidden["arms.all"].status == "incomplete"
    edit_json(study / "analysis/comparison.json", lambda t: t.update(missing=[RUN]))
    assert by_name(verify_study(study))["outcome.missing"].status != "failed"


def test_verify_loads_no_torch_and_none_of_the_other_stages() -> None:
    code = (
        "import sys, ahalab.verify.study; "
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'transformers')"
        " or m.startswith(('ahalab.train', 'ahalab.evaluate', 'ahalab.analyze', 'ahalab.report'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_prompts_whose_dropped_ones_are_not_recorded_yet_are_no_fault(study: Path) -> None:
    # A kill between the prompts and their selection leaves a study so.
    (study / "prompts" / "selection.json").unlink()
    edit_rows(study / "prompts" / "train.jsonl", lambda rows: rows[:-1])
    checks = {check.name: check for check in verify_study(study).checks}
    assert checks["dataset.source"].status == "incomplete"
    edit_rows(study / "prompts" / "eval.jsonl", lambda rows: [{**rows[0], "gold": "0"}, *rows[1:]])
    checks = {check.name: check for check in verify_study(study).checks}
    assert checks["dataset.source"].status == "failed"  # none of these is missing
