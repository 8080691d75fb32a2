"""Model cards: bound to the evidence root, and saying of an adapter what the analysis found."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ahalab.plain_files import read_plain
from ahalab.plan.cells import training_cells
from ahalab.plan.plain_yaml import first_mark
from ahalab.records.comparison import AdapterComparison, Comparison
from ahalab.records.run import RunRecord
from ahalab.records.terms import Metric
from ahalab.tasks.places import run_paths
from ahalab.verify.cardtext import (
    Card,
    check_digests,
    check_prose,
    check_tables,
    evidence_root,
    percent,
)
from ahalab.verify.reading import Study
from ahalab.verify.report_printed import rounds_to

NAMES = ("card.bind", "card.root")
MAX_CARD_BYTES = 1 << 20
READINGS: dict[str, Metric] = {"Strict accuracy, %": "strict", "Lenient accuracy, %": "lenient"}
FRONT = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)


def check_cards(study: Study) -> None:
    """Check every model card of a study; one without cards has nothing to be checked."""
    plan = study.plan
    if plan is None:
        return
    cards = sorted(study.root.glob("arms/*/seed-*/adapter/README.md"))
    entries = sorted(study.root.glob("arms/*/seed-*/adapter/.eval_results/*.yaml"))
    planned = {run_paths(study.paths, cell).adapter: cell.run for cell in training_cells(plan)}
    for path in cards:
        _check_card(study, path, planned.get(path.parent))
    for path in entries:
        _check_entry(study, path, planned.get(path.parents[1]))
    if not cards and not entries:
        for name in NAMES:
            study.ledger[name].passed()
            study.ledger[name].note("no model card")
    study.ledger.close(NAMES)


def _check_card(study: Study, path: Path, named: tuple[str, int] | None) -> None:
    tally, name = study.ledger["card.bind"], study.relative(path)
    comparison = study.record(study.paths.comparison, Comparison)
    if named is None or comparison is None:
        tally.fail(name, None, "the card of an adapter that was planned and compared", "another")
        return
    text = _read(study, path)
    if text is None:
        return
    try:
        html.unescape(text)
    except ValueError as error:
        tally.fail(name, None, "a card whose characters can be read", str(error))
        return
    card = Card(study, study.paths.run(*named), *named, text, comparison)
    if len(card.verdicts) < len(READINGS):
        tally.fail(name, None, "the card of an adapter that was compared", "another")
        return
    front = FRONT.match(text)
    if front is None:
        card.fail(0, "front matter between lines of ---", text[:40])
        return
    _check_front(card, _parse(study, path, front[1]))
    check_digests(card)
    check_tables(card, front.end())
    check_prose(card, front.end())


def _read(study: Study, path: Path) -> str | None:
    """Return the text of a small file of UTF-8; anything else is a failure."""
    tally, name = study.ledger["card.bind"], study.relative(path)
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_CARD_BYTES:
        tally.fail(name, None, f"a plain file up to {MAX_CARD_BYTES} bytes", "another one")
        return None
    try:
        return read_plain(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        tally.fail(name, None, "UTF-8 text", str(error))
        return None


def _parse(study: Study, path: Path, text: str) -> Any:
    """Return YAML as plain values; None, and a failure, where it is none."""
    try:
        mark = first_mark(text)
        if mark is not None:
            raise ValueError(f"the anchor or tag {mark.name[:80]!r}")
        return YAML(typ="safe", pure=True).load(text)
    # The library's constructors end in exceptions of many kinds, as for a list of lists as a key.
    except (YAMLError, RecursionError, ValueError, TypeError, LookupError) as error:
        problem = str(getattr(error, "problem", None) or error)
        study.ledger["card.bind"].fail(study.relative(path), None, "YAML", problem)
        return None


def _inner(tree: Any, *keys: str | int) -> Any:
    """Return what lies under the keys of a foreign tree; None where there is nothing."""
    for key in keys:
        if isinstance(tree, dict):
            tree = tree.get(key)
        elif isinstance(tree, list) and isinstance(key, int) and key < len(tree):
            tree = tree[key]
        else:
            return None
    return tree


def _list(tree: Any) -> list[Any]:
    return tree if isinstance(tree, list) else []


def _scalar(value: Any) -> object:
    """Return a value for a failure; a tree by its kind, since aliases may make it huge."""
    return type(value).__name__ if isinstance(value, dict | list) else value


def _check_front(card: Card, tree: Any) -> None:
    own, record = _inner(tree, "ahalab"), card.study.record(card.run.record, RunRecord)
    expected: dict[str, object] = {
        "plan_digest": card.study.plan_digest,
        "protocol_digest": card.comparison.protocol_digest,
        "adapter_digest": None if record is None else record.adapter_digest,
        "arm": card.arm,
        "seed": card.seed,
    }
    for key, value in expected.items():
        card.expect(f"ahalab.{key}", value, _scalar(_inner(own, key)))
    root, found = evidence_root(card.study), _scalar(_inner(own, "evidence_root"))
    if root is not None:
        tally = card.study.ledger["card.root"]
        tally.expect(card.name, None, "root of the evidence", root, found)
    results = _inner(tree, "model-index", 0, "results")
    metrics = [m for result in _list(results) for m in _list(_inner(result, "metrics"))]
    named = {str(_scalar(_inner(m, "name"))): _scalar(_inner(m, "value")) for m in metrics}
    card.expect("metrics of model-index", sorted(READINGS), sorted(named))
    for label, metric in READINGS.items():
        wanted, value = _accuracy(card.verdicts[metric]), named.get(label)
        card.expect(label, wanted, wanted if _same(wanted, value) else value)


def _check_entry(study: Study, path: Path, named: tuple[str, int] | None) -> None:
    """Check an entry for a leaderboard of the Hub: one benchmark, the primary accuracy."""
    tally, name = study.ledger["card.bind"], study.relative(path)
    comparison, text = study.record(study.paths.comparison, Comparison), _read(study, path)
    if text is None:
        return
    found = [
        a
        for a in (comparison.adapters if comparison else ())
        if (a.arm, a.seed) == named and comparison is not None and a.metric == comparison.primary
    ]
    tree = _parse(study, path, text)
    if not found or not isinstance(tree, list) or len(tree) != 1:
        tally.fail(name, None, "one entry of an adapter that was compared", "another")
        return
    wanted, value = _accuracy(found[0]), _inner(tree, 0, "value")
    tally.expect(name, None, "value", wanted, wanted if _same(wanted, value) else _scalar(value))


def _accuracy(verdict: AdapterComparison) -> float | None:
    return percent(verdict.adapter_correct, verdict.n)


def _same(wanted: float | None, value: Any) -> bool:
    """Say whether a value of a card, of any type, is an accuracy in percent."""
    if wanted is None or not isinstance(value, int | float):
        return False
    return rounds_to(wanted, (value, 1e-3))
