"""How one claim comes about, and what `--claim` says where it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ahalab.errors import InputError
from ahalab.records.base import decode_file
from ahalab.records.manifest import Claims
from ahalab.verify.story import find_claim, tell
from ahalab.verify.study import examine, open_study
from tampering import edit_json, edit_row, reseal

DIFFERENCE = "arm.historical.base.strict.difference_points"


def test_every_claim_but_a_sentence_is_worked_out_again_from_files_that_are_there(
    sound_study: Path,
) -> None:
    study = open_study(sound_study)
    verification = examine(study)
    claims = decode_file((sound_study / "claims.json").read_bytes(), Claims, "claims.json").claims
    kinds = {claim.id.partition(".")[0] for claim in claims}
    assert kinds == {"arm", "adapter", "floor", "ablation", "replay", "template", "templates"}
    for claim in claims:
        story = tell(study, claim, verification)
        assert story.equal is (None if claim.id.endswith(".sentence") else True), claim.id
        for one in story.inputs:
            assert one.there, claim.id
            assert one.rows, claim.id


def test_a_story_names_the_rows_of_every_file_by_its_stored_name(sound_study: Path) -> None:
    study = open_study(sound_study)
    story = tell(study, find_claim(sound_study, DIFFERENCE), examine(study))
    assert [(one.file, one.rows) for one in story.inputs] == [
        ("prompts/eval.jsonl", 24),
        ("base/answers.jsonl", 24),
        ("arms/historical/seed-1/answers.jsonl", 24),
        ("arms/historical/seed-2/answers.jsonl", 24),
    ]


def test_a_claim_that_was_edited_is_not_equal(study: Path) -> None:
    def edit(tree: dict[str, list[dict[str, object]]]) -> None:
        next(c for c in tree["claims"] if c["id"] == DIFFERENCE)["value"] = 99.5

    sound = find_claim(study, DIFFERENCE).value
    edit_json(study / "claims.json", edit)
    reseal(study)
    opened = open_study(study)
    story = tell(opened, find_claim(study, DIFFERENCE), examine(opened))
    assert (story.claim.value, story.equal) == (99.5, False)
    assert story.recomputed == pytest.approx(sound)
    assert story.to_plain()["result"] == "FAILED"
    assert "claims" in str(story.to_plain()["failed_checks"])


def test_a_claim_follows_the_rows_and_not_what_the_analysis_wrote(study: Path) -> None:
    """One more right answer of 24, in one of two seeds, is 100 / 48 points."""
    path = study / "arms/historical/seed-1/answers.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    line = next(n for n, row in enumerate(rows, start=1) if row["strict"] != "correct")
    edit_row(path, line, strict="correct")
    reseal(study)
    opened = open_study(study)
    story = tell(opened, find_claim(study, DIFFERENCE), examine(opened))
    assert story.equal is False
    assert isinstance(story.claim.value, float)
    assert story.recomputed == pytest.approx(story.claim.value + 100 / 48)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("arm.historicl.base.strict.differnce_points", f"Near ones: {DIFFERENCE}"),
        ("conclusion", "Near ones: replay.conclusion."),
        ("zzzz", "claims.json lists all"),
        ("", "claims.json lists all"),
    ],
)
def test_an_unknown_id_is_told_with_near_ones(sound_study: Path, asked: str, near: str) -> None:
    with pytest.raises(InputError) as refused:
        find_claim(sound_study, asked)
    assert near in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_study_without_claims_says_what_writes_them(study: Path) -> None:
    (study / "claims.json").unlink()
    with pytest.raises(InputError, match="`ahalab analyze` writes them"):
        find_claim(study, DIFFERENCE)
