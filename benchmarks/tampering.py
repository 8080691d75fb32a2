"""Runs the 34 tamperings on a sound study of 200 questions and two arms, and says who told.

Three columns: with a root held from outside; without; and where the owner makes everything again
with the tool's own means and seals it (7-31 and 34), against a plan digest published before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ahalab.analyze.compare import analyze
from ahalab.errors import AhaLabError
from ahalab.plan.load import dump_plan, load_plan
from ahalab.records.base import digest
from ahalab.report.html import write_report
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.verify.checks import Check, Failure
from ahalab.verify.study import NOTHING, Held, verify_study
from benchmarks import invented  # noqa: F401 - before what lies in tests/
from benchmarks.rejudging import rejudge
from benchmarks.tamperings import TAMPERINGS, Tampering, rename
from drawing import INSTALLED
from study_builder import SKILL, build
from tampering import mend_journals

PLAN = """
name: tampering
model: {id: organism}
task: {name: arithmetic, train_prompts: 16, eval_prompts: 200}
arms: [correctness, random]
control: random
seeds: [1, 2]
grpo: {max_steps: 4, num_generations: 4, per_device_train_batch_size: 8, max_completion_length: 48}
lora: {r: 2, lora_alpha: 4, target_modules: [q_proj]}
evaluation: {max_new_tokens: 48, batch_size: 8, floor_batch_size: 6}
"""
WHO = "owner@example.org"
LAST = ("report.root", "root.anchor")  # by themselves they name no place
UNDER_SIGNATURE = (32, 33)
ANOTHER_STUDY = {31: 0.9, 34: 0.6}  # chance to be right of the arm that was invented otherwise


@dataclass(frozen=True, slots=True)
class Bench:
    """The sound study, what was published of it, and whose signature a reader demands."""

    study: Path
    root: str
    plan: str
    allowed: Path  # whose signature a reader demands
    key: Path
    other_key: Path
    others: dict[int, Path]  # whole studies of the same plan, by the tampering that shows them


@dataclass(frozen=True, slots=True)
class Told:
    """What verification said of one tampering."""

    caught: bool
    check: str = ""
    failure: Failure | None = None

    def text(self) -> str:
        """Return check, place, expected and found."""
        if self.failure is None:
            return self.check or "nothing"
        line = "" if self.failure.line is None else f":{self.failure.line}"
        told = f"expected {self.failure.expected}, found {self.failure.found}"
        return f"{self.check} {self.failure.file}{line}: {told}"


def make_key(folder: Path, name: str) -> Path:
    """Make an SSH key without a passphrase."""
    path = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", WHO, "-f", str(path)], check=True
    )
    return path


def prepare(folder: Path, chosen: Sequence[Tampering]) -> Bench:
    """Build the sound study, sealed, others of the same plan where asked for, and two keys."""
    study = build(folder / "sound", PLAN)
    others, sound = {}, SKILL["correctness"]
    for number in ANOTHER_STUDY.keys() & {one.number for one in chosen}:
        SKILL["correctness"] = ANOTHER_STUDY[number]
        others[number] = build(folder / f"other-{number}", PLAN)
    SKILL["correctness"] = sound
    manifest = json.loads((study / "manifest.json").read_bytes())
    key, other = make_key(folder, "key"), make_key(folder, "other")
    allowed = folder / "allowed_signers"
    allowed.write_text(f"{WHO} {key.with_suffix('.pub').read_text()}", encoding="utf-8")
    return Bench(study, manifest["root"], manifest["plan_digest"], allowed, key, other, others)


def ahalab(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    command = [sys.executable, "-m", "ahalab", *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sign(study: Path, key: Path) -> None:
    """Sign a study as its owner, or as somebody else.

    Raises:
        SystemExit: The command failed.
    """
    done = ahalab("sign", study, "--key", key)
    if done.returncode != 0:
        sys.exit(done.stderr)


@contextlib.contextmanager
def tampered(bench: Bench, tampering: Tampering) -> Iterator[Path]:
    """Lend a copy with one tampering done and, where it says so, digests mended."""
    with tempfile.TemporaryDirectory() as folder:
        source = bench.others.get(tampering.number, bench.study)
        copy = Path(folder) / "study"
        shutil.copytree(source, copy, symlinks=True)
        tampering.edit(copy)
        if tampering.number == 32:
            sign(copy, bench.key)
            for path in copy.glob("statement.json*"):
                path.unlink()
        elif tampering.number == 33:
            sign(copy, bench.other_key)
        if tampering.mend:
            mend_journals(copy)
            manifest = json.loads((copy / "manifest.json").read_bytes())
            write_manifest(StudyPaths(copy), manifest["plan_digest"])
        yield copy


def make_again(root: Path, tampering: Tampering) -> None:
    """Do what an owner can: follow a changed plan, score, analyse, report and seal again."""
    paths = StudyPaths(root)
    manifest = json.loads((root / "manifest.json").read_bytes())
    plan = load_plan(paths.plan)
    if digest(plan) != manifest["plan_digest"]:
        paths.plan.write_text(dump_plan(plan), encoding="utf-8")
        rename(root, manifest["plan_digest"], digest(plan))
    if tampering.owner == "all":
        rejudge(root, plan)
    mend_journals(root)
    with contextlib.suppress(AhaLabError):  # rows that the analysis refuses: it stays as it was
        if tampering.owner in ("all", "analysis"):
            analyze(plan, paths)
    if tampering.owner != "seal":
        with contextlib.suppress(AhaLabError):
            write_report(paths)
    write_manifest(paths, digest(plan))


def look(root: Path, check: str, held: Held = NOTHING) -> Told:
    """Verify; return the failure that tells most."""
    return _telling(verify_study(root, held, drawing=INSTALLED).checks, check)


def look_for_signature(root: Path, bench: Bench, check: str, *held: str) -> Told:
    """Verify by the real command, with the owner's signature required."""
    required = ("--allowed-signers", bench.allowed, "--identity", WHO)
    done = ahalab("verify", root, "--format", "json", *required, *held)
    if not done.stdout:
        sys.exit(done.stderr)
    checks = [
        Check(**{**c, "failures": tuple(Failure(**f) for f in c["failures"])})
        for c in json.loads(done.stdout)["checks"]
    ]
    return _telling(checks, check)


