"""The readers that meet what others wrote, each behind one function of bytes.

A target may end, or raise an error of our own tree; anything else is a finding. Digests that would
stop nearly every changed input at the door are mended first where an attacker would mend them too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fuzz_study
import msgspec
from msgspec.structs import replace

from ahalab.analyze.answer_files import read_answer_file
from ahalab.errors import InputError, PlanError, RecordError
from ahalab.evaluate.adapter_check import require_sound_adapter
from ahalab.plan.load import dump_plan, load_plan
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_row, encode
from ahalab.records.journal import JournalBatch, JournalHead, JournalLine, JournalSeal
from ahalab.records.manifest import Manifest
from ahalab.records.pair import ScoredRow
from ahalab.records.plan import Plan, TaskSpec
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import Rollout
from ahalab.records.step import Step
from ahalab.scoring.answers import Asked, score_answer
from ahalab.scoring.components import COMPONENTS, make_response
from ahalab.store.adapters import effect_norm, read_adapter
from ahalab.store.fingerprint import adapter_fingerprint
from ahalab.store.journal import START, JournalState, read_journal
from ahalab.store.reading import journal_path, packed, read_rows, sealed_path
from ahalab.tasks.files import csv_rows, jsonl_rows
from ahalab.tasks.questions import load_questions
from ahalab.verify.checks import Ledger
from ahalab.verify.files import check_files
from ahalab.verify.journals import check_journals
from ahalab.verify.reading import Study

BREAK = b"\x1e"  # between the parts of one input
KINDS = (Answer, Rollout, Prompt, Step)
# msgspec evaluates annotations when a type is first used: once here, not while an input is watched.
DECODERS = [msgspec.json.Decoder(kind) for kind in (*KINDS, ScoredRow, Protocol, Manifest, Plan)]
ASKED = tuple(
    Asked(answer_format, task)
    for task in ("gsm8k", "math", "countdown")
    for answer_format in ("hashes", "boxed", "answer_tag", r"pattern:(\d+)!")
)
FINISHES = ("eos", "length", "content_filter")


@dataclass(frozen=True, slots=True)
class Target:
    """One door, and pieces of text that its format is made of."""

    name: str
    run: Callable[[bytes, Path], None]  # the input, and a folder of its own to write to
    pieces: tuple[bytes, ...]


def _parts(payload: bytes, count: int) -> list[bytes]:
    parts = payload.split(BREAK, count - 1)
    return parts + [b""] * (count - len(parts))


def _scorer(payload: bytes, folder: Path) -> None:
    """One byte that says how the answer was asked for, then gold and response."""
    first, rest = payload[:1], payload[1:]
    gold, response = (part.decode("utf-8", "replace") for part in _parts(rest, 2))
    way = first[0] if first else 0
    asked, finish = ASKED[way % len(ASKED)], FINISHES[way % len(FINISHES)]
    score = score_answer(response, gold, finish, asked)  # type: ignore[arg-type]
    assert score.strict.outcome != "correct" or score.lenient.outcome == "correct"
    given = [make_response(completion=response, gold=gold)]
    for component in COMPONENTS.values():
        component(given)


def _rows(payload: bytes, folder: Path) -> None:
    """One byte that says which rows and how they lie, then the rows (and their journal)."""
    way = payload[0] if payload else 0
    journal, rows = _parts(payload[1:], 2)
    path = folder / "rows.jsonl"
    if way & 4:  # a journal that fits the rows, as whoever edits rows would write it
        journal = _journal_over(rows)
    journal_path(path).write_bytes(journal)
    if way & 8:
        sealed_path(path).write_bytes(packed(rows) if way & 16 else rows)
    else:
        path.write_bytes(rows)
    for _ in _until_refused(lambda: read_rows(path, KINDS[way % 4])):
        pass
    read_answer_file(path)


def _until_refused(read: Callable[[], object]) -> list[object]:
    try:
        return list(read())  # type: ignore[call-overload,no-any-return]
    except RecordError:
        return []


def _journal_over(rows: bytes) -> bytes:
    whole, digest = rows.count(b"\n"), hashlib.sha256(rows).hexdigest()
    end = len(rows)
    lines: list[JournalLine] = [
        JournalHead(rows_schema="answer/1", plan_digest="p", run="r", previous=""),
        JournalBatch(sequence=0, rows=whole, start=0, end=end, sha256=digest, previous=""),
        JournalSeal(rows=whole, bytes=end, sha256=digest, previous=""),
    ]
    return _chained(lines)


def _chained(lines: list[JournalLine]) -> bytes:
    written, last = b"", START
    for line in lines:
        payload = encode(replace(line, previous=last))
        written, last = written + payload + b"\n", hashlib.sha256(payload).hexdigest()
    return written


def _journal(payload: bytes, folder: Path) -> None:
    """A journal as it is, and chained again from its first changed line on; beside sound rows."""
    paths = [folder / "base" / name for name in ("answers.journal.jsonl", "answers.jsonl")]
    paths[0].parent.mkdir(exist_ok=True)
    paths[1].write_bytes(b"{}\n" * 40)
    sound: list[JournalLine] = []
    for line in payload.split(b"\n"):
        try:
            sound.append(decode_row(line, JournalLine, "line"))  # type: ignore[arg-type]
        except RecordError:
            continue
    for written in (_chained(sound), payload):
        paths[0].write_bytes(written)
        ledger = Ledger(lambda _: None)
        check_journals(Study(folder, ledger))
        assert str(ledger["chain"])
        state: JournalState = read_journal(paths[0])
        assert state.rows >= 0
        assert state.end >= 0


def _manifest(payload: bytes, folder: Path) -> None:
    """The manifest of a folder with two files, through the check of the closed world."""
    (folder / "manifest.json").write_bytes(payload)
    (folder / "study.yaml").write_bytes(b"name: x\n")
    (folder / "row").write_bytes(b"{}\n")
    check_files(Study(folder, Ledger(lambda _: None)), "sha256:" + "0" * 64, None)


def _plan(payload: bytes, folder: Path) -> None:
    """A plan; one that is taken is written out again and means the same."""
    path = folder / "study.yaml"
    path.write_bytes(payload)
    plan = load_plan(path)
    path.write_text(dump_plan(plan), "utf-8")
    try:
        again = load_plan(path)
    except PlanError as error:
        raise AssertionError("a plan that was taken is refused once it is frozen") from error
    assert again == plan


def _adapter(payload: bytes, folder: Path) -> None:
    """A configuration, a header and tensor bytes; the header's length is right, or as it comes."""
    config, header, body = _parts(payload, 3)
    (folder / "adapter_config.json").write_bytes(config)
    told = len(header).to_bytes(8, "little") if not header.startswith(b"raw") else b""
    (folder / "adapter_model.safetensors").write_bytes(told + header.removeprefix(b"raw") + body)
    for read in (adapter_fingerprint, lambda place: effect_norm(read_adapter(place))):
        _until_refused_adapter(read, folder)
    require_sound_adapter(folder, "organism", {"r": 2, "lora_alpha": 8})


