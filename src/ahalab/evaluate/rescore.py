"""Saved answers under the installed scorer: no model, no torch; the old outcomes are kept.

An answer set is three files: rows, journal, protocol. They are first copied, to the byte, to
`rescored/scorer-<version>/`; only then is the set replaced, its protocol last. So a set whose
protocol names the installed scorer is done, and any other one begins again, from its copy.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from ahalab.errors import IncompleteError, InputError, ProtocolError, RecordError
from ahalab.plain_files import read_plain
from ahalab.plan.cells import FLOOR, Cell, answer_cells
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file, decode_row, digest, encode_pretty
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.scoring.answers import SCORER_VERSION
from ahalab.store.durable import fsync_folder, replace_file
from ahalab.store.journal import JournalState, read_journal
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.store.lock import WriterLock
from ahalab.store.reading import journal_path, packed, read_bytes, sealed_path, stored_path
from ahalab.store.rows import RowFile, RowWriter
from ahalab.tasks.generation import Completion, graded
from ahalab.tasks.places import answer_paths
from ahalab.tasks.prepare import read_prompts
from ahalab.tasks.questions import asked_of
from ahalab.tasks.templates import read_template_set, template_split

OnRows = Callable[[int], None]
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,40}")  # it names a folder


@dataclass(frozen=True, slots=True)
class SavedSet:
    """An answer set that is whole: what lies in its three files."""

    paths: AnswerPaths
    protocol: Protocol
    journal: JournalState
    payload: bytes  # the rows, uncompressed

    def rows(self) -> list[Answer]:
        """Return the answers, in order.

        Raises:
            RecordError: A row is malformed.
            ProtocolError: A row was made under another protocol.
        """
        made_under, found = digest(self.protocol), _rows_of(self.paths.answers, self.payload)
        for number, row in enumerate(found, start=1):
            if row.protocol != made_under:
                raise ProtocolError(
                    f"{self.paths.answers}:{number}: expected an answer under "
                    f"{self.paths.protocol.name} ({made_under}), found one under {row.protocol}."
                )
        return found


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One answer set under the scorer that it was recorded by, and under the installed one."""

    cell: Cell
    under: str  # `replay/`, or nothing
    target: AnswerPaths
    source: SavedSet  # what the old outcomes were read from
    protocol: Protocol  # of the new rows
    before: list[Answer]
    after: list[Answer]
    now: list[Answer] | None  # what stands under the installed scorer already; None: not yet

    @property
    def done(self) -> bool:
        """Whether the set stands under the installed scorer already."""
        return self.now is not None


def saved_targets(plan: Plan, paths: StudyPaths) -> list[tuple[Cell, str, AnswerPaths]]:
    """Return every answer set that was begun: its cell, `replay/` or nothing, and where it lies."""
    targets = [
        (cell, under, answer_paths(paths, cell, under))
        for under in ("", "replay/")
        for cell in answer_cells(plan)
        if not (under and cell == FLOOR)
    ]
    tried = read_template_set(paths)
    for template in tried.templates if tried else ():
        target = paths.template_answers(template.name)
        targets.append((Cell(target.name.removesuffix("/answers")), "", target))
    return [at for at in targets if read_journal(journal_path(at[2].answers)).head is not None]


def rejudge_study(
    plan: Plan, paths: StudyPaths, prompts: list[Prompt], on_rows: OnRows
) -> list[Rejudged]:
    """Score every answer set of a study again; writes nothing.

    Raises:
        IncompleteError: A set is not finished, or there is none.
        RecordError: A file is damaged.
    """
    present = saved_targets(plan, paths)
    if not present:
        raise IncompleteError(f"{paths.root}: no answers to score yet. Run: ahalab evaluate")
    found = {target.name: read_protocol(target).scorer_version for _, _, target in present}
    older = {version for version in found.values() if version != SCORER_VERSION}
    begun = older.pop() if len(older) == 1 else None  # of a rescore that was interrupted
    by_id = {prompt.prompt_id: prompt for prompt in [*prompts, *_tried_prompts(plan, paths)]}
    judged = []
    for cell, under, target in present:
        version = found[target.name]
        kept = kept_set(paths, target, version if version != SCORER_VERSION else begun)
        source = kept or saved_set(target)
        judged.append(_rejudge(plan, (cell, under, target), source, by_id))
        on_rows(len(judged[-1].before))
    return judged


def _tried_prompts(plan: Plan, paths: StudyPaths) -> list[Prompt]:
    """Return the prompts whose questions the base was asked under templates."""
    return [] if read_template_set(paths) is None else read_prompts(paths, template_split(plan))


def _rejudge(
    plan: Plan,
    place: tuple[Cell, str, AnswerPaths],
    source: SavedSet,
    prompts: dict[str, Prompt],
) -> Rejudged:
    cell, under, target = place
    protocol = replace(source.protocol, scorer_version=SCORER_VERSION)
    asked, made_under = asked_of(plan.task, plan.answer_format), digest(protocol)
    before, after = source.rows(), []
    for number, row in enumerate(before, start=1):
        prompt = prompts.get(row.prompt_id)
        if prompt is None:
            raise RecordError(
                f"{source.paths.answers}:{number}: expected an answer to a prompt of the study, "
                f"found one to {row.prompt_id}."
            )
        completion = Completion(row.completion, row.completion_ids, row.finish)
        after.append(replace(row, protocol=made_under, **graded(completion, prompt, asked)))
    done = read_protocol(target).scorer_version == SCORER_VERSION
    now = _rows_of(target.answers, read_bytes(target.answers))
    if source.paths != target and not _same_completions(before, now):
        raise InputError(
            f"{target.answers}: expected the completions that {source.paths.answers} keeps, found "
            "others. Move `rescored/` away to go on with what lies here."
        )
    return Rejudged(cell, under, target, source, protocol, before, after, now if done else None)


