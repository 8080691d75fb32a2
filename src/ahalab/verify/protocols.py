"""Protocols: the plan's, and one and the same for base and adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ahalab.plan.cells import FLOOR, Cell, answer_cells, answer_seed, rounds
from ahalab.records.answer import Protocol
from ahalab.records.base import to_plain
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.store.layout import AnswerPaths, StudyPaths
from ahalab.tasks.questions import scoring_task
from ahalab.verify.prompts import prompts_digest
from ahalab.verify.reading import Study, differences

# Where a field that differs belongs; every other one is `protocol`.
OWN_CHECK = {
    "base_digest": "base.pin",
    "prompts_digest": "prompt.hash",
    "template_digest": "prompt.hash",
    "tokenizer_digest": "prompt.hash",
    "plan_digest": "plan.match",
    "adapter_digest": "adapter.fp",
}


def answer_paths(paths: StudyPaths, cell: Cell, under: str = "") -> AnswerPaths:
    """Return where the answers of a cell lie."""
    if cell.arm is not None and cell.seed is not None:
        return paths.answers(cell.arm, cell.seed, under)
    return paths.floor_answers if cell == FLOOR else paths.base_answers(under)


def protocol_of(study: Study, cell: Cell, under: str = "") -> Protocol | None:
    """Return the protocol of an answer set; None when it is missing or malformed."""
    return study.record(answer_paths(study.paths, cell, under).protocol, Protocol)


def end_ids_of(study: Study) -> frozenset[int]:
    """Return the token ids that end a completion, by the base's protocol; empty when unknown."""
    protocol = study.record(study.paths.base_answers().protocol, Protocol)
    listed = protocol.generation.get("eos_token_id") if protocol else None
    return (
        frozenset(i for i in listed if type(i) is int) if isinstance(listed, list) else frozenset()
    )


def check_protocols(study: Study) -> None:
    """Check every protocol that is there; the base's is the measure for the others."""
    plan = study.plan
    if plan is not None:
        base = study.record(study.paths.base_answers().protocol, Protocol)
        for under in ("", "replay/"):
            for cell in answer_cells(plan):
                protocol = protocol_of(study, cell, under)
                if protocol is not None:
                    path = answer_paths(study.paths, cell, under).protocol
                    _check_plan(study, plan, path, protocol, cell)
                    _check_equal(study, (path, under), protocol, base, cell)
                    _check_run(study, path, protocol, cell)
    study.ledger.close(("protocol", "prompt.hash", "base.pin", "base.here", "adapter.fp"))


def _check_plan(study: Study, plan: Plan, path: Path, protocol: Protocol, cell: Cell) -> None:
    """Compare with what the plan fixes."""
    study.match_plan(path, protocol.plan_digest)
    evaluation, name = plan.evaluation, study.relative(path)
    sampled = evaluation.temperature > 0
    expected: dict[str, Any] = {
        "answer_format": plan.answer_format,
        "task": scoring_task(plan.task),
        "dtype": plan.model.dtype,
        "device": f"{plan.model.device}, {plan.model.threads} threads",
        "cells_per_batch": evaluation.cells_per_batch,
        "limit": None,
        "seed": answer_seed(plan, cell),
        "samples": evaluation.samples,
    }
    generation: dict[str, Any] = {
        "do_sample": sampled,
        "temperature": evaluation.temperature if sampled else 1.0,
        "top_p": evaluation.top_p if sampled else 1.0,
        "max_new_tokens": evaluation.max_new_tokens,
        "num_beams": 1,
        "top_k": 0,
        "repetition_penalty": 1.0,
    }
    size = evaluation.floor_batch_size if cell == FLOOR else evaluation.batch_size
    if size is not None:  # else chosen by memory, and one for all but the floor
        expected["batch_size"] = size
    tally = study.ledger["protocol"]
    for key, value in expected.items():
        tally.expect(name, None, key, value, getattr(protocol, key))
    for key, value in generation.items():
        tally.expect(name, None, f"generation.{key}", value, protocol.generation.get(key))
    prompts = [prompt for _, prompt in study.prompts("eval")]
    study.ledger["prompt.hash"].expect(
        name, None, "prompts_digest", prompts_digest(prompts), protocol.prompts_digest
    )


def _check_equal(
    study: Study, placed: tuple[Path, str], protocol: Protocol, base: Protocol | None, cell: Cell
) -> None:
    """Compare with the base's: only the adapter, and the floor's batch plan, may differ."""
    path, under = placed
    name = study.relative(path)
    if base is None:
        study.ledger["protocol"].not_checked("the base's protocol could not be read")
        return
    companions = _companions(study, cell, under)
    expected = replace(
        base,
        adapter_digest=protocol.adapter_digest,
        companions=protocol.companions if companions is None else companions,
    )
    if cell == FLOOR:
        expected = replace(expected, batch_size=protocol.batch_size, seed=protocol.seed)
    wrong = list(differences(to_plain(expected), to_plain(protocol), 0.0))
    for field, ours, theirs in wrong:
        check = OWN_CHECK.get(field, "protocol")
        study.ledger[check].fail(name, None, f"{field} as in the base's protocol: {ours}", theirs)
    study.ledger["protocol"].passed(0 if wrong else 1)


def _companions(study: Study, cell: Cell, under: str) -> tuple[str | None, ...] | None:
    """Return the adapters whose rows share a cell's batches; None where a protocol is missing."""
    together = rounds(study.plan, [cell])[0] if study.plan else ()
    if len(together) <= 1:
        return ()
    protocols = [protocol_of(study, other, under) for other in together]
    if any(protocol is None for protocol in protocols):
        return None
    return tuple(protocol.adapter_digest for protocol in protocols if protocol)


def _check_run(study: Study, path: Path, protocol: Protocol, cell: Cell) -> None:
    """Compare with the record of the run whose adapter answered."""
    name, ledger = study.relative(path), study.ledger
    if cell.arm is None or cell.seed is None:
        ledger["adapter.fp"].expect(name, None, "adapter_digest", None, protocol.adapter_digest)
        return
    record = study.record(study.paths.run(cell.arm, cell.seed).record, RunRecord)
    if record is None:
        return
    for field in ("adapter_digest", "base_digest", "tokenizer_digest", "template_digest"):
        ledger[OWN_CHECK[field]].expect(
            name, None, f"{field} of run.json", getattr(record, field), getattr(protocol, field)
        )
