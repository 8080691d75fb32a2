"""Model cards: written into a sealed study or beside it, and renewed when it is sealed again."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import IncompleteError, InputError
from ahalab.pipeline.study import read_manifest
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from ahalab.store.durable import replace_file
from ahalab.store.fingerprint import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, root_digest, write_manifest

ENTRIES = ".eval_results"


@dataclass(frozen=True, slots=True)
class Written:
    """Where a card lies, ready to be uploaded."""

    folder: Path
    no_entry: str | None  # why there is no entry for a leaderboard of the Hub; None: there is one


def make_card(plan: Plan, paths: StudyPaths, arm: str, seed: int, to: Path | None) -> Written:
    """Write the model card of one adapter of a sealed study.

    Args:
        plan: The study's plan.
        paths: The study.
        arm: The adapter's arm.
        seed: The adapter's seed.
        to: A folder to be made, for a copy of the adapter with its card; the study stays as it is.
            None: the card goes beside the adapter and into the manifest, as the report does; the
            evidence root stays the same.

    Raises:
        InputError: No such adapter, evidence that is not as it was sealed, or `to` can't be used.
        IncompleteError: The study is not sealed yet.
    """
    root = _sealed_root(plan, paths)
    adapter = paths.run(arm, seed).adapter
    if to is None:
        no_entry = _write(paths, arm, seed, root, adapter)
        write_manifest(paths, digest(plan))
        return Written(adapter, no_entry)
    _require_new(to, paths)
    no_entry = _write(paths, arm, seed, root, to)
    for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG):
        shutil.copyfile(adapter / name, to / name)
    return Written(to, no_entry)


def renew_cards(plan: Plan, paths: StudyPaths) -> None:
    """Write again the cards that a study has; call it before the manifest is written."""
    adapters = [(arm.name, seed) for arm in plan.arms for seed in plan.seeds]
    found = [one for one in adapters if paths.run(*one).card.is_file()]
    if not found:
        return
    root = root_digest(digest(plan), evidence_entries(paths.root))
    for arm, seed in found:
        _write(paths, arm, seed, root, paths.run(arm, seed).adapter)


def _sealed_root(plan: Plan, paths: StudyPaths) -> str:
    """Return the evidence root, once the evidence is seen to be what was sealed."""
    manifest = read_manifest(paths)
    if manifest is None:
        raise IncompleteError(
            f"{paths.root}: expected a sealed study, found no manifest.json. `ahalab run` finishes "
            "it, `ahalab report` seals it."
        )
    root = root_digest(digest(plan), evidence_entries(paths.root))
    if root != manifest.root:
        raise InputError(
            f"{paths.root}: expected the evidence as it was sealed (root {manifest.root}), found "
            f"another (root {root}). `ahalab verify {paths.root}` names the files; when only the "
            f"analysis was made again, `ahalab report {paths.root}` seals it."
        )
    return root


def _require_new(to: Path, paths: StudyPaths) -> None:
    study, folder = paths.root.resolve(), to.resolve()
    if study == folder or study in folder.parents:
        raise InputError(
            f"--to {to}: expected a folder outside the study {paths.root}, whose files are "
            "evidence. Name another one, or leave --to away."
        )
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError(
            f"--to {to}: expected a new or an empty folder, found something in it. Name another "
            "one: a card that you have edited is never written over."
        )


def _write(paths: StudyPaths, arm: str, seed: int, root: str, folder: Path) -> str | None:
    """Write the card's files; those of an earlier card that it does not have are removed."""
    from ahalab.report.card import build_card
    from ahalab.report.sources import read_study

    card = build_card(read_study(paths), paths, arm, seed, root)
    for name, text in card.files.items():
        replace_file(folder / name, text.encode())
    for old in sorted((folder / ENTRIES).glob("*.yaml")):
        if old.relative_to(folder).as_posix() not in card.files:
            old.unlink()
    return card.no_entry
