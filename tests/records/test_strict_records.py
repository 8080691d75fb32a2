import hashlib
import importlib
import json
import pkgutil
import re
import string
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ahalab.records
from ahalab.errors import RecordError
from ahalab.records.answer import Answer, Protocol, comparable_digest
from ahalab.records.base import Record, decode_file, decode_row, digest, encode, encode_pretty
from ahalab.records.manifest import Claim
from ahalab.records.pair import ScoredRow
from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.step import Step, Timing
from ahalab.records.terms import Outcome

PLACE = "rollouts.jsonl:7"
TIMING = Timing(step=1, seconds=0.5, utc="now")
# By hand: schema order, ASCII, no white space.
TIMING_BYTES = b'{"schema":"timing/1","step":1,"seconds":0.5,"utc":"now"}'


def record_types() -> list[type[msgspec.Struct]]:
    found = []
    for module in pkgutil.iter_modules(ahalab.records.__path__, "ahalab.records."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct):
                found.append(value)
    return sorted(set(found) - {Record}, key=lambda kind: kind.__name__)


def named_in_others(kinds: list[type[msgspec.Struct]]) -> set[type]:
    """Return the structs that stand inside another one."""
    inner: set[type] = set()

    def walk(node: Any) -> None:
        if isinstance(node, msgspec.inspect.StructType):
            inner.add(node.cls)
        for name in ("types", "item_types"):
            for part in getattr(node, name, ()):
                walk(part)
        for name in ("item_type", "key_type", "value_type"):
            if hasattr(node, name):
                walk(getattr(node, name))

    for kind in kinds:
        for field in msgspec.inspect.type_info(kind).fields:
            walk(field.type)
    return inner


def values_of(node: Any) -> st.SearchStrategy[Any]:
    """Return values of a msgspec type, edge cases included."""
    inspect = msgspec.inspect
    match node:
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(-(2**63), 2**63 - 1)
        case inspect.FloatType():
            return st.floats(-1e100, 1e100)
        case inspect.StrType():
            awkward = st.sampled_from(
                ["\u2028", "\u0085", "\x00", "\x7f", "</script>", "\U0001f600"]
            )
            return st.one_of(st.text(max_size=8), awkward)
        case inspect.LiteralType():
            return st.sampled_from(node.values)
        case inspect.AnyType():
            return st.recursive(
                st.none()
                | st.booleans()
                | st.integers(-9, 9)
                | st.floats(-1, 1)
                | st.text(max_size=3),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.text(max_size=3), inner, max_size=2)
                ),
                max_leaves=4,
            )
        case inspect.UnionType():
            return st.one_of([values_of(part) for part in node.types])
        case inspect.VarTupleType():
            return st.lists(values_of(node.item_type), max_size=2).map(tuple)
        case inspect.TupleType():
            return st.tuples(*(values_of(part) for part in node.item_types))
        case inspect.DictType():
            return st.dictionaries(values_of(node.key_type), values_of(node.value_type), max_size=2)
        case inspect.StructType():
            return records_of(node.cls)
    raise NotImplementedError(node)


def records_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = msgspec.inspect.type_info(kind).fields
    return st.builds(kind, **{field.name: values_of(field.type) for field in fields})


def refusal(payload: bytes, kind: type[Any] = Timing) -> str:
    with pytest.raises(RecordError) as caught:
        decode_row(payload, kind, PLACE)
    message = str(caught.value)
    assert message.startswith(f"{PLACE}: ")
    return message


def test_a_row_is_ascii_without_white_space_in_schema_order() -> None:
    assert encode(TIMING) == TIMING_BYTES
    assert decode_row(TIMING_BYTES, Timing, PLACE) == TIMING


