"""`ahalab verify`: recheck a study from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahalab.cli.options import Format, FormatOption

EXIT = {"PASSED": 0, "FAILED": 1, "INCOMPLETE": 4}


def verify(
    study: Annotated[Path, typer.Argument(help="A results folder.", metavar="DIR")],
    root: Annotated[
        str | None, typer.Option(help="Evidence root held from outside, to anchor the files to.")
    ] = None,
    output: FormatOption = Format.text,
) -> None:
    """Recheck everything from rows and files. No torch, no network."""
    import json

    from ahalab.cli.output import print_check, print_verification
    from ahalab.errors import InputError
    from ahalab.verify.study import verify_study

    if not study.is_dir():
        raise InputError(f"{study}: expected the results folder of a study, found none.")
    text = output is Format.text
    verification = verify_study(study, expected_root=root, on_check=print_check if text else None)
    if text:
        print_verification(verification)
    else:
        typer.echo(json.dumps(verification.to_json()))
    raise typer.Exit(EXIT[verification.result])
