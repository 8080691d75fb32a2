"""`--allow FIELD`: what may differ, what is recorded, and what is never an exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_study import make_protocol, write_answers, write_study

from ahalab.analyze.compare import analyze
from ahalab.analyze.protocols import recorded_exceptions
from ahalab.errors import InputError, ProtocolError
from ahalab.records.base import digest_bytes
from ahalab.records.comparison import AllowedDifference
from ahalab.records.plan import Plan
from ahalab.store.layout import StudyPaths

SETS = {("random", 0): "CCCW", ("random", 1): "CCWW"}


def differing(root: Path, **changes: Any) -> tuple[Plan, StudyPaths]:
    """Write a study whose second adapter answered under another protocol."""
    plan, paths = write_study(root, "CCWW", SETS, floor="CCWW")
    protocol = make_protocol(plan, adapter_digest=digest_bytes(b"random1"), **changes)
    write_answers(plan, paths, paths.answers("random", 1), SETS["random", 1], protocol)
    return plan, paths


def test_a_field_that_may_differ_is_recorded_with_both_values_and_its_set(tmp_path: Path) -> None:
    plan, paths = differing(
        tmp_path / "s", device="cuda, 1 threads", versions={"torch": "2.14.0", "cuda": "13"}
    )
    with pytest.raises(ProtocolError, match="--allow device --allow versions"):
        analyze(plan, paths)
    with pytest.raises(ProtocolError) as fault:
        analyze(plan, paths, ["versions"])
    assert "found different device: 'cpu, 1 threads' and 'cuda, 1 threads'." in str(fault.value)
    comparison, ablation = analyze(plan, paths, ["versions", "device"])
    name = "arms/random/seed-1/answers"
    assert comparison.allowed == tuple(
        AllowedDifference(answers=name, field=field, base=base, found=found)
        for field, base, found in (
            ("device", "cpu, 1 threads", "cuda, 1 threads"),
            ("versions.cuda", "absent", "13"),
            ("versions.torch", "2.13.0", "2.14.0"),
        )
    )
    fields = ["device", "versions.cuda", "versions.torch"]
    assert list(ablation.allowed or ()) == fields
    assert json.loads(paths.changed.read_bytes())["allowed"] == fields
    claims = {c["id"]: c for c in json.loads(paths.claims.read_bytes())["claims"]}
    assert claims["exception.device"]["value"] == 1
    assert claims["exception.device"]["inputs"] == [
        "base/answers.protocol.json", "arms/random/seed-1/answers.protocol.json"
    ]  # fmt: skip
    assert recorded_exceptions(paths) == tuple(fields)


def test_nothing_is_recorded_where_nothing_differs(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", "CCWW", SETS)
    analyze(plan, paths)
    written = {p: p.read_bytes() for p in (tmp_path / "s").rglob("*.json")}
    analyze(plan, paths, ["device", "generation.max_new_tokens"])
    assert written == {p: p.read_bytes() for p in (tmp_path / "s").rglob("*.json")}
    assert b"allowed" not in b"".join(written.values())
    assert recorded_exceptions(paths) == ()


def test_a_floor_elsewhere_is_an_exception_too_and_its_batch_is_none(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", "CCWW", SETS, floor="CCWW")
    protocol = make_protocol(plan, batch_size=48, dtype="bfloat16")
    write_answers(plan, paths, paths.floor_answers, "CCWW", protocol)
    comparison, _ = analyze(plan, paths, ["dtype"])
    assert comparison.allowed == (
        AllowedDifference(answers="base/floor", field="dtype", base="float32", found="bfloat16"),
    )


def test_one_and_one_point_nought_and_true_are_three_values(tmp_path: Path) -> None:
    plan, paths = differing(tmp_path / "s", generation={"do_sample": 0, "max_new_tokens": 16})
    with pytest.raises(ProtocolError, match=r"generation.do_sample: False and 0"):
        analyze(plan, paths)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("devise", r"found 'devise'\. Did you mean device\?"),
        ("version", r"Did you mean versions"),
        ("qqqq", r"found 'qqqq'\. Fields: .*device.*"),
        ("device.kind", r"found 'device\.kind'"),
        ("adapter_digest", "needs no exception: leave it out"),
        ("companions", "needs no exception"),
        ("plan_digest", "nothing to compare"),
        ("prompts_digest", "nothing to compare"),
        ("base_digest", "nothing to compare"),
    ],
)
def test_what_is_no_exception_is_refused_in_one_line(tmp_path: Path, name: str, told: str) -> None:
    plan, paths = write_study(tmp_path / "s", "CCWW", SETS)
    with pytest.raises(InputError, match=f"^--allow: expected .*{told}") as fault:
        analyze(plan, paths, [name])
    assert "\n" not in str(fault.value)


def test_another_base_is_refused_without_the_offer_of_an_exception(tmp_path: Path) -> None:
    plan, paths = differing(tmp_path / "s", base_digest="sha256:1", device="cuda, 1 threads")
    with pytest.raises(ProtocolError) as fault:
        analyze(plan, paths, ["device"])
    assert "base_digest" in str(fault.value)
    assert "--allow" not in str(fault.value)
