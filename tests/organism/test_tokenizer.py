import json
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from ahalab.organism.digests import MODEL_FOLDER
from ahalab.organism.tokenizer import SPECIAL_TOKENS, train_tokenizer
from ahalab.organism.world import stream_problems

PACKAGED = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_survives_encoding_and_decoding(text: str) -> None:
    ids = PACKAGED.encode(text).ids
    assert PACKAGED.decode(ids, skip_special_tokens=False) == text


def test_every_digit_is_a_token_of_its_own() -> None:
    for problem in islice(stream_problems("eval", 1), 200):
        tokens = PACKAGED.encode(problem.question).tokens
        assert not [token for token in tokens if any(map(str.isdigit, token)) and len(token) > 1]


def test_special_tokens_are_one_token_each() -> None:
    for token in SPECIAL_TOKENS:
        assert len(PACKAGED.encode(token).ids) == 1


def test_the_vocabulary_is_small() -> None:
    assert PACKAGED.get_vocab_size() <= 512


def test_training_twice_gives_one_tokenizer() -> None:
    texts = [problem.question for problem in islice(stream_problems("pretrain", 1), 500)]
    assert train_tokenizer(texts).to_str() == train_tokenizer(texts).to_str()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer_class", "PreTrainedTokenizerFast"),
        ("model_input_names", ["input_ids", "attention_mask"]),
    ],
)
def test_the_configuration_loads_in_transformers_4_and_5(field: str, value: object) -> None:
    path = Path(MODEL_FOLDER) / "tokenizer_config.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    assert configuration[field] == value
    assert "extra_special_tokens" not in configuration
