"""The base: its record tensor by tensor, and the model itself where it is at hand."""

from __future__ import annotations

from pathlib import Path

from ahalab.errors import AhaLabError
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.records.weights import BaseTensors, Tensor
from ahalab.store.fingerprint import base_tensors, weights_difference, weights_digest
from ahalab.store.models import ORGANISM
from ahalab.verify.reading import Study
from ahalab.verify.texts import model_folder


def check_base(study: Study, plan: Plan, record: RunRecord | None) -> None:
    """Check the record of the base against the runs', and against the model where it lies here."""
    recorded = _check_record(study, record)
    tally = study.ledger["base.here"]
    folder = model_folder(plan)
    found = None if folder is None else _read(folder)
    if record is None or found is None:
        tally.not_checked(
            "the base model is not part of the study; its digest is only compared between records"
        )
    elif weights_digest(found) == record.base_digest:
        tally.passed(len(found))
    else:
        told = weights_difference(recorded.tensors, found) if recorded else None
        named = f": {told}" if told else ""
        where = "this version of ahalab ships" if plan.model.id == ORGANISM else f"{folder} holds"
        tally.not_checked(f"{where} another base than the one that the study used{named}")


def _check_record(study: Study, record: RunRecord | None) -> BaseTensors | None:
    """Check that the tensors' lines hash to the digest that every record names."""
    path, tally = study.paths.base_tensors, study.ledger["base.pin"]
    name, found = study.relative(path), study.record(path, BaseTensors)
    if found is None:
        if not path.exists():
            tally.note("the base is not recorded tensor by tensor: a difference can't be named")
        return None
    for tensor in found.tensors:
        if not tensor.name.isprintable():  # a line break would let one name stand for two tensors
            tally.fail(name, None, "printable names of tensors", tensor.name)
    tally.expect(name, None, "digest of its tensors", weights_digest(found.tensors),
                 found.base_digest)  # fmt: skip
    if record is not None:
        tally.expect(name, None, "base_digest of run.json", record.base_digest, found.base_digest)
    return found


def _read(folder: Path) -> tuple[Tensor, ...] | None:
    try:
        return base_tensors(folder)
    except (AhaLabError, OSError):
        return None
