"""`ahalab arms`: the built-in arms, and what an arm pays for attacks before anyone trains on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ahalab.cli.arms_table import number
from ahalab.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from ahalab.scoring.answers import Asked
    from ahalab.scoring.arms import ArmDefinition
    from ahalab.scoring.attacks import ArmCheck, AttackResult

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

COLUMNS = 80


@app.callback()
def _root() -> None:
    pass


@app.command("list")
def list_arms(output: FormatOption = Format.text) -> None:
    """List the built-in arms with their formulas."""
    import json

    from ahalab.scoring.arms import BUILT_IN_ARMS

    arms = BUILT_IN_ARMS.values()
    if output is Format.json:
        typer.echo(
            json.dumps(
                [
                    {"arm": a.name, "components": dict(a.components), "control": a.control}
                    for a in arms
                ]
            )
        )
        return
    for arm in arms:
        typer.echo(f"{arm.name:<18}{_formula(arm)}{'  (control)' * arm.control}")


@app.command()
def check(
    arm: Annotated[
        str,
        typer.Argument(
            help="A built-in arm, a reward of one's own (module:function), or with --plan one of "
            "the plan's arms."
        ),
    ],
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A study plan that declares the arm.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="An attack that may pay; can be repeated.", metavar="ATTACK"),
    ] = None,
    answer_format: Annotated[
        str | None,
        typer.Option(help="Asked format: hashes, boxed, answer_tag (default: the plan's)."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="What is asked: gsm8k, math, countdown (default: the plan's)."),
    ] = None,
    output: FormatOption = Format.text,
) -> None:
    """Attack an arm; exit 1 when a hostile response pays.

    An attack pays when it earns more than an honest wrong answer. A control arm pays anything by
    definition. The code of a reward of one's own is run.
    """
    import json

    from ahalab.errors import InputError
    from ahalab.scoring.arms import unknown_name
    from ahalab.scoring.attacks import ATTACKS, check_arm

    accepted = frozenset(accept or ())
    names = [attack.name for attack in ATTACKS]
    for name in sorted(accepted - set(names)):
        raise InputError(f"--accept: {unknown_name('attack', name, names)}")
    definition, asked, accepted_by_plan = _arm(arm, plan)
    accepted |= accepted_by_plan
    try:
        checked = check_arm(
            definition,
            asked.answer_format if answer_format is None else answer_format,
            asked.task if task is None else task,
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    if output is Format.json:
        typer.echo(json.dumps(_plain(checked, accepted)))
    else:
        _print_check(checked, accepted)
    if _unaccepted(checked, accepted):
        raise typer.Exit(1)


@app.command()
def table() -> None:
    """Print which attacks pay, for docs/arms.md."""
    from ahalab.cli.arms_table import attack_table

    typer.echo(attack_table())


def _arm(name: str, plan: Path | None) -> tuple[ArmDefinition, Asked, frozenset[str]]:
    """Return the arm, built in or of a plan, what is asked, and the attacks that may pay."""
    from ahalab.errors import InputError
    from ahalab.scoring.answers import DEFAULT_ASKED
    from ahalab.scoring.arms import resolve_arm, unknown_name
    from ahalab.scoring.own import OWN_NAME
    from ahalab.tasks.rewards import one_own_reward, reward_folders, with_own_rewards

    if plan is None:
        if OWN_NAME.fullmatch(name):
            return one_own_reward(name, (Path(),)), DEFAULT_ASKED, frozenset()
        try:
            return resolve_arm(name), DEFAULT_ASKED, frozenset()
        except ValueError as error:
            raise InputError(str(error)) from error
    from ahalab.pipeline.study import PLAN
    from ahalab.plan.load import load_plan
    from ahalab.tasks.questions import asked_of

    path = plan / PLAN if plan.is_dir() else plan
    study = load_plan(path)
    arms = {arm.name: arm for arm in study.arms}
    if name not in arms:
        raise InputError(f"{path}: {unknown_name('arm', name, arms)}")
    spec = arms[name]
    asked = asked_of(study.task, study.answer_format)
    definition = resolve_arm(name, spec.components)
    return with_own_rewards(study, definition, reward_folders(plan)), asked, frozenset(spec.accept)


def _unaccepted(checked: ArmCheck, accepted: frozenset[str]) -> list[str]:
    """Return the attacks that pay and that nothing accepts."""
    if checked.arm.control:
        return []
    return [name for name in checked.paying if name not in accepted]


def _plain(checked: ArmCheck, accepted: frozenset[str]) -> dict[str, Any]:
    return {
        "arm": checked.arm.name,
        "components": dict(checked.arm.components),
        "control": checked.arm.control,
        "answer_format": checked.answer_format,
        "task": checked.task,
        "repeats": checked.repeats,
        "honest_right": checked.honest_right,
        "honest_wrong": checked.honest_wrong,
        "attacks": [
            {
                "name": attack.name,
                "paid": attack.paid,
                "min": attack.low,
                "max": attack.high,
                "excess": attack.excess,
                "pays": attack.pays,
                "accepted": attack.name in accepted,
                "unrewarded": attack.unrewarded,
            }
            for attack in checked.attacks
        ],
        "paying": list(checked.paying),
        "result": "FAILED" if _unaccepted(checked, accepted) else "PASSED",
    }


def _print_check(checked: ArmCheck, accepted: frozenset[str]) -> None:
    import textwrap

    from ahalab.cli.output import harmless

    arm = checked.arm
    right, wrong = number(checked.honest_right), number(checked.honest_wrong)
    for line in (
        f"{arm.name}: {_formula(arm)}{' (control)' * arm.control}",
        f"Task {checked.task}, asked format {checked.answer_format}: an honest right answer earns "
        f"{right}, a wrong one {wrong}.",
    ):
        typer.echo(textwrap.fill(harmless(line), COLUMNS, subsequent_indent="  "))
    typer.echo("")
    typer.echo(f"{'attack':<22}{'paid':>8}{'vs right':>13}{'vs wrong':>13}  pays?")
    for attack in checked.attacks:
        typer.echo(_row(attack, checked, accepted).rstrip())
    typer.echo("")
    typer.echo(_verdict(checked, accepted))
    if not checked.repeats:
        typer.echo("Note: a response does not earn the same twice; these are means of draws.")
    if not (checked.right_pays or arm.control):
        typer.echo("Note: a right answer earns no more than a wrong one.")


def _row(attack: AttackResult, checked: ArmCheck, accepted: frozenset[str]) -> str:
    if attack.paid is None:
        return f"{attack.name:<22}{'-':>8}{'-':>13}{'-':>13}  no reward"
    told = "no"
    if attack.pays:
        told = "accepted" if checked.arm.control or attack.name in accepted else "YES"
    if attack.unrewarded:
        told += f", {attack.unrewarded} without a reward"
    against = f"{_signed(attack.paid - checked.honest_right):>13}{_signed(attack.excess):>13}"
    return f"{attack.name:<22}{number(attack.paid):>8}{against}  {told}"


def _verdict(checked: ArmCheck, accepted: frozenset[str]) -> str:
    unaccepted = _unaccepted(checked, accepted)
    count = len(unaccepted)
    if count:
        told = "attack pays" if count == 1 else "attacks pay"
        return f"FAILED: {count} {told} more than an honest wrong answer."
    if checked.arm.control:
        return "PASSED: a control arm pays whatever is answered, by definition."
    if checked.paying:
        return "PASSED: every attack that pays was accepted by name."
    return "PASSED: no attack pays more than an honest wrong answer."


def _formula(arm: ArmDefinition) -> str:
    return " + ".join(f"{weight:g} {name}" for name, weight in arm.components.items())


def _signed(value: float | None) -> str:
    if value is None:
        return "-"
    rounded = round(value, 3) + 0.0  # no minus zero
    return "0" if rounded == 0 else f"{rounded:+g}"
