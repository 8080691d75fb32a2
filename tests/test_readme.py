"""The README's figures are those of the committed evidence."""

from pathlib import Path

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
