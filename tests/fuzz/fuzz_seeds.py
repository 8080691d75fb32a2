"""What fuzzing starts from: pieces of results/quickstart and studies, and what was found once."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import fuzz_study
from fuzz_targets import BREAK

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "results" / "quickstart"
RUN = QUICKSTART / "arms" / "correctness" / "seed-1"
CORPUS = Path(__file__).parent / "corpus"  # TARGET-what.bin: findings of the past, made small


def seeds(target: str) -> list[bytes]:
    """Return the corpus of a target."""
    return [*_SEEDS[target](), *kept(target)]


def kept(target: str) -> list[bytes]:
    """Return the inputs that were findings once."""
    return [path.read_bytes() for path in sorted(CORPUS.glob(f"{target}-*.bin"))]


def _scorer() -> Iterator[bytes]:
    lines = (ROOT / "tests" / "scoring" / "families.jsonl").read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1:9]):
        row = json.loads(line)
        text = str(row["gold"]).encode(), str(row["response"]).encode("utf-8", "replace")
        yield bytes([number % 256]) + BREAK.join(text)


def _rows() -> Iterator[bytes]:
    files = (RUN / "answers.jsonl", QUICKSTART / "base" / "answers.jsonl",
             QUICKSTART / "prompts" / "eval.jsonl", RUN / "steps.jsonl")  # fmt: skip
    for number, file in enumerate(files):
        rows = b"".join(file.read_bytes().splitlines(keepends=True)[:2])
        for way in (0, 4, 12, 28):
            yield bytes([way | (0, 0, 2, 3)[number]]) + BREAK + rows
    journal = (RUN / "answers.journal.jsonl").read_bytes()
    yield b"\0" + journal + BREAK + (RUN / "answers.jsonl").read_bytes()[:2_000]
    yield b'\0\x1e{"id":1,"strict":"correct","lenient":"correct"}\n'


def _journal() -> Iterator[bytes]:
    yield (RUN / "answers.journal.jsonl").read_bytes()
    yield b"\n".join((RUN / "steps.journal.jsonl").read_bytes().split(b"\n")[:4]) + b"\n"
    cut = (b'{"kind":"cut","sequence":1,"rows":64,"end":26799,"cut_rows":64,"cut_sha256":"a",'
           b'"previous":""}\n')  # fmt: skip
    yield b"\n".join((RUN / "answers.journal.jsonl").read_bytes().split(b"\n")[:4]) + b"\n" + cut


def _manifest() -> Iterator[bytes]:
    tree = json.loads((QUICKSTART / "manifest.json").read_bytes())
    for count in (1, 4):
        fewer = {**tree, "evidence": tree["evidence"][:count], "derived": tree["derived"][:1]}
        yield (json.dumps(fewer, indent=1) + "\n").encode()


def _plan() -> Iterator[bytes]:
    yield (ROOT / "studies" / "quickstart.yaml").read_bytes()
    yield (b"name: d\nmodel: {id: organism}\ntask: {name: arithmetic, train_prompts: 8, "
           b"eval_prompts: 8}\narms: [correctness, random]\ncontrol: random\nseeds: [0]\n"
           b"grpo: {max_steps: 4}\nlora: {r: 4}\nevaluation: {max_new_tokens: 16}\n")  # fmt: skip
    yield (QUICKSTART / "study.yaml").read_bytes()


def _adapter() -> Iterator[bytes]:
    config = json.loads((RUN / "adapter" / "adapter_config.json").read_bytes())
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    header = {
        name.format("A"): {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        name.format("B"): {"dtype": "F32", "shape": [4, 2], "data_offsets": [24, 56]},
    }
    body = struct.pack("<14f", *range(14))
    short = {"base_model_name_or_path": "organism", "r": 2, "lora_alpha": 8}
    patterns = {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {r"layers\.[0-9]+\.q_proj": 4}}
    for settings in ({**config, "r": 2, "lora_alpha": 8}, short, {**short, **patterns}):
        parts = json.dumps(settings).encode(), json.dumps(header).encode(), body
        yield BREAK.join(parts)
    length = len(json.dumps(header)).to_bytes(8, "little")
    raw = b"raw" + length + json.dumps(header).encode()
    yield BREAK.join((json.dumps(short).encode(), raw, b"")) + body


def _task() -> Iterator[bytes]:
    yield b'j{"question": "1 + 1?", "answer": "#### 2"}\n{"question": "2?", "answer": 2}\n'
    yield b'cquestion,answer\n"1, or\n2?",1\n3?,"say ""4"""\n'


def _dataset() -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"question": [f"{n} + 1?" for n in range(4)], "answer": ["so 1"] * 4})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    readme = (b"---\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n"
              b"    path: train-*\n---\n")  # fmt: skip
    field = {"dtype": "string", "_type": "Value"}
    state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "0", "_split": None,
             "_format_columns": None, "_format_kwargs": {}, "_format_type": None,
             "_output_all_columns": False}  # fmt: skip
    info = {"citation": "", "features": {"question": field, "answer": field}, "license": ""}
    yield b"p" + BREAK.join((readme, b"", parquet.getvalue()))
    yield b"p" + BREAK.join((b"", b"", parquet.getvalue()))
    yield b"a" + BREAK.join(
        (json.dumps(state).encode(), json.dumps(info).encode(), arrow.getvalue())
    )


def _page() -> Iterator[bytes]:
    yield fuzz_study.page()


def _card() -> Iterator[bytes]:
    yield fuzz_study.card() + BREAK
    yield fuzz_study.card() + BREAK + b"- dataset: {id: a/b, task_id: c}\n  value: 12.5\n"


_SEEDS = {"scorer": _scorer, "rows": _rows, "journal": _journal, "manifest": _manifest,
          "plan": _plan, "adapter": _adapter, "task": _task,
          "dataset": _dataset, "page": _page, "card": _card}  # fmt: skip