def test_line_separators_are_escaped_so_that_a_row_stays_one_line() -> None:
    payload = encode(Timing(step=1, seconds=0.5, utc="a\u2028b\u0085c\u2029d\ne\x00"))
    assert payload.isascii()
    assert b'"a\\u2028b\\u0085c\\u2029d\\ne\\u0000"' in payload
    assert len(payload.decode().splitlines()) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_is_not_finite_cannot_be_written(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Timing(step=1, seconds=value, utc=""))
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_pretty(Timing(step=1, seconds=value, utc=""))


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"schema":"timing/1","step":1,"seconds":0.5,"utc":"now","more":1}', "more"),
        (b'{"schema":"timing/1","step":1,"seconds":0.5}', "utc"),
        (b'{"step":1,"seconds":0.5,"utc":"now"}', "a field missing"),
        (b'{"schema":"timing/2","step":1,"seconds":0.5,"utc":"now"}', "schema"),
        (b'{"schema":"timing/1","step":"1","seconds":0.5,"utc":"now"}', "step"),
        (b'{"schema":"timing/1","step":true,"seconds":0.5,"utc":"now"}', "step"),
        (b'{"schema":"timing/1","step":1.0,"seconds":0.5,"utc":"now"}', "step"),
        (b'{"schema":"timing/1","step":1,"seconds":1,"utc":"now"}', "canonical"),
        (b'{"schema":"timing/1","step":1,"seconds":true,"utc":"now"}', "seconds"),
        (b'{"schema":"timing/1","step":1,"seconds":null,"utc":"now"}', "seconds"),
        (b'{"schema":"timing/1","step":1,"seconds":0.50,"utc":"now"}', "canonical"),
        (b'{"schema":"timing/1","step":1,"seconds":5e-1,"utc":"now"}', "canonical"),
        (b'{"schema":"timing/1","step":1,"seconds":NaN,"utc":"now"}', "invalid"),
        (b'{"schema":"timing/1","step":1,"seconds":Infinity,"utc":"now"}', "invalid"),
        (b'{"schema":"timing/1","step":1,"seconds":1e999,"utc":"now"}', "out of range"),
        (b'{"schema":"timing/1","step":2,"step":1,"seconds":0.5,"utc":"now"}', "a key twice"),
        (b'{"step":1,"schema":"timing/1","seconds":0.5,"utc":"now"}', "canonical"),
        (b'{"schema": "timing/1","step":1,"seconds":0.5,"utc":"now"}', "canonical"),
        (TIMING_BYTES + b" ", "byte 56"),
        (TIMING_BYTES + b"\r", "byte 56"),
        (TIMING_BYTES + b"{}", "trailing"),
        (b" " + TIMING_BYTES, "byte 0"),
        (b"\xef\xbb\xbf" + TIMING_BYTES, "malformed"),
        (TIMING_BYTES.replace(b"now", b"n\xffw"), "utf-8"),
        (TIMING_BYTES.replace(b"now", "nöw".encode()), "canonical"),
        (TIMING_BYTES.replace(b"now", rb"\u006eow"), "canonical"),
        (TIMING_BYTES.replace(b"now", rb"\ud800"), ""),
        (TIMING_BYTES.replace(b":1,", b":" + b"9" * 5000 + b","), "step"),
        (b"", "truncated"),
        (b"[]", "object"),
        (b"null", "object"),
    ],
)
def test_a_row_that_encode_would_not_write_is_refused_with_its_place(
    payload: bytes, said: str
) -> None:
    assert said.lower() in refusal(payload).lower()


@pytest.mark.parametrize("kind", [Timing, Rollout, Protocol])
@pytest.mark.parametrize("opening", [b"[", b'{"generation":'])
def test_nesting_of_100000_levels_is_refused_not_a_crash(kind: type, opening: bytes) -> None:
    refusal(opening * 100_000, kind)


def test_free_fields_nested_100000_deep_are_refused_not_a_crash() -> None:
    depth = 100_000
    refusal(b'{"generation":' + b"[" * depth + b"]" * depth + b"}", Protocol)


def test_a_key_twice_in_an_inner_mapping_is_refused() -> None:
    row = rollout_row()
    doubled = row.replace(b'"components":{', b'"components":{"a":{"value":0.0,"status":"x"},')
    assert doubled != row
    assert "a key twice" in refusal(doubled, Rollout)


def rollout_row() -> bytes:
    return encode(
        Rollout(
            step=0,
            rank=0,
            group=0,
            prompt_id="00000-0",
            sample=0,
            completion="#### 4",
            completion_ids=(1, 2),
            finish="eos",
            components={"a": ComponentRow(value=None, status="timeout")},
            reward=0.0,
            advantage=-0.0,
            historical="correct",
            strict="correct",
            lenient="correct",
            status="ok",
            extracted=None,
            formatted=True,
            repetition=0.0,
            reflection=(),
        )
    )


