"""Where a plan's base model lies: the packaged organism, a folder, or a hub id."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from ahalab.errors import InputError, MissingError
from ahalab.records.plan import ModelSpec
from ahalab.store.json_files import read_object

ORGANISM = "organism"


def organism_folder() -> Path:
    """Return the folder of the embedded model that ships with the package."""
    return Path(str(files("ahalab.organism").joinpath("model")))


def resolve_model(spec: ModelSpec) -> Path:
    """Return the local folder of a model; a hub id is fetched to the Hugging Face cache first.

    Raises:
        InputError: A folder was named and is not there, or holds no model; a revision stands with
            a folder; the hub has no such model or revision.
        MissingError: A hub id can't be fetched from here.
    """
    folder = Path(spec.id).expanduser()
    if spec.id == ORGANISM or (spec.id and folder.is_dir()):
        if spec.revision is not None:
            raise InputError(
                f"model.revision: expected none with {spec.id}, which is no hub id, found "
                f"{spec.revision!r}. Remove the key: the weights' digest tells which they were."
            )
        return organism_folder() if spec.id == ORGANISM else _checked(folder)
    if spec.id.startswith((".", "/", "~")) or spec.id.count("/") != 1:
        raise InputError(
            "model.id: expected `organism`, a model folder or a hub id (owner/name), found "
            f"{spec.id!r}, "
            "and no such folder exists. Mend the path."
        )
    return _checked(_fetch(spec))


def _checked(folder: Path) -> Path:
    """Refuse a folder without a model that may be loaded."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: expected a transformers model (config.json), found none.")
    if next(folder.glob("*.safetensors"), None) is None:
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        found = f"{pickled[0]}, which is never loaded: it may run code" if pickled else "none"
        raise InputError(
            f"{folder}: expected weights in safetensors, found {found}. Take a model that has "
            "them, or save it again with save_pretrained."
        )
    return folder


def _fetch(spec: ModelSpec) -> Path:
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as error:
        raise MissingError(
            f"model {spec.id}: a hub id needs `pip install 'ahalab[train]'`."
        ) from error
    patterns = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
    named = f"model {spec.id}" + (f" at {spec.revision}" if spec.revision is not None else "")
    try:
        return Path(snapshot_download(spec.id, revision=spec.revision, allow_patterns=patterns))
    except errors.HFValidationError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"model.id: expected a hub id (owner/name), found: {reason}.") from error
    except errors.GatedRepoError as error:
        raise MissingError(
            f"{named}: gated. Ask for access on its page, then `hf auth login`."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"model.revision: {spec.id} has no revision {spec.revision!r}. Mend the key."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"model.id: the hub has no model {spec.id!r} that is open to you, and no such folder "
            "exists. Mend the key, or `hf auth login`."
        ) from error
    except OSError as error:
        raise MissingError(
            f"{named}: not in the local cache, and the hub can't be reached "
            f"({type(error).__name__}). No folder of that name exists either. Go online, unset "
            "HF_HUB_OFFLINE, or set model.id to a folder."
        ) from error


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep the libraries' advice and bars off the terminal; what matters stands in the records."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load_model(spec: ModelSpec, folder: Path) -> Any:
    """Return the base in the plan's dtype, on its device; safetensors only, no remote code.

    Raises:
        InputError: The folder holds no loadable model.
        MissingError: torch or transformers is not installed.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise MissingError("a model needs torch: pip install 'ahalab[train]'") from error

    try:
        with quiet_libraries():
            model = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, spec.dtype),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder}: expected a model, found: {' '.join(str(error).split())[:200]}"
        ) from error
    return model.to(spec.device)


def has_experts(folder: Path) -> bool:
    """Say whether a model routes to experts, so that its routers have a loss of their own.

    Raises:
        InputError: Its configuration can't be read, or asks for code of its own.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder}: expected a model's configuration, found: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error
    return hasattr(config.get_text_config(), "output_router_logits")


def end_ids_of_folder(folder: Path, tokenizer_end: int | None) -> frozenset[int]:
    """Return the token ids that end a completion, from a model's files alone.

    Args:
        folder: Of the model.
        tokenizer_end: The tokenizer's own end token.

    Raises:
        InputError: A configuration is malformed.
    """
    listed: Any = None
    for name in ("generation_config.json", "config.json"):
        listed = listed if listed is not None else read_object(folder / name).get("eos_token_id")
    ids = [*(listed if isinstance(listed, list) else [listed]), tokenizer_end]
    wrong = [i for i in ids if i is not None and type(i) is not int]
    if wrong:
        raise InputError(
            f"{folder}: expected whole numbers in eos_token_id, found {wrong[0]!r:.80}."
        )
    return frozenset(i for i in ids if i is not None)


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return every token id that ends a completion."""
    configured = model.generation_config.eos_token_id
    listed = configured if isinstance(configured, list) else [configured]
    return frozenset(int(i) for i in [*listed, tokenizer.eos_token_id] if i is not None)
