"""Opens a study: a plan file with a results folder, or a results folder with its frozen plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahalab.errors import InputError, PlanError
from ahalab.plain_files import read_plain
from ahalab.plan.load import differing_keys, dump_plan, load_plan
from ahalab.records.base import decode_file, digest
from ahalab.records.manifest import Manifest
from ahalab.records.plan import Plan
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import hash_file
from ahalab.store.rewards import copy_rewards
from ahalab.tasks.rewards import pin_rewards, reward_folders, reward_sources

PLAN = "study.yaml"
# What the analysis writes again from the answers; everything else is evidence that nothing
# rewrites.
REWRITTEN = ("analysis/", "claims.json")


def open_study(study: Path, out: Path) -> tuple[Plan, StudyPaths]:
    """Return the plan and the paths of a study.

    Args:
        study: A plan file, or the results folder of a study.
        out: Folder of results, for a plan file.

    Raises:
        PlanError: The plan is malformed, or the results folder belongs to another plan.
        InputError: The results folder is a link, or a reward of the plan can't be found.
    """
    if study.is_dir():
        return load_plan(study / PLAN), StudyPaths(study)
    plan = pin_rewards(load_plan(study), reward_folders(study))
    paths = StudyPaths(out / plan.name)
    for folder in (out, paths.root):
        if folder.is_symlink():
            raise InputError(f"{folder}: expected a folder, found a link. Name its target instead.")
    require_frozen(plan, paths)
    return plan, paths


def require_frozen(plan: Plan, paths: StudyPaths) -> None:
    """Refuse a results folder that was begun under another plan.

    A plan that was frozen for a study of which nothing came (a model that could not be fetched)
    binds nobody: the folder holds it and nothing else.

    Raises:
        PlanError: The keys that differ are named.
    """
    if not _begun(paths):
        return
    frozen = load_plan(paths.plan)
    if digest(frozen) != digest(plan):
        keys = "; ".join(differing_keys(plan, frozen)[:6])
        raise PlanError(
            f"{paths.root}: expected results of this plan, found those of another: {keys}. "
            "Give the study another name, or use a new --out."
        )


def _begun(paths: StudyPaths) -> bool:
    """Say whether anything but the frozen plan and its code lies in the study's folder."""
    return paths.plan.exists() and any(
        path.is_file() and path != paths.plan and paths.rewards not in path.parents
        for path in paths.root.rglob("*")
    )


def freeze(plan: Plan, paths: StudyPaths, code: Sequence[Path] = ()) -> None:
    """Write the frozen plan and the code of its own rewards before the first step.

    Later calls only check the plan.

    Args:
        plan: The plan, pinned.
        paths: The study.
        code: Where the code of own rewards is looked for first (`reward_folders`).

    Raises:
        PlanError: A study was begun there under another plan.
        InputError: The code of a reward is too large to be kept.
    """
    require_frozen(plan, paths)
    if _begun(paths):
        return
    copy_rewards(reward_sources(plan, code), paths.rewards)
    payload = dump_plan(plan).encode()
    if not (paths.plan.exists() and read_plain(paths.plan) == payload):
        replace_file(paths.plan, payload)


def read_manifest(paths: StudyPaths) -> Manifest | None:
    """Return the manifest; None when the study is not sealed.

    Raises:
        RecordError: It is malformed.
    """
    if not paths.manifest.is_file():
        return None
    return decode_file(read_plain(paths.manifest), Manifest, str(paths.manifest))


def refuse_tampered(manifest: Manifest, paths: StudyPaths) -> None:
    """Refuse to go on over sealed evidence that is no longer what was sealed.

    Sealing again would launder the change.

    Raises:
        InputError: A sealed file is gone or differs.
    """
    for entry in manifest.evidence:
        if entry.path.startswith(REWRITTEN):
            continue
        path = paths.root / entry.path
        if not path.is_file() or hash_file(path) != entry.sha256:
            raise InputError(
                f"{path}: expected the file as it was sealed, found "
                f"{'another' if path.exists() else 'none'}. "
                f"`ahalab verify {paths.root}` tells more; restore it, or remove manifest.json "
                "to go on."
            )


def sealed_without(paths: StudyPaths, file: Path) -> bool:
    """Say whether a study is sealed, and not with this file of it as it lies there."""
    manifest = read_manifest(paths)
    if manifest is None:
        return False
    name = file.relative_to(paths.root).as_posix()
    sealed = {entry.path: entry.sha256 for entry in manifest.evidence}
    return sealed.get(name) != hash_file(file)
