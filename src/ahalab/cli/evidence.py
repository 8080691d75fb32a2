"""`ahalab verify`: recheck a study from its files alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ahalab.cli.options import Format, FormatOption

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
EXIT = {"PASSED": 0, "FAILED": 1, "INCOMPLETE": 4}


def verify(
    study: Annotated[Path, typer.Argument(help="A results folder.", metavar="DIR")],
    root: Annotated[
        str | None, typer.Option(help="Evidence root held from outside, to anchor the files to.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="Plan digest published before the first step.")
    ] = None,
    trust_rewards: Annotated[
        bool,
        typer.Option("--trust-rewards", help="Run the code of the study's own rewards."),
    ] = False,
    output: FormatOption = Format.text,
) -> None:
    """Recheck everything from rows and files. No torch, no network."""
    from ahalab.cli.output import print_check, print_verification
    from ahalab.errors import InputError
    from ahalab.verify.study import verify_study

    if not study.is_dir():
        raise InputError(f"{study}: expected the results folder of a study, found none.")
    for option, digest in (("--root", root), ("--plan", plan)):
        if digest is not None and not DIGEST.fullmatch(digest):
            raise InputError(
                f"{option}: expected sha256: and 64 hex digits, found {digest[:80]!r}. The "
                "manifest holds the root, `ahalab plan` prints the plan's digest."
            )
    text = output is Format.text
    verification = verify_study(
        study,
        expected_root=root,
        expected_plan=plan,
        trust_rewards=trust_rewards,
        on_check=print_check if text else None,
    )
    if text:
        print_verification(verification)
    else:
        typer.echo(verification.to_json())
    raise typer.Exit(EXIT[verification.result])
