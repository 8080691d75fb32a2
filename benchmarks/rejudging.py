"""Scores every answer again after rows or prompts were changed, as a careful owner would."""

from __future__ import annotations

import json
from dataclasses import replace as with_fields
from pathlib import Path

from ahalab.records.base import digest_bytes, encode
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import score_answer
from ahalab.store.layout import StudyPaths
from ahalab.tasks.questions import Question, asked_of
from ahalab.tasks.selection import prompt_id
from benchmarks import invented  # noqa: F401 - before what lies in tests/
from benchmarks.tamperings import rename
from tampering import Row, edit_rows, read_lines


def rejudge(root: Path, plan: Plan) -> None:
    """Bring ids, protocols and outcomes in line with what completions and prompts now say."""
    _follow_prompts(root)
    for protocol in [*root.glob("base/*.protocol.json"), *root.glob("arms/*/*/*.protocol.json")]:
        rows = protocol.with_name(protocol.name.replace(".protocol.json", ".jsonl"))
        if rows.is_file():
            _judge(root, plan, rows, protocol)


def _follow_prompts(root: Path) -> None:
    """Name prompts by their content again, everywhere, and the set by its digest."""
    path = StudyPaths(root).prompts("eval")
    before = _set_digest(root)
    for line in read_lines(path):
        row = json.loads(line)
        position = int(row["prompt_id"].partition("-")[0])
        own = prompt_id(position, Question(row["question"], row["gold"], row["source"]))
        if own != row["prompt_id"]:
            rename(root, row["prompt_id"], own)
    prompts = [json.loads(line) for line in read_lines(path)]
    rows = [Prompt(**{**row, "prompt_ids": tuple(row["prompt_ids"])}) for row in prompts]
    rename(root, before, digest_bytes(b"\n".join(encode(row) for row in rows)))


def _set_digest(root: Path) -> str:
    protocol = json.loads(StudyPaths(root).base_answers().protocol.read_bytes())
    return str(protocol["prompts_digest"])


def _judge(root: Path, plan: Plan, rows: Path, protocol: Path) -> None:
    """Score the rows of one set again, and name the protocol that lies beside them."""
    prompts = {
        p["prompt_id"]: p for p in map(json.loads, read_lines(StudyPaths(root).prompts("eval")))
    }
    tree = json.loads(protocol.read_bytes())
    made_under = digest_bytes(json.dumps(tree, separators=(",", ":")).encode())
    asked = asked_of(plan.task, plan.answer_format)

    def judge(found: list[Row]) -> None:
        for row in found:
            row["protocol"] = made_under
            prompt = prompts.get(row["prompt_id"])
            if prompt is None:
                continue
            how = with_fields(asked, prompt=prompt["question"])
            score = score_answer(row["completion"], prompt["gold"], row["finish"], how)
            row |= {
                "extracted": score.lenient.extracted, "rule": score.lenient.rule,
                "status": score.lenient.status, "strict": score.strict.outcome,
                "lenient": score.lenient.outcome,
            }  # fmt: skip

    edit_rows(rows, judge)