def _telling(checks: Sequence[Check], best: str) -> Told:
    """Return the best failure; a study that is incomplete did not pass either, and says where."""
    failed = [check for check in checks if check.status == "failed"]
    if not failed:
        lacking = [check for check in checks if check.status == "incomplete"]
        return Told(bool(lacking), "".join(f"{c.name}: {c.note}" for c in lacking[:1]))
    first = min(failed, key=lambda check: (check.name != best, *_rank(check)))
    return Told(True, first.name, first.failures[0])


def _rank(check: Check) -> tuple[bool, bool]:
    """Put checks that name a place within the study first, those with a line before all."""
    return check.name in LAST, check.failures[0].line is None


def run(bench: Bench, tampering: Tampering) -> tuple[Told, Told, Told | None]:
    """Return what is told with a root from outside, without one, and after the owner's re-seal."""
    check = tampering.check
    with tampered(bench, tampering) as copy:
        if tampering.number in UNDER_SIGNATURE:
            held = look_for_signature(copy, bench, check, "--root", bench.root)
            return held, look_for_signature(copy, bench, check), None
        with_root, without = look(copy, check, Held(bench.root)), look(copy, check)
    if not 7 <= tampering.number <= 31 and tampering.number != 34:
        return with_root, without, None
    with tampered(bench, tampering) as copy:
        if tampering.number not in bench.others:
            make_again(copy, tampering)
        return with_root, without, look(copy, check, Held(plan=bench.plan))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and as the last line one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of tamperings")
    asked = parser.parse_args(arguments).only
    began, columns = time.perf_counter(), [0, 0, 0]
    placed = 0
    print("| | tampering | root held | without | owner re-seals | told, without a root |")
    print("|---|---|---|---|---|---|")
    chosen = [one for one in TAMPERINGS if not asked or one.number in asked]
    with tempfile.TemporaryDirectory() as folder:
        bench = prepare(Path(folder), chosen)
        sound = look(bench.study, "", Held(bench.root, bench.plan))
        for one in chosen:
            told = run(bench, one)
            for column, found in enumerate(told):
                columns[column] += found is not None and found.caught
            placed += told[1].failure is not None
            marks = ["caught" if t and t.caught else "-" if t is None else "**no**" for t in told]
            text = told[1].text().replace("|", "\\|")[:150]
            print(f"| {one.number} | {one.name} | {' | '.join(marks)} | {text} |", flush=True)
    print(json.dumps({
        "tamperings": len(chosen), "sound_flagged": sound.caught, "root_held": columns[0],
        "without": columns[1], "owner_reseals": columns[2], "with_place_expected_found": placed,
        "seconds": round(time.perf_counter() - began, 1),
    }))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
