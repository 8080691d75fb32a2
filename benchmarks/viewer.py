"""How the viewer bears a large study: its index, its first page, its filters, its memory.

Run as `python -m benchmarks.viewer`: writes a made-up study of a million rollouts, starts the
real command on it with an empty cache, and asks it over HTTP as the page does. Times are of whole
replies, and each filter is one that was not asked before.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks import at_least_one
from benchmarks.viewer_study import make_study

FIRST_PAGE_TARGET = 1.0
FILTER_TARGET = 2.0
FILTERS = (
    "tokens>200 outcome=wrong reward<0.8",
    "tokens>200 outcome=wrong reward>0.8",  # finds nothing: every row is read
    "tokens>200 outcome=correct baba",  # a word in nearly every text
    '"tutu lulu"',
    "arm=random seed=3 advantage>1",
    "disagree=yes finish=length",
    "extracted=17",
    "-baba tokens<60",
    "babu outcome=wrong,unparsed reward=0",
    'text~"#### 77"',
)
SORTS = ("advantage", "tokens", "-reward")
ANSWER_FILTERS = (
    "kind=validation tokens>200 outcome=wrong step>=2",
    "tokens>200 outcome=correct baba",
    "arm=random seed=3 lenient=correct",
    'text~"#### 77"',
)
CHECKPOINT = "arms/random/seed-3/validation/step-2"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    what: str
    seconds: float  # wall
    cpu_seconds: float  # of the viewer: others may share the machine
    found: str


class Viewer:
    """The command in a process of its own, and its address."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ahalab", "view", str(folder)],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        )  # fmt: skip
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with self._process.stdout as told:
            address = urlsplit(told.readline().strip())
        self._host = address.netloc
        self._token = address.query.removeprefix("token=")

    def ask(self, path: str) -> bytes:
        """Return a reply's body."""
        cookie = f"ahalab_view_{self._host.rpartition(':')[2]}={self._token}"
        with closing(http.client.HTTPConnection(self._host, timeout=60)) as connection:
            connection.request("GET", path, headers={"cookie": cookie})
            reply = connection.getresponse()
            body = reply.read()
        if reply.status != 200:
            raise SystemExit(f"{path}: HTTP {reply.status}: {body[:200]!r}")
        return body

    def cpu(self) -> float:
        """Return the processor time it has used, in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, field: str = "VmRSS") -> float:
        """Return the memory that the process holds, or held at most (VmHWM), in MiB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        return float("nan")

    def anonymous(self) -> float:
        """Return its own memory, without pages of the index that the system may drop, in MiB."""
        return self.memory("RssAnon")

    def close(self) -> None:
        """Stop the process."""
        self._process.terminate()
        self._process.wait(30)


def timed(viewer: Viewer, what: str, path: str) -> Asked:
    """Ask once."""
    began, cpu = time.perf_counter(), viewer.cpu()
    body = viewer.ask(path)
    seconds, cpu = time.perf_counter() - began, viewer.cpu() - cpu
    found = json.loads(body)
    total = found.get("total", len(found.get("studies", ()))) if isinstance(found, dict) else 0
    return Asked(what, seconds, cpu, f"{'>' if found.get('more') else ''}{total:,}")


