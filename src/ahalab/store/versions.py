"""What a result was made with: package versions and the commit."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from ahalab.errors import MissingError

PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "tokenizers",
    "safetensors",
    "numpy",
)


def versions() -> dict[str, str]:
    """Return the versions that a run depends on."""
    found = {"python": platform.python_version(), "platform": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def git_commit() -> str | None:
    """Return the working folder's commit, `-dirty` when edited; None outside git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def require_train_extra() -> None:
    """Refuse to train or generate without the [train] extra.

    Raises:
        MissingError: The packages that are missing, and the line to type.
    """
    needed = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(
            f"training and generation need {', '.join(missing)}, not installed here. "
            "Type: pip install 'ahalab[train]'"
        )
