"""What a verification says: checks with stable names, each with the failures that it found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Literal

Status = Literal["passed", "failed", "not checked", "incomplete"]
Result = Literal["PASSED", "FAILED", "INCOMPLETE"]

LISTED = 20  # failures listed of each check; all are counted
ABSENT = "nothing"  # of a key that is not there, which says something else than null
SHOWN = 200  # characters of an expected or found value that are kept

CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "file.type": "everything below the folder is a plain file",
        "manifest.schema": "the manifest is one strict record",
        "manifest.closed": "nothing is left out; evidence and what is made of it stand apart",
        "manifest.unique": "no path stands twice in the manifest",
        "path.safe": "paths in the manifest stay within the folder",
        "file.missing": "every file of the manifest is there",
        "file.extra": "every file that is there stands in the manifest",
        "file.path": "no file was renamed",
        "file.hash": "sizes and sha256 are those of the manifest",
        "root": "the evidence root is that of the manifest's entries",
        "root.anchor": "the evidence root is the one published earlier",
        "plan.anchor": "the plan's digest is the one published earlier",
        "sig.missing": "the signature is there, with what was signed",
        "sig.payload": "what was signed is this study, and the signature fits it",
        "sig.namespace": "the signature was made for evidence, not for another purpose",
        "sig.key": "the key is one of the signer's",
        "chain": "journals are whole chains, and rows are the bytes that were committed",
        "chain.run": "each journal belongs to the rows beside it",
        "plan.first": "this plan was there before the first row of every file",
        "attempts": "attempts are numbered, and found what was committed before them",
        "seal": "row files are complete: sealed, and nothing after the seal",
        "dataset.hash": "prompt ids are the digests of question and gold",
        "dataset.source": "questions are those that the task draws",
        "split": "no question stands in two of training, evaluation and validation",
        "prompt.hash": "prompts, templates and tokenizers are those of every record",
        "arms.all": "every planned arm, seed and answer set is there, and no other",
        "plan.n": "every run did the planned steps and completions",
        "arm.config": "every run was trained under the plan's configuration, seeds apart",
        "arm.order": "under one seed every arm saw the same prompts in the same order",
        "base.pin": "one base everywhere",
        "base.here": "the base at hand is the base of the study",
        "adapter.fp": "adapters are those that training left and that answered",
        "adapter.arm": "runs are labelled with their own arm, seed and components",
        "adapter.config": "rank, alpha and base of the adapters are the plan's",
        "tensor.finite": "adapter weights are finite",
        "adapter.effect": "adapters change the model, or an alarm says that they do not",
        "row.unique": "no row stands twice",
        "cover": "every planned completion is there exactly once, in whole groups",
        "regrade": "both scorers give every completion the recorded outcomes and rewards",
        "extract": "the recorded answer is what the scorer extracts",
        "grade.status": "every reward component has the value and status that it gives today",
        "reward.source": "the code of users' own rewards is what the plan was frozen with",
        "reward.own": "users' own rewards give the recorded values (with --trust-rewards)",
        "reward.sum": "rewards are the weighted sums of their components",
        "advantage": "advantages are those of the group's rewards",
        "finish": "why a completion ended is what its token ids say",
        "tokens": "counts of tokens are those of the token ids",
        "tokens.text": "completions are the text of their token ids",
        "steps": "figures of the steps are those of the rollouts",
        "diagnostics": "summaries and alarms are those of the rows",
        "protocol": "answers were made under one protocol, the plan's",
        "pair.key": "answers stand in the order that the batch plan fixes",
        "replay": "answers generated again are equal, or the conclusion stands on another machine",
        "rescored": "outcomes kept from earlier scorers belong to the same completions",
        "reflection": "answers were cut at their markers, and finished without what began them",
        "stat.n": "counts and denominators are those of the answers",
        "stat.recompute": "differences, tests, intervals and verdicts come out again",
        "stat.method": "methods and what an interval covers are named rightly",
        "stat.sentence": "sentences hold the figures and the verdict of their comparison",
        "outcome.missing": "every planned comparison is there",
        "outcome.added": "nothing unplanned is called primary, or left without a name",
        "changed": "changed responses are those of the answers",
        "report.quote": "every quoted completion stands in the rows",
        "ablation": "the table of arms and seeds comes out again",
        "claims": "claims are the values of comparison and ablation",
        "report.bind": "the report prints the values of claims and records, and recorded answers",
        "report.drawn": "drawn again by the same code, the report is the same to the byte",
        "report.root": "the report was made from this evidence",
        "card.bind": "model cards say what the analysis found, and nothing else",
        "card.root": "model cards were made from this evidence",
        "plan.match": "every record names this plan",
        "json.strict": "rows and records are canonical JSON",
        "json.finite": "numbers are finite",
        "schema.type": "fields and types are those of the schema",
        "origin.generation": "the completions were really generated by the model",
        "origin.runs": "no run was hidden before the plan was published",
    }
)
"""Every check by its stable name, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One place where the evidence is not what it must be."""

    file: str  # relative to the study
    line: int | None  # from 1; None: the file as a whole
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check and what it found."""

    name: str
    status: Status
    count: int  # things looked at
    failures: tuple[Failure, ...]  # the first ones
    failed: int = 0  # all of them
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """The whole of it."""

    result: Result
    checks: tuple[Check, ...]

    def to_json(self) -> str:
        """Return one JSON object, as DESIGN.md promises to other programs."""
        checks = [
            {
                "name": check.name,
                "status": check.status,
                "count": check.count,
                "failures": [
                    {"file": f.file, "line": f.line, "expected": f.expected, "found": f.found}
                    for f in check.failures
                ],
                "failed": check.failed,
                "note": check.note,
            }
            for check in self.checks
        ]
        return json.dumps({"result": self.result, "checks": checks}, ensure_ascii=True)


