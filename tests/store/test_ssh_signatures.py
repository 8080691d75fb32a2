"""Real ssh-keygen, real keys: what is signed, what is refused, and that nothing hangs."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ahalab.errors import InputError, MissingError
from ahalab.store import ssh
from ahalab.store.ssh import (
    NAMESPACE,
    Signers,
    fits,
    parse_signature,
    refusal,
    require_ssh_keygen,
    sign,
)

MESSAGE = b'{\n "root": "sha256:1"\n}\n'


def keygen(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", path], check=True
    )
    return path


def fingerprint(key: Path) -> str:
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{key}.pub"], capture_output=True, text=True, check=True
    )
    return told.stdout.split()[1]


def signers(folder: Path, *keys: Path, options: str = "") -> Signers:
    lines = [f"me@example.org {options}{Path(f'{key}.pub').read_text()}" for key in keys]
    allowed = folder / f"allowed-{len(list(folder.glob('allowed-*')))}"
    allowed.write_text("".join(lines))
    return Signers(allowed, "me@example.org")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return keygen(tmp_path / "key")


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_signature_by_any_kind_of_key_fits_its_message_alone_and_names_its_key(
    tmp_path: Path, kind: str
) -> None:
    key = keygen(tmp_path / "key", kind)
    signature = sign(MESSAGE, key)
    assert parse_signature(signature) == ssh.SshSignature(NAMESPACE, fingerprint(key))
    assert fits(MESSAGE, signature, NAMESPACE)
    assert not fits(MESSAGE + b" ", signature, NAMESPACE)
    assert not fits(MESSAGE, signature, "git")
    assert refusal(MESSAGE, signature, NAMESPACE, signers(tmp_path, key)) is None


def test_plain_ssh_keygen_agrees(tmp_path: Path, key: Path) -> None:
    (tmp_path / "s.sig").write_bytes(sign(MESSAGE, key))
    who = signers(tmp_path, key)
    done = subprocess.run(
        ["ssh-keygen", "-Y", "verify", "-f", who.allowed, "-I", who.identity,
         "-n", "ahalab-evidence", "-s", tmp_path / "s.sig"],
        input=MESSAGE, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_signing_twice_gives_the_same_bytes_and_leaves_nothing_beside_the_key(
    tmp_path: Path, key: Path
) -> None:
    before = sorted(p.name for p in tmp_path.iterdir())
    assert sign(MESSAGE, key) == sign(MESSAGE, key)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_key_of_another_or_one_allowed_for_other_purposes_or_times_is_refused(
    tmp_path: Path, key: Path
) -> None:
    signature = sign(MESSAGE, key)
    other = keygen(tmp_path / "other")
    for who in (
        signers(tmp_path, other),
        signers(tmp_path, key, options='namespaces="git" '),
        signers(tmp_path, key, options='valid-before="20200101" '),
        Signers(signers(tmp_path, key).allowed, "you@example.org"),
    ):
        assert refusal(MESSAGE, signature, NAMESPACE, who)


@pytest.mark.parametrize("public", [False, True])
def test_a_locked_key_without_a_terminal_fails_at_once_and_says_what_to_do(
    tmp_path: Path, public: bool
) -> None:
    key = keygen(tmp_path / "locked", passphrase="open sesame")  # noqa: S106
    named = Path(f"{key}.pub") if public else key
    began = time.monotonic()
    with pytest.raises(InputError, match=r"passphrase.*ssh-add") as caught:
        sign(MESSAGE, named)
    assert time.monotonic() - began < 5
    assert str(caught.value).startswith(f"{named}: expected a key that signs, found: ")


def test_a_public_key_whose_other_half_is_nowhere_is_refused(tmp_path: Path, key: Path) -> None:
    key.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a public key whose private half no agent holds"):
        sign(MESSAGE, Path(f"{key}.pub"))


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True)
    said = dict(re.findall(r"(SSH_\w+)=([^;]+);", started.stdout))
    monkeypatch.setenv("SSH_AUTH_SOCK", said["SSH_AUTH_SOCK"])
    yield
    os.kill(int(said["SSH_AGENT_PID"]), signal.SIGTERM)


@pytest.mark.usefixtures("agent")
def test_an_agent_signs_for_a_locked_key_named_by_its_public_half(tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    subprocess.run(["ssh-add", "-q", key], check=True)
    key.unlink()
    signature = sign(MESSAGE, Path(f"{key}.pub"))
    assert refusal(MESSAGE, signature, NAMESPACE, signers(tmp_path, key)) is None


def test_a_key_that_others_can_read_is_refused_with_the_remedy(key: Path) -> None:
    key.chmod(0o644)
    with pytest.raises(InputError, match=r"one that others can read\. `chmod 600` it"):
        sign(MESSAGE, key)


def test_what_is_no_key_and_what_is_not_there_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text").chmod(0o600)
    for name in ("text", "absent"):
        with pytest.raises(InputError, match="ssh-keygen -t ed25519") as caught:
            sign(MESSAGE, tmp_path / name)
        assert "\n" not in str(caught.value)


def test_without_ssh_keygen_the_error_says_what_to_install(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for attempt in (require_ssh_keygen, lambda: sign(MESSAGE, key)):
        with pytest.raises(MissingError, match="apt install openssh-client") as caught:
            attempt()
        assert caught.value.exit_code == 5


def stand_in(folder: Path, script: str) -> None:
    (folder / "ssh-keygen").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "ssh-keygen").chmod(0o755)


def test_an_old_ssh_keygen_and_one_that_never_answers_are_told(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    stand_in(folder, 'echo "ssh-keygen: unknown option -- Y" >&2; exit 1')
    with pytest.raises(MissingError, match=r"OpenSSH 8\.2 or newer, found an older"):
        require_ssh_keygen()
    monkeypatch.setattr(ssh, "SECONDS", 0.2)
    stand_in(folder, "exec sleep 30")
    with pytest.raises(InputError, match=r"expected an answer within 0\.2 s"):
        sign(MESSAGE, key)


def armored(blob: bytes) -> bytes:
    text = base64.encodebytes(blob).strip()
    return b"-----BEGIN SSH SIGNATURE-----\n" + text + b"\n-----END SSH SIGNATURE-----\n"


def test_a_signature_cut_short_at_any_byte_or_added_to_is_none(key: Path) -> None:
    signature = sign(MESSAGE, key)
    blob = base64.b64decode(b"".join(signature.splitlines()[1:-1]))
    assert parse_signature(armored(blob)) == parse_signature(signature)
    for size in range(len(blob)):
        with pytest.raises(ValueError, match=r"signature|else"):
            parse_signature(armored(blob[:size]) if size else b"no signature")
    for payload in (
        armored(blob + b"x"), armored(b"x" + blob), signature + b"more", b"x" + signature,
        signature.replace(b"SSH", b"PGP"), b"", signature * 2,
        armored(b"SSHSIG\0\0\0\2" + blob[10:]),
        armored(blob[:10] + b"\xff\xff\xff\xff" + blob[14:]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"signature|else"):
            parse_signature(payload)
