"""What is said of reflection: every count, rate, interval and verdict again, from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahalab.errors import RecordError
from ahalab.plan.cells import Cell, answer_cells, training_cells
from ahalab.plan.schedule import step_buckets
from ahalab.records.base import decode_row, to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Continuation, Ending, Reflection
from ahalab.records.rollout import Rollout
from ahalab.records.terms import Metric
from ahalab.scoring.reflection import MARKERS_VERSION, reflection_markers
from ahalab.statistics.association import GroupRate, compare_groups
from ahalab.statistics.difference import detectable, difference_over_questions
from ahalab.statistics.interval import Interval
from ahalab.statistics.seeds import reward_claim
from ahalab.tasks.places import run_paths
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet, Reply, Sets
from ahalab.verify.matrices import METRICS
from ahalab.verify.oracle import step_down, verdict
from ahalab.verify.reading import Study, differences
from ahalab.verify.reflection import Cuts, CutSide
from ahalab.verify.reflection_wording import check_sentences
from ahalab.verify.verdicts import paired_bounds

FILE = "analysis/reflection.json"
TOLERANCE = 1e-6  # of intervals, which two solvers find
SENTENCES = ("sentence", "floor")
COUNTS = {
    "rollouts", "marked", "answers", "questions", "correct", "n", "pairs", "correct_with",
    "correct_without", "gained", "lost", "still", "truncated_with", "truncated_without",
    "kept_same", "kept_strict", "kept_lenient", "seeds", "markers",
}  # fmt: skip
WORDS = {"improved": "caused right answers", "worse": "caused wrong answers"}
Plain = dict[str, Any]
Pair = tuple[Reply, Continuation]


def check_reflection(study: Study, answers: Sets, cuts: Cuts) -> None:
    """Check analysis/reflection.json against rollouts, answers and continuations."""
    path, plan = study.paths.reflection, study.plan
    found = study.record(path, Reflection)
    if found is None or plan is None:
        if cuts and not path.exists():
            study.ledger["stat.n"].incomplete(f"{FILE}: not written yet")
        return
    if not study.paths.reflections.is_dir():
        study.ledger["stat.n"].fail(FILE, None, "the continuations that it tells of", "none")
        return
    study.match_plan(path, found.plan_digest)
    if found.markers != MARKERS_VERSION or not all(side.known for side in cuts.values()):
        for check in ("stat.n", "stat.recompute"):
            study.ledger[check].not_checked(f"{FILE}: made by another version of the markers")
        return
    again = _Again(study, plan, answers, cuts)
    _book(study, again.expected(), _without_sentences(to_plain(found)))
    check_sentences(study, found)


def _book(study: Study, expected: Plain, found: Plain) -> None:
    """Compare what was computed again; each place goes to its own check."""
    for section in expected:
        places = list(differences(expected[section], found[section], TOLERANCE, section))
        for place, ours, theirs in places:
            leaf = place.rpartition(".")[2].partition("[")[0]
            check = "stat.n" if leaf in COUNTS or ".markers." in place else "stat.recompute"
            check = "outcome.missing" if place.endswith("(length)") else check
            check = "stat.method" if section in ("primary", "confidence", "alpha") else check
            study.ledger[check].fail(FILE, None, f"{place}: {ours}", theirs)
        study.ledger["stat.recompute"].passed(0 if places else 1)


def _without_sentences(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _without_sentences(v) for k, v in tree.items() if k not in SENTENCES}
    return [_without_sentences(one) for one in tree] if isinstance(tree, list | tuple) else tree


def _right(row: Reply | Ending, metric: Metric) -> int:
    return int((row.strict if metric == "strict" else row.lenient) == "correct")


def _points(bounds: tuple[float, float] | None) -> list[float] | None:
    return None if bounds is None else [100 * bounds[0], 100 * bounds[1]]


@dataclass(frozen=True, slots=True)
class _Again:
    """The record again, from what was read and checked before."""

    study: Study
    plan: Plan
    answers: Sets
    cuts: Cuts

    @property
    def prompts(self) -> list[Prompt]:
        """Return the evaluation's prompts, in order."""
        return [prompt for _, prompt in self.study.prompts("eval")]

    def expected(self) -> Plain:
        """Return every section that is computed."""
        analysis = self.plan.analysis
        runs = [self._training(cell) for cell in training_cells(self.plan)]
        whole = [c for c in answer_cells(self.plan) if c in self.answers and self.answers[c].whole]
        checked = [cell for cell in whole if cell in self.cuts and self.cuts[cell].whole]
        return {
            "primary": analysis.primary,
            "confidence": analysis.confidence,
            "alpha": analysis.alpha,
            "training": [run for run in runs if run],
            "sides": [self._markers(self.answers[cell]) for cell in whole],
            "causal": self._causal(checked),
            "arms": self._arms(checked),
        }

    def _training(self, cell: Cell) -> Plain | None:
        run = run_paths(self.study.paths, cell)
        if not self.study.present(run.rollouts):
            return None
        rollouts, marked = Counter[int](), Counter[int]()
        for row in self._rollouts(cell):
            rollouts[row.step] += 1
            marked[row.step] += 1 if reflection_markers(row.completion) else 0
        buckets = []
        for first, last in step_buckets(self.plan):
            steps = range(first, last + 1)
            n = sum(rollouts[step] for step in steps)
            with_marker = sum(marked[step] for step in steps)
            told = {"first_step": first, "last_step": last, "rollouts": n, "marked": with_marker}
            buckets += [told] if n else []
        return {
            "arm": cell.arm,
            "seed": cell.seed,
            "rollouts": sum(rollouts.values()),
            "marked": sum(marked.values()),
            "buckets": buckets,
        }

    def _rollouts(self, cell: Cell) -> Iterator[Rollout]:
        """Yield the sound rows; what is malformed was told when the run was checked."""
        run = run_paths(self.study.paths, cell)
        for _, line in self.study.lines(run.rollouts):
            try:
                yield decode_row(line.rstrip(b"\n"), Rollout, "row")
            except RecordError:
                continue

    def _markers(self, answers: AnswerSet) -> Plain:
        marks = {key: reflection_markers(r.completion) for key, r in answers.replies.items()}
        counts = Counter(marker for found in marks.values() for marker in found)
        samples = range(self.plan.evaluation.samples)
        keys = [(p.prompt_id, sample) for p in self.prompts for sample in samples]
        questions = [normalised(p.question) for p in self.prompts for _ in samples]
        marked = [bool(marks[key]) for key in keys]
        accuracy = []
        for metric in METRICS:
            correct = [_right(answers.replies[key], metric) for key in keys]
            level = self.plan.analysis.confidence
            groups = compare_groups(correct, marked, questions, level)
            accuracy.append(
                {
                    "metric": metric,
                    "marked": _group(groups.marked),
                    "unmarked": _group(groups.unmarked),
                    "difference_points": _times(groups.difference),
                    "interval_points": _points(_bounds(groups.interval)),
                }
            )
        return {
            "answers": answers.name,
            "n": len(marks),
            "marked": sum(marked),
            "markers": dict(counts),
            "accuracy": accuracy,
        }

    def _pairs(self, cell: Cell) -> list[Pair]:
        """Return answers and continuations that can be compared."""
        replies = self.answers[cell].replies
        rows = self.cuts[cell].rows
        return [(replies[r.prompt_id, r.sample], r) for r in rows if not r.reflects]

    def _causal(self, cells: Sequence[Cell]) -> list[Plain]:
        effects = {metric: self._effects(cells, metric) for metric in METRICS}
        return [
            {
                **self._counts(self.answers[cell], self.cuts[cell], self._pairs(cell)),
                "effects": [effects[metric][at] for metric in METRICS],
            }
            for at, cell in enumerate(cells)
        ]

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
        bounds, p_value = paired_bounds(means, clusters, analysis.confidence)
        tested = difference_over_questions(means, clusters, analysis.confidence)
        seen = detectable(tested, analysis.alpha)
        return 100 * float(means.mean()), _points(bounds), p_value, _times(seen)

    def _arms(self, cells: Sequence[Cell]) -> list[Plain]:
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
            "interval_points": _points(_bounds(claim.interval)),
            "p_value": claim.p_value,
            "p_holm": None,
            "detectable_points": _times(claim.detectable()),
            "verdict": word,
        }


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _word(
    bounds: tuple[float, float], p_value: float | None, p_holm: float | None, alpha: float
) -> str:
    """Return the verdict, in points; no margin is planned for it, so nothing is equivalent."""
    return WORDS.get(verdict(p_value, p_holm, bounds, 0.0, alpha), "no evidence")


def _group(rate: GroupRate) -> Mapping[str, Any]:
    bounded = rate.low is not None and rate.high is not None
    return {
        "answers": rate.answers,
        "questions": rate.questions,
        "correct": rate.correct,
        "accuracy": rate.rate,
        "interval": [rate.low, rate.high] if bounded else None,
    }
