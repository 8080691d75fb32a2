"""What a replay comes to, from letters: counts by hand, verdicts that change, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from small_study import make_answers, make_protocol, pair, put_answers, write_answers, write_study

from ahalab.analyze.compare import analyze
from ahalab.analyze.replay import read_replay, require_replay
from ahalab.errors import CheckFailedError, ProtocolError
from ahalab.records.base import decode_file, digest_bytes
from ahalab.records.manifest import Claims
from ahalab.records.plan import Plan
from ahalab.records.replay import Replay, ReplayDifference
from ahalab.store.layout import StudyPaths

ELSEWHERE = {"versions": {"torch": "2.14.0"}, "device": "cuda, 1 threads"}
BASE = "CCWFWT"
ADAPTER = "CCCWFT"


def replay(
    plan: Plan, paths: StudyPaths, sets: dict[tuple[str, int] | None, str], **changes: Any
) -> None:
    """Write replays, the base's under None."""
    for key, letters in sets.items():
        adapter = None if key is None else digest_bytes(f"{key[0]}{key[1]}".encode())
        protocol = make_protocol(plan, adapter_digest=adapter, **changes)
        target = paths.base_answers("replay/") if key is None else paths.answers(*key, "replay/")
        write_answers(plan, paths, target, letters, protocol)


def recorded(plan: Plan, paths: StudyPaths) -> Replay:
    analyze(plan, paths)
    found = read_replay(paths)
    assert found is not None
    return found


def test_equal_answers_and_flips_both_ways_are_those_counted_by_hand(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    replay(plan, paths, {None: "CCWFWT", ("random", 0): "CFWCFU"}, **ELSEWHERE)
    found = recorded(plan, paths)
    base, adapter = found.sets
    assert (base.answers, base.n, base.equal) == ("base/answers", 6, 6)
    assert (adapter.answers, adapter.n, adapter.equal) == ("arms/random/seed-0/answers", 6, 2)
    # strict: 2 C to F lost, 3 C to W lost, 4 W to C gained; lenient: 3 lost, 4 gained
    assert (adapter.strict_gained, adapter.strict_lost) == (1, 2)
    assert (adapter.lenient_gained, adapter.lenient_lost) == (1, 1)
    assert (found.n, found.equal, found.strict_gained, found.strict_lost) == (12, 8, 1, 2)
    assert (found.lenient_gained, found.lenient_lost) == (1, 1)
    assert adapter.protocol == (
        ReplayDifference(field="device", first="cpu, 1 threads", again="cuda, 1 threads"),
        ReplayDifference(field="versions.torch", first="2.13.0", again="2.14.0"),
    )


def test_a_row_is_equal_in_all_but_its_protocols_digest(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    replay(plan, paths, {None: BASE}, **ELSEWHERE)
    protocol = make_protocol(plan, **ELSEWHERE)
    rows = make_answers(paths, BASE, protocol)
    rows[1] = replace(rows[1], completion_ids=(1, 2))
    rows[2] = replace(rows[2], rule="statement")
    put_answers(plan, paths, paths.base_answers("replay/"), rows, protocol)
    assert recorded(plan, paths).equal == 4


def test_an_equal_replay_stands_and_without_one_there_is_no_record(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    analyze(plan, paths)
    assert read_replay(paths) is None
    replay(plan, paths, {None: BASE, ("random", 0): ADAPTER})
    found = recorded(plan, paths)
    # one arm against the base in two readings; one seed, so the adapter's two verdicts too
    assert (found.conclusion, found.verdicts, found.changed) == ("stands", 4, ())
    assert all(one.protocol == () for one in found.sets)
    require_replay(found, paths.root)
    values = {c.id: c.value for c in decode_file(paths.claims.read_bytes(), Claims, "c").claims}
    assert (values["replay.equal"], values["replay.conclusion"]) == (12, "stands")
    for path in (paths.root / "replay").rglob("answers.j*"):
        path.unlink()
    analyze(plan, paths)
    assert not paths.replay.exists()
    assert "replay" not in paths.claims.read_text("utf-8")


def test_verdicts_that_do_not_come_out_again_are_named_with_both_words(tmp_path: Path) -> None:
    base, better = pair(20, 0, 60)
    plan, paths = write_study(tmp_path / "s", base, {("random", 0): better})
    replay(plan, paths, {None: base, ("random", 0): base}, **ELSEWHERE)
    found = recorded(plan, paths)
    assert found.conclusion == "changed"
    told = {(c.arm, c.seed, c.against, c.metric, c.first, c.again) for c in found.changed}
    assert told == {
        ("random", 0, "base", metric, "improved", "no evidence") for metric in ("strict", "lenient")
    }
    with pytest.raises(CheckFailedError, match=r"random seed 0 against base, strict: .*, was impr"):
        require_replay(found, paths.root)


def test_under_an_equal_protocol_one_other_answer_fails_though_the_verdicts_stand(
    tmp_path: Path,
) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    replay(plan, paths, {None: BASE, ("random", 0): "CCCWFU"})
    found = recorded(plan, paths)
    assert found.conclusion == "stands"
    with pytest.raises(CheckFailedError, match=r"found others in arms/random/seed-0, under an eq"):
        require_replay(found, paths.root)


def test_a_part_is_reported_and_carries_no_conclusion(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER, ("random", 1): BASE})
    replay(plan, paths, {("random", 1): BASE})
    found = recorded(plan, paths)
    assert [s.answers for s in found.sets] == ["arms/random/seed-1/answers"]
    assert found.missing == ("base", "arms/random/seed-0")
    assert (found.conclusion, found.verdicts, found.n, found.equal) == ("not drawn", None, 6, 6)
    require_replay(found, paths.root)


@pytest.mark.parametrize(
    "changes", [{"seed": 3}, {"scorer_version": "9"}, {"generation": {"max_new_tokens": 16}}]
)
def test_a_replay_that_differs_in_more_than_what_generates_is_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    replay(plan, paths, {None: BASE}, **ELSEWHERE, **changes)
    field = next(iter(changes))
    with pytest.raises(ProtocolError, match=f"decoder, versions at most, found different {field}"):
        analyze(plan, paths)


def test_replays_of_two_machines_are_refused_as_any_two_protocols(tmp_path: Path) -> None:
    plan, paths = write_study(tmp_path / "s", BASE, {("random", 0): ADAPTER})
    replay(plan, paths, {None: BASE}, **ELSEWHERE)
    replay(plan, paths, {("random", 0): ADAPTER}, versions={"torch": "2.15.0"})
    with pytest.raises(ProtocolError, match=r"versions.torch: '2.14.0' and '2.15.0'"):
        analyze(plan, paths)
