"""What a model card says, against the analysis: its digests, tables and sentences."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ahalab.records.comparison import AdapterComparison, ArmComparison, Comparison
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.manifest import Manifest
from ahalab.records.run import RunRecord
from ahalab.records.terms import METRICS
from ahalab.store.fingerprint import ADAPTER_WEIGHTS
from ahalab.store.layout import RunPaths
from ahalab.store.manifest import hash_file, root_digest
from ahalab.verify.reading import Study
from ahalab.verify.report_printed import figures_in, rounds_to

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
BLOCK = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.DOTALL | re.MULTILINE)
SHARE = re.compile(r"\d\s*(?:%|percent|points)")  # a result, wherever it stands in the prose
ADAPTER_TABLE, ARM_TABLE, DIGEST_TABLE = "reading", "against", "digest of"
Numbers = tuple[tuple[float, ...] | None, ...]  # of a table's cells; None: unknown, a dash


@dataclass(frozen=True)
class Card:
    """One card, and what its study says of the adapter."""

    study: Study
    run: RunPaths
    arm: str
    seed: int
    text: str
    comparison: Comparison

    @property
    def name(self) -> str:
        """Return how failures name it."""
        return self.study.relative(self.run.card)

    @cached_property
    def verdicts(self) -> dict[str, AdapterComparison]:
        """The adapter against its base, by reading."""
        here = (self.arm, self.seed)
        return {a.metric: a for a in self.comparison.adapters if (a.arm, a.seed) == here}

    @cached_property
    def arms(self) -> dict[tuple[str, str], ArmComparison]:
        """The planned comparisons of its reward."""
        return {
            (a.against, a.metric): a
            for a in self.comparison.arms
            if a.arm == self.arm and a.primary
        }

    def fail(self, at: int | None, expected: object, found: object) -> None:
        """Report a fault at a position of the text."""
        line = None if at is None else self.text.count("\n", 0, at) + 1
        self.study.ledger["card.bind"].fail(self.name, line, expected, found)

    def expect(self, what: str, expected: object, found: object) -> None:
        """Compare one value of the front matter."""
        self.study.ledger["card.bind"].expect(self.name, None, what, expected, found)


def percent(correct: float, n: int) -> float | None:
    """Return a share in percent; None for counts that no share is made of, told by `stat.n`."""
    try:
        return 100 * correct / n
    except (OverflowError, ZeroDivisionError):
        return None


def evidence_root(study: Study) -> str | None:
    """Return the root of the evidence; None where there is no manifest."""
    manifest = study.record(study.paths.manifest, Manifest)
    if manifest is None:
        study.ledger["card.root"].incomplete("no manifest.json with a root to compare with")
        return None
    return root_digest(manifest.plan_digest, manifest.evidence)


def check_digests(card: Card) -> None:
    """Fail every digest in the card that is none of its study: above all a stale root."""
    study, weights = card.study, card.run.adapter / ADAPTER_WEIGHTS
    record = study.record(card.run.record, RunRecord)
    known = {study.plan_digest, card.comparison.protocol_digest, evidence_root(study)}
    if record is not None:
        known |= {record.adapter_digest, record.base_digest}
    if weights.is_file():
        known.add(f"sha256:{hash_file(weights)}")
    tally = study.ledger["card.root"]
    for match in DIGEST.finditer(card.text):
        if match[0] in known:
            tally.passed()
        else:
            line = card.text.count("\n", 0, match.start()) + 1
            tally.fail(card.name, line, "a digest of this study and adapter", match[0])


def check_tables(card: Card, start: int) -> None:
    """Compare every cell from `start` on; a table of another kind is a failure."""
    seen: set[tuple[str, ...]] = set()
    kind = None
    for at, line in _lines(_without_blocks(card.text), start):
        if not line.startswith("|"):
            kind = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if kind is None:
            kind = cells[0]
            if kind not in (ADAPTER_TABLE, ARM_TABLE, DIGEST_TABLE):
                card.fail(at, "a table of readings, of comparisons or of digests", kind)
        elif set(line) <= set("|-: ") or kind == DIGEST_TABLE:
            continue
        elif kind in (ADAPTER_TABLE, ARM_TABLE):
            key = (kind, *cells[: 1 if kind == ADAPTER_TABLE else 2])
            _check_row(card, at, cells[len(key) - 1 :], _expected(card, key), line)
            seen.add(key)
    wanted: set[tuple[str, ...]] = {(ADAPTER_TABLE, metric) for metric in METRICS}
    wanted |= {(ARM_TABLE, *key) for key in card.arms}
    for key in sorted(wanted - seen):
        card.fail(None, f"a row of {', '.join(key)}", "none")


def _expected(card: Card, key: tuple[str, ...]) -> Numbers | None:
    """Return the numbers that a row must print, cell by cell; None: there is no such row."""
    if key[0] == ADAPTER_TABLE:
        verdict = card.verdicts.get(key[1])
        if verdict is None:
            return None
        return _numbers(
            percent(verdict.base_correct, verdict.n),
            percent(verdict.adapter_correct, verdict.n),
            verdict.difference_points,
            verdict.interval_points,
            verdict.gained,
            verdict.lost,
            verdict.n,
            verdict.p_value,
            verdict.p_max_t if isinstance(verdict.p_max_t, float) else None,
        )
    arm = card.arms.get((key[1], key[2])) if len(key) > 2 else None
    if arm is None:
        return None
    return _numbers(
        100 * arm.reference_accuracy,
        100 * arm.accuracy,
        arm.difference_points,
        arm.interval_points,
        arm.p_holm,
    )


def _numbers(*values: float | tuple[float, float] | None) -> Numbers:
    return tuple(v if isinstance(v, tuple) or v is None else (v,) for v in values)


def _check_row(card: Card, at: int, cells: list[str], expected: Numbers | None, line: str) -> None:
    if expected is not None and len(cells) == len(expected):
        found = [figures_in(cell) for cell in cells]
        if all(
            len(one) == len(wanted or ())
            and all(rounds_to(w, figure) for figure, w in zip(one, wanted or (), strict=True))
            for one, wanted in zip(found, expected, strict=True)
        ):
            card.study.ledger["card.bind"].passed(len(cells))
            return
    card.fail(at, "no such row" if expected is None else f"the numbers {expected}", line)


def check_prose(card: Card, start: int) -> None:
    """Check that every sentence of the study stands there, and no other result does."""
    body = _without_blocks(card.text)
    text = html.unescape(body[start:])
    floor = card.comparison.floor
    sentences = [v.sentence for v in card.verdicts.values()]
    sentences += [arm.sentence for arm in card.arms.values()]
    sentences += [floor.sentence] if floor is not None else []
    for sentence in sentences:
        if sentence in text:
            card.study.ledger["card.bind"].passed()
        else:
            card.fail(None, f"the sentence: {sentence}", "none like it")
    known = [*sentences, *_quoted(card)]
    for at, line in _lines(body, start):
        rest = html.unescape(line)
        for sentence in known:
            rest = rest.replace(sentence, "")
        if not line.startswith("|") and SHARE.search(rest):
            card.fail(at, "results in tables and in the study's own sentences only", rest)


def _quoted(card: Card) -> list[str]:
    """Return what a card quotes of its study besides: alarms, and the asked format."""
    study = card.study
    record = study.record(card.run.record, RunRecord)
    diagnostics = study.record(card.run.diagnostics, Diagnostics)
    alarms = [a.evidence for one in (record, diagnostics) if one is not None for a in one.alarms]
    return [*alarms, *([study.plan.answer_format] if study.plan is not None else [])]


def _without_blocks(text: str) -> str:
    """Blank out blocks of code, which hold commands and prompts; positions stay."""
    return BLOCK.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the position and text of every line from a position on."""
    for line in text[start:].split("\n"):
        yield start, line
        start += len(line) + 1
