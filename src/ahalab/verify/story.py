"""How one claim comes about: its files with their rows, its method, the value worked out again."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plain_files import read_plain
from ahalab.records.base import decode_file
from ahalab.records.manifest import Claim, Claims
from ahalab.store.layout import StudyPaths
from ahalab.verify.checks import Verification
from ahalab.verify.compared_fields import SOLVED
from ahalab.verify.reading import Study, close

NEAR = 3  # ids offered for one that is not known


@dataclass(frozen=True, slots=True)
class Input:
    """One file that a claim rests on."""

    file: str
    rows: int | None  # None: a file of one record, or one that is not there
    there: bool


@dataclass(frozen=True, slots=True)
class Story:
    """A claim, and what became of it when all was worked out again."""

    claim: Claim
    inputs: tuple[Input, ...]
    told: bool  # whether it was worked out again; a sentence is not, its figures are
    recomputed: object
    verification: Verification

    @property
    def equal(self) -> bool | None:
        """Whether the claim is what was worked out again; None where nothing was."""
        return close(self.recomputed, self.claim.value, SOLVED) if self.told else None

    def to_plain(self) -> dict[str, object]:
        """Return one plain tree for programs."""
        claim = self.claim
        return {
            "id": claim.id,
            "value": claim.value,
            "unit": claim.unit,
            "method": claim.method,
            "inputs": [{"file": i.file, "rows": i.rows, "there": i.there} for i in self.inputs],
            "recomputed": self.recomputed if self.told else None,
            "equal": self.equal,
            "result": self.verification.result,
            "failed_checks": [c.name for c in self.verification.checks if c.status == "failed"],
        }


def find_claim(root: Path, claim_id: str) -> Claim:
    """Return a claim of a study by its id.

    Raises:
        InputError: There are no claims, or none of this id; the message names near ones.
    """
    path = StudyPaths(root).claims
    if not path.is_file():
        raise InputError(
            f"{path}: expected the claims of a study, found none. `ahalab analyze` writes them."
        )
    claims = {claim.id: claim for claim in decode_file(read_plain(path), Claims, str(path)).claims}
    if claim_id in claims:
        return claims[claim_id]
    holding = [name for name in claims if claim_id and claim_id in name]
    near = difflib.get_close_matches(claim_id, claims, NEAR, 0.4) or holding[:NEAR]
    offered = f"Near ones: {', '.join(near)}." if near else f"{path.name} lists all {len(claims)}."
    raise InputError(f"--claim: expected the id of a claim, found {claim_id[:80]!r}. {offered}")


def tell(study: Study, claim: Claim, verification: Verification) -> Story:
    """Tell one claim of a study that was examined whole: it is worth what its rows are."""
    inputs = []
    for name in claim.inputs:
        path = study.root / name
        there = path.is_file() or study.present(path)
        rows = study.row_counts.get(name) if there else None
        inputs.append(Input(study.stored_name(path) if there else name, rows, there))
    told = claim.id in study.recomputed
    return Story(claim, tuple(inputs), told, study.recomputed.get(claim.id), verification)
