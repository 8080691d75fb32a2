"""`ahalab evaluate --templates`: the base under several prompt templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ahalab.cli.options import Format

if TYPE_CHECKING:
    from pathlib import Path

    from ahalab.pipeline.templates import AskedTemplates


def evaluate_templates(study: Path, out: Path, asked: AskedTemplates, output: Format) -> None:
    """Try the templates of a study, print what they came to, and say where it lies."""
    from ahalab.cli.output import say
    from ahalab.cli.templates_table import print_templates
    from ahalab.evaluate.backends.choice import require_backend
    from ahalab.pipeline.study import open_study, sealed_without
    from ahalab.pipeline.templates import try_templates
    from ahalab.records.base import encode
    from ahalab.store.versions import require_train_extra
    from ahalab.tasks.rewards import reward_folders

    plan, paths = open_study(study, out)
    require_train_extra()  # the prompts are rendered here, whoever answers
    require_backend(plan)
    tried, found = try_templates(plan, paths, reward_folders(study), asked)
    if output is Format.json:
        typer.echo(encode(found).decode())
    else:
        print_templates(found, tried)
    say(f"Wrote {paths.template_comparison}")
    if any(one.verdict == "better exists" for one in found.ranges):
        say(
            "To take the best one: set task.template (and task.system) in the plan, and begin "
            "under another name or --out."
        )
    if sealed_without(paths, paths.template_comparison):
        say(f"The study is sealed without this. Seal it again: ahalab report {paths.root}")