def _rows_of(path: Path, payload: bytes) -> list[Answer]:
    lines = payload.split(b"\n")[:-1]
    return [decode_row(line, Answer, f"{path}:{n}") for n, line in enumerate(lines, start=1)]


def _same_completions(ours: list[Answer], theirs: list[Answer]) -> bool:
    """Say whether two lists hold the same answers, whatever a scorer says of them."""

    def keys(rows: list[Answer]) -> list[tuple[object, ...]]:
        return [(r.side, r.prompt_id, r.sample, r.completion, r.completion_ids, r.finish)
                for r in rows]  # fmt: skip

    return keys(ours) == keys(theirs)


def read_protocol(target: AnswerPaths) -> Protocol:
    """Return the protocol of an answer set.

    Raises:
        RecordError: There is none, or it is malformed.
    """
    path = target.protocol
    if not path.is_file():
        raise RecordError(f"{path}: expected the protocol of the answers, found none. Restore it.")
    return decode_file(read_plain(path), Protocol, str(path))


def saved_set(target: AnswerPaths) -> SavedSet:
    """Read an answer set, and check its rows against its journal.

    Raises:
        IncompleteError: It is not finished.
        RecordError: Rows or journal are damaged.
    """
    journal = read_journal(journal_path(target.answers))
    if journal.seal is None:
        raise IncompleteError(
            f"{target.answers}: expected whole answers, found some that are not finished. Finish "
            "them with the version of ahalab that began them, or remove them."
        )
    payload = read_bytes(target.answers)
    if hashlib.sha256(payload).hexdigest() != journal.seal.sha256:
        raise RecordError(
            f"{target.answers}: expected the rows that its journal seals, found others. "
            "Restore the file; `ahalab verify` tells more."
        )
    return SavedSet(target, read_protocol(target), journal, payload)


def kept_paths(paths: StudyPaths, target: AnswerPaths, version: str) -> AnswerPaths:
    """Return where the answers of an earlier scorer are kept.

    Raises:
        InputError: The version is no name that a folder could have.
    """
    if not _VERSION.fullmatch(version):
        raise InputError(
            f"{target.protocol}: expected the version of a scorer, found {version[:60]!r}."
        )
    folder = paths.rescored / f"scorer-{version}"
    return AnswerPaths(folder / f"{target.name}.jsonl", target.name)


def kept_set(paths: StudyPaths, target: AnswerPaths, version: str | None) -> SavedSet | None:
    """Return the copy of an answer set as an earlier scorer had judged it; None: no whole one."""
    if version is None:
        return None
    kept = kept_paths(paths, target, version)
    if not journal_path(kept.answers).is_file():  # the copy's last file
        return None
    return saved_set(kept)


def write_rescored(plan: Plan, paths: StudyPaths, judged: Rejudged) -> None:
    """Replace one answer set by what the installed scorer says of it, durably.

    Raises:
        LockedError: Another process writes it.
        InputError: The disk refuses; the same command goes on.
    """
    target = judged.target
    staged = AnswerPaths(paths.work / "rescore" / f"{target.name}.jsonl", target.name)
    with WriterLock(paths.lock(target.name)):
        kept = kept_set(paths, target, judged.source.protocol.scorer_version)
        if kept is None:
            _keep(paths, judged.source)
        shutil.rmtree(staged.answers.parent, ignore_errors=True)
        _stage(plan, paths, staged, judged)
        new = stored_path(staged.answers)
        _replace_rows(target.answers, new)
        replace_file(journal_path(target.answers), read_plain(journal_path(staged.answers)))
        replace_file(target.protocol, encode_pretty(judged.protocol))
        shutil.rmtree(staged.answers.parent, ignore_errors=True)


def _keep(paths: StudyPaths, source: SavedSet) -> None:
    """Copy a set to the byte, compressed, its journal last: with it the copy is whole."""
    kept = kept_paths(paths, source.paths, source.protocol.scorer_version)
    replace_file(kept.protocol, read_plain(source.paths.protocol))
    replace_file(sealed_path(kept.answers), packed(source.payload))
    replace_file(journal_path(kept.answers), read_plain(journal_path(source.paths.answers)))


def _stage(plan: Plan, paths: StudyPaths, staged: AnswerPaths, judged: Rejudged) -> None:
    """Write the new rows beside the study, in the batches that they were generated in."""
    broken = paths.broken / staged.name
    file = RowFile(staged.answers, "answer/1", digest(plan), staged.name, broken)
    with RowWriter[Answer](file) as writer:
        at = 0
        for batch in judged.source.journal.batches:
            writer.append(judged.after[at : at + batch.rows])
            at += batch.rows
        writer.seal()


def _replace_rows(path: Path, staged: Path) -> None:
    """Put new rows in place, plain or compressed; the other form of the old ones goes last."""
    plain = staged.suffix != ".zst"
    here, other = (path, sealed_path(path)) if plain else (sealed_path(path), path)
    replace_file(here, read_plain(staged))
    if other.exists():
        other.unlink()
        fsync_folder(path.parent)
