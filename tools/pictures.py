"""Make the README's pictures of report and demo from the committed results.

python tools/pictures.py [OUT]      (docs/pictures by default)

The report is what Chromium shows of `results/quickstart/report.html`, light and dark; the demo is
the page that `ahalab demo` draws, as rich exports it. Needs Debian's chromium, and playwright and
pillow, which are installed for the tests.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from ahalab.cli.demo_keys import KEYS
from ahalab.cli.demo_screen import Window, page, title_of
from ahalab.demo.pairs import Deck, select, study_pairs

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "results" / "quickstart"
OUT = ROOT / "docs" / "pictures"
CELL = "arms/correctness/seed-2"
COLUMNS, LINES = 92, 16  # of the demo's terminal
COLOURS = 48  # of a picture of the report: flat areas and their edges need no more
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "Liberation Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""  # rich's own, less the fonts that it loads from elsewhere


def draw_demo(out: Path) -> Path:
    """Draw the first gained pair of the study as the demo's screen shows it."""
    scored = Deck(select(study_pairs(STUDY, CELL), frozenset({"gained"}), "strict")).at(0)
    if scored is None:
        raise SystemExit(f"{STUDY / CELL}: expected a gained pair, found none.")
    console = Console(
        record=True, width=COLUMNS, height=LINES, file=io.StringIO(), force_terminal=True,
        highlight=False, color_system="truecolor",
    )  # fmt: skip
    title = title_of(scored, 1, "strict", "gained")
    console.print(Window(title, page(scored, None, COLUMNS), Text(KEYS, "dim"), 0))
    svg = console.export_svg(title="ahalab demo", code_format=FORMAT, unique_id="demo")
    path = out / "demo.svg"
    path.write_text(re.sub(r"[ \t]+\n", "\n", svg), encoding="utf-8")
    return path


def draw_report(out: Path) -> list[Path]:
    """Photograph the paired changes of the report, light and dark."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium: expected Debian's package, found none. apt install chromium")
    paths = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            view = browser.new_page(
                viewport={"width": 1200, "height": 1000},
                color_scheme=scheme,
                device_scale_factor=1.5,
            )
            view.goto((STUDY / "report.html").as_uri())
            box = view.locator("#paired").bounding_box()
            chart = view.locator("#paired svg.chart").first.bounding_box()
            if box is None or chart is None:
                raise SystemExit("report.html: expected paired bars, found none. ahalab report")
            height = chart["y"] + chart["height"] - box["y"]
            clip = {"x": box["x"] - 24, "y": box["y"] - 20, "width": box["width"] + 48,
                    "height": height + 20}  # fmt: skip
            shot = Image.open(io.BytesIO(view.screenshot(full_page=True, clip=clip)))
            path = out / f"report-{scheme}.png"
            shot.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            paths.append(path)
            view.close()
        browser.close()
    return paths


def main() -> None:
    """Make every picture and say how large it is."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    out.mkdir(parents=True, exist_ok=True)
    for path in (*draw_report(out), draw_demo(out)):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
