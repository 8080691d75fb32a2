"""Puts the command groups together, in the order in which data flows."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ahalab import __version__
from ahalab.cli import (
    analysis,
    arms,
    card,
    compare,
    counterfactual,
    demo,
    evidence,
    organism,
    plans,
    power,
    preflight,
    reflection,
    rescoring,
    scoring,
    stages,
    view,
)
from ahalab.errors import InputError

app = typer.Typer(
    name="ahalab",
    help="Did my reward design really change the model, and can a stranger verify it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ahalab {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("init")(plans.init)
app.command("plan")(plans.plan)
app.command("freeze")(plans.freeze)
app.command("preflight")(preflight.preflight)
app.command("run")(stages.run)
app.command("train")(stages.train)
app.command("evaluate")(stages.evaluate)
app.command("replay")(stages.replay)
app.command("rescore")(rescoring.rescore)
app.command("analyze")(analysis.analyze)
app.command("ablate")(analysis.ablate)
app.command("counterfactual")(counterfactual.counterfactual)
app.command("reflect")(reflection.reflect)
app.command("diagnose")(analysis.diagnose)
app.command("power")(power.power)
app.command("report")(analysis.report)
app.command("view")(view.view)
app.command("card")(card.card)
app.command("sign")(evidence.sign)
app.command("verify")(evidence.verify)
app.command("score")(scoring.score)
app.command("compare")(compare.compare)
app.add_typer(arms.app, name="arms", help="The built-in arms, and attacks on an arm.")
app.add_typer(organism.app, name="organism", help="The embedded model.")


INTERRUPTED = 130

# The base of every usage error. Typer carries its own copy of click since 0.26 or so, and the
# exceptions of another copy are not its.
UsageFault: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)


def _usage(error: Exception) -> str:
    """Return a usage error as one line, with where to look."""
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    command = context.command_path if context is not None else "ahalab"
    stop = "" if message.endswith("?") else "."
    return f"{message}{stop} See: {command} --help"


def run() -> int:
    """Parse the arguments and run the command; usage errors exit 2, as wrong input does."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except UsageFault as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group alone: its help is the answer
            error.show(file=sys.stderr)  # type: ignore[attr-defined]
            return 2
        raise InputError(_usage(error)) from error
    except SystemExit as gone:
        if isinstance(gone.__context__, BrokenPipeError):  # Typer and Rich make it an exit code 1
            raise BrokenPipeError from None
        raise
    if code == INTERRUPTED:  # no command ends so: it is what Typer makes of a Ctrl-C
        raise KeyboardInterrupt
    return int(code or 0)
