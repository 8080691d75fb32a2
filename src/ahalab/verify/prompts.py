"""The prompts: ids, splits, coverage of the plan, and, where the task is embedded, their source."""

from __future__ import annotations

from msgspec import UNSET

from ahalab.errors import AhaLabError
from ahalab.plan.schedule import prompts_asked
from ahalab.records.base import digest_bytes, encode
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt, Selection
from ahalab.records.terms import Split
from ahalab.tasks.ngrams import measure_overlap
from ahalab.tasks.questions import Question, load_questions
from ahalab.tasks.selection import draw, prompt_id
from ahalab.tasks.text import normalised
from ahalab.tasks.validation import validation_questions
from ahalab.verify.reading import Study

NAMES = ("dataset.hash", "dataset.source", "split")
NAMED: dict[Split, str] = {"train": "training", "eval": "evaluation", "validation": "validation"}


def check_prompts(study: Study) -> None:
    """Check every prompt set."""
    asked = _asked(study)
    for split in asked:
        _check_rows(study, split)
        _check_source(study, split)
        _check_text(study, split)
    path = study.paths.prompts("validation")
    if "validation" not in asked and study.present(path):
        name = study.stored_name(path)
        study.ledger["arms.all"].fail(
            name, None, "no validation, as the plan asks for none", "some"
        )
    _check_overlap(study)
    _check_selection(study)
    study.ledger.close(NAMES)


def _asked(study: Study) -> dict[Split, int]:
    """Return how many prompts each split has by the plan; without a plan, 0 of the usual two."""
    return {"train": 0, "eval": 0} if study.plan is None else prompts_asked(study.plan)


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
    name, count = study.stored_name(path), prompts_asked(plan)[split]
    selection = study.record(study.paths.prompt_report, Selection)
    lie = len(study.prompts(split))
    dropped = sum(d.split == split for d in selection.dropped) if selection is not None else 0
    if count > lie + dropped:  # as many as a forger likes need not be drawn
        if selection is None:
            ledger["dataset.source"].incomplete(f"{name}: which prompts were dropped is not known")
        else:
            what = f"{count} {split} prompts, the dropped ones counted"
            ledger["dataset.source"].fail(name, None, what, f"{lie} and {dropped} dropped")
        return
    offered, drawn = _drawn(plan, split)
    if selection is not None:
        place, told = study.relative(study.paths.prompt_report), selection.available.get(split)
        ledger["dataset.source"].expect(place, None, f"{split} questions offered", offered, told)
    for line, prompt in study.prompts(split):
        at = _position(prompt)
        if not 0 <= at < len(drawn):
            ledger["dataset.source"].fail(
                name, line, f"a position below {len(drawn)}", prompt.prompt_id
            )
            continue
        found = Question(prompt.question, prompt.gold, prompt.source)
        for field in ("question", "gold", "source"):
            ledger["dataset.source"].expect(
                name, line, field, getattr(drawn[at], field), getattr(found, field)
            )


def _check_text(study: Study, split: Split) -> None:
    """Look for the messages of the task in the token ids, where the tokenizer is at hand."""
    plan, name = study.plan, study.stored_name(study.paths.prompts(split))
    if plan is None or study.decoder is None:  # told once, by `tokens.text`
        return
    for line, prompt in study.prompts(split):
        texts = {"user": plan.task.template.replace("{question}", prompt.question)}
        if plan.task.system:
            texts["system"] = plan.task.system
        for whose, text in texts.items():
            held = study.decoder.holds(prompt.prompt_ids, text)
            study.ledger["prompt.hash"].expect(
                name, line, f"{whose} message in the ids", True, held
            )


def _drawn(plan: Plan, split: Split) -> tuple[int, list[Question]]:
    """Return how many questions the embedded task offers, and those that the plan draws."""
    count = prompts_asked(plan)[split]
    try:
        if split == "validation":
            offered = validation_questions(plan.task, count, [])
        else:
            offered = load_questions(plan.task, split)
        return len(offered), draw(offered, count, plan.task.seed, split)
    except (AhaLabError, ValueError):  # the embedded world runs dry
        return 0, []


def _check_overlap(study: Study) -> None:
    """Compare each set with those before it."""
    tally = study.ledger["split"]
    before: dict[str, tuple[Split, int]] = {}
    for split in _asked(study):
        name = study.stored_name(study.paths.prompts(split))
        rows = [
            (line, prompt, normalised(prompt.question)) for line, prompt in study.prompts(split)
        ]
        for line, prompt, text in rows:
            known = before.get(text)
            if known is not None:
                other, at = known
                what = f"no {NAMED[other]} question"
                tally.fail(name, line, what, f"{prompt.question} ({other}.jsonl:{at})")
            elif split != "train":
                tally.passed()
        before |= {text: (split, line) for line, _, text in rows}


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
    name, asked = study.relative(path), prompts_asked(plan)
    _check_shared_words(study, name, selection)
    ledger["cover"].expect(name, None, "splits drawn", list(asked), list(selection.drawn))
    for split, wanted in asked.items():
        drawn = min(wanted, selection.available.get(split, 0))
        ledger["cover"].expect(
            name, None, f"{split} questions drawn", drawn, selection.drawn.get(split, 0)
        )
        dropped = sum(d.split == split for d in selection.dropped)
        rows = study.stored_name(study.paths.prompts(split))
        ledger["cover"].expect(rows, None, "prompts", drawn - dropped, len(study.prompts(split)))


def _check_shared_words(study: Study, name: str, selection: Selection) -> None:
    """Count the word n-grams that training and evaluation share again, where they were counted."""
    if selection.overlap is UNSET:
        return
    train, evaluation = ([p for _, p in study.prompts(split)] for split in ("train", "eval"))
    found = measure_overlap(train, evaluation)
    study.ledger["split"].expect(name, None, "overlap", found, selection.overlap)
