"""scripts/gpu_check.sh refuses in one line; what it does is seen on a GPU, or with --cpu."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "gpu_check.sh"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/usr/bin/env", "bash", str(SCRIPT), *arguments],
        capture_output=True, text=True, check=False, timeout=30, env=environment or None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--nosuch"], 2, "expected --cpu, --model, --python or --vllm-python, found --nosuch."),
        (["--model"], 2, "expected a value after --model, found none."),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    arguments: list[str], code: int, told: str
) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"gpu_check: {told}\n")


def test_without_a_gpu_it_says_what_to_do(tmp_path: Path) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    done = run(PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 5
    assert done.stderr == (
        "gpu_check: expected an NVIDIA GPU (nvidia-smi -L), found none. Run it on one, or with "
        "--cpu.\n"
    )


def test_help_is_the_head_of_the_script() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Trains and evaluates on a GPU within ten minutes")
    assert "--cpu" in done.stdout
    assert "set -euo" not in done.stdout
