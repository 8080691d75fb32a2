"""`ahalab freeze`, `ahalab sign`, and `ahalab verify` where a signature is required."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import AHALAB, Call, run

from ahalab.pipeline.study import freeze, open_study
from ahalab.plan.load import load_plan
from ahalab.records.base import digest
from ahalab.tasks.rewards import reward_folders

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "results/quickstart"
OWN = """
name: own
model: {id: organism}
task: {name: arithmetic, train_prompts: 8, eval_prompts: 8}
arms: [{name: brief, components: {"my_rewards:brief": 1.0}}, random]
control: random
seeds: [1]
grpo: {max_steps: 2, num_generations: 4, per_device_train_batch_size: 8, learning_rate: 1e-4}
lora: {r: 4}
evaluation: {max_new_tokens: 16}
"""
REWARD = "def brief(completions, **_):\n    return [1.0 / (1 + len(c)) for c in completions]\n"


def manifest_of(study: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((study / "manifest.json").read_bytes())
    return found


def test_freeze_prints_the_plan_digest_that_the_committed_study_was_run_under(call: Call) -> None:
    said = call("freeze", ROOT / "studies/quickstart.yaml")
    assert said.code == 0
    assert f"plan    {manifest_of(QUICKSTART)['plan_digest']}" in said.out.splitlines()
    assert "before the first step" in said.err


def test_what_freeze_prints_is_what_is_frozen_whatever_the_machine(tmp_path: Path) -> None:
    printed = []
    for number, more in enumerate(
        (
            {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "1"},
            {"TZ": "America/Lima", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2", "HOME": "/"},
        )
    ):
        folder = tmp_path / f"machine-{number}" / Path(*["deeper"] * number)
        folder.mkdir(parents=True)
        (folder / "plan.yaml").write_text(OWN)
        (folder / "my_rewards.py").write_text(REWARD)
        before = sorted(p.name for p in folder.iterdir())
        done = subprocess.run(
            [*AHALAB, "freeze", "plan.yaml" if number else folder / "plan.yaml", "--format=json"],
            cwd=folder if number else ROOT, env={**os.environ, **more},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert sorted(p.name for p in folder.iterdir()) == before  # it writes nothing
        printed.append(json.loads(done.stdout))
    assert printed[0] == printed[1]
    plan, paths = open_study(folder / "plan.yaml", tmp_path / "out")
    freeze(plan, paths, reward_folders(folder / "plan.yaml"))
    frozen = load_plan(paths.plan)
    assert printed[0] == {
        "study": "own", "plan_digest": digest(frozen), "rewards": dict(frozen.rewards),
    }  # fmt: skip


def test_another_plan_or_another_reward_is_another_digest(call: Call, tmp_path: Path) -> None:
    def told() -> str:
        return call("freeze", tmp_path / "plan.yaml").out

    (tmp_path / "plan.yaml").write_text(OWN)
    (tmp_path / "my_rewards.py").write_text(REWARD)
    before = told()
    assert "my_rewards:brief" in before
    (tmp_path / "plan.yaml").write_text(OWN.replace("seeds: [1]", "seeds: [2]"))
    other_seed = told()
    (tmp_path / "plan.yaml").write_text(OWN)
    (tmp_path / "my_rewards.py").write_text(REWARD.replace("1.0 /", "2.0 /"))
    assert len({before, other_seed, told()}) == 3


def test_a_plan_that_is_not_there_is_one_line(call: Call, tmp_path: Path) -> None:
    said = call("freeze", tmp_path / "no.yaml")
    assert said.code == 2
    assert "expected a study plan" in said.line


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key, its allowed signers, and a signed copy of the quickstart."""
    folder = tmp_path_factory.mktemp("signed")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / "key"], check=True
    )
    (folder / "allowed").write_text(f"me@x {(folder / 'key.pub').read_text()}")
    shutil.copytree(QUICKSTART, folder / "study")
    said = run("sign", folder / "study", "--key", folder / "key")
    assert said.code == 0, said.err
    for line in ("root         " + manifest_of(QUICKSTART)["root"], "study        quickstart"):
        assert line in said.out.splitlines()
    assert "--allowed-signers" in said.err
    return folder


def test_signing_prints_json_when_asked(signed: Path, call: Call) -> None:
    said = call("sign", signed / "study", "--key", signed / "key", "--format", "json")
    told, manifest = json.loads(said.out), manifest_of(QUICKSTART)
    assert (told["study"], told["root"]) == ("quickstart", manifest["root"])
    assert told["plan_digest"] == manifest["plan_digest"]
    assert told["key"].startswith("SHA256:")


def test_a_signature_by_someone_else_is_exit_code_1(signed: Path, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text((signed / "allowed").read_text().replace("me@x", "you@x"))
    said = run("verify", signed / "study", "--allowed-signers", allowed, "--identity", "me@x")
    assert said.code == 1
    assert [line.split()[1] for line in said.out.splitlines() if line.startswith("failed")] == [
        "sig.key"
    ]
    assert "statement.json.sig: expected a key of me@x (allowed), found SHA256:" in said.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--identity", "me@x"], "expected both, found one"),
        (["--allowed-signers", "allowed"], "expected both, found one"),
        (["--allowed-signers", "none", "--identity", "me@x"], "expected a file of allowed signers"),
    ],
)
def test_half_of_what_a_signature_needs_is_refused(
    call: Call, options: list[str], told: str
) -> None:
    said = call("verify", QUICKSTART, *options)
    assert said.code == 2
    assert told in said.line


def test_without_ssh_keygen_signing_and_requiring_a_signature_exit_5(
    signed: Path, tmp_path: Path
) -> None:
    for arguments in (
        ("sign", signed / "study", "--key", signed / "key"),
        ("verify", signed / "study", "--allowed-signers", signed / "allowed", "--identity", "me@x"),
    ):
        done = subprocess.run(
            [*AHALAB, *map(str, arguments)], env={**os.environ, "PATH": str(tmp_path)},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 5
        assert "apt install openssh-client" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_locked_key_does_not_hang_in_a_shell_without_a_terminal(
    signed: Path, tmp_path: Path
) -> None:
    key = tmp_path / "locked"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", key], check=True
    )
    hidden = ("SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY")
    done = subprocess.run(
        [*AHALAB, "sign", signed / "study", "--key", key],
        env={k: v for k, v in os.environ.items() if k not in hidden},
        stdin=subprocess.DEVNULL, start_new_session=True,  # as in CI: no controlling terminal
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 2
    assert "a wrong or no passphrase" in done.stderr


TYPIST = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.executable, [sys.executable, "-m", "ahalab", *sys.argv[1:]])
said = b""
while b"passphrase" not in said:
    said += os.read(terminal, 1000)
os.write(terminal, b"open sesame\\n")
try:
    while piece := os.read(terminal, 1000):
        said += piece
except OSError:
    pass
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_at_a_terminal_the_passphrase_is_asked_for(signed: Path, tmp_path: Path) -> None:
    key = tmp_path / "locked"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", key], check=True
    )
    study = shutil.copytree(signed / "study", tmp_path / "study")
    done = subprocess.run(
        [sys.executable, "-c", TYPIST, "sign", str(study), "--key", str(key)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "signed by" in done.stdout
    assert (study / "statement.json.sig").read_bytes() != (
        signed / "study/statement.json.sig"
    ).read_bytes()
