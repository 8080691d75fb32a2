import json
from pathlib import Path

import pytest

from ahalab.organism.digests import (
    DIGESTS_FILE,
    MODEL_FOLDER,
    file_digests,
    read_digests,
    write_digests,
)


def test_the_packaged_files_are_those_the_digests_name() -> None:
    assert file_digests(MODEL_FOLDER) == read_digests(MODEL_FOLDER)


def test_the_packaged_folder_is_complete() -> None:
    assert set(read_digests(MODEL_FOLDER)) == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_the_packaged_weights_are_at_most_4_megabytes() -> None:
    assert (MODEL_FOLDER / "model.safetensors").stat().st_size <= 4_000_000


def test_the_generation_configuration_holds_token_ids_and_no_sampling_field() -> None:
    path = MODEL_FOLDER / "generation_config.json"
    fields = set(json.loads(path.read_text(encoding="utf-8")))
    ids = {"bos_token_id", "eos_token_id", "pad_token_id"}
    assert fields <= ids | {"_from_model_config", "transformers_version"}
    assert {"eos_token_id", "pad_token_id"} <= fields


def test_a_digest_is_the_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    write_digests(tmp_path)
    # The example of FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert read_digests(tmp_path) == {"a.txt": expected}


def test_a_changed_byte_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    write_digests(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"abd")
    assert file_digests(tmp_path) != read_digests(tmp_path)


def test_a_digests_file_that_is_no_object_of_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / DIGESTS_FILE).write_text('{"a.txt": 1}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"expected an object of SHA-256 texts"):
        read_digests(tmp_path)
