"""The signature over a study: there when it is required, over this evidence, by the right key."""

from __future__ import annotations

from ahalab.errors import MissingError, RecordError
from ahalab.plain_files import open_plain
from ahalab.records.base import decode_file
from ahalab.records.manifest import Manifest
from ahalab.records.signature import Statement
from ahalab.store.ssh import (
    MAX_SIGNATURE_BYTES,
    NAMESPACE,
    Signers,
    SshSignature,
    fits,
    parse_signature,
    refusal,
)
from ahalab.verify.reading import Study

NAMES = ("sig.missing", "sig.payload", "sig.namespace", "sig.key")
STATEMENT, SIGNATURE = "statement.json", "statement.json.sig"


def check_signature(study: Study, signers: Signers | None) -> None:
    """Check the signature of a study.

    Args:
        study: The study.
        signers: Whose signature is required; None: one that is there is checked all the same, but
            not whose key it is.

    Raises:
        MissingError: A signature is required, and there is no ssh-keygen to check it.
    """
    payload, armored = _present(study, signers)
    if payload is not None and armored is not None:
        _check_statement(study, payload)
        try:
            signature = parse_signature(armored)
        except ValueError as error:
            study.ledger["sig.payload"].fail(SIGNATURE, None, "an SSH signature", str(error))
        else:
            study.ledger["sig.namespace"].expect(
                SIGNATURE, None, "made for", NAMESPACE, signature.namespace
            )
            try:
                _check_key(study, payload, armored, signature, signers)
            except MissingError as error:
                if signers is not None:
                    raise
                study.ledger["sig.payload"].not_checked(str(error))
    study.ledger.close(NAMES)


def _present(study: Study, signers: Signers | None) -> tuple[bytes | None, bytes | None]:
    """Return statement and signature where they are there; both, or neither, must be."""
    tally = study.ledger["sig.missing"]
    found = {name: _read(study, name) for name in (STATEMENT, SIGNATURE)}
    absent = [name for name, payload in found.items() if payload is None]
    if len(absent) < 2:
        for name, payload in found.items():
            tally.expect(name, None, "there, as its companion is", True, payload is not None)
    elif signers is not None:
        tally.fail(SIGNATURE, None, f"a signature by {signers.identity}", "none")
    else:
        for name in NAMES:
            study.ledger[name].not_checked("the study bears no signature, and none was asked for")
    return found[STATEMENT], found[SIGNATURE]


def _read(study: Study, name: str) -> bytes | None:
    path = study.root / name
    if not path.is_file() or path.is_symlink():
        return None
    try:
        with open_plain(path) as file:
            return file.read(MAX_SIGNATURE_BYTES + 1)
    except OSError as error:
        study.ledger["sig.payload"].fail(name, None, "a readable file", error.strerror)
        return None


def _check_statement(study: Study, payload: bytes) -> None:
    """Compare what was signed with what lies there."""
    tally = study.ledger["sig.payload"]
    try:
        statement = decode_file(payload, Statement, STATEMENT)
    except RecordError as error:
        tally.fail(STATEMENT, None, "a statement", str(error).partition(", found")[2].lstrip(": "))
        return
    if study.plan is not None:
        tally.expect(STATEMENT, None, "study", study.plan.name, statement.study)
        tally.expect(STATEMENT, None, "plan digest", study.plan_digest, statement.plan_digest)
    manifest = study.record(study.paths.manifest, Manifest)
    if manifest is None:
        tally.incomplete("no sound manifest: what was signed can't be compared with anything")
    else:
        tally.expect(STATEMENT, None, "root", manifest.root, statement.root)


def _check_key(
    study: Study,
    payload: bytes,
    armored: bytes,
    signature: SshSignature,
    signers: Signers | None,
) -> None:
    """Check that the signature fits the statement, and whose it is."""
    ledger = study.ledger
    if not fits(payload, armored, signature.namespace):
        ledger["sig.payload"].fail(
            SIGNATURE, None, f"a signature over {STATEMENT}", "one over other bytes, or edited"
        )
        ledger["sig.key"].not_checked("the signature does not fit, so it is nobody's")
        return
    ledger["sig.payload"].passed()
    if signers is None:
        ledger["sig.key"].not_checked(
            f"signed by the key {signature.key}; --allowed-signers and --identity say whose it is"
        )
        return
    why = refusal(payload, armored, signature.namespace, signers)
    if why is None:
        ledger["sig.key"].passed()
        ledger["sig.key"].note(f"{signers.identity}, {signature.key}")
    else:
        ledger["sig.key"].fail(
            SIGNATURE, None, f"a key of {signers.identity} ({signers.allowed.name})",
            f"{signature.key}: {why}",
        )  # fmt: skip
