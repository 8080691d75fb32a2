"""Signed studies: each way in which a signature can be wrong, under its own name."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ahalab.errors import InputError, MissingError
from ahalab.pipeline.signing import sign_study
from ahalab.store.layout import StudyPaths
from ahalab.store.ssh import Signers, sign
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.files import check_files
from ahalab.verify.reading import Study
from ahalab.verify.signature import NAMES, check_signature
from ahalab.verify.study import Held, verify_study
from tampering import edit_json, edit_row, reseal

ME = "me@example.org"
STATEMENT, SIGNATURE = "statement.json", "statement.json.sig"


def sign_all(study: Path, key: Path) -> None:
    sign_study(StudyPaths(study), key)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, `mine` and `other`; `allowed` lists mine as ME and the other as someone else."""
    folder = tmp_path_factory.mktemp("keys")
    for name, who in (("mine", ME), ("other", "you@example.org")):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name],
            check=True,
        )
        with (folder / "allowed").open("a") as allowed:
            allowed.write(f"{who} {(folder / f'{name}.pub').read_text()}")
    return folder


@pytest.fixture(scope="module")
def signed_study(sound_study: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = shutil.copytree(sound_study, tmp_path_factory.mktemp("signed") / "synthetic")
    sign_all(copy, keys / "mine")
    return copy


@pytest.fixture
def signed(signed_study: Path, tmp_path: Path) -> Path:
    return shutil.copytree(signed_study, tmp_path / "signed")


def checked(study: Path, signers: Signers | None) -> dict[str, Check]:
    """Make the checks of signature and files alone."""
    ledger = Ledger(None)
    opened = Study(study, ledger)
    check_files(opened, None, None)
    check_signature(opened, signers)
    return {check.name: check for check in ledger.verification().checks}


@pytest.fixture
def me(keys: Path) -> Signers:
    return Signers(keys / "allowed", ME)


def test_a_signed_study_passes_and_says_who_signed(signed_study: Path, me: Signers) -> None:
    verification = verify_study(signed_study, Held(signers=me))
    assert verification.result == "PASSED"
    found = {c.name: c for c in verification.checks}
    assert [found[name].status for name in NAMES] == ["passed"] * 4
    assert found["sig.key"].note.startswith(f"{ME}, SHA256:")


def test_without_allowed_signers_the_signature_is_checked_and_its_key_is_told(
    signed_study: Path,
) -> None:
    found = checked(signed_study, None)
    assert [found[name].status for name in NAMES] == ["passed"] * 3 + ["not checked"]
    assert "signed by the key SHA256:" in found["sig.key"].note


def test_an_unsigned_study_is_not_flagged_where_no_signature_is_asked_for(
    sound_study: Path,
) -> None:
    assert {checked(sound_study, None)[name].status for name in NAMES} == {"not checked"}


def overwrite(file: str, change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    def tamper(study: Path, _: Path) -> None:
        (study / file).write_bytes(change((study / file).read_bytes()))

    return tamper


def without(*names: str) -> Callable[[Path, Path], None]:
    def tamper(study: Path, _: Path) -> None:
        for name in names:
            (study / name).unlink()

    return tamper


def signed_by_another(study: Path, keys: Path) -> None:
    sign_all(study, keys / "other")


def statement_edited(study: Path, _: Path) -> None:
    edit_json(study / STATEMENT, lambda tree: tree.update(study="another"))


def statement_of_another_root_signed(study: Path, keys: Path) -> None:
    edit_json(study / STATEMENT, lambda tree: tree.update(root="sha256:" + "0" * 64))
    (study / SIGNATURE).write_bytes(sign((study / STATEMENT).read_bytes(), keys / "mine"))


def evidence_sealed_again(study: Path, _: Path) -> None:
    edit_row(study / "arms/historical/seed-1/timings.jsonl", 1, seconds=9.0)
    reseal(study)


def made_for_git(study: Path, keys: Path) -> None:
    (study / SIGNATURE).unlink()
    subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-f", keys / "mine", "-n", "git", study / STATEMENT],
        check=True, capture_output=True,
    )  # fmt: skip


def linked(study: Path, keys: Path) -> None:
    (study / SIGNATURE).rename(keys / "moved.sig")
    (study / SIGNATURE).symlink_to(keys / "moved.sig")


WRONG = {
    "another key signed": (signed_by_another, "sig.key", SIGNATURE),
    "the signature was removed": (without(SIGNATURE), "sig.missing", SIGNATURE),
    "the statement was removed": (without(STATEMENT), "sig.missing", STATEMENT),
    "both were removed": (without(STATEMENT, SIGNATURE), "sig.missing", SIGNATURE),
    "the statement was edited": (statement_edited, "sig.payload", STATEMENT),
    "another root was signed": (statement_of_another_root_signed, "sig.payload", STATEMENT),
    "the evidence was sealed again": (evidence_sealed_again, "sig.payload", STATEMENT),
    "a byte of the signature": (
        overwrite(SIGNATURE, lambda b: b.replace(b"A", b"B", 1)), "sig.payload", SIGNATURE,
    ),
    "no signature at all": (overwrite(SIGNATURE, lambda _: b"x" * 99), "sig.payload", SIGNATURE),
    "a huge one": (overwrite(SIGNATURE, lambda b: b + b"A" * 99_999), "sig.payload", SIGNATURE),
    "a statement with white space": (
        overwrite(STATEMENT, lambda b: b + b" "), "sig.payload", STATEMENT,
    ),
    "made for git": (made_for_git, "sig.namespace", SIGNATURE),
    "a link": (linked, "sig.missing", SIGNATURE),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_signature_is_named_by_check_and_file(
    signed: Path, keys: Path, me: Signers, name: str
) -> None:
    tamper, check, file = WRONG[name]
    tamper(signed, keys)
    found = checked(signed, me)[check]
    assert found.status == "failed"
    assert file in {f.file for f in found.failures}
    assert all(f.expected and f.found for f in found.failures)


@pytest.mark.parametrize("name", ["the statement was edited", "the evidence was sealed again"])
def test_a_signature_over_something_else_fails_though_none_was_asked_for(
    signed: Path, keys: Path, name: str
) -> None:
    WRONG[name][0](signed, keys)
    assert checked(signed, None)["sig.payload"].status == "failed"


def test_what_lies_beside_the_signature_is_still_a_file_too_many(signed: Path) -> None:
    for name in ("statement.json.sig2", "base/statement.json"):
        (signed / name).write_bytes(b"{}")
    extra = checked(signed, None)["file.extra"]
    assert {f.file for f in extra.failures} == {"statement.json.sig2", "base/statement.json"}


def test_signing_leaves_root_and_manifest_and_sealing_again_does_not_list_it(
    signed: Path, sound_study: Path
) -> None:
    manifest = (sound_study / "manifest.json").read_bytes()
    assert (signed / "manifest.json").read_bytes() == manifest
    reseal(signed)
    assert (signed / "manifest.json").read_bytes() == manifest


def test_a_study_that_is_open_or_was_changed_is_not_signed(study: Path, keys: Path) -> None:
    timings = study / "arms/historical/seed-1/timings.jsonl"
    timings.write_bytes(timings.read_bytes().replace(b"0.1", b"0.2"))
    with pytest.raises(InputError, match="expected the root of the files that lie there"):
        sign_all(study, keys / "mine")
    (study / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"expected a sealed study, found no manifest\.json"):
        sign_all(study, keys / "mine")
    assert not (study / STATEMENT).exists()


def test_a_key_that_cannot_sign_leaves_the_earlier_signature(signed: Path, keys: Path) -> None:
    before = (signed / SIGNATURE).read_bytes()
    with pytest.raises(InputError, match="expected an SSH key, found none"):
        sign_all(signed, keys / "absent")
    assert (signed / SIGNATURE).read_bytes() == before


def test_without_ssh_keygen_a_required_signature_is_an_error_and_another_is_not_checked(
    signed_study: Path, me: Signers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError):
        checked(signed_study, me)
    found = checked(signed_study, None)
    assert found["sig.payload"].status == "not checked"
    assert "apt install openssh-client" in found["sig.payload"].note
    assert found["sig.namespace"].status == "passed"
