"""The base's tokenizer and template read from their files, where no model is loaded: no torch.

An endpoint generates elsewhere. What is needed here is the text of token ids, the template's digest
and the tokens that end a completion, and importing transformers for that would import torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.store.models import end_ids_of_folder


class LocalTokenizer:
    """What a folder says of its tokens.

    Raises:
        InputError: It has no tokenizer.json, no single chat template, or no end token.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tokenizer = _load(folder)
        self._config = _read_json(folder / "tokenizer_config.json")
        self.chat_template = self._template()
        self.end_ids = self._ends()

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of token ids."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def prompt_text(self, ids: Sequence[int]) -> str:
        """Return the text that a server turns into exactly these token ids.

        A server adds a begin token of its own where the tokenizer does; then the text is sent
        without it.

        Raises:
            InputError: No text reads back to these ids.
        """
        for first in (0, 1):
            text = self.decode(ids[first:], skip_special_tokens=False)
            if tuple(self._tokenizer.encode(text, add_special_tokens=True).ids) == tuple(ids):
                return text
        raise InputError(
            f"{self.folder}: expected prompts whose text reads back to their token ids, found one "
            "that does not. Take dialect vllm (token ids), or api chat."
        )

    def _template(self) -> str:
        path = self.folder / "chat_template.jinja"
        found = read_plain(path).decode("utf-8") if path.is_file() else None
        found = found if found is not None else self._config.get("chat_template")
        if not isinstance(found, str):
            raise InputError(
                f"{self.folder}: expected one chat template (chat_template.jinja, or in "
                "tokenizer_config.json), found "
                f"{'none' if found is None else 'several'}. Use an instruction model."
            )
        return found

    def _ends(self) -> frozenset[int]:
        """Return the tokens that end a completion, as `store.models.end_ids` does of a model."""
        token = self._config.get("eos_token")
        token = token.get("content") if isinstance(token, dict) else token
        own = self._tokenizer.token_to_id(token) if isinstance(token, str) else None
        ends = end_ids_of_folder(self.folder, own)
        if not ends:
            raise InputError(f"{self.folder}: expected an end-of-sequence token, found none.")
        return ends


def _load(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"{path}: expected the base's tokenizer, found none.")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise InputError(f"{path}: expected a tokenizer, found: {str(error)[:200]}") from error


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        tree = json.loads(read_plain(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a JSON object, found: {error}.") from error
    return tree if isinstance(tree, dict) else {}
