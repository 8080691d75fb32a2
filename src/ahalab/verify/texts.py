"""The text of token ids, by the study's own tokenizer where that is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from ahalab.errors import AhaLabError
from ahalab.records.plan import Plan
from ahalab.store.fingerprint import tokenizer_fingerprint, tokenizer_settings
from ahalab.store.models import ORGANISM, organism_folder

# Settings under which transformers decodes otherwise than tokenizer.json alone says.
OWN_WAYS = {"clean_up_tokenization_spaces", "special_tokens"}


class Decoder:
    """Decodes completion ids as training and evaluation did."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def text(self, ids: Sequence[int]) -> str | None:
        """Return the text of token ids; None when they are no ids of this tokenizer."""
        try:
            decoded: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        except (OverflowError, TypeError, ValueError):
            return None
        return decoded

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return the text of each token alone, by its id."""
        return [self.text([token]) or "" for token in range(self._tokenizer.get_vocab_size())]

    def holds(self, ids: Sequence[int], text: str) -> bool:
        """Say whether token ids, shape (T,), hold a text, but for white space.

        The text goes through the tokenizer first: some write it otherwise, as in lower case.
        """
        own = self.text(self._tokenizer.encode(text, add_special_tokens=False).ids)
        held = self.text(ids)
        return own is not None and held is not None and _bare(own) in _bare(held)


def _bare(text: str) -> str:
    return "".join(text.split())


def model_folder(plan: Plan) -> Path | None:
    """Return where the base lies: the packaged organism, or the folder that the plan names."""
    if plan.model.id == ORGANISM:
        return organism_folder()
    try:
        folder = Path(plan.model.id).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError):  # a name too long, or `~` of nobody here: a hub's
        return None


def decoder_for(plan: Plan, tokenizer_digest: str) -> Decoder | None:
    """Return a decoder when a tokenizer of the recorded digest is at hand, or None.

    At hand is the packaged organism's, or that of the model folder which the plan names.
    """
    folder = model_folder(plan)
    try:
        if folder is None or tokenizer_fingerprint(folder) != tokenizer_digest:
            return None
        if not OWN_WAYS & tokenizer_settings(folder).keys():
            return Decoder(Tokenizer.from_file(str(folder / "tokenizer.json")))
    except (AhaLabError, OSError, ValueError):
        return None
    return None
