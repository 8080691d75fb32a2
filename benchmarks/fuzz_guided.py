"""One target under atheris, which follows the coverage of ahalab's modules; see benchmarks/fuzz.

Run as `python -m benchmarks.fuzz_guided TARGET SECONDS SEED`. libFuzzer never returns: this ends
the process itself, after one line with the executions and the findings.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzz"))

with atheris.instrument_imports(include=["ahalab", "ruamel"], enable_loader_override=False):
    from fuzz_judging import Finding, Judge
    from fuzz_seeds import seeds
    from fuzz_targets import TARGETS


def main() -> None:
    """Fuzz until the time is over; prints, and ends the process."""
    name, until, seed = sys.argv[1], time.monotonic() + float(sys.argv[2]), sys.argv[3]
    target, judge = TARGETS[name], Judge()
    found: dict[str, Finding] = {}
    judge.warm(target, seeds(name))

    def once(payload: bytes) -> None:
        if time.monotonic() > until:
            _tell(judge.executions, found)
        finding = judge.judge(target, payload)
        if finding is not None:
            found.setdefault(finding.where, finding)

    with tempfile.TemporaryDirectory() as folder:
        for number, payload in enumerate(seeds(name)):
            Path(folder, str(number)).write_bytes(payload)
        atheris.Setup([sys.argv[0], folder, f"-seed={seed}", "-max_len=65536"], once)
        atheris.Fuzz()


def _tell(executions: int, found: dict[str, Finding]) -> None:
    rows = [{"where": f.where, "told": f.told, "payload": f.payload.hex()} for f in found.values()]
    print("\n" + json.dumps({"executions": executions, "findings": rows}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
