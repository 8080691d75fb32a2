"""Where everything of a study lies (DESIGN.md, "Files of a study")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunPaths:
    """One arm and one seed."""

    folder: Path
    name: str  # relative to the study, as `arms/random/seed-0`

    @property
    def record(self) -> Path:
        """Run record; written last, so that it marks the run as complete."""
        return self.folder / "run.json"

    @property
    def rollouts(self) -> Path:
        """One row per completion of training."""
        return self.folder / "rollouts.jsonl"

    @property
    def steps(self) -> Path:
        """One row per optimizer step."""
        return self.folder / "steps.jsonl"

    @property
    def timings(self) -> Path:
        """Clocks of the steps."""
        return self.folder / "timings.jsonl"

    @property
    def validation(self) -> Path:
        """Validation answers of every checkpoint, when the plan asks for them."""
        return self.folder / "validation.jsonl"

    @property
    def diagnostics(self) -> Path:
        """Summary of the run, recomputed from its rows."""
        return self.folder / "diagnostics.json"

    @property
    def adapter(self) -> Path:
        """Folder of the saved LoRA adapter."""
        return self.folder / "adapter"

    @property
    def card(self) -> Path:
        """The adapter's model card, where the Hub looks for it; made from the evidence."""
        return self.adapter / "README.md"


@dataclass(frozen=True, slots=True)
class AnswerPaths:
    """One answer set and the protocol it was made under."""

    answers: Path
    name: str  # relative to the study, as `arms/random/seed-0/answers`

    @property
    def protocol(self) -> Path:
        """The protocol, beside the answers."""
        return self.answers.with_name(self.answers.stem + ".protocol.json")


@dataclass(frozen=True, slots=True)
class StudyPaths:
    """A study's results, and its working files, which live outside them."""

    root: Path  # results/<study>

    @property
    def work(self) -> Path:
        """Checkpoints, locks and broken tails: `.work/<study>` beside the results folder.

        A study in `results/` keeps them in the project's `.work/`, any other beside itself.
        """
        parent = self.root.resolve().parent
        base = parent.parent if parent.name == "results" else parent
        return base / ".work" / self.root.name

    @property
    def broken(self) -> Path:
        """Torn tails that a resume cut off."""
        return self.work / "broken"

    def lock(self, name: str) -> Path:
        """Return the lock of a writer, by what it writes, as `arms/random/seed-0/answers`."""
        return self.work / "locks" / f"{name.replace('/', '-')}.lock"

    @property
    def plan(self) -> Path:
        """The frozen plan."""
        return self.root / "study.yaml"

    @property
    def rewards(self) -> Path:
        """Folder of the code of users' own rewards, as it was frozen."""
        return self.root / "rewards"

    def prompts(self, split: str) -> Path:
        """Return the prompts of one split."""
        return self.root / "prompts" / f"{split}.jsonl"

    @property
    def prompt_report(self) -> Path:
        """What was dropped on the way from the task to the prompts."""
        return self.root / "prompts" / "selection.json"

    def run(self, arm: str, seed: int) -> RunPaths:
        """Return the paths of one arm and seed."""
        name = f"arms/{arm}/seed-{seed}"
        return RunPaths(self.root / name, name)

    def answers(self, arm: str, seed: int, under: str = "") -> AnswerPaths:
        """Return the answers of one adapter; `under` is `replay/` for a replay."""
        name = f"{under}arms/{arm}/seed-{seed}/answers"
        return AnswerPaths(self.root / f"{name}.jsonl", name)

    def base_answers(self, under: str = "") -> AnswerPaths:
        """Return the base's answers."""
        return AnswerPaths(self.root / f"{under}base/answers.jsonl", f"{under}base/answers")

    @property
    def floor_answers(self) -> AnswerPaths:
        """The base's answers under the second batch plan."""
        return AnswerPaths(self.root / "base/floor.jsonl", "base/floor")

    @property
    def template_set(self) -> Path:
        """Which templates the base is tried under, and on which questions."""
        return self.root / "templates" / "templates.json"

    def template_prompts(self, name: str) -> Path:
        """Return the prompts that one template makes of these questions."""
        return self.root / "templates" / name / "prompts.jsonl"

    def template_answers(self, name: str) -> AnswerPaths:
        """Return the base's answers under one template."""
        stem = f"templates/{name}/answers"
        return AnswerPaths(self.root / f"{stem}.jsonl", stem)

    @property
    def template_comparison(self) -> Path:
        """How far the template alone moves the base."""
        return self.root / "analysis" / "templates.json"

    @property
    def reflections(self) -> Path:
        """Folder of answers that were finished without reflecting."""
        return self.root / "reflection"

    def continuations(self, cell: str) -> AnswerPaths:
        """Return how the answers of a cell with a marker were finished without it."""
        name = f"reflection/{cell}/continuations"
        return AnswerPaths(self.root / f"{name}.jsonl", name)

    @property
    def reflection(self) -> Path:
        """What markers go with, and what they cause."""
        return self.root / "analysis" / "reflection.json"

    def partial(self, limit: int) -> StudyPaths:
        """Return where the answers of a partial evaluation lie: among the working files."""
        return StudyPaths(self.work / f"partial-{limit}")

    @property
    def base_tensors(self) -> Path:
        """The base's weights, tensor by tensor."""
        return self.root / "base" / "tensors.json"

    @property
    def rescored(self) -> Path:
        """Folder of the answers as earlier scorers had judged them, one folder per version."""
        return self.root / "rescored"

    @property
    def comparison(self) -> Path:
        """Verdicts."""
        return self.root / "analysis" / "comparison.json"

    @property
    def changed(self) -> Path:
        """Gained and lost answers."""
        return self.root / "analysis" / "changed_responses.json"

    @property
    def ablation(self) -> Path:
        """Arms x seeds."""
        return self.root / "analysis" / "ablation.json"

    @property
    def replay(self) -> Path:
        """What came of the replay, where there is one."""
        return self.root / "analysis" / "replay.json"

    @property
    def claims(self) -> Path:
        """Every printed number."""
        return self.root / "claims.json"

    @property
    def report(self) -> Path:
        """The report."""
        return self.root / "report.html"

    @property
    def manifest(self) -> Path:
        """Inventory, written last."""
        return self.root / "manifest.json"

    @property
    def statement(self) -> Path:
        """What the owner signed: it names the manifest's root, so no manifest lists it."""
        return self.root / "statement.json"

    @property
    def signature(self) -> Path:
        """The signature over the bytes of the statement."""
        return self.root / "statement.json.sig"
