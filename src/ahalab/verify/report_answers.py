"""The answers that the report holds: each against its row, text and outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ahalab.records.answer import Answer
from ahalab.verify.reading import Study
from ahalab.visible import plain

FILE = "report.html"
MARKS = str.maketrans("", "", "\x01\x02\x03")  # around what the page wrote out
CUT = "\x02"  # opens what says that a text goes on
LEAST_SHOWN = 1_000  # characters of a text that is cut


class _MalformedError(ValueError):
    """The block is not what a report holds."""


def check_page_answers(study: Study, line: int, block: dict[str, Any]) -> None:
    """Check every question and answer of the page against prompts and rows."""
    tally = study.ledger["report.bind"]
    try:
        listed = list(_listed(study, block))
    except (_MalformedError, LookupError, TypeError, ValueError, AttributeError) as error:
        tally.fail(FILE, line, "questions, answers and texts of a report", str(error))
        return
    shown_ids = {prompt for _, prompt, _ in listed}
    recorded: dict[Path, dict[tuple[str, int], Answer]] = {}
    for path, prompt, shown in listed:
        if path not in recorded:
            recorded[path] = {
                (row.prompt_id, row.sample): row
                for _, row in study.rows(path, Answer)
                if row.prompt_id in shown_ids
            }
        sample, text, extracted, rule, strict, lenient = shown
        row = recorded[path].get((prompt, sample))
        name = f"{study.relative(path)}: {prompt}, sample {sample}"
        if row is None:
            tally.fail(FILE, line, f"an answer of {name}", "none")
            continue
        same = (
            _same(row.completion, text)
            and _same(row.extracted, extracted, lines=False)
            and _same(row.rule, rule, lines=False)
        )
        tally.expect(FILE, line, f"{name}: the recorded texts", True, same)
        found = (strict, lenient)
        tally.expect(FILE, line, f"{name}: outcomes", (row.strict, row.lenient), found)


Shown = tuple[int, str, str | None, str, str, str]


def _listed(study: Study, block: dict[str, Any]) -> Iterator[tuple[Path, str, Shown]]:
    """Yield (answer file, prompt id, what is shown) of every answer; check the questions."""
    texts, outcomes = block["texts"], block["outcomes"]
    prompts = {prompt.prompt_id: prompt for _, prompt in study.prompts("eval")}
    ids = []
    for prompt_id, question, gold in block["questions"]:
        prompt = prompts[prompt_id]
        ids.append(prompt_id)
        if not (
            _same(prompt.question, texts[question]) and _same(prompt.gold, texts[gold], lines=False)
        ):
            raise _MalformedError(f"another question or gold for {prompt_id}")
    sets = [(study.paths.base_answers().answers, block["base"])]
    sets += [
        (study.paths.answers(_cell(study, one), one["seed"]).answers, one["answers"])
        for one in block["adapters"]
    ]
    for path, answers in sets:
        for prompt_id, rows in zip(ids, answers, strict=True):
            for sample, text, extracted, rule, strict, lenient in rows:
                if min(text, rule, strict, lenient, extracted + 1) < 0:
                    raise _MalformedError(f"places below 0 for {prompt_id}")
                taken = None if extracted == -1 else texts[extracted]
                shown = (sample, texts[text], taken, texts[rule])
                yield path, prompt_id, (*shown, outcomes[strict], outcomes[lenient])


def _cell(study: Study, one: dict[str, Any]) -> str:
    """Return the arm of an adapter of the page, one of the plan's."""
    planned = () if study.plan is None else tuple(arm.name for arm in study.plan.arms)
    if one["arm"] not in planned or not isinstance(one["seed"], int):
        raise _MalformedError(f"an arm that the plan does not have: {one['arm']!r}")
    return str(one["arm"])


def _same(recorded: str | None, shown: str | None, *, lines: bool = True) -> bool:
    """Say whether the page shows a recorded text: made visible, and cut only where it says so."""
    if recorded is None or shown is None:
        return recorded is shown
    whole = plain(recorded, "\n\t" if lines else "")
    start, cut, _ = shown.partition(CUT)
    told = start.translate(MARKS)
    return whole.startswith(told) and len(told) >= LEAST_SHOWN if cut else whole == told
