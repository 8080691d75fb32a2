"""SHA-256 digests of the packaged model's files."""

import hashlib
import json
from pathlib import Path

DIGESTS_FILE = "DIGESTS.json"
MODEL_FOLDER = Path(__file__).parent / "model"


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 (hex) of every file in a folder, by name, the digests file apart."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != DIGESTS_FILE
    }


def write_digests(folder: Path) -> None:
    """Write the digests file of a folder."""
    text = json.dumps(file_digests(folder), indent=2, sort_keys=True) + "\n"
    (folder / DIGESTS_FILE).write_text(text, encoding="utf-8")


def read_digests(folder: Path) -> dict[str, str]:
    """Return the digests a folder was packaged with.

    Raises:
        ValueError: The file is not a JSON object of texts.
    """
    path = folder / DIGESTS_FILE
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise ValueError(f"{path}: expected an object of SHA-256 texts, found something else.")
    return {str(name): str(digest) for name, digest in content.items()}
