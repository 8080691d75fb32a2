"""Prints what the base came to under several prompt templates."""

from __future__ import annotations

from rich.text import Text

from ahalab.cli.output import harmless, results_console, results_table
from ahalab.plan.templates import OWN
from ahalab.records.templates import TemplateComparison, TemplateSet

TEMPLATES_KEY = (
    "[ ]: system message. unparsed: not in the asked format. truncated: cut before an answer was "
    "stated."
)
SPLITS = {"train": "training", "validation": "validation", "eval": "evaluation"}


def print_templates(found: TemplateComparison, asked: TemplateSet) -> None:
    """Print what the base came to under each template, and how far the protocol alone moves it."""
    table = results_table(
        ("template", "asks"), ("n", "strict", "lenient", "unparsed", "truncated", "tokens")
    )
    for one in found.templates:
        system = "" if one.system is None else f"[{one.system}] "
        counts = (one.strict.get("unparsed", 0), one.lenient.get("truncated", 0))
        table.add_row(
            f"{one.name} *" if one.name == OWN else one.name,
            Text(harmless(f"{system}{one.template}").replace("\n", " / ")),
            str(one.n),
            f"{100 * one.strict_accuracy:.1f} %",
            f"{100 * one.lenient_accuracy:.1f} %",
            *(str(count) for count in counts),
            "-" if one.mean_tokens is None else f"{one.mean_tokens:.1f}",
        )
    console = results_console()
    console.print(table)
    console.print(Text(f"\n* the plan's own. {TEMPLATES_KEY}"))
    if asked.left_out:
        left_out = ", ".join(asked.left_out)
        console.print(Text(f"Left out, as the chat template takes no system message: {left_out}."))
    console.print(
        Text(
            f"{found.questions} of {asked.available} {SPLITS[found.split]} questions, drawn by "
            "seed and answered greedily. Never those of the evaluation: the best template would "
            "be chosen on the test."
        )
    )
    for one_range in found.ranges:
        console.print(Text(f"\n{one_range.sentence}"))