def _until_refused_adapter(read: Callable[[Path], object], folder: Path) -> None:
    try:
        read(folder)
    except InputError:
        return


def _task(payload: bytes, folder: Path) -> None:
    """A task's own file, JSONL or CSV."""
    way, rows = payload[:1], payload[1:]
    path = folder / "train.jsonl"
    path.write_bytes(rows)
    read = csv_rows(path, ("question", "answer")) if way == b"c" else jsonl_rows(path)
    for row, place in read:
        json.dumps(row, allow_nan=False)
        assert place.startswith(str(path))


def _dataset(payload: bytes, folder: Path) -> None:
    """A local copy of a dataset: Parquet and its README, or what `save_to_disk` writes."""
    import datasets

    way, first, second, table = payload[:1], *_parts(payload[1:], 3)
    datasets.config.HF_DATASETS_CACHE = folder / "cache"
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    (copy / "train").mkdir(parents=True)
    if way == b"p":
        (copy / "train-0.parquet").write_bytes(table)
        if first:
            (copy / "README.md").write_bytes(first)
    else:
        (copy / "dataset_dict.json").write_bytes(b'{"splits": ["train"]}')
        (copy / "train" / "state.json").write_bytes(first)
        (copy / "train" / "dataset_info.json").write_bytes(second)
        (copy / "train" / "data.arrow").write_bytes(table)
    task = TaskSpec(name="hub", path=str(copy), train_prompts=1, eval_prompts=1, subset="main")
    for question in load_questions(task, "train"):
        assert question.source.startswith(str(copy))
        (question.question + question.gold).encode()


