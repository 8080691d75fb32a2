"""The organism's tokenizer: byte-level pairs, every digit a token of its own, any text lossless."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PAD, END, SYSTEM, USER, ASSISTANT = SPECIAL_TOKENS = (
    "<|pad|>",
    "<|end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
)
VOCABULARY_SIZE = 512
MODEL_MAX_TOKENS = 256
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)

# A word or an operator keeps the spaces around it, so that " + " is one token.
_PIECES = r"\d| ?[A-Za-z]+ ?| ?[^\sA-Za-z\d]+ ?|\s"


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Train the tokenizer on texts of the world.

    Args:
        texts: Questions and solutions; their order does not matter.

    Returns:
        A tokenizer whose `decode(encode(text).ids, skip_special_tokens=False)` is `text`.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the tokenizer so that transformers 4.57 and 5.x both load it.

    Args:
        tokenizer: A tokenizer made by `train_tokenizer`.
        folder: An existing folder; three files are written into it.
    """
    tokenizer.save(str(folder / "tokenizer.json"))
    configuration = {
        "additional_special_tokens": [SYSTEM, USER, ASSISTANT],
        "clean_up_tokenization_spaces": False,
        "eos_token": END,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": MODEL_MAX_TOKENS,
        "pad_token": PAD,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    text = json.dumps(configuration, indent=2, sort_keys=True) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")


def render_prompt(question: str) -> str:
    """Return what the chat template makes of one user turn and a generation prompt."""
    return f"{USER}{question}{END}{ASSISTANT}"


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Return a special token's id.

    Raises:
        ValueError: The tokenizer does not hold the token.
    """
    identifier: int | None = tokenizer.token_to_id(token)
    if identifier is None:
        raise ValueError(f"tokenizer: expected the token {token}, found none. Train it again.")
    return identifier
