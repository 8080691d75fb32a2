"""The tables of docs/arms.md: what arms pay for attacks, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahalab.scoring.arms import ArmDefinition
    from ahalab.scoring.attacks import ArmCheck

# Each task in the answer format that it is usually asked in.
TASK_FORMATS = {"math": "boxed", "countdown": "answer_tag"}
# Components that no built-in arm weighs, each beside correctness with the weight of its like.
EXAMPLES = {
    "length_cosine": 0.2,
    "correct_steps": 0.5,
    "repetition": 0.2,
    "self_correction": 0.2,
}

LISTED = 6
"""Attacks named in a cell; of more, the three that earn most."""


def attack_table() -> str:
    """Return what each arm pays for attacks, and the attacks, as Markdown tables."""
    from ahalab.scoring.arms import BUILT_IN_ARMS, resolve_arm
    from ahalab.scoring.attacks import ATTACKS

    built_in = {f"`{arm.name}`{' (control)' * arm.control}": arm for arm in BUILT_IN_ARMS.values()}
    examples = {
        f"1 correct_strict + {weight:g} {name}": resolve_arm(
            "example", {"correct_strict": 1.0, name: weight}
        )
        for name, weight in EXAMPLES.items()
    }
    attacks = ["| attack | says |", "|---|---|"]
    attacks += [f"| `{attack.name}` | {attack.says} |" for attack in ATTACKS]
    tables = (
        _arms_table("arm", built_in),
        _tasks_table(built_in),
        _arms_table("declared arm", examples),
        attacks,
    )
    return "\n\n".join("\n".join(table) for table in tables)


def number(value: float | None) -> str:
    """Return a reward in three places, without minus zero."""
    return "-" if value is None else f"{round(value, 3) + 0.0:g}"


def _arms_table(title: str, arms: dict[str, ArmDefinition]) -> list[str]:
    """Return one row per arm and one column per answer format, on number questions."""
    from ahalab.scoring.attack_cases import WRITTEN
    from ahalab.scoring.attacks import check_arm

    heads = " | ".join(f"`{answer_format}`" for answer_format in WRITTEN)
    lines = [
        f"| {title} | honest right | honest wrong | {heads} |",
        "|---|---|---|" + "---|" * len(WRITTEN),
    ]
    for name, arm in arms.items():
        checks = [check_arm(arm, answer_format) for answer_format in WRITTEN]
        cells = [name, number(checks[0].honest_right), number(checks[0].honest_wrong)]
        cells += [_paying_cell(checked) for checked in checks]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _tasks_table(arms: dict[str, ArmDefinition]) -> list[str]:
    """Return one row per other task and arm."""
    from ahalab.scoring.attacks import check_arm

    lines = [
        "| task, format | arm | honest right | honest wrong | attacks |",
        "|---|---|---|---|---|",
    ]
    for task, answer_format in TASK_FORMATS.items():
        for name, arm in arms.items():
            checked = check_arm(arm, answer_format, task)
            honest = f"{number(checked.honest_right)} | {number(checked.honest_wrong)}"
            place = f"`{task}`, `{answer_format}`"
            lines.append(f"| {place} | {name} | {honest} | {_paying_cell(checked)} |")
    return lines


def _paying_cell(checked: ArmCheck) -> str:
    paying = [(a.name, a.paid) for a in checked.attacks if a.pays and a.paid is not None]
    if not paying:
        most = max(a.paid for a in checked.attacks if a.paid is not None)
        return f"none (at most {number(most)})"
    if len(paying) <= LISTED:
        return ", ".join(f"{name} {number(paid)}" for name, paid in paying)
    best = sorted(paying, key=lambda attack: -attack[1])[:3]
    told = ", ".join(f"{name} {number(paid)}" for name, paid in best)
    return f"{len(paying)} of {len(checked.attacks)}, most {told}"