def test_unknown_is_null_and_minus_zero_keeps_its_sign() -> None:
    read = decode_row(rollout_row(), Rollout, PLACE)
    assert read.components["a"].value is None
    assert str(read.advantage) == "-0.0"


def test_a_claim_keeps_a_count_apart_from_a_measured_number() -> None:
    count = Claim(id="n", value=1, unit="count", inputs=(), method="")
    points = Claim(id="n", value=1.0, unit="points", inputs=(), method="")
    assert type(decode_row(encode(count), Claim, PLACE).value) is int
    assert type(decode_row(encode(points), Claim, PLACE).value) is float


def test_a_single_record_file_is_read_only_in_its_pretty_form() -> None:
    payload = encode_pretty(TIMING)
    assert payload.endswith(b"}\n")
    assert decode_file(payload, Timing, "run.json") == TIMING
    for changed in (
        encode(TIMING),
        payload[:-1],
        payload + b"\n",
        payload.replace(b"1", b"1.0", 1),
    ):
        with pytest.raises(RecordError, match=r"^run\.json: "):
            decode_file(changed, Timing, "run.json")


def test_a_digest_is_the_sha256_of_the_canonical_bytes() -> None:
    assert digest(TIMING) == f"sha256:{hashlib.sha256(TIMING_BYTES).hexdigest()}"


@given(records_of(Protocol), st.text(max_size=5))
def test_protocols_that_differ_in_the_adapter_only_are_comparable(
    protocol: Protocol, adapter: str
) -> None:
    other = msgspec.structs.replace(protocol, adapter_digest=adapter)
    assert comparable_digest(other) == comparable_digest(protocol)
    seeded = msgspec.structs.replace(protocol, seed=protocol.seed ^ 1)
    assert comparable_digest(seeded) != comparable_digest(protocol)


@pytest.mark.parametrize("kind", record_types(), ids=lambda kind: kind.__name__)
def test_every_record_is_frozen_and_forbids_unknown_fields(kind: type[msgspec.Struct]) -> None:
    assert issubclass(kind, Record)
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.forbid_unknown_fields


def test_every_top_level_record_names_its_schema() -> None:
    kinds = record_types()
    inner = named_in_others(kinds)
    inner.discard(Protocol)  # also within the protocol of continuations
    inner.add(ScoredRow)  # printed by `ahalab score`, whose fields are a contract without schema
    tops = [kind for kind in kinds if kind not in inner and not kind.__struct_config__.tag]
    assert {Rollout, Answer, Step, Protocol} <= set(tops)
    schemas = []
    for kind in tops:
        (field,) = [f for f in msgspec.inspect.type_info(kind).fields if f.encode_name == "schema"]
        assert isinstance(field.type, msgspec.inspect.LiteralType), kind
        (schema,) = field.type.values
        assert schema == field.default
        assert schema.partition("/")[2].isdigit()
        schemas.append(schema)
    assert len(set(schemas)) == len(schemas)


@pytest.mark.parametrize("kind", record_types(), ids=lambda kind: kind.__name__)
def test_every_record_reads_back_as_it_was_written(kind: type[msgspec.Struct]) -> None:
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(records_of(kind))
    def round_trip(record: msgspec.Struct) -> None:
        payload = encode(record)
        assert payload.isascii()
        assert b"\n" not in payload
        assert decode_row(payload, kind, PLACE) == record
        # The standard library as the oracle: the same tree, whatever msgspec thinks.
        assert json.loads(payload) == json.loads(msgspec.json.encode(record))
        assert decode_file(encode_pretty(record), kind, PLACE) == record

    round_trip()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_one_byte_changed_is_refused_or_reads_as_another_record(data: st.DataObject) -> None:
    row = rollout_row()
    at = data.draw(st.integers(0, len(row) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = row[:at] + bytes([byte]) + row[at + 1 :]
    try:
        record = decode_row(changed, Rollout, PLACE)
    except RecordError as error:
        message = str(error)
    else:
        message = f"{PLACE}: "
        assert encode(record) == changed  # whatever is accepted is canonical
    assert message.startswith(f"{PLACE}: ")


def test_every_printable_character_survives() -> None:
    for character in string.printable:
        record = Timing(step=0, seconds=0.0, utc=character)
        assert decode_row(encode(record), Timing, PLACE) == record


def test_the_vocabulary_of_outcomes_is_closed() -> None:
    assert Outcome == Literal["correct", "wrong", "unparsed", "truncated", "error"]
    refusal(rollout_row().replace(b'"strict":"correct"', b'"strict":"right"'), Rollout)


class Written(Record, frozen=True, kw_only=True):
    """Everything that a row without a float may hold."""

    text: str
    number: int | None = None
    listed: tuple[int, ...] = ()
    named: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30, 10**400, -(10**400)])
