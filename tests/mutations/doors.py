"""The files of a study and the records they hold: what a field can be changed in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahalab.records.answer import Answer, Protocol
from ahalab.records.comparison import Ablation, ChangedResponses, Comparison
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.journal import JournalLine
from ahalab.records.manifest import Claims, Manifest
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt, Selection
from ahalab.records.replay import Replay
from ahalab.records.rollout import Rollout
from ahalab.records.run import RunRecord
from ahalab.records.step import Step, Timing
from ahalab.records.templates import TemplateComparison, TemplateSet
from ahalab.records.validation import ValidationAnswer
from ahalab.records.weights import BaseTensors


@dataclass(frozen=True, slots=True)
class Door:
    """One kind of file in a study."""

    name: str
    pattern: str  # of its paths, relative to the study
    kind: Any  # the record it holds, one or a row each

    @property
    def rows(self) -> bool:
        """Whether it holds a record a line."""
        return self.pattern.endswith(".jsonl")

    def files(self, root: Path) -> list[str]:
        """Return the files of this kind that a study has, rows by their uncompressed name."""
        found = [*root.glob(self.pattern), *root.glob(f"{self.pattern}.zst")]
        names = (path.relative_to(root).as_posix().removesuffix(".zst") for path in found)
        rows = self.name == "journal" or not self.rows  # a journal lies beside the rows
        return sorted(name for name in names if rows or not name.endswith(".journal.jsonl"))


DOORS = (
    Door("plan", "study.yaml", Plan),
    Door("training prompts", "prompts/train.jsonl", Prompt),
    Door("prompts", "prompts/eval.jsonl", Prompt),
    Door("validation prompts", "prompts/validation.jsonl", Prompt),
    Door("selection", "prompts/selection.json", Selection),
    Door("run", "arms/*/*/run.json", RunRecord),
    Door("rollouts", "arms/*/*/rollouts.jsonl", Rollout),
    Door("steps", "arms/*/*/steps.jsonl", Step),
    Door("clocks", "arms/*/*/timings.jsonl", Timing),
    Door("validation", "arms/*/*/validation.jsonl", ValidationAnswer),
    Door("diagnostics", "arms/*/*/diagnostics.json", Diagnostics),
    Door("base tensors", "base/tensors.json", BaseTensors),
    Door("base protocol", "base/answers.protocol.json", Protocol),
    Door("base answers", "base/answers.jsonl", Answer),
    Door("floor protocol", "base/floor.protocol.json", Protocol),
    Door("floor answers", "base/floor.jsonl", Answer),
    Door("protocol", "arms/*/*/answers.protocol.json", Protocol),
    Door("answers", "arms/*/*/answers.jsonl", Answer),
    Door("replay protocol", "replay/arms/*/*/answers.protocol.json", Protocol),
    Door("replayed answers", "replay/arms/*/*/answers.jsonl", Answer),
    Door("replayed base", "replay/base/answers.jsonl", Answer),
    Door("template set", "templates/templates.json", TemplateSet),
    Door("template prompts", "templates/*/prompts.jsonl", Prompt),
    Door("template protocol", "templates/*/answers.protocol.json", Protocol),
    Door("template answers", "templates/*/answers.jsonl", Answer),
    Door("earlier protocol", "rescored/*/arms/*/*/answers.protocol.json", Protocol),
    Door("earlier answers", "rescored/*/arms/*/*/answers.jsonl", Answer),
    Door("comparison", "analysis/comparison.json", Comparison),
    Door("changed responses", "analysis/changed_responses.json", ChangedResponses),
    Door("ablation", "analysis/ablation.json", Ablation),
    Door("template comparison", "analysis/templates.json", TemplateComparison),
    Door("replay", "analysis/replay.json", Replay),
    Door("claims", "claims.json", Claims),
    Door("manifest", "manifest.json", Manifest),
    Door("journal", "arms/*/*/steps.journal.jsonl", JournalLine),
)
