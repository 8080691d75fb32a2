"""The README's figures are those of the committed evidence."""

import re
import sys
from pathlib import Path

import pytest

from ahalab.records.base import decode_file
from ahalab.records.comparison import Comparison

ROOT = Path(__file__).parents[1]
COMPARISON = ROOT / "results/quickstart/analysis/comparison.json"


def test_the_headline_quotes_the_sentences_of_the_committed_comparison() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    comparison = decode_file(COMPARISON.read_bytes(), Comparison, str(COMPARISON))
    quoted = [a for a in comparison.arms if a.primary and a.against == "base"]
    assert len(quoted) == 4
    for arm in quoted:
        assert arm.sentence in readme


def test_the_seeds_it_names_are_those_of_the_correctness_arm() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    comparison = decode_file(COMPARISON.read_bytes(), Comparison, str(COMPARISON))
    arm = next(a for a in comparison.arms if a.primary and a.arm == "correctness")
    first, second, third = (f"{points:+.1f}" for points in arm.seed_differences_points)
    assert f"its seeds stand at {first}, {second} and {third} points" in readme


def test_the_readme_stays_within_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_pictures_are_there_and_small() -> None:
    shown = re.findall(
        r'(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8")
    )
    pictures = ROOT / "docs" / "pictures"
    assert {ROOT / name for name in shown} == set(pictures.iterdir())
    assert sum(path.stat().st_size for path in pictures.iterdir()) < 400_000


def test_the_picture_of_the_demo_is_what_the_demo_draws_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("PIL", "playwright"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import pictures

    made = pictures.draw_demo(tmp_path).read_text(encoding="utf-8")
    assert made == (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8")
    assert "http" not in made.replace("http://www.w3.org/2000/svg", "")
