"""What a model's files say of its tokens, without the library that reads them elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from ahalab.errors import InputError
from ahalab.evaluate.backends.local_tokenizer import LocalTokenizer
from ahalab.store.models import organism_folder
from ahalab.tasks.render import load_tokenizer, template_fingerprint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the organism's small files that a test may change."""
    for path in organism_folder().iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    return tmp_path


def edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))


@pytest.mark.train
def test_it_reads_the_template_and_the_text_that_transformers_reads(folder: Path) -> None:
    ours, theirs = LocalTokenizer(folder), load_tokenizer(folder)
    assert template_fingerprint(ours) == template_fingerprint(theirs)
    ids = theirs("12 + 7 = 19\n#### 19")["input_ids"]
    assert ours.decode([*ids, 1]) == theirs.decode([*ids, 1], skip_special_tokens=True)


@pytest.mark.train
def test_a_template_within_the_configuration_is_read_too(folder: Path) -> None:
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    edit(folder / "tokenizer_config.json", chat_template=template)
    assert template_fingerprint(LocalTokenizer(folder)) == template_fingerprint(
        load_tokenizer(folder)
    )


def test_end_tokens_come_from_generation_configuration_and_tokenizer(folder: Path) -> None:
    assert LocalTokenizer(folder).end_ids == {1}
    edit(folder / "generation_config.json", eos_token_id=[5, 6])
    assert LocalTokenizer(folder).end_ids == {1, 5, 6}
    (folder / "generation_config.json").unlink()
    edit(folder / "config.json", eos_token_id=7)
    edit(folder / "tokenizer_config.json", eos_token={"content": "<|end|>"})
    assert LocalTokenizer(folder).end_ids == {1, 7}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "expected the base's tokenizer, found none"),
        (lambda f: (f / "tokenizer.json").write_text("{"), "expected a tokenizer, found"),
        (lambda f: (f / "chat_template.jinja").unlink(), "expected one chat template"),
        (lambda f: (f / "tokenizer_config.json").write_text("["), "expected a JSON object"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(folder: Path, fault: object, told: str) -> None:
    assert callable(fault)
    fault(folder)
    with pytest.raises(InputError, match=told):
        LocalTokenizer(folder)


def test_a_text_is_sent_only_if_it_reads_back_to_its_token_ids(folder: Path) -> None:
    tokenizer = LocalTokenizer(folder)
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("12 + 7 = 19").ids
    assert tokenizer.prompt_text(ids) == "12 + 7 = 19"
    letters = [Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(c) for c in "answer"]
    assert tokenizer.decode(letters) == "answer"  # which the tokenizer writes as one token
    with pytest.raises(InputError, match="dialect vllm"):
        tokenizer.prompt_text(letters)


def test_a_begin_token_that_the_server_adds_is_left_out_of_the_text(folder: Path) -> None:
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    plain = own.encode("12 + 7 = 19").ids
    own.post_processor = TemplateProcessing(
        single="<|pad|> $A", special_tokens=[("<|pad|>", own.token_to_id("<|pad|>"))]
    )
    own.save(str(folder / "tokenizer.json"))
    assert own.encode("12 + 7 = 19").ids == [0, *plain]
    assert LocalTokenizer(folder).prompt_text([0, *plain]) == "12 + 7 = 19"
