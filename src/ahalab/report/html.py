"""Builds the report: one HTML file that opens from disk, loads nothing, and repeats to the byte."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ahalab.plan.load import load_plan
from ahalab.records.base import digest, digest_bytes
from ahalab.report.answers import browser
from ahalab.report.curves import REFLECTION, SCORERS, draw_panels, thinning, training_curves
from ahalab.report.forest import forest_plots
from ahalab.report.paired import paired_bars
from ahalab.report.palette import ArmStyle, arm_styles
from ahalab.report.panels import group_panels, length_panels, reward_panels, validated
from ahalab.report.protocols import replay_table
from ahalab.report.provenance import (
    NOT_CHECKED,
    alarms,
    badges,
    claim_table,
    commands,
    facts,
    run_table,
    selection_sentence,
)
from ahalab.report.reflecting import reflection_sentences, reflection_table
from ahalab.report.run_tables import ablation_tables, diagnostics_table, reading_table
from ahalab.report.sources import Study, read_study
from ahalab.report.tables import (
    adapter_table,
    ordered_arms,
    verdict_table,
)
from ahalab.report.templates_table import template_table
from ahalab.report.wording import visible
from ahalab.store.durable import replace_file
from ahalab.store.layout import StudyPaths
from ahalab.store.manifest import evidence_entries, hash_file, root_digest

HERE = Path(__file__).parent
TEMPLATES = HERE / "templates"
BESIDE = (HERE.parent / "visible.py", HERE.parent / "plan" / "looks.py")  # what draws, elsewhere


def write_report(paths: StudyPaths) -> Path:
    """Write the report of a study; call it before the manifest is written.

    Returns:
        The report's path.

    Raises:
        InputError: A file that the report rests on is missing or malformed, or the disk refuses.
    """
    root = root_digest(digest(load_plan(paths.plan)), evidence_entries(paths.root))
    replace_file(paths.report, build_report(paths, root).encode())
    return paths.report


@functools.cache
def drawing_digest() -> str:
    """Return the digest of the code that draws a page: the same code draws the same page."""
    files = sorted([*HERE.glob("*.py"), *TEMPLATES.iterdir(), *BESIDE])
    lines = (f"{hash_file(file)} {file.relative_to(HERE.parent).as_posix()}\n" for file in files)
    return digest_bytes("".join(lines).encode())


def build_report(paths: StudyPaths, root: str) -> str:
    """Return the report of a study as HTML.

    Args:
        paths: The study.
        root: Evidence root, over every file of the study but what is made from them.

    Returns:
        A whole page; the same files and the same root give the same text.

    Raises:
        InputError: A file that the report rests on is missing or malformed.
    """
    study = read_study(paths)
    script, css = _read("report.js"), _read("report.css")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["visible"] = visible
    styles = arm_styles(study.plan)
    return environment.get_template("report.html.j2").render(
        study=study,
        plan=study.plan,
        comparison=study.comparison,
        root=root,
        drawing=drawing_digest(),
        policy=_policy(script, css),
        css=Markup(css),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        claims_json=_claims_json(study, root),
        styles=styles,
        arms=ordered_arms(study),
        badges=badges(study),
        browser=browser(paths, study),
        **_charts(study, styles),
        **_tables(study),
        **_provenance(study, root),
    )


def _charts(study: Study, styles: dict[str, ArmStyle]) -> dict[str, object]:
    """Return the charts by the names that the template has for them."""
    return {
        "forests": forest_plots(study, styles),
        "pairs": paired_bars(study, styles),
        "curves": training_curves(study, styles),
        "rewards": reward_panels(study, styles),
        "validated": validated(study),
        "groups": group_panels(study, styles),
        "lengths": length_panels(study, styles),
        "scorers": draw_panels(study, styles, SCORERS),
        "reflection": draw_panels(study, styles, REFLECTION),
        "reflected": any(step.reflection_fraction for run in study.runs for step in run.steps),
        "thinning": thinning(study),
    }


def _tables(study: Study) -> dict[str, object]:
    """Return the tables by the names that the template has for them."""
    return {
        "verdicts": verdict_table(study),
        "adapters": adapter_table(study),
        "reflection_sentences": reflection_sentences(study.reflection),
        "reflection_table": reflection_table(study.reflection),
        "alarms": alarms(study),
        "diagnostics": diagnostics_table(study),
        "readings": reading_table(study.comparison),
        "templates": template_table(study),
        "ablation": ablation_tables(study),
    }


def _provenance(study: Study, root: str) -> dict[str, object]:
    """Return what says where all of it comes from, by the template's names."""
    return {
        "commands": commands(study, root),
        "claimed": {claim.id for claim in study.claims.claims},
        "facts": facts(study, root),
        "run_table": run_table(study),
        "replay_table": replay_table(study),
        "claim_table": claim_table(study),
        "selection": selection_sentence(study),
        "not_checked": NOT_CHECKED,
    }


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _policy(script: str, css: str) -> str:
    """Return the content security policy: nothing is loaded, only this script and style count."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    sha = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(sha).decode()}"


def _claims_json(study: Study, root: str) -> Markup:
    """Return what binds the page to claims.json; without `<`, so that no text ends the element."""
    bound = {
        "root": root,
        "plan_digest": study.plan_digest,
        "claims": [{"id": claim.id, "value": claim.value} for claim in study.claims.claims],
    }
    text = json.dumps(bound, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - JSON in ASCII, without `<`
