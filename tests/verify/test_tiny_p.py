"""A tiny p is compared by its ratio: absolutely, 2e-12 and 2e-13 would be one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ahalab.records.comparison import AdapterComparison
from ahalab.verify.checks import Ledger
from ahalab.verify.compared_fields import COMPARISON

TOLD = AdapterComparison(
    arm="a", seed=1, metric="strict", n=200, base_correct=40.0, adapter_correct=90.0, gained=60,
    lost=10, difference_points=25.0, interval_points=(18.0, 32.0), interval_covers="questions",
    p_value=2e-12, p_exact=None, verdict="improved", sentence="",
)  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "wrong"),
    [(2e-12, False), (2e-12 * (1 + 1e-9), False), (2e-13, True), (0.0, True), (4e-12, True)],
)
def test_a_p_far_below_the_tolerance_is_told_when_it_is_another(
    recorded: float, wrong: bool
) -> None:
    study: Any = SimpleNamespace(ledger=Ledger(None))
    told = replace(TOLD, p_value=recorded)
    COMPARISON.compare(study, "a, seed 1, strict", {"p_value": 2e-12}, told)
    assert (study.ledger["stat.recompute"].failed == 1) is wrong
