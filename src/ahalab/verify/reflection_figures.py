"""The record on reflection: what markers go with, again, from the rows, and what they cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.errors import RecordError
from ahalab.plan.cells import Cell, answer_cells, training_cells
from ahalab.plan.schedule import step_buckets
from ahalab.records.base import decode_row, to_plain
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.reflection import Reflection
from ahalab.records.rollout import Rollout
from ahalab.records.terms import METRICS
from ahalab.scoring.reflection import MARKERS_VERSION, reflection_markers
from ahalab.statistics.association import GroupRate, compare_groups
from ahalab.tasks.places import run_paths
from ahalab.tasks.text import normalised
from ahalab.verify.answers import AnswerSet, Sets
from ahalab.verify.reading import Study, differences
from ahalab.verify.reflection import Cuts
from ahalab.verify.reflection_effects import Effects, Plain, in_points, interval_in_points
from ahalab.verify.reflection_wording import check_sentences

FILE = "analysis/reflection.json"
TOLERANCE = 1e-6  # of intervals, which two solvers find
SENTENCES = ("sentence", "floor")
COUNTS = {
    "rollouts", "marked", "answers", "questions", "correct", "n", "pairs", "correct_with",
    "correct_without", "gained", "lost", "still", "truncated_with", "truncated_without",
    "kept_same", "kept_strict", "kept_lenient", "seeds", "markers",
}  # fmt: skip


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
    prompts = [prompt for _, prompt in study.prompts("eval")]
    again = _Again(study, plan, prompts, answers, cuts)
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


@dataclass(frozen=True, slots=True)
class _Again:
    """The record again, from what was read and checked before."""

    study: Study
    plan: Plan
    prompts: list[Prompt]  # the evaluation's, in order
    answers: Sets
    cuts: Cuts

    def expected(self) -> Plain:
        """Return every section that is computed."""
        analysis = self.plan.analysis
        runs = [self._training(cell) for cell in training_cells(self.plan)]
        whole = [c for c in answer_cells(self.plan) if c in self.answers and self.answers[c].whole]
        checked = [cell for cell in whole if cell in self.cuts and self.cuts[cell].whole]
        effects = Effects(self.plan, self.prompts, self.answers, self.cuts)
        return {
            "primary": analysis.primary,
            "confidence": analysis.confidence,
            "alpha": analysis.alpha,
            "training": [run for run in runs if run],
            "sides": [self._markers(self.answers[cell]) for cell in whole],
            "causal": effects.sides(checked),
            "arms": effects.arms(checked),
        }

    def _training(self, cell: Cell) -> Plain | None:
        path = run_paths(self.study.paths, cell).rollouts
        if not self.study.present(path):
            return None
        rollouts, marked = Counter[int](), Counter[int]()
        for row in self._rollouts(path):
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

    def _rollouts(self, path: Path) -> Iterator[Rollout]:
        """Yield the sound rows; what is malformed was told when the run was checked."""
        for _, line in self.study.lines(path):
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
            correct = [int(answers.replies[key].outcome(metric) == "correct") for key in keys]
            level = self.plan.analysis.confidence
            groups = compare_groups(correct, marked, questions, level)
            accuracy.append(
                {
                    "metric": metric,
                    "marked": _group(groups.marked),
                    "unmarked": _group(groups.unmarked),
                    "difference_points": in_points(groups.difference),
                    "interval_points": interval_in_points(groups.interval),
                }
            )
        return {
            "answers": answers.name,
            "n": len(marks),
            "marked": sum(marked),
            "markers": dict(counts),
            "accuracy": accuracy,
        }


def _group(rate: GroupRate) -> Mapping[str, Any]:
    bounded = rate.low is not None and rate.high is not None
    return {
        "answers": rate.answers,
        "questions": rate.questions,
        "correct": rate.correct,
        "accuracy": rate.rate,
        "interval": [rate.low, rate.high] if bounded else None,
    }
