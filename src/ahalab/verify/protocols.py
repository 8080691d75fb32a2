"""Protocols: the plan's, and one and the same for base and adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ahalab.plan.cells import BASE, FLOOR, Cell, answer_cells, answer_seed, rounds
from ahalab.plan.endpoint import backend_name
from ahalab.records.answer import Protocol
from ahalab.records.plan import Plan
from ahalab.records.run import RunRecord
from ahalab.tasks.places import answer_paths, run_paths
from ahalab.tasks.questions import scoring_task
from ahalab.verify.checks import ABSENT
from ahalab.verify.exceptions import ADAPTER, check_exceptions, field_differences, within
from ahalab.verify.prompts import prompts_digest
from ahalab.verify.reading import Study

DECODERS = {
    "transformers": ("rows", "generate"),
    "vllm": ("engine",),
    "openai": ("server",),
}
# Where a field that differs belongs; every other one is `protocol`.
OWN_CHECK = {
    "base_digest": "base.pin",
    "prompts_digest": "prompt.hash",
    "template_digest": "prompt.hash",
    "tokenizer_digest": "prompt.hash",
    "plan_digest": "plan.match",
    "adapter_digest": "adapter.fp",
}
REPLAY = "replay/"
# What a replay may differ in: what generated. How often its answers differ is told by `replay`.
MACHINE = frozenset({"device", "backend", "decoder", "versions"})
PlacedProtocol = tuple[Path, frozenset[str]]  # a protocol's path, and the fields left free


def protocol_of(study: Study, cell: Cell, under: str = "") -> Protocol | None:
    """Return the protocol of an answer set; None when it is missing or malformed."""
    return study.record(answer_paths(study.paths, cell, under).protocol, Protocol)


def end_ids_in(protocol: Protocol) -> frozenset[int] | None:
    """Return the token ids that end a completion; None where the protocol lists none."""
    listed = protocol.generation.get("eos_token_id")
    return frozenset(i for i in listed if type(i) is int) if isinstance(listed, list) else None


def end_ids_of(study: Study) -> frozenset[int]:
    """Return the token ids that end a completion, by the base's protocol; empty when unknown."""
    protocol = protocol_of(study, BASE)
    return (end_ids_in(protocol) if protocol else None) or frozenset()


def check_protocols(study: Study) -> None:
    """Check every protocol that is there; the base's is the measure for the others.

    A replay is measured by the evaluation's protocol of the same cell, and all replays by one
    another: what generates may be another machine, and one machine for all of them.
    """
    plan = study.plan
    if plan is not None:
        base = protocol_of(study, BASE)
        excepted = check_exceptions(study, plan)
        again: list[tuple[Path, Protocol]] = []
        for cell in answer_cells(plan):
            name = answer_paths(study.paths, cell).name
            free = excepted.get(name, frozenset())
            protocol = protocol_of(study, cell)
            if protocol is not None:
                path = answer_paths(study.paths, cell).protocol
                _check_plan(study, plan, (path, free), protocol, cell)
                _check_equal(study, (path, free), protocol, base, cell)
                _check_run(study, (path, free), protocol, cell)
            replayed = None if cell == FLOOR else protocol_of(study, cell, REPLAY)
            if replayed is not None:
                path = answer_paths(study.paths, cell, REPLAY).protocol
                free |= MACHINE
                _check_plan(study, plan, (path, free), replayed, cell)
                _check_equal(study, (path, free), replayed, protocol, cell)
                _check_run(study, (path, free), replayed, cell)
                again.append((path, replayed))
        _check_one_machine(study, again, frozenset().union(*excepted.values()))
    study.ledger.close(("protocol", "prompt.hash", "base.pin", "base.here", "adapter.fp"))


def _check_one_machine(
    study: Study, again: list[tuple[Path, Protocol]], free: frozenset[str]
) -> None:
    """Compare the replays' protocols with the first one's."""
    for path, protocol in again[1:]:
        for field, (ours, theirs) in field_differences(again[0][1], protocol).items():
            if not within(field, free | ADAPTER):
                expected = f"{field} as in the other replays' protocol: {ours}"
                study.ledger["protocol"].fail(study.relative(path), None, expected, theirs)


