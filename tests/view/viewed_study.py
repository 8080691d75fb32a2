"""Writes a small study for the viewer: pairs, steps and rollouts, some of them hostile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from small_study import make_answers, make_prompt, make_protocol, put_answers, write_study

from ahalab.records.base import digest, digest_bytes
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.rollout import ComponentRow, Rollout
from ahalab.records.step import Step, Timing
from ahalab.records.terms import Outcome
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import read_rows
from ahalab.store.rows import RowFile, RowWriter, write_rows

HOSTILE = (
    "<script>document.title='owned'</script></textarea><img src=x onerror=\"document.title="
    "'owned'\"><a href=\"javascript:document.title='owned'\" onclick=\"document.title='owned'\">"
    "[go](javascript:alert(1))</a> \u202egnp.exe\u202c zero\u200bwidth \x1b[31mred\x1b[0m \x00"
    "\u2028\ue000\nThe answer is 8."
)
# What a reader sees of it: every unseen character by its name.
HOSTILE_SEEN = (
    HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\u200b", "\\u200b")
    .replace("\x1b", "^[").replace("\x00", "^@").replace("\u2028", "\\u2028")
    .replace("\ue000", "\\ue000")
)  # fmt: skip
ADAPTERS = {
    ("correctness", 1): "CCWFCT",
    ("correctness", 2): "CWWCCT",
    ("random", 1): "WCCUFT",
    ("random", 2): "WCWUFT",
}
BASE = "WCCFFT"  # against correctness 1: gained, both right, lost, both wrong, gained, cut
GROUP = 4


@dataclass(frozen=True)
class Viewed:
    plan: Plan
    paths: StudyPaths
    prompts: list[Prompt]  # of the training

    def file(self, arm: str, seed: int, kind: str) -> RowFile:
        """Return a row file of a run: rollouts, steps or timings."""
        run = self.paths.run(arm, seed)
        schema = f"{kind.removesuffix('s')}/1"
        path = {"rollouts": run.rollouts, "steps": run.steps, "timings": run.timings}[kind]
        return RowFile(path, schema, digest(self.plan), run.name, self.paths.broken)

    @contextmanager
    def writer(self, arm: str, seed: int, kind: str = "rollouts") -> Iterator[RowWriter]:  # type: ignore[type-arg]
        """Open a row file as training does, and leave it open for more."""
        with RowWriter(self.file(arm, seed, kind)) as writer:
            yield writer


def write_viewed(root: Path, steps: int = 3) -> Viewed:
    """Write the study: every run has trained some of its five steps."""
    plan, paths = write_study(root, BASE, ADAPTERS, floor=BASE)
    prompts = [
        replace(make_prompt(n, f"Zoe has {n} jars of 7 coins?"), split="train") for n in range(8)
    ]
    train = RowFile(paths.prompts("train"), "prompt/1", digest(plan), "prompts/train", paths.broken)
    write_rows(train, prompts)
    viewed = Viewed(plan, paths, prompts)
    for arm, seed in ADAPTERS:
        with viewed.writer(arm, seed) as rollouts, viewed.writer(arm, seed, "steps") as figures:
            for step in range(steps):
                rollouts.append(batch(viewed, arm, step))
                figures.append([step_row(step + 1, 0.1 * step + 0.01 * seed)])
        with viewed.writer(arm, seed, "timings") as clocks:
            clocks.append([Timing(step=s + 1, seconds=2.0, utc="2026-01-01T00:00:00+00:00")
                           for s in range(steps)])  # fmt: skip
    return viewed


def make_hostile(viewed: Viewed) -> None:
    """Let a model answer with all that a page, a terminal or a reader might obey."""
    target = viewed.paths.answers("correctness", 1)
    protocol = make_protocol(viewed.plan, adapter_digest=digest_bytes(b"correctness1"))
    rows = make_answers(viewed.paths, ADAPTERS["correctness", 1], protocol)
    rows[3] = replace(
        rows[3], completion=HOSTILE, extracted="8", rule="statement", strict="unparsed",
        lenient="wrong",
    )  # fmt: skip
    put_answers(viewed.plan, viewed.paths, target, rows, protocol)
    with viewed.writer("correctness", 1) as writer:
        rows_of_step = list(batch(viewed, "correctness", 3))
        rows_of_step[0] = replace(
            rows_of_step[0], completion=HOSTILE, extracted="8", reflection=(HOSTILE[:8],)
        )
        writer.append(rows_of_step)


def batch(viewed: Viewed, arm: str, step: int, texts: Sequence[str] = ()) -> list[Rollout]:
    """Return two groups of four: one right, one wrong twice, one cut; the second all wrong."""
    name = {"correctness": "correct_strict", "random": "random"}[arm]
    rows = []
    for at in range(2 * GROUP):
        right = at == 0
        outcome: Outcome = "correct" if right else "truncated" if at == 3 else "wrong"
        gold = viewed.prompts[(2 * step + at // GROUP) % len(viewed.prompts)]
        text = f"Step {step} sample {at} says baba\n#### {7 if right else 8}"
        rows.append(
            Rollout(
                step=step, rank=0, group=at // GROUP, prompt_id=gold.prompt_id, sample=at % GROUP,
                completion=texts[at] if texts else text, completion_ids=tuple(range(10 * at + 1)),
                finish="length" if at == 3 else "eos",
                components={name: ComponentRow(value=float(right), status="ok")},
                reward=float(right), advantage=1.5 if right else -0.5 if at < GROUP else 0.0,
                historical="wrong" if at == 1 else outcome, strict=outcome,
                lenient="correct" if at == 1 else outcome, status="ok",
                extracted="7" if right else "8", formatted=True, repetition=0.0, reflection=(),
            )
        )  # fmt: skip
    return rows


def step_row(step: int, value: float) -> Step:
    """Return a step whose figures are all the same."""
    fixed = {"schema", "step", "components", "tokens", "kl"}
    figures = {name: value for name in Step.__struct_fields__ if name not in fixed}
    return Step(step=step, tokens=None, kl=None, components={"correct_strict": value}, **figures)  # type: ignore[arg-type]


def rows_of(viewed: Viewed, arm: str, seed: int) -> list[Rollout]:
    return [row for _, row in read_rows(viewed.paths.run(arm, seed).rollouts, Rollout)]
