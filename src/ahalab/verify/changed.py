"""Changed responses: the gained and lost answers, all of them, quoted to the letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahalab.records.comparison import ChangedAnswer, ChangedResponses
from ahalab.records.prompt import Prompt
from ahalab.records.terms import METRICS, Metric
from ahalab.verify.answers import Reply
from ahalab.verify.exceptions import exception_fields
from ahalab.verify.matrices import Outcomes
from ahalab.verify.reading import Study

FILE = "analysis/changed_responses.json"
NAMES = ("changed", "report.quote")
Key = tuple[str, int, Metric, str, int]  # arm, seed, metric, prompt, sample
QUOTED = ("question", "gold", "base_completion", "adapter_completion")


def check_changed(study: Study, outcomes: Outcomes | None) -> None:
    """Check changed_responses.json against the answers."""
    path = study.paths.changed
    found = study.record(path, ChangedResponses)
    if found is None or outcomes is None:
        for name in NAMES:
            if not path.exists():
                study.ledger[name].incomplete(f"{FILE}: not written yet")
    else:
        study.match_plan(path, found.plan_digest)
        allowed = list(found.allowed or ())
        study.ledger["changed"].expect(FILE, None, "allowed", exception_fields(study), allowed)
        _compare(study, dict(_expected(outcomes)), found)
    study.ledger.close(NAMES)


def _compare(study: Study, expected: dict[Key, dict[str, Any]], found: ChangedResponses) -> None:
    tally, quotes = study.ledger["changed"], study.ledger["report.quote"]
    for at, entry in enumerate(found.changed):
        place = f"changed[{at}] ({entry.arm}, seed {entry.seed}, {entry.metric}, {entry.prompt_id})"
        fields = expected.pop(_key(entry), None)
        if fields is None:
            tally.fail(FILE, None, "only answers that changed, each once", place)
            continue
        for field, value in fields.items():
            check = quotes if field in QUOTED else tally
            check.expect(FILE, None, f"{place}: {field}", value, getattr(entry, field))
    for key in expected:
        tally.fail(FILE, None, f"the changed answer {key}", "none")


def _key(entry: ChangedAnswer) -> Key:
    return entry.arm, entry.seed, entry.metric, entry.prompt_id, entry.sample


def _expected(outcomes: Outcomes) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield every discordant pair with the fields it must have."""
    for cell in outcomes.cells:
        replies = outcomes.sets[cell].replies
        for metric in METRICS:
            for prompt in outcomes.prompts:
                for sample in range(outcomes.plan.evaluation.samples):
                    base = outcomes.base.replies[prompt.prompt_id, sample]
                    adapter = replies[prompt.prompt_id, sample]
                    if (base.outcome(metric) == "correct") != (
                        adapter.outcome(metric) == "correct"
                    ):
                        key = (*cell.run, metric, prompt.prompt_id, sample)
                        yield key, _fields(prompt, metric, base, adapter)


def _fields(prompt: Prompt, metric: Metric, base: Reply, adapter: Reply) -> dict[str, Any]:
    gained = adapter.outcome(metric) == "correct"
    return {
        "change": "gained" if gained else "lost",
        "kind": _kind(metric, base if gained else adapter),
        "question": prompt.question,
        "gold": prompt.gold,
        "base_completion": base.completion,
        "adapter_completion": adapter.completion,
        "base_extracted": base.extracted,
        "adapter_extracted": adapter.extracted,
        "base_outcome": base.outcome(metric),
        "adapter_outcome": adapter.outcome(metric),
        "base_rule": base.rule,
        "adapter_rule": adapter.rule,
        "parted_at": _parted_at(base.ids, adapter.ids),
    }


def _parted_at(ours: bytes | None, theirs: bytes | None) -> int | None:
    """Return the number of whole tokens, four bytes each, before two completions part."""
    if ours is None or theirs is None or ours == theirs:
        return None
    at = 0
    while ours[at : at + 4] == theirs[at : at + 4]:
        at += 4
    return at // 4


def _kind(metric: Metric, failing: Reply) -> str:
    """Say what kept the answer that is not correct from being so."""
    if failing.finish == "length":
        return "truncated"
    if metric == "strict" and failing.lenient == "correct":
        return "format"
    return "arithmetic" if failing.lenient == "wrong" else "extraction"
