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


EXTRAS = {
    "train": ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors"),
    "vllm": ("vllm",),
    "endpoint": ("httpx2",),
}


def require_extra(extra: str, what: str) -> None:
    """Refuse to go on without the packages of an extra.

    Args:
        extra: One of `EXTRAS`.
        what: What needs them, as `training and generation need`.

    Raises:
        MissingError: The packages that are missing, and the line to type.
    """
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(
            f"{what} {', '.join(missing)}, not installed here. Type: pip install 'ahalab[{extra}]'"
        )


def require_train_extra() -> None:
    """Refuse to train or generate without the [train] extra; see `require_extra`."""
    require_extra("train", "training and generation need")