def _check_plan(
    study: Study, plan: Plan, placed: PlacedProtocol, protocol: Protocol, cell: Cell
) -> None:
    """Compare with what the plan fixes."""
    path, free = placed
    study.match_plan(path, protocol.plan_digest)
    evaluation, name = plan.evaluation, study.relative(path)
    expected: dict[str, Any] = {
        "answer_format": plan.answer_format,
        "task": scoring_task(plan.task),
        "dtype": plan.model.dtype,
        "backend": backend_name(plan),
        "device": device_of(plan),
        "cells_per_batch": evaluation.cells_per_batch,
        "limit": None,
        "seed": answer_seed(plan, cell),
        "samples": evaluation.samples,
    }
    generation = generation_of(plan)
    size = evaluation.floor_batch_size if cell == FLOOR else evaluation.batch_size
    if size is not None:  # else chosen by memory, and one for all but the floor
        expected["batch_size"] = size
    tally = study.ledger["protocol"]
    found = {key: getattr(protocol, key) for key in expected}
    for key, value in generation.items():
        expected[f"generation.{key}"] = value
        found[f"generation.{key}"] = protocol.generation.get(key, ABSENT)
    for key, value in expected.items():
        if not within(key, free):
            tally.expect(name, None, key, value, found[key])
    decoders = DECODERS[backend_name(plan)]
    if protocol.decoder not in decoders and not within("decoder", free):
        tally.fail(name, None, f"decoder: {' or '.join(decoders)}", protocol.decoder)
    prompts = [prompt for _, prompt in study.prompts("eval")]
    study.ledger["prompt.hash"].expect(
        name, None, "prompts_digest", prompts_digest(prompts), protocol.prompts_digest
    )


def device_of(plan: Plan) -> str:
    """Return where a backend generates."""
    return {
        "transformers": f"{plan.model.device}, {plan.model.threads} threads",
        "vllm": plan.model.device,
        "openai": "endpoint",
    }[backend_name(plan)]


def generation_of(plan: Plan) -> dict[str, Any]:
    """Return what a protocol's generation fields must be, as the plan's backend names them."""
    evaluation, endpoint = plan.evaluation, plan.evaluation.endpoint
    sampled = evaluation.temperature > 0
    top_p = evaluation.top_p if sampled else 1.0
    if backend_name(plan) == "transformers":
        return {
            "do_sample": sampled,
            "temperature": evaluation.temperature if sampled else 1.0,
            "top_p": top_p,
            "max_new_tokens": evaluation.max_new_tokens,
            "num_beams": 1,
            "top_k": 0,
            "repetition_penalty": 1.0,
        }
    expected: dict[str, Any] = {
        "temperature": evaluation.temperature if sampled else 0.0,
        "top_p": top_p,
        "max_tokens": evaluation.max_new_tokens,
        "n": 1,
        "stop": None,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    if endpoint is not UNSET:
        form = "token_ids" if endpoint.dialect == "vllm" else "text"
        expected |= {
            "api": endpoint.api,
            "prompt": "messages" if endpoint.api == "chat" else form,
            "stream": False,
        }
    if endpoint is UNSET or endpoint.dialect == "vllm":
        expected |= {
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "min_tokens": 0,
            "ignore_eos": False,
        }
    return expected


def tells_ids(plan: Plan) -> bool:
    """Say whether the plan's backend knows the token ids of what was written."""
    endpoint = plan.evaluation.endpoint
    return endpoint is UNSET or endpoint.dialect == "vllm"


def _check_equal(
    study: Study, placed: PlacedProtocol, protocol: Protocol, measure: Protocol | None, cell: Cell
) -> None:
    """Compare with the base's, or a replay with the evaluation's.

    Only the adapter, the floor's batch plan, and what is left free may differ.
    """
    path, free = placed
    name = study.relative(path)
    if measure is None:
        study.ledger["protocol"].not_checked("the base's protocol could not be read")
        return
    companions = _companions(study, cell, REPLAY if name.startswith(REPLAY) else "")
    expected = replace(
        measure,
        adapter_digest=protocol.adapter_digest,
        companions=protocol.companions if companions is None else companions,
    )
    if cell == FLOOR:
        expected = replace(expected, batch_size=protocol.batch_size, seed=protocol.seed)
    whose = "the evaluation's" if name.startswith(REPLAY) else "the base's"
    wrong = {
        field: both
        for field, both in field_differences(expected, protocol).items()
        if not within(field, free)
    }
    for field, (ours, theirs) in wrong.items():
        check = OWN_CHECK.get(field, "protocol")
        study.ledger[check].fail(name, None, f"{field} as in {whose} protocol: {ours}", theirs)
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


def _check_run(study: Study, placed: PlacedProtocol, protocol: Protocol, cell: Cell) -> None:
    """Compare with the record of the run whose adapter answered."""
    path, free = placed
    name, ledger = study.relative(path), study.ledger
    if not cell.trained:
        ledger["adapter.fp"].expect(name, None, "adapter_digest", None, protocol.adapter_digest)
        return
    record = study.record(run_paths(study.paths, cell).record, RunRecord)
    if record is None:
        return
    for field in ("adapter_digest", "base_digest", "tokenizer_digest", "template_digest"):
        if field not in free:
            ledger[OWN_CHECK[field]].expect(
                name, None, f"{field} of run.json", getattr(record, field), getattr(protocol, field)
            )
