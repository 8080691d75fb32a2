"""The prompts: ids, splits, coverage of the plan, and, where the task is embedded, their source."""

from __future__ import annotations

from ahalab.errors import AhaLabError
from ahalab.records.base import digest_bytes, encode
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt, Selection
from ahalab.records.terms import Split
from ahalab.tasks.questions import Question, load_questions
from ahalab.tasks.selection import draw, normalised, prompt_id
from ahalab.verify.reading import SPLITS, Study

NAMES = ("dataset.hash", "dataset.source", "split")


def check_prompts(study: Study) -> None:
    """Check both prompt sets."""
    for split in SPLITS:
        _check_rows(study, split)
        _check_source(study, split)
    _check_overlap(study)
    _check_selection(study)
    study.ledger.close(NAMES)


def prompts_digest(prompts: list[Prompt]) -> str:
    """Return the digest of a prompt set, as protocols name it."""
    return digest_bytes(b"\n".join(encode(prompt) for prompt in prompts))


def _position(prompt: Prompt) -> int:
    head = prompt.prompt_id.partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 10 else -1


def _check_rows(study: Study, split: Split) -> None:
    ledger, path = study.ledger, study.paths.prompts(split)
    if not study.present(path):
        ledger["arms.all"].incomplete(f"{study.relative(path)}: no prompts yet")
        return
    name, seen, last = study.stored_name(path), set(), -1
    for line, prompt in study.prompts(split):
        question = Question(prompt.question, prompt.gold, prompt.source)
        position = _position(prompt)
        expected = prompt_id(max(0, position), question)
        ledger["dataset.hash"].expect(
            name, line, "prompt_id of question and gold", expected, prompt.prompt_id
        )
        ledger["dataset.hash"].expect(name, line, "split", split, prompt.split)
        ledger["tokens"].expect(
            name, line, "prompt_tokens", len(prompt.prompt_ids), prompt.prompt_tokens
        )
        if prompt.prompt_id in seen:
            ledger["row.unique"].fail(name, line, "each prompt once", prompt.prompt_id)
        elif position <= last:
            ledger["cover"].fail(name, line, f"a position after {last}", position)
        seen.add(prompt.prompt_id)
        last = max(last, position)
    ledger["row.unique"].passed(len(seen))


def _check_source(study: Study, split: Split) -> None:
    """Draw the questions again where that needs no file of the owner's."""
    plan, ledger, path = study.plan, study.ledger, study.paths.prompts(split)
    if plan is None or not study.present(path):
        return
    if plan.task.name != "arithmetic":
        ledger["dataset.source"].not_checked(
            f"questions of task {plan.task.name} lie outside the study; only digests are checked"
        )
        return
    drawn = _drawn(plan, split)
    name = study.stored_name(path)
    for line, prompt in study.prompts(split):
        at = _position(prompt)
        if not 0 <= at < len(drawn):
            ledger["dataset.source"].fail(
                name, line, f"a position below {len(drawn)}", prompt.prompt_id
            )
            continue
        expected = (drawn[at].question, drawn[at].gold)
        ledger["dataset.source"].expect(
            name, line, "question and gold", expected, (prompt.question, prompt.gold)
        )


def _drawn(plan: Plan, split: Split) -> list[Question]:
    count = plan.task.train_prompts if split == "train" else plan.task.eval_prompts
    try:
        return draw(load_questions(plan.task, split), count, plan.task.seed, split)
    except (AhaLabError, ValueError):  # the embedded world runs dry
        return []


def _check_overlap(study: Study) -> None:
    tally = study.ledger["split"]
    training = {normalised(p.question): line for line, p in study.prompts("train")}
    name = study.stored_name(study.paths.prompts("eval"))
    for line, prompt in study.prompts("eval"):
        known = training.get(normalised(prompt.question))
        if known is None:
            tally.passed()
        else:
            tally.fail(
                name, line, "no training question", f"{prompt.question} (train.jsonl:{known})"
            )


def _check_selection(study: Study) -> None:
    """Compare the prompts with the plan's numbers, the dropped ones counted."""
    plan, ledger, path = study.plan, study.ledger, study.paths.prompt_report
    if plan is None:
        return
    selection = study.record(path, Selection)
    if selection is None:
        if not path.exists():
            ledger["arms.all"].incomplete(f"{study.relative(path)}: not written yet")
        return
    study.match_plan(path, selection.plan_digest)
    wanted = {"train": plan.task.train_prompts, "eval": plan.task.eval_prompts}
    for split in SPLITS:
        drawn = min(wanted[split], selection.available.get(split, 0))
        name = study.relative(path)
        ledger["cover"].expect(
            name, None, f"{split} questions drawn", drawn, selection.drawn.get(split, 0)
        )
        dropped = sum(d.split == split for d in selection.dropped)
        rows = study.stored_name(study.paths.prompts(split))
        ledger["cover"].expect(rows, None, "prompts", drawn - dropped, len(study.prompts(split)))