def shown(value: object) -> str:
    """Return a value for a failure: short, on one line, without control characters."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:SHOWN]
    )
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


@dataclass(slots=True)
class Tally:
    """One check while it runs."""

    name: str
    count: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def passed(self, count: int = 1) -> None:
        """Count things that are right."""
        self.count += count

    def fail(self, file: PurePath | str, line: int | None, expected: object, found: object) -> None:
        """Count one thing that is wrong."""
        self.count += 1
        self.failed += 1
        if len(self.failures) < LISTED:
            self.failures.append(Failure(str(file), line, shown(expected), shown(found)))

    def expect(
        self, file: PurePath | str, line: int | None, what: str, expected: object, found: object
    ) -> bool:
        """Count one thing, right when `found` equals `expected`; say which."""
        if expected == found and type(expected) is type(found):
            self.count += 1
            return True
        self.fail(file, line, f"{what}: {shown(expected)}", found)
        return False

    def incomplete(self, why: str) -> None:
        """Note that something is not there yet."""
        if why not in self.unfinished:
            self.unfinished.append(why)

    def not_checked(self, why: str) -> None:
        """Note that the check could not be made."""
        if why not in self.unchecked:
            self.unchecked.append(why)

    def note(self, text: str) -> None:
        """Note what a reader must know besides."""
        if text not in self.notes:
            self.notes.append(text)

    def absorb(self, other: Tally) -> None:
        """Count what another process found, after what was found here."""
        self.count += other.count
        self.failed += other.failed
        self.failures += other.failures[: LISTED - len(self.failures)]
        for why in other.unfinished:
            self.incomplete(why)
        for why in other.unchecked:
            self.not_checked(why)
        for text in other.notes:
            self.note(text)

    def done(self) -> Check:
        """Return the check."""
        notes = [*self.unfinished, *self.unchecked, *self.notes]
        status: Status = "passed"
        if self.failed:
            status = "failed"
        elif self.unfinished:
            status = "incomplete"
        elif self.unchecked or not self.count:
            status = "not checked"
            notes = notes or ["there was nothing to check, or what it needs could not be read"]
        note = "; ".join(notes[:6]) + (f"; and {len(notes) - 6} more" if len(notes) > 6 else "")
        return Check(self.name, status, self.count, tuple(self.failures), self.failed, note)


class Ledger:
    """All checks while they run; each is told once, when nothing can change it any more."""

    def __init__(self, on_check: Callable[[Check], None] | None) -> None:
        self._tallies = {name: Tally(name) for name in CHECKS}
        self._closed: dict[str, Check] = {}
        self._on_check = on_check

    def __getitem__(self, name: str) -> Tally:
        """Return the tally of a check that is still open."""
        return self._tallies[name]

    def failing(self) -> bool:
        """Say whether any check failed so far."""
        return any(tally.failed for tally in self._tallies.values())

    def found(self) -> list[Tally]:
        """Return the tallies, to be absorbed by the ledger of another process."""
        return list(self._tallies.values())

    def absorb(self, found: Iterable[Tally]) -> None:
        """Add what another process found to checks that are still open."""
        for tally in found:
            self._tallies[tally.name].absorb(tally)

    def close(self, names: Iterable[str]) -> None:
        """Finish these checks."""
        for name in names:
            if name in self._closed:
                continue
            check = self._tallies[name].done()
            self._closed[name] = check
            if self._on_check is not None:
                self._on_check(check)

    def verification(self) -> Verification:
        """Finish what is left and return the whole."""
        self.close(CHECKS)
        checks = tuple(self._closed[name] for name in CHECKS)
        statuses = {check.status for check in checks}
        result: Result = "PASSED"
        if "failed" in statuses:
            result = "FAILED"
        elif "incomplete" in statuses:
            result = "INCOMPLETE"
        return Verification(result, checks)