def _page(payload: bytes, folder: Path) -> None:
    """A page, through the checks of the report; every fault is a failure, none an exception."""
    fuzz_study.check_page(payload, folder)


def _card(payload: bytes, folder: Path) -> None:
    """A model card and an entry for a leaderboard, through their checks."""
    text, entry = _parts(payload, 2)
    fuzz_study.check_card(text, entry, folder)


_JSON = (b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"true", b"NaN", b"1e999", b"-0.0",
         b"9" * 400, b"[" * 2_000, b"\\ud800", b"\\u0000", b"\n", b"\xff")  # fmt: skip
_SCORED = (b"#### ", b"\\boxed{", b"}", b"<answer>", b"</answer>", b"The answer is ", b"**",
           b"^{", b"\\frac{1}{2}", b"\\text{", b"$", b"1,000", b"1/0", b"%", b"7//2", b"3.5*2",
           b"(" * 300, b"9" * 400, b"one hundred", "\u0661\u202e\u00d7\u2212".encode())  # fmt: skip
_YAML = (b"- ", b": ", b"\n  ", b"*a", b"&a ", b"!!python/name:os.system ", b"? ", b"{", b"}", b"[",
         b"]", b"|\n", b">-\n", b"---\n", b"...\n", b"%YAML 1.1\n", b"#", b"'", b'"', b"\\x", b"\t",
         b"1e-5", b"no", b".nan", b"0x", b"0o", b"_", b"1_0", b"+", b"2020-01-01", b"~", b"<<: ",
         b"9" * 400, b"\xef\xbb\xbf", b"\x00", b"\xc2\x85",
         b"!!int ''", b"!!bool x", b"!<")  # fmt: skip
_ADAPTER = (BREAK, b"raw", b'"r":2', b'"lora_alpha":8', b'"rank_pattern":{"a?a?a?":2}', b'"BF16"',
            b'"F64"', b'"shape":[2,3]', b"[0,1180591620717411303424]", b"18446744073709551616",
            b'"data_offsets":[0,24]', b'"auto_mapping":{}', b'"target_modules":["a",1]',
            b'"use_rslora":true', b'"__metadata__":{}', b".lora_A.weight")  # fmt: skip

_DATASET = (BREAK, b"p", b"a", b"PAR1", b"ARROW1", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff" * 4,
            b"question", b"configs:\n- config_name: main\n  data_files: ", b"../", b"/etc/passwd",
            b"https://a/b", b"zip://*::", b'"_type": "Image"', b'"_type": "Audio"', b'"torch"',
            b'"dtype": "large_string"', b"large_list", b"!!python/name:os.system ")  # fmt: skip

_PAGE = (b"<td class=n>", b"</td>", b"<tr data-file=analysis/comparison.json>", b" data-field=a/0",
         b" data-claim=", b"<script id=ahalab-claims>", b"</script>", b"<meta name=ahalab-drawing>",
         b"<!--", b"<![CDATA[", b"&#x110000;", b"&amp", b"1e999999", "3 × 10⁹⁹⁹⁹".encode(), b"<svg",
         "\u2212".encode(), b"%", b"1,000", b"<plaintext>", b"\xff")  # fmt: skip
_CARD = (
    b"---\n",
    b"| reading |",
    b"|---|",
    b"```\n",
    b"sha256:",
    b"model-index:",
    b"metrics: 5\n",
    b"value: ",
    b"!!int ''",
    b"!!bool x",
    b"99.9 %",
    b"1e999999",
    b"&#x110000;",
    b"<a href=",
)

TARGETS = {
    target.name: target
    for target in (
        Target("scorer", _scorer, _SCORED + _JSON[:12]),
        Target("rows", _rows, (BREAK, *_JSON)),
        Target("journal", _journal, (b'"kind":"cut"', b'"sequence":-1', *_JSON)),
        Target("manifest", _manifest, (b"../", b"/etc", b"\\\\", *_JSON)),
        Target("plan", _plan, _YAML),
        Target("adapter", _adapter, _ADAPTER + _JSON),
        Target("task", _task, (b"question", b"answer", b'"a",1\n', *_JSON)),
        Target("dataset", _dataset, _DATASET + _JSON),
        Target("page", _page, _PAGE + _JSON),
        Target("card", _card, (BREAK, *_CARD, *_YAML)),
    )
    if target.name != "dataset" or importlib.util.find_spec("datasets")  # of the [train] extra
}
