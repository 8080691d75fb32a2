"""JSON files beside models and datasets of others: one object each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ahalab.errors import InputError
from ahalab.plain_files import read_plain


def read_object(path: Path) -> dict[str, Any]:
    """Return the object that a file of a model or a dataset holds; nothing where there is none.

    Raises:
        InputError: It is no JSON object.
    """
    if not path.is_file():
        return {}
    try:
        # Bytes as they are would be taken for UTF-16 or UTF-32 where they look so.
        read = json.loads(read_plain(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a JSON object, found: {error}.") from error
    if not isinstance(read, dict):
        raise InputError(f"{path}: expected a JSON object, found a {type(read).__name__}.")
    return read
