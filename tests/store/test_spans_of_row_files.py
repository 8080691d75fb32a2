from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ahalab.errors import InputError, RecordError
from ahalab.store.reading import read_spans, sealed_path

CONTENT = bytes(range(256)) * 9_000  # over two reads of a megabyte


@pytest.fixture(params=["plain", "compressed"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    if request.param == "plain":
        path.write_bytes(CONTENT)
    else:
        sealed_path(path).write_bytes(zstandard.ZstdCompressor().compress(CONTENT))
    return path


@given(places=st.lists(st.integers(0, len(CONTENT)), min_size=2, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_spans_are_the_bytes_between_their_ends(path: Path, places: list[int]) -> None:
    places.sort()
    spans = list(zip(places[::2], places[1::2], strict=False))
    assert list(read_spans(path, spans)) == [CONTENT[start:end] for start, end in spans]


def test_a_file_that_ends_before_a_span_is_named(path: Path) -> None:
    spans = read_spans(path, [(0, 5), (len(CONTENT) - 5, len(CONTENT) + 5)])
    assert next(spans) == CONTENT[:5]
    with pytest.raises(RecordError, match=f"expected {len(CONTENT) + 5} committed bytes, found"):
        next(spans)


def test_no_file_and_a_damaged_one_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a row file, found none"):
        next(read_spans(tmp_path / "rows.jsonl", [(0, 1)]))
    sealed_path(tmp_path / "rows.jsonl").write_bytes(b"no zstandard at all")
    with pytest.raises(RecordError, match="expected a zstandard file"):
        next(read_spans(tmp_path / "rows.jsonl", [(0, 1)]))
