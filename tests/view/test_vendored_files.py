"""What is vendored is what VENDORED.md says; what is ours keeps the rules that make it safe."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import ahalab
from ahalab.plan.looks import HUES

SOURCE = Path(ahalab.__file__).parent
STATIC = SOURCE / "view" / "static"
VENDOR = STATIC / "vendor"
OURS = sorted(STATIC.glob("*.js"))


def test_vendored_files_are_those_of_the_packages_named() -> None:
    told = dict(
        re.findall(r"^\| `(\S+)` \| `\S+` \| `([0-9a-f]{64})` \|$",
                   (VENDOR / "VENDORED.md").read_text(), re.MULTILINE)
    )  # fmt: skip
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDORED.md"
    }
    assert found == told
    assert {name for name in found if name.endswith("LICENSE")} == {
        "uplot/LICENSE",
        "jsdiff/LICENSE",
    }


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_scripts_make_no_markup_and_run_no_text(path: Path) -> None:
    code = path.read_text()
    for never in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                  "eval(", "new Function", "DOMParser", "srcdoc", "javascript:", "http://",
                  "https://"):  # fmt: skip
        found = [line for line in code.splitlines() if never in line and "www.w3.org" not in line]
        assert not found, never


def test_arms_have_the_colours_of_the_report() -> None:
    def colours(sheet: Path) -> list[tuple[str, str]]:
        wanted = "|".join([*(f"arm-{hue}" for hue in range(HUES)), "control", "gain", "loss"])
        text = sheet.read_text().split("@media print")[0]
        return re.findall(rf"--({wanted}): (#[0-9a-f]{{6}});", text)

    ours = colours(STATIC / "style.css")
    assert len(ours) == 2 * (HUES + 3)
    assert ours == colours(SOURCE / "report" / "templates" / "report.css")
