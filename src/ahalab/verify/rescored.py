"""Answers as earlier scorers had judged them: the same completions, under other outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from msgspec.structs import replace

from ahalab.plan.cells import FLOOR, answer_cells
from ahalab.plan.schedule import prompts_asked
from ahalab.plan.templates import NAME
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import digest, to_plain
from ahalab.records.plan import Plan
from ahalab.records.templates import TemplateSet
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.store.layout import AnswerPaths
from ahalab.store.manifest import files_below
from ahalab.store.reading import journal_path, sealed_path
from ahalab.tasks.places import answer_paths
from ahalab.verify.completions import Placed, check_grade
from ahalab.verify.reading import Study, differences

FOLDER = "scorer-"


def check_rescored(study: Study) -> None:
    """Check what a rescore kept; a study that was never rescored holds nothing of it."""
    plan, tally = study.plan, study.ledger["rescored"]
    if plan is None:
        return
    root = study.paths.rescored
    folders = sorted(path for path in root.glob(f"{FOLDER}*") if path.is_dir())
    _check_files(study, plan, folders)
    for folder in folders:
        for live in _live(study, plan):
            _check_set(study, folder, live)
    if not folders:
        tally.passed()
        tally.note("never rescored")
    study.ledger.close(("rescored",))


def _live(study: Study, plan: Plan) -> list[AnswerPaths]:
    """Return every answer set that a rescore replaces."""
    sets = [
        answer_paths(study.paths, cell, under)
        for under in ("", "replay/")
        for cell in answer_cells(plan)
        if not (under and cell == FLOOR)
    ]
    tried = study.record(study.paths.template_set, TemplateSet)
    named = [t.name for t in tried.templates if NAME.fullmatch(t.name)] if tried else []
    return sets + [study.paths.template_answers(name) for name in named]


def _kept(folder: Path, live: AnswerPaths) -> AnswerPaths:
    return AnswerPaths(folder / f"{live.name}.jsonl", live.name)


def _check_files(study: Study, plan: Plan, folders: Sequence[Path]) -> None:
    """Refuse files that belong to no answer set of the plan."""
    known: set[Path] = set()
    for folder in folders:
        for live in _live(study, plan):
            known.update(_files(_kept(folder, live)))
    for _, path, _ in files_below(study.paths.rescored):
        if path not in known:
            place = study.relative(path)
            study.ledger["rescored"].fail(place, None, "an answer set of the plan", "another file")


def _files(kept: AnswerPaths) -> tuple[Path, ...]:
    rows = kept.answers
    return kept.protocol, journal_path(rows), rows, sealed_path(rows)


def _check_set(study: Study, folder: Path, live: AnswerPaths) -> None:
    """Compare a kept set with the one that stands now: only the scorer may differ."""
    tally, kept = study.ledger["rescored"], _kept(folder, live)
    if not any(path.is_file() for path in _files(kept)):
        return  # generated after the rescore, or not planned to be
    now = study.record(live.protocol, Protocol)
    protocol = study.record(kept.protocol, Protocol)
    name = study.relative(kept.protocol)
    if protocol is None or now is None:
        tally.fail(name, None, "a protocol, and that of today's answers", "none")
        return
    tally.expect(name, None, "scorer_version", folder.name.removeprefix(FOLDER),
                 protocol.scorer_version)  # fmt: skip
    expected = replace(now, scorer_version=protocol.scorer_version)
    for field, ours, theirs in differences(to_plain(expected), to_plain(protocol), 0.0):
        tally.fail(name, None, f"{field} as in today's protocol: {ours}", theirs)
    _check_rows(study, kept, live, protocol)


def _check_rows(study: Study, kept: AnswerPaths, live: AnswerPaths, protocol: Protocol) -> None:
    tally, made_under = study.ledger["rescored"], digest(protocol)
    splits = prompts_asked(study.plan) if study.plan else ()
    prompts = {p.prompt_id: p for split in splits for _, p in study.prompts(split)}
    name = study.stored_name(kept.answers)
    pairs = zip_longest(study.rows(kept.answers, Answer), study.rows(live.answers, Answer))
    for old, new in pairs:
        if old is None or new is None:
            line = (old or new)[0]
            tally.fail(name, line, "as many answers as stand now", "another number")
            return
        line, row = old
        tally.expect(name, line, "digest of the protocol beside it", made_under, row.protocol)
        tally.expect(name, line, "the completion of today's answer", _written(new[1]),
                     _written(row))  # fmt: skip
        prompt = prompts.get(row.prompt_id)
        if protocol.scorer_version == SCORER_VERSION and prompt is not None:
            placed = Placed(name, line, f"{row.prompt_id} sample {row.sample}", row)
            check_grade(study, placed, prompt, protocol.scorer_version)
    if protocol.scorer_version != SCORER_VERSION:
        tally.note(
            f"outcomes of version {protocol.scorer_version} are kept, and not scored again here"
        )


def _written(row: Answer) -> tuple[object, ...]:
    """Return what no scorer has a say in."""
    return (row.side, row.prompt_id, row.sample, row.completion, row.completion_ids, row.finish)