@pytest.mark.parametrize("field", ["number", "listed"])
def test_a_number_of_more_than_64_bits_is_refused(number: int, field: str) -> None:
    text = f" {number}, [{number}] {number}"  # in a text it is no number
    sound = Written(text=text, number=2**63 - 1, listed=(-(2**63), 3))
    assert decode_row(encode(sound), Written, PLACE) == sound
    assert decode_file(encode_pretty(sound), Written, PLACE) == sound
    value = number if field == "number" else (1, number)
    huge = msgspec.structs.replace(sound, **{field: value})
    told = f"a whole number of more than 64 bits, {str(number)[:40]}"
    with pytest.raises(RecordError, match=told):
        decode_row(encode(huge), Written, PLACE)
    with pytest.raises(RecordError, match=told):
        decode_file(encode_pretty(huge), Written, PLACE)


class Measured(Record, frozen=True, kw_only=True):
    """A number and a text."""

    value: float
    text: str


@pytest.mark.parametrize("value", [1.1e100, -1e101, 1e308, -1.7976931348623157e308])
def test_a_number_whose_square_no_float_holds_is_refused(value: float) -> None:
    for sound in (1e100, -1e100, 5e-324, 1.5, 1e-308):
        record = Measured(value=sound, text=f" 1, {value} ,{value}]")  # in a text it is no number
        assert decode_row(encode(record), Measured, PLACE) == record
        assert decode_file(encode_pretty(record), Measured, PLACE) == record
    far = Measured(value=value, text="")
    told = re.escape(f"a number beyond 1e+100, {value}")
    with pytest.raises(RecordError, match=told):
        decode_row(encode(far), Measured, PLACE)
    with pytest.raises(RecordError, match=told):
        decode_file(encode_pretty(far), Measured, PLACE)


@settings(max_examples=300)
@given(
    st.builds(
        Written,
        text=st.text(st.characters(max_codepoint=300) | st.sampled_from('\x00\b\f\x7f\x1f"\\/')),
        number=st.none() | st.integers(-(2**63), 2**63 - 1),
        listed=st.lists(st.integers(0, 9)).map(tuple),
        named=st.dictionaries(st.text(), st.text()),
    )
)
def test_a_row_is_accepted_as_json_dumps_writes_it_and_in_no_other_way(row: Written) -> None:
    canonical = json.dumps(msgspec.to_builtins(row), separators=(",", ":")).encode()
    assert encode(row) == canonical
    assert decode_row(canonical, Written, PLACE) == row
    others = {
        json.dumps(msgspec.to_builtins(row), separators=(",", ":"), ensure_ascii=False).encode(),
        msgspec.json.encode(row),
        canonical.replace(b",", b", "),
        # An escaped backslash before an n is another text, escaped as it must be.
        canonical if b"\\\\" in canonical else canonical.replace(b"\\n", b"\\u000a"),
    } - {canonical}
    for other in others:
        with pytest.raises(RecordError, match="expected a Written record"):
            decode_row(other, Written, PLACE)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_a_record_of_its_own_file_is_laid_out_as_json_dumps_does(value: Any) -> None:
    record = Claim(id="x", value=json.dumps(value), unit="{}", inputs=("[]", ""), method=": ,")
    assert (
        encode_pretty(record) == json.dumps(msgspec.to_builtins(record), indent=1).encode() + b"\n"
    )
