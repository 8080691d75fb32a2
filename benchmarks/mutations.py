"""Runs the whole mutation suite and says which check told of each change.

Every field of every record, every malformed record, everything that can happen to a file, the
catalogue by hand, and what must not be flagged; on the invented studies, and with `--quickstart`
on results/quickstart too (its fields and files: hours); with `--extremes` every field also gets
values that nothing sound would hold, and none may end the verifier. `--write` puts the tables into
docs/evidence.md. Exit code 1 when a change was not told of, or a benign one was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks import (
    at_least_one,
    invented,  # noqa: F401 - before what lies in tests/
)
from benchmarks.marked import write_between
from mutations.benign import BENIGN, Benign
from mutations.by_hand import judge_by_hand, mutations_by_hand
from mutations.extremes import extreme_changes, judge_extreme
from mutations.judging import Judged, judge_bytes, judge_field, judge_file, verify
from mutations.on_bytes import bytes_changes
from mutations.on_fields import every_change, once_each
from mutations.on_whole_files import file_changes
from mutations.tables import checks_table, mutations_table, unjudged_table
from rich_study import build_rich
from study_builder import build
from template_builder import add_templates

HERE = Path(__file__).parents[1]
QUICKSTART = HERE / "results" / "quickstart"
TOLD_EVERY = 100  # mutations
Job = Callable[[Path], Judged]  # takes a folder to make, and to remove again
_JOBS: list[Job] = []  # of a process that judges


def make_studies(folder: Path) -> dict[str, Path]:
    """Build the invented studies."""
    plain = add_templates(build(folder / "synthetic"))
    return {"synthetic": plain, "rich": build_rich(folder / "rich")}


def invented_jobs(studies: dict[str, Path]) -> Iterator[Job]:
    """Yield every mutation of the invented studies."""
    for study, change in once_each(studies):
        yield partial(judge_field, studies[study], change)
    for study, written in bytes_changes(studies):
        yield partial(judge_bytes, studies[study], written)
    for study, damaged in file_changes(studies):
        yield partial(judge_file, studies[study], damaged)
    yield from (partial(judge_by_hand, studies["synthetic"], one) for one in mutations_by_hand())


def extreme_jobs(studies: dict[str, Path]) -> Iterator[Job]:
    """Yield every extreme value of every field of the invented studies."""
    yield from (
        partial(judge_extreme, studies[s], change) for s, change in extreme_changes(studies)
    )


def quickstart_jobs(every: int) -> Iterator[Job]:
    """Yield the mutations of results/quickstart, every so many of them."""
    fields = list(every_change(QUICKSTART))[::every]
    yield from (partial(judge_field, QUICKSTART, change) for change in fields)
    files = list(file_changes({"quickstart": QUICKSTART}))[::every]
    yield from (partial(judge_file, QUICKSTART, change) for _, change in files)


def _begin(make: Callable[[], Iterator[Job]]) -> None:
    """Make the mutations in a process that judges: many are functions that can't be sent there."""
    _JOBS[:] = make()


def _judge(at: int) -> Judged:
    """Judge one mutation in a folder of its own."""
    job = _JOBS[at]
    with tempfile.TemporaryDirectory() as folder:
        try:
            return job(Path(folder) / "copy")
        except Exception as error:  # noqa: BLE001 - a mutation that can't be made is told, too
            return Judged("error", str(job), "", "", caught=False, why=repr(error))


def flagged(root: Path, benign: Benign) -> list[str]:
    """Return what verification holds against a benign change."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(root, Path(folder) / root.name))
        checks = verify(benign.change(copy)).checks
        bad = [c for c in checks if c.status in ("failed", "incomplete")]
        return [f"{benign.name} ({root.name}): {c.name} {c.failures[:1]}" for c in bad]


def run_all(make: Callable[[], Iterator[Job]], processes: int) -> list[Judged]:
    """Judge mutations, several at a time; print those that nobody told of.

    Args:
        make: Makes the mutations, in the same order in every process.
        processes: At a time.
    """
    many = sum(1 for _ in make())
    # A fork could inherit a lock of numpy's threads.
    context = multiprocessing.get_context("spawn")
    found = []
    with ProcessPoolExecutor(processes, context, _begin, (make,)) as pool:
        for judged in pool.map(_judge, range(many), chunksize=8):
            found.append(judged)
            if len(found) % TOLD_EVERY == 0:
                print(f"{len(found)} of {many} mutations", file=sys.stderr, flush=True)
            if not judged.caught:
                print(
                    f"NOT TOLD by {judged.check}: {judged.kind}, {judged.name}: {judged.why}",
                    flush=True,
                )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and as the last line one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quickstart", action="store_true", help="results/quickstart, too")
    parser.add_argument("--extremes", action="store_true", help="extreme values of every field")
    parser.add_argument("--every", type=at_least_one, default=1, help="of quickstart's, every Nth")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="processes")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        studies = make_studies(Path(folder))
        invented_ones = run_all(partial(invented_jobs, studies), options.jobs)
        roots = [*studies.values(), *([QUICKSTART] if options.quickstart else [])]
        extreme = run_all(partial(extreme_jobs, studies), options.jobs) if options.extremes else []
        false = [text for root in roots for benign in BENIGN for text in flagged(root, benign)]
    committed = []
    if options.quickstart:
        committed = run_all(partial(quickstart_jobs, options.every), options.jobs)
    table = mutations_table(invented_ones)
    print(table)
    for text in false:
        print(f"FLAGGED: {text}")
    if options.write:
        write_between(options.write, "checks", checks_table())
        write_between(options.write, "mutations", table)
        write_between(options.write, "unjudged", unjudged_table())
    print(json.dumps({
        "mutations": len(invented_ones), "told": sum(j.caught for j in invented_ones),
        "by_kind": Counter(j.kind for j in invented_ones),
        "quickstart": len(committed), "quickstart_told": sum(j.caught for j in committed),
        "extremes": len(extreme), "extremes_ended": sum(not j.caught for j in extreme),
        "benign": len(BENIGN) * len(roots), "flagged": len(false),
        "seconds": round(time.perf_counter() - began, 1),
    }))  # fmt: skip
    missed = [judged for judged in (*invented_ones, *extreme, *committed) if not judged.caught]
    return 1 if missed or false else 0


if __name__ == "__main__":
    sys.exit(main())
