"""An invented study that uses what the plain one does not: samples, own code, exceptions, history.

Several answers a question whose sides share batches, a reward of the user's own that fails at
times, templates of the plan's own, one adapter on another machine by exception, a run that was
resumed, rows that are compressed, a prompt that was too long, and answers kept from an earlier
scorer.
"""

from __future__ import annotations

from pathlib import Path

import zstandard
from msgspec.structs import replace

import study_builder
from ahalab.analyze.compare import analyze
from ahalab.plan.cells import BASE, find_cell, training_cells
from ahalab.plan.load import load_plan
from ahalab.records.answer import Answer
from ahalab.records.base import decode_file, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.rollout import Rollout
from ahalab.records.run import Attempt, RunRecord
from ahalab.records.step import Step, Timing
from ahalab.report.html import write_report
from ahalab.store.journal import read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.store.reading import journal_path, read_rows, sealed_path
from ahalab.store.rewards import find_reward
from ahalab.store.rows import RowFile, RowWriter
from ahalab.tasks.places import answer_paths
from foreign_replay import put_rows, read_protocol
from template_builder import write_templates

RUN = "arms/correctness/seed-1"
OWN_RUN = "arms/mine/seed-1"
EARLIER = "1"  # version of the scorer that had judged the answers before
DEVICE = "cuda, 1 threads"
CODE = '''"""A reward of the user's own, which fails on a hesitating completion."""


def brief(completions, **kwargs):
    texts = [completion[0]["content"] for completion in completions]
    return [None if "Wait" in text else 1.0 / (1 + len(text.split())) for text in texts]
'''
PLAN = """
name: rich
model: {{id: organism}}
task: {{name: arithmetic, train_prompts: 6, eval_prompts: 8}}
arms:
  - correctness
  - {{name: mine, on_error: none, components: {{correct_strict: 1.0, 'brevity:brief': 0.5}}}}
  - random
control: random
seeds: [1, 2]
rewards: {{'brevity:brief': '{digest}'}}
grpo: {{max_steps: 4, num_generations: 4, per_device_train_batch_size: 8,
  max_completion_length: 48, save_steps: 2}}
lora: {{r: 2, lora_alpha: 4, target_modules: [q_proj]}}
evaluation: {{max_new_tokens: 48, batch_size: 4, floor_batch_size: 3, replay: true,
  temperature: 0.8, top_p: 0.9, samples: 2, cells_per_batch: 2,
  templates: {{short: {{template: 'Q: {{question}}'}}, polite: {{template: '{{question}} Please.',
    system: Be brief.}}}}}}
validation: {{prompts: 5, batch_size: 2}}
analysis: {{pass_at: [1, 2]}}
"""


def build_rich(root: Path) -> Path:
    """Write the whole study, sealed."""
    paths = StudyPaths(root)
    paths.rewards.mkdir(parents=True)
    (paths.rewards / "brevity.py").write_text(CODE, encoding="utf-8")
    source = find_reward("brevity:brief", (paths.rewards,))
    study_builder.build(root, PLAN.format(digest=source.digest))
    plan = load_plan(paths.plan)
    _resume(plan, paths)
    _compress(paths.run("mine", 1).rollouts)
    write_templates(plan, paths, questions=4)
    _on_another_device(plan, paths)
    _keep_earlier(plan, paths)
    finish_rich(paths)
    return root


def finish_rich(paths: StudyPaths) -> None:
    """Analyse with the exception, report and seal."""
    plan = load_plan(paths.plan)
    analyze(plan, paths, ["device"])
    write_report(paths)
    write_manifest(paths, digest(plan))


def _resume(plan: Plan, paths: StudyPaths) -> None:
    """Write the rows of a run as a kill after step 3 leaves them: cut to the checkpoint at 2."""
    run = paths.run("correctness", 1)
    for path, schema, kind, batch in (
        (run.rollouts, "rollout/1", Rollout, 8),
        (run.steps, "step/1", Step, 1),
        (run.timings, "timing/1", Timing, 1),
    ):
        rows = [row for _, row in read_rows(path, kind)]
        for old in (path, journal_path(path)):
            old.unlink()
        file = RowFile(path, schema, digest(plan), run.name, paths.broken)
        with RowWriter[kind](file) as writer:  # type: ignore[valid-type]
            for step in range(3):
                writer.append(rows[step * batch : (step + 1) * batch])
        with RowWriter[kind](file) as writer:  # type: ignore[valid-type]
            writer.cut(2)
            for step in range(2, 4):
                writer.append(rows[step * batch : (step + 1) * batch])
            writer.seal()
    record = decode_file(run.record.read_bytes(), RunRecord, "run.json")
    attempts = tuple(
        Attempt(number=a.number, started_utc=a.utc, steps_found=a.rows)
        for a in read_journal(journal_path(run.steps)).attempts
    )
    run.record.write_bytes(encode_pretty(replace(record, attempts=attempts)))


def _compress(rows: Path) -> None:
    """Keep a row file compressed, as the store does with a large one."""
    sealed_path(rows).write_bytes(zstandard.ZstdCompressor().compress(rows.read_bytes()))
    rows.unlink()


def _on_another_device(plan: Plan, paths: StudyPaths) -> None:
    """One adapter answered on another device; all replays on another machine."""
    elsewhere = {**study_builder.VERSIONS, "torch": "another"}
    changed = [(answer_paths(paths, find_cell(plan, RUN)), {"device": DEVICE})]
    changed += [
        (answer_paths(paths, cell, "replay/"), {"versions": elsewhere})
        for cell in (BASE, *training_cells(plan))
    ]
    for target, fields in changed:
        protocol = replace(read_protocol(target), **fields)
        rows = [row for _, row in read_rows(target.answers, Answer)]
        told = [replace(row, protocol=digest(protocol)) for row in rows]
        put_rows(plan, paths, target, told, protocol)


def _keep_earlier(plan: Plan, paths: StudyPaths) -> None:
    """Keep one answer set as an earlier scorer had judged it, which knew only the asked format."""
    live = answer_paths(paths, find_cell(plan, OWN_RUN))
    folder = paths.rescored / f"scorer-{EARLIER}"
    kept = AnswerPaths(folder / f"{live.name}.jsonl", live.name)
    kept.answers.parent.mkdir(parents=True)
    protocol = replace(read_protocol(live), scorer_version=EARLIER)
    rows = [
        replace(row, protocol=digest(protocol), lenient=row.strict)
        for _, row in read_rows(live.answers, Answer)
    ]
    put_rows(plan, paths, kept, rows, protocol)
