"""Model cards under verification: a sound one passes, a wrong number or stale root is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ahalab.errors import IncompleteError, InputError
from ahalab.pipeline.cards import Written, make_card
from ahalab.pipeline.run import seal_study
from ahalab.plan.load import load_plan
from ahalab.records.base import digest
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import write_manifest
from ahalab.verify.cardfile import check_cards
from ahalab.verify.checks import Check, Ledger
from ahalab.verify.reading import Study
from ahalab.verify.study import verify_study

ARM, SEED = "additive_format", 2
CARD = f"arms/{ARM}/seed-{SEED}/adapter/README.md"
ENTRY = f"arms/{ARM}/seed-{SEED}/adapter/.eval_results/gsm8k.yaml"


def written(root: Path, to: Path | None = None) -> Written:
    return make_card(load_plan(root / "study.yaml"), StudyPaths(root), ARM, SEED, to)


@pytest.fixture
def carded(study: Path) -> Path:
    written(study)
    return study


def sealed(root: Path) -> Path:
    """Mend the manifest, and nothing else."""
    paths = StudyPaths(root)
    write_manifest(paths, digest(load_plan(paths.plan)))
    return root


def checks(root: Path) -> dict[str, Check]:
    """Check the cards alone."""
    ledger = Ledger(None)
    check_cards(Study(root, ledger))
    return {check.name: check for check in ledger.verification().checks}


def test_a_card_goes_into_the_manifest_and_the_root_stays(study: Path) -> None:
    before = (study / "manifest.json").read_text()
    assert written(study).folder == study / CARD.removesuffix("/README.md")
    verification = verify_study(study)
    after = (study / "manifest.json").read_text()
    assert verification.result == "PASSED"
    root = re.search(r'"root": "(.*)"', before)
    assert root is not None
    assert root[0] in after
    assert CARD in after
    assert CARD not in before
    found = {check.name: check for check in verification.checks}
    assert found["card.bind"].count > 20
    assert found["card.root"].count > 3
    assert found["card.bind"].note == ""


def test_a_study_without_cards_is_none_the_worse(study: Path) -> None:
    found = checks(study)
    assert [(found[n].status, found[n].note) for n in ("card.bind", "card.root")] == [
        ("passed", "no model card")
    ] * 2


LIMITS = "^## Limits"
# What is done: where it is done, what it becomes, and what the failure expects instead.
TAMPERED = {
    "an accuracy in the table": (r"^\| strict \| [\d.]+", "| strict | 0.3", "the numbers"),
    "a count in the table": (r" \| 24 \| ([^|]+\|[^|]+)\|$", r" | 25 | \1|", "the numbers"),
    "a row that is gone": (r"^\| lenient .*\n", "", "a row of reading, lenient"),
    "a row of the reward": (r"^\| control \| .*$", "| control | strict | 1 |", "the numbers"),
    "another table": (LIMITS, "| won |\n|---|\n| 9 |\n\n## Limits", "a table of readings"),
    "the value for the Hub": (r"value: [\d.]+", "value: 99.5", "Strict accuracy, %"),
    "a metric more": (
        r"^    metrics:",
        "    metrics:\n    - {type: f1, value: 1, name: F1}",
        "metrics of model-index",
    ),
    "a sentence of the adapter": (
        "This adapter (.*) strict", r"This adapter \1 any", "the sentence: This adapter"
    ),
    "a result of one's own": (
        LIMITS, "It scores 97.3 % on everything.\n\n## Limits", "results in tables"
    ),
    "another seed": ("^  seed: 2", "  seed: 1", "ahalab.seed"),
    "another arm": (f"^  arm: {ARM}", "  arm: random", "ahalab.arm"),
    "no front matter": (r"\A---", "--", "front matter"),
    "front matter that is no YAML": (r"\A---\n", "---\n[: {\n", "YAML"),
    "a front matter of aliases": (
        "^ahalab:", "a: &a [x, x]\nb: &b [*a, *a]\nahalab: *b\nold:", "ahalab.arm"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_what_the_analysis_does_not_say_is_named(carded: Path, name: str) -> None:
    pattern, to, expected = TAMPERED[name]
    path = carded / CARD
    text, count = re.subn(pattern, to, path.read_text("utf-8"), count=1, flags=re.MULTILINE)
    assert count == 1
    path.write_text(text, encoding="utf-8")
    found = checks(sealed(carded))["card.bind"]
    assert found.status == "failed"
    assert {failure.file for failure in found.failures} == {CARD}
    assert any(expected in failure.expected for failure in found.failures), found.failures


def test_an_edited_card_without_a_new_manifest_is_another_file(carded: Path) -> None:
    (carded / CARD).write_bytes(b"# Mine\n")
    found = {check.name: check for check in verify_study(carded).checks}
    assert found["file.hash"].failures[0].file == CARD


def test_a_card_of_other_evidence_has_a_stale_root(carded: Path) -> None:
    timings = next(carded.glob("arms/*/seed-*/timings.jsonl"))
    timings.write_bytes(timings.read_bytes() + b"\n")
    found = checks(sealed(carded))["card.root"]
    assert found.status == "failed"
    assert {failure.file for failure in found.failures} == {CARD}
    assert found.failures[0].expected.startswith("root of the evidence: sha256:")
    assert [f.line is not None for f in found.failures[1:]] == [True] * 3  # wherever it is printed


def test_sealing_again_renews_the_cards(carded: Path) -> None:
    paths = StudyPaths(carded)
    (carded / CARD).write_text("old")
    (carded / ENTRY).parent.mkdir()
    (carded / ENTRY).write_text("- old")
    seal_study(load_plan(paths.plan), paths)
    assert not (carded / ENTRY).exists()
    assert verify_study(carded).result == "PASSED"


def test_an_entry_for_a_leaderboard_has_the_primary_accuracy(carded: Path) -> None:
    (carded / ENTRY).parent.mkdir()
    (carded / ENTRY).write_text("- dataset: {id: openai/gsm8k, task_id: gsm8k}\n  value: 99.5\n")
    (failure,) = checks(sealed(carded))["card.bind"].failures
    assert failure.file == ENTRY
    assert failure.found == "99.5"
    shown = failure.expected.removeprefix("value: ")
    (carded / ENTRY).write_text(
        f"- dataset: {{id: openai/gsm8k, task_id: gsm8k}}\n  value: {shown}\n"
    )
    assert verify_study(sealed(carded)).result == "PASSED"


def test_a_card_of_an_adapter_that_was_not_planned_is_named(carded: Path) -> None:
    other = carded / "arms/other/seed-7/adapter/README.md"
    other.parent.mkdir(parents=True)
    other.write_bytes((carded / CARD).read_bytes())
    failure = checks(sealed(carded))["card.bind"].failures[0]
    assert failure.file == "arms/other/seed-7/adapter/README.md"


def test_a_copy_leaves_the_study_as_it_is(study: Path, tmp_path: Path) -> None:
    before = (study / "manifest.json").read_bytes()
    made = written(study, tmp_path / "upload")
    assert made.folder == tmp_path / "upload"
    assert sorted(path.name for path in made.folder.iterdir()) == [
        "README.md", "adapter_config.json", "adapter_model.safetensors",
    ]  # fmt: skip
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        source = study / CARD.replace("README.md", name)
        assert (made.folder / name).read_bytes() == source.read_bytes()
    assert (study / "manifest.json").read_bytes() == before
    assert not (study / CARD).exists()
    with pytest.raises(InputError, match="expected a new or an empty folder"):
        written(study, tmp_path / "upload")
    with pytest.raises(InputError, match="expected a folder outside the study"):
        written(study, study / "upload")


def test_a_card_is_made_of_sealed_evidence_only(study: Path) -> None:
    timings = next(study.glob("arms/*/seed-*/timings.jsonl"))
    timings.write_bytes(timings.read_bytes() + b"\n")
    with pytest.raises(InputError, match="expected the evidence as it was sealed"):
        written(study)
    (study / "manifest.json").unlink()
    with pytest.raises(IncompleteError, match=r"expected a sealed study, found no manifest\.json"):
        written(study)