def measure(root: Path, cache: Path) -> dict[str, object]:
    """Measure a viewer of a study, from an empty cache on."""
    began = time.perf_counter()
    viewer = Viewer(root, cache)
    try:
        viewer.ask("/")
        viewer.ask("/static/main.js")
        opened = time.perf_counter() - began
        samples, during = [], []
        while True:
            ask_began = time.perf_counter()
            overview = json.loads(viewer.ask("/api/studies"))
            during.append(time.perf_counter() - ask_began)
            study = overview["studies"][0] if overview["studies"] else None
            if study and study["rows_total"]:
                samples.append((study["rows"], viewer.anonymous()))
                if study["rows"] == study["rows_total"]:
                    break
            time.sleep(0.5)
        built, cpu = time.perf_counter() - began, viewer.cpu()
        prefix = f"/api/study/{study['id']}"
        pages = [
            timed(viewer, "runs", "/api/studies"),
            timed(viewer, "curves", f"{prefix}/curves"),
            timed(viewer, "first rollouts", f"{prefix}/rollouts"),
            timed(viewer, "a step", f"{prefix}/step"),
            timed(viewer, "page 15,000", f"{prefix}/rollouts?page=15000"),
        ]
        filters = [timed(viewer, q, f"{prefix}/rollouts?q={quote(q)}") for q in FILTERS]
        filters += [
            timed(viewer, f"sort {s}", f"{prefix}/rollouts?q=tokens%3E100&sort={s}") for s in SORTS
        ]
        if any(row["kind"] == "validation" for row in study["answers"]):
            pages += [
                timed(viewer, "first answers", f"{prefix}/answers"),
                timed(viewer, "two checkpoints compared", f"{prefix}/pairs?cell={CHECKPOINT}"),
            ]
            filters += [
                timed(viewer, f"answers: {q}", f"{prefix}/answers?q={quote(q)}")
                for q in ANSWER_FILTERS
            ]
        rows = study["rows"]
        return {
            "rows": rows,
            "opened_seconds": opened,
            "index_seconds": built,
            "index_cpu_seconds": cpu,
            "index_rows_per_second": rows / built,
            "index_megabytes": sum(f.stat().st_size for f in cache.rglob("*.sqlite")) / 1e6,
            "answer_while_indexing_seconds": statistics.median(during),
            "slowest_while_indexing_seconds": max(during),
            "pages": [asdict(page) for page in pages],
            "filters": [asdict(one) for one in filters],
            "memory_mib": _memory(samples, viewer),
        }
    finally:
        viewer.close()


def _memory(samples: list[tuple[int, float]], viewer: Viewer) -> dict[str, float]:
    """Return the memory at a quarter of the rows, at the end of the index, and after it all."""
    quarter = next(mib for rows, mib in samples if rows >= samples[-1][0] / 4)
    return {
        "quarter": quarter,
        "indexed": samples[-1][1],
        "after_filters": viewer.anonymous(),
        "peak_with_mapped_files": viewer.memory("VmHWM"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewer", description=__doc__)
    parser.add_argument("--rollouts", type=at_least_one, default=1_000_000)
    parser.add_argument(
        "--answers", type=int, default=0, help="Validation answers to write besides."
    )
    parser.add_argument("--keep", type=Path, help="Folder to write the study to, and leave it.")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        results = options.keep or Path(scratch, "results")
        if not (results / "million").exists():
            began = time.perf_counter()
            make_study(results, options.rollouts, options.answers, lambda rows: _told(rows, began))
        figures = {"benchmark": "viewer"} | measure(results / "million", Path(scratch, "cache"))
    met = _met(figures)
    print(f"{figures['rows']:,} rows indexed in {figures['index_seconds']:.1f} s, "
          f"{figures['index_cpu_seconds']:.1f} s of CPU; "
          f"{figures['index_megabytes']:.0f} MB on the disk")  # fmt: skip
    print(f"page opened after {figures['opened_seconds']:.2f} s; an answer while indexing "
          f"{figures['answer_while_indexing_seconds']:.3f} s, at most "
          f"{figures['slowest_while_indexing_seconds']:.3f} s")  # fmt: skip
    for kind in ("pages", "filters"):
        print(f"\n{kind}")
        for one in figures[kind]:  # type: ignore[attr-defined]
            print(
                f"  {one['what']:<44}{one['seconds']:>8.3f} s {one['cpu_seconds']:>6.2f} s CPU "
                f"{one['found']:>10}"
            )
    print(f"\nmemory, MiB: {figures['memory_mib']}")
    print(json.dumps(figures | {"met": met}))
    return 0


def _told(rows: int, began: float) -> None:
    print(f"{rows:,} rollouts written, {time.perf_counter() - began:.0f} s", file=sys.stderr)


def _met(figures: dict[str, object]) -> bool:
    pages: list[dict[str, float]] = figures["pages"]  # type: ignore[assignment]
    filters: list[dict[str, float]] = figures["filters"]  # type: ignore[assignment]
    # CPU: others share the machine.
    return all(p["cpu_seconds"] < FIRST_PAGE_TARGET for p in pages) and all(
        f["cpu_seconds"] < FILTER_TARGET for f in filters
    )


if __name__ == "__main__":
    sys.exit(main())
