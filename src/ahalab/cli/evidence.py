"""`ahalab sign` and `ahalab verify`: evidence handed on, and rechecked from its files alone."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahalab.cli.options import Format, FormatOption, cores

if TYPE_CHECKING:
    from ahalab.records.manifest import Claim
    from ahalab.store.ssh import Signers
    from ahalab.verify.checks import Check, Verification
    from ahalab.verify.reading import Study

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
EXIT = {"PASSED": 0, "FAILED": 1, "INCOMPLETE": 4}


class VerifyFormat(StrEnum):
    """How a verification is printed."""

    text = "text"
    json = "json"
    vsa = "vsa"  # a SLSA verification summary


def sign(
    study: Annotated[Path, typer.Argument(help="A sealed results folder.", metavar="DIR")],
    key: Annotated[
        Path,
        typer.Option(
            help="Your SSH key, as ~/.ssh/id_ed25519; the .pub file of one that an agent holds."
        ),
    ],
    output: FormatOption = Format.text,
) -> None:
    """Sign a sealed study with your SSH key."""
    from ahalab.cli.output import harmless, say
    from ahalab.pipeline.signing import sign_study
    from ahalab.records.base import to_plain
    from ahalab.store.layout import StudyPaths

    _require_folder(study)
    paths = StudyPaths(study)
    signed = sign_study(paths, key.expanduser())
    if output is Format.json:
        typer.echo(json.dumps({"key": signed.key, **to_plain(signed.statement)}))
        return
    statement = signed.statement
    lines = [
        f"study        {statement.study}",
        f"plan         {statement.plan_digest}",
        f"root         {statement.root}",
        f"signed by    {signed.key}",
    ]
    typer.echo(harmless("\n".join(lines)))
    say(
        f"Signed {paths.statement}. Whoever has your public key checks it: "
        f"ahalab verify {study} --allowed-signers FILE --identity WHO"
    )


def verify(
    study: Annotated[Path, typer.Argument(help="A results folder.", metavar="DIR")],
    root: Annotated[
        str | None, typer.Option(help="Evidence root held from outside, to anchor the files to.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="Plan digest published before the first step.")
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="Tell how one claim comes about.", metavar="ID")
    ] = None,
    allowed_signers: Annotated[
        Path | None,
        typer.Option(help="Whose keys you accept (as git's allowed signers); needs --identity."),
    ] = None,
    identity: Annotated[
        str | None, typer.Option(help="Who must have signed, as that file names them.")
    ] = None,
    trust_rewards: Annotated[
        bool,
        typer.Option("--trust-rewards", help="Run the code of the study's own rewards."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            envvar="AHALAB_JOBS", min=1, help="Processes for a large study (default: cores)."
        ),
    ] = None,
    output: Annotated[
        VerifyFormat, typer.Option("--format", help="Print as text, JSON, or a SLSA summary.")
    ] = VerifyFormat.text,
) -> None:
    """Recheck everything from rows and files. No torch, no network."""
    from ahalab.cli.verification_progress import VerificationProgress
    from ahalab.cli.verification_screen import print_check
    from ahalab.errors import InputError
    from ahalab.report.html import build_report, drawing_digest
    from ahalab.verify.report_drawn import Drawing
    from ahalab.verify.story import find_claim
    from ahalab.verify.study import Held, examine, open_study
    from ahalab.verify.workers import Effort

    _require_folder(study)
    _require_digests(root, plan)
    if claim is not None and output is VerifyFormat.vsa:
        raise InputError("--claim: expected --format text or json, found vsa, which is of a study.")
    held = Held(root, plan, _signers(allowed_signers, identity))
    found = None if claim is None else find_claim(study, claim)
    with VerificationProgress() as progress:

        def tell(check: Check) -> None:
            progress.clear()
            print_check(check)

        told = output is VerifyFormat.text and found is None
        opened = open_study(study, tell if told else None, trust_rewards=trust_rewards)
        effort = Effort(jobs or cores(), progress.update)
        verification = examine(opened, held, effort, Drawing(drawing_digest(), build_report))
    _print(opened, verification, output, found)
    raise typer.Exit(EXIT[verification.result])


def _require_folder(study: Path) -> None:
    from ahalab.errors import InputError

    if not study.is_dir():
        raise InputError(
            f"{study}: expected the results folder of a study, found none. Name one that "
            "`ahalab run` wrote, as results/quickstart."
        )


def _require_digests(root: str | None, plan: str | None) -> None:
    from ahalab.errors import InputError

    for option, digest in (("--root", root), ("--plan", plan)):
        if digest is not None and not DIGEST.fullmatch(digest):
            raise InputError(
                f"{option}: expected sha256: and 64 hex digits, found {digest[:80]!r}. The "
                "manifest holds the root, `ahalab freeze` prints the plan's digest."
            )


def _print(
    study: Study, verification: Verification, output: VerifyFormat, claim: Claim | None
) -> None:
    from ahalab import __version__
    from ahalab.cli.verification_screen import print_story, print_verification
    from ahalab.verify.story import tell
    from ahalab.verify.vsa import summary

    if claim is not None:
        story = tell(study, claim, verification)
        if output is VerifyFormat.text:
            print_story(story)
        else:
            typer.echo(json.dumps(story.to_plain()))
    elif output is VerifyFormat.text:
        print_verification(verification)
    elif output is VerifyFormat.json:
        typer.echo(verification.to_json())
    else:
        typer.echo(json.dumps(summary(study, verification, __version__, datetime.now(UTC))))


def _signers(allowed: Path | None, identity: str | None) -> Signers | None:
    """Return whose signature is required, before anything is checked.

    Raises:
        InputError: One of the two is missing, or the file is not there.
        MissingError: There is no ssh-keygen.
    """
    from ahalab.errors import InputError
    from ahalab.store.ssh import Signers, require_ssh_keygen

    if allowed is None and identity is None:
        return None
    if allowed is None or not identity:
        raise InputError(
            "--allowed-signers and --identity: expected both, found one. The first is a file of "
            "lines `WHO KEYTYPE KEY`, the second the WHO that must have signed."
        )
    allowed = allowed.expanduser()
    if not allowed.is_file():
        raise InputError(
            f"{allowed}: expected a file of allowed signers, found none. A line of it is "
            "`WHO KEYTYPE KEY`, as `me@example.org ssh-ed25519 AAAA...`."
        )
    require_ssh_keygen()
    return Signers(allowed, identity)
