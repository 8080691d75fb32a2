"""SSH signatures: made and checked by ssh-keygen, read here to say whose and for what they are.

Format of a signature: https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError, MissingError
from ahalab.plain_files import read_plain

NAMESPACE = "ahalab-evidence"  # a signature made for mail, git or a login is none over evidence
MAX_SIGNATURE_BYTES = 1 << 16
SECONDS = 60  # for a key that must be touched; a person at a terminal has as long as they like
_ARMOR = re.compile(
    rb"\A-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=\n]+)\n-----END SSH SIGNATURE-----\n?\Z"
)
_MAGIC = b"SSHSIG"


@dataclass(frozen=True, slots=True)
class SshSignature:
    """What a signature says of itself; whether it fits a message, `fits` tells."""

    namespace: str  # what it was made for
    key: str  # fingerprint of the key, as `ssh-keygen -l` prints it


@dataclass(frozen=True, slots=True)
class Signers:
    """Whose signature is required."""

    allowed: Path  # a file of allowed signers, as git's gpg.ssh.allowedSignersFile
    identity: str  # one of its principals


def parse_signature(payload: bytes) -> SshSignature:
    """Read an armored signature.

    Raises:
        ValueError: It is none; the message says what it lacks.
    """
    match = _ARMOR.match(payload)
    if len(payload) > MAX_SIGNATURE_BYTES or match is None:
        raise ValueError("something else")
    try:
        blob = base64.b64decode(match[1].replace(b"\n", b""), validate=True)
    except binascii.Error as error:
        raise ValueError("text that is not base64") from error
    if blob[:6] != _MAGIC or blob[6:10] != b"\0\0\0\1":
        raise ValueError("something else than a signature of version 1")
    key, rest = _text(blob[10:])
    namespace, rest = _text(rest)
    for _ in ("reserved", "hash", "signature"):
        _, rest = _text(rest)
    if rest:
        raise ValueError(f"{len(rest)} bytes after the signature")
    fingerprint = base64.b64encode(hashlib.sha256(key).digest()).rstrip(b"=").decode()
    return SshSignature(namespace.decode("utf-8", "replace"), f"SHA256:{fingerprint}")


def _text(blob: bytes) -> tuple[bytes, bytes]:
    """Split off one text: four bytes of length, big-endian, then as many bytes."""
    end = 4 + int.from_bytes(blob[:4], "big")
    if len(blob) < max(4, end):
        raise ValueError("a signature cut short")
    return blob[4:end], blob[end:]


def sign(payload: bytes, key: Path) -> bytes:
    """Sign bytes with a private key, or by the agent when `key` is a public one.

    A passphrase is asked for on the terminal; where there is none, it fails at once.

    Returns:
        The armored signature.

    Raises:
        MissingError: ssh-keygen is not here, or too old.
        InputError: There is no such key, it is locked, or it is refused; the remedy is told.
    """
    if not key.is_file():
        raise InputError(
            f"{key}: expected an SSH key, found none. `ssh-keygen -t ed25519` makes one."
        )
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "statement.json"
        message.write_bytes(payload)
        # The message is a file and stdin is left alone: with a pipe there no passphrase is asked.
        asked = sys.stdin is not None and sys.stdin.isatty()
        done = _ssh_keygen(
            ("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(message)),
            stdin=None if asked else subprocess.DEVNULL,
            seconds=None if asked else SECONDS,
        )
        signature = message.with_name(f"{message.name}.sig")
        if done.returncode != 0 or not signature.is_file():
            raise InputError(f"{key}: {_why_not_signed(done.stderr)}")
        return read_plain(signature)


def _why_not_signed(said: str) -> str:
    expected = "expected a key that signs, found: "
    if "passphrase" in said:
        return (
            f"{expected}a wrong or no passphrase. Run it in a terminal, or `ssh-add` the key and "
            "name its .pub file."
        )
    if "No private key found for public key" in said:
        return (
            f"{expected}a public key whose private half no agent holds. `ssh-add` it, or name "
            "the private key."
        )
    if "too open" in said or "No private key" in said:
        return f"{expected}one that others can read. `chmod 600` it."
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["nothing said"]
    return f"{expected}{lines[-1].rstrip('.')}. Name an SSH key; `ssh-keygen -t ed25519` makes one."


def fits(payload: bytes, signature: bytes, namespace: str) -> bool:
    """Say whether a signature is over these bytes, whoever made it.

    Raises:
        MissingError: ssh-keygen is not here, or too old.
    """
    return _checked(("-Y", "check-novalidate", "-n", namespace), payload, signature) is None


def refusal(payload: bytes, signature: bytes, namespace: str, signers: Signers) -> str | None:
    """Say why a signature that fits is not the signer's; None: it is.

    Raises:
        MissingError: ssh-keygen is not here, or too old.
    """
    who = ("-I", signers.identity, "-f", str(signers.allowed))
    return _checked(("-Y", "verify", "-n", namespace, *who), payload, signature)


def _checked(arguments: Sequence[str], payload: bytes, signature: bytes) -> str | None:
    with tempfile.NamedTemporaryFile(suffix=".sig") as file:
        file.write(signature)
        file.flush()
        done = _ssh_keygen((*arguments, "-s", file.name), message=payload)
    if done.returncode == 0:
        return None
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return said[0].rstrip(".") if said else "a refusal"


def require_ssh_keygen() -> None:
    """Refuse to go on where signatures can't be checked.

    Raises:
        MissingError: What to install.
    """
    _ssh_keygen(("-Y", "check-novalidate"))  # it misses arguments; an old one misses -Y


def _ssh_keygen(
    arguments: Sequence[str],
    *,
    message: bytes | None = None,
    stdin: int | None = None,
    seconds: float | None = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run ssh-keygen, its messages in English.

    Raises:
        MissingError: It is not here, or older than 8.2.
        InputError: It did not end in time.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the reader's own OpenSSH
            ["ssh-keygen", *arguments],  # noqa: S607
            input=message, stdin=stdin, capture_output=True, timeout=seconds, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except FileNotFoundError as error:
        raise MissingError(
            "signatures need ssh-keygen of OpenSSH 8.2 or newer, not installed here. Install "
            "OpenSSH's client (Debian: apt install openssh-client), or check without a signature."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"ssh-keygen: expected an answer within {seconds} s, found none. Is a key waiting to "
            "be touched, or an agent for a confirmation? Run it in a terminal."
        ) from error
    said = done.stderr.decode("utf-8", "replace")
    if re.search(r"(unknown|illegal|invalid) option -- '?Y", said):
        raise MissingError(
            "signatures need OpenSSH 8.2 or newer, found an older ssh-keygen. Upgrade it, or check "
            "without a signature."
        )
    return subprocess.CompletedProcess(done.args, done.returncode, "", said)
