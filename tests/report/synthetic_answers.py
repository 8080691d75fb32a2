"""The answers of the synthetic study: base and adapters, hostile texts among them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from ahalab.records.answer import Answer
from ahalab.records.base import digest, digest_bytes
from ahalab.records.comparison import ChangedAnswer, ChangedResponses
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.records.terms import Metric, Outcome

QUESTIONS = 400
BASE: dict[Metric, float] = {"strict": 0.312, "lenient": 0.585}
METRICS: tuple[Metric, ...] = ("strict", "lenient")
# arm -> (gained, lost) per seed in the strict reading, then in the lenient one
EFFECTS = {
    "correctness": (((96, 21), (88, 24), (103, 19)), ((41, 38), (36, 40), (47, 35))),
    "historical": (((71, 30), (64, 33), (80, 26)), ((30, 52), (27, 49), (35, 44))),
    "format_only": (((58, 49), (40, 57), (66, 45)), ((18, 75), (15, 92), (22, 66))),
    "random": (((24, 27), (19, 30), (28, 23)), ((16, 21), (14, 25), (20, 17))),
}
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "</pre></li></ol></textarea><script>alert(document.domain)</script>",
    "abc\u202egnp.exe\u2066 isolates \u200bzero",
    "\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 \x9b1m",
    "NUL\x00 and \x7f and \r carriage, \x01\x02\x03 marks",
    '" onmouseover="alert(2)" x="',
    "<!-- --> {{ 7*7 }} {% raw %} &amp; &lt;b&gt;",
    "[x](javascript:alert(3)) <a href='javascript:alert(4)'>x</a> http://evil.example/x.js",
)
Right = dict[Metric, set[int]]  # numbers of the questions that a side got right


def base_right() -> Right:
    """The last questions: so that the first, which are hostile, are wrong."""
    return {
        metric: set(range(QUESTIONS - round(BASE[metric] * QUESTIONS), QUESTIONS))
        for metric in METRICS
    }


def adapter_right(arm: str, seed: int, at: int) -> Right:
    """The base's, less those lost, and those gained: as many as EFFECTS says."""
    right: Right = {}
    for metric, base in base_right().items():
        gained, lost = EFFECTS[arm][METRICS.index(metric)][at % 3]
        dice = random.Random(f"{arm} {seed} {metric}")  # noqa: S311
        wrong = sorted(set(range(QUESTIONS)) - base)
        right[metric] = (base - set(dice.sample(sorted(base), lost))) | set(
            dice.sample(wrong, gained)
        )
    return right


def make_prompts() -> Iterator[Prompt]:
    for number in range(QUESTIONS):
        question = (
            f"Mia has {number} marbles. She finds {number % 7 + 2} more and gives 3 away. "
            "How many are left?"
        )
        if number == 9:
            question += " " + HOSTILE[0] + HOSTILE[2]
        yield Prompt(
            prompt_id=prompt_id(number), question=question, gold=str(_value(number)),
            source="arithmetic:eval", split="eval", prompt_ids=(1, 2), prompt_tokens=2,
        )  # fmt: skip


def prompt_id(number: int) -> str:
    return f"{number:04d}-{hashlib.sha256(str(number).encode()).hexdigest()[:12]}"


def _value(number: int) -> int:
    return number + number % 7 - 1


def make_answers(side: str, right: Right) -> Iterator[Answer]:
    """The answers of one side, one per question."""
    for number in range(QUESTIONS):
        strict, lenient = _outcomes(number, right)
        yield Answer(
            protocol=digest_bytes(side.encode()), side="base" if side == "base" else "adapter",
            prompt_id=prompt_id(number), sample=0,
            completion=_text(number, right=strict == "correct"), completion_ids=(5, 6, 1),
            finish="eos", extracted=str(_value(number)) if lenient == "correct" else None,
            rule="hashes", status="ok", strict=strict, lenient=lenient,
        )  # fmt: skip


def _outcomes(number: int, right: Right) -> tuple[Outcome, Outcome]:
    return (
        "correct" if number in right["strict"] else "unparsed",
        "correct" if number in right["lenient"] else "wrong",
    )


def _text(number: int, *, right: bool) -> str:
    value = _value(number)
    start = f"{number} + {number % 7 + 2} = "
    if right:
        return f"{start}{value + 3}\n{value + 3} - 3 = {value}\n#### {value}"
    if number < len(HOSTILE):
        return HOSTILE[number]
    return f"{start}{value + 2}\nwait, {value + 3}\nso it is {value + 4}"


def make_changed(plan: Plan) -> ChangedResponses:
    """Every question whose outcome an adapter changed, in both readings."""
    prompts, base = list(make_prompts()), list(make_answers("base", base_right()))
    changed = []
    for arm in plan.arms:
        for at, seed in enumerate(plan.seeds):
            own = list(make_answers("adapter", adapter_right(arm.name, seed, at)))
            for metric in METRICS:
                changed += [
                    _changed((arm.name, seed, metric), prompt, before, after)
                    for prompt, before, after in zip(prompts, base, own, strict=True)
                    if _right(before, metric) != _right(after, metric)
                ]
    return ChangedResponses(plan_digest=digest(plan), changed=tuple(changed))


def _right(answer: Answer, metric: Metric) -> bool:
    return bool(getattr(answer, metric) == "correct")


def _changed(
    cell: tuple[str, int, Metric], prompt: Prompt, base: Answer, own: Answer
) -> ChangedAnswer:
    arm, seed, metric = cell
    return ChangedAnswer(
        arm=arm, seed=seed, prompt_id=prompt.prompt_id, sample=0, metric=metric,
        change="gained" if _right(own, metric) else "lost", kind="arithmetic",
        question=prompt.question, gold=prompt.gold, base_completion=base.completion,
        adapter_completion=own.completion, base_extracted=base.extracted,
        adapter_extracted=own.extracted, base_outcome=getattr(base, metric),
        adapter_outcome=getattr(own, metric), base_rule="hashes", adapter_rule="hashes",
        parted_at=3,
    )  # fmt: skip
