"""What markers cause, again: the same answers with their reflection and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahalab.plan.cells import Cell, training_cells
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Continuation, Ending
from ahalab.records.terms import METRICS, Metric
from ahalab.statistics.difference import detectable, difference_over_questions
from ahalab.statistics.interval import Interval
from ahalab.statistics.seeds import reward_claim
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet, Reply, Sets
from ahalab.verify.oracle import paired_bounds, step_down, verdict
from ahalab.verify.reflection import Cuts, CutSide

WORDS = {"improved": "caused right answers", "worse": "caused wrong answers"}
Plain = dict[str, Any]
Pair = tuple[Reply, Continuation]


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of the record, from answers and continuations that were checked before."""

    plan: Plan
    prompts: list[Prompt]  # the evaluation's, in order
    answers: Sets
    cuts: Cuts

    def sides(self, cells: Sequence[Cell]) -> list[Plain]:
        """Return what markers cause in each answer set, under both readings."""
        effects = {metric: self._effects(cells, metric) for metric in METRICS}
        return [
            {
                **self._counts(self.answers[cell], self.cuts[cell], self._pairs(cell)),
                "effects": [effects[metric][at] for metric in METRICS],
            }
            for at, cell in enumerate(cells)
        ]

    def _pairs(self, cell: Cell) -> list[Pair]:
        """Return answers and continuations that can be compared."""
        replies = self.answers[cell].replies
        rows = self.cuts[cell].rows
        return [(replies[r.prompt_id, r.sample], r) for r in rows if not r.reflects]

    def _counts(self, answers: AnswerSet, cut: CutSide, pairs: Sequence[Pair]) -> Plain:
        cut_replies = [(answers.replies[r.prompt_id, r.sample], r.kept) for r in cut.rows]
        counts = {
            f"kept_{m}": sum(_right(a, m) != _right(b, m) for a, b in cut_replies) for m in METRICS
        }
        packed = [np.array(b.completion_ids, dtype=np.uint32).tobytes() for _, b in cut_replies]
        return {
            "answers": answers.name,
            "n": len(answers.replies),
            "marked": len(cut.rows),
            "still": len(cut.rows) - len(pairs),
            "truncated_with": sum(reply.finish == "length" for reply, _ in pairs),
            "truncated_without": sum(row.without.finish == "length" for _, row in pairs),
            "kept_same": sum(a.ids == b for (a, _), b in zip(cut_replies, packed, strict=True)),
            **counts,
        }

    def _effects(self, cells: Sequence[Cell], metric: Metric) -> list[Plain]:
        """Return the effects of one reading, after Holm over the sides."""
        found = [self._effect(cell, metric) for cell in cells]
        alpha = self.plan.analysis.alpha
        for one, p_holm in zip(found, step_down([f["p_value"] for f in found]), strict=True):
            one["p_holm"] = p_holm
            bounds = one["interval_points"]
            if bounds is None:
                continue
            word = _word((bounds[0], bounds[1]), one["p_value"], p_holm, alpha)
            kept, p_kept = one["kept_difference_points"], one["kept_p_value"]
            agrees = kept * one["difference_points"] > 0 and p_kept is not None and p_kept <= alpha
            one["only_as_written"] = word != "no evidence" and not agrees
            one["verdict"] = "no evidence" if one["only_as_written"] else word
        return found

    def _effect(self, cell: Cell, metric: Metric) -> Plain:
        pairs = self._pairs(cell)
        one = [_right(reply, metric) for reply, _ in pairs]
        free = [_right(row.kept, metric) for _, row in pairs]
        other = [_right(row.without, metric) for _, row in pairs]
        ids = [row.prompt_id for _, row in pairs]
        mean, bounds, p_value, seen = self._tested(ids, one, other)
        kept_mean, _, kept_p, _ = self._tested(ids, free, other)
        return {
            "metric": metric,
            "pairs": len(pairs),
            "questions": len(set(ids)),
            "correct_with": sum(one),
            "correct_without": sum(other),
            "gained": sum(a > b for a, b in zip(one, other, strict=True)),
            "lost": sum(a < b for a, b in zip(one, other, strict=True)),
            "difference_points": mean,
            "interval_points": bounds,
            "p_value": p_value,
            "p_holm": None,
            "kept_difference_points": kept_mean,
            "kept_p_value": kept_p,
            "only_as_written": False,
            "detectable_points": seen,
            "verdict": "not measured" if self.cuts[cell].rows else "no answer reflected",
        }

    def _tested(
        self, ids: Sequence[str], one: Sequence[int], other: Sequence[int]
    ) -> tuple[float | None, list[float] | None, float | None, float | None]:
        """Return difference, interval, p and what could be seen, with the question as the unit."""
        analysis, moved = self.plan.analysis, dict[str, list[int]]()
        for key, a, b in zip(ids, one, other, strict=True):
            moved.setdefault(key, []).append(a - b)
        there = [p for p in self.prompts if p.prompt_id in moved]
        if not there:
            return None, None, None, None
        means = np.array([np.mean(moved[p.prompt_id]) for p in there])
        clusters = [normalised(p.question) for p in there]
        (low, high), p_value = paired_bounds(means, clusters, analysis.confidence)
        tested = difference_over_questions(means, clusters, analysis.confidence)
        seen = detectable(tested, analysis.alpha)
        return 100 * float(means.mean()), [100 * low, 100 * high], p_value, in_points(seen)

    def arms(self, cells: Sequence[Cell]) -> list[Plain]:
        """Return what they cause in each arm whose seeds are all there, after Holm over arms."""
        arms = [
            [cell for cell in training_cells(self.plan) if cell.arm == arm.name]
            for arm in self.plan.arms
        ]
        found = []
        for metric in METRICS:
            family = [self._arm(own, metric) for own in arms if all(c in cells for c in own)]
            adjusted = step_down([one["p_value"] for one in family])
            for one, p_holm in zip(family, adjusted, strict=True):
                one["p_holm"] = p_holm
                bounds, alpha = one["interval_points"], self.plan.analysis.alpha
                if bounds is not None:
                    one["verdict"] = _word((bounds[0], bounds[1]), one["p_value"], p_holm, alpha)
            found += family
        return found

    def _arm(self, cells: Sequence[Cell], metric: Metric) -> Plain:
        """Return one arm, before Holm."""
        at = {prompt.prompt_id: n for n, prompt in enumerate(self.prompts)}
        values = np.zeros((len(cells), len(at)))
        for seed, cell in enumerate(cells):
            for reply, row in self._pairs(cell):
                change = _right(reply, metric) - _right(row.without, metric)
                values[seed, at[row.prompt_id]] += change / self.plan.evaluation.samples
        clusters = [normalised(prompt.question) for prompt in self.prompts]
        claim = reward_claim(values, clusters, self.plan.analysis.confidence)
        word = "no evidence"
        if not any(self._pairs(cell) for cell in cells):
            reflected = any(self.cuts[cell].rows for cell in cells)
            word = "not measured" if reflected else "no answer reflected"
        return {
            "arm": cells[0].arm,
            "metric": metric,
            "seeds": len(cells),
            "difference_points": 100 * float(values.mean()),
            "seed_differences_points": [100 * float(row.mean()) for row in values],
            "interval_points": interval_in_points(claim.interval),
            "p_value": claim.p_value,
            "p_holm": None,
            "detectable_points": in_points(claim.detectable()),
            "verdict": word,
        }


def _right(row: Reply | Ending, metric: Metric) -> int:
    return int((row.strict if metric == "strict" else row.lenient) == "correct")


def _word(
    bounds: tuple[float, float], p_value: float | None, p_holm: float | None, alpha: float
) -> str:
    """Return the verdict, in points; no margin is planned for it, so nothing is equivalent."""
    return WORDS.get(verdict(p_value, p_holm, bounds, 0.0, alpha), "no evidence")


def in_points(share: float | None) -> float | None:
    """Return a share in points."""
    return None if share is None else 100 * share


def interval_in_points(interval: Interval | None) -> list[float] | None:
    """Return the ends of an interval of shares, in points."""
    return None if interval is None else [100 * interval.low, 100 * interval.high]
