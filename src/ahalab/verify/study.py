"""Verifies a study: every check that its files allow, each independent of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plan.endpoint import backend_name
from ahalab.records.manifest import Claims
from ahalab.records.templates import TemplateComparison
from ahalab.store.ssh import Signers
from ahalab.verify.ablation import check_ablation
from ahalab.verify.answers import Sets, answers_to_check, check_answers, finish_answers
from ahalab.verify.cardfile import check_cards
from ahalab.verify.changed import check_changed
from ahalab.verify.checks import Check, Ledger, Verification
from ahalab.verify.claims import check_claims
from ahalab.verify.files import check_files
from ahalab.verify.journals import check_journals
from ahalab.verify.matrices import line_up
from ahalab.verify.prompts import check_prompts
from ahalab.verify.protocols import check_protocols
from ahalab.verify.reading import Study
from ahalab.verify.reflection import check_continuations
from ahalab.verify.reflection_figures import check_reflection
from ahalab.verify.replay import check_replay
from ahalab.verify.report_drawn import Drawing
from ahalab.verify.reportfile import check_report
from ahalab.verify.rescored import check_rescored
from ahalab.verify.runs import check_runs, runs_to_check
from ahalab.verify.shares import read_ahead
from ahalab.verify.signature import check_signature
from ahalab.verify.templates import check_templates
from ahalab.verify.verdicts import check_comparison
from ahalab.verify.workers import ALONE, Effort, Workers


@dataclass(frozen=True, slots=True)
class Held:
    """What a reader holds from outside; where it is None, the check is *not checked*."""

    root: str | None = None  # evidence root published earlier: `root.anchor`
    plan: str | None = None  # plan digest published earlier: `plan.anchor`
    signers: Signers | None = None  # whose signature is required: `sig.key`


NOTHING = Held()


def verify_study(
    root: Path,
    held: Held = NOTHING,
    *,
    on_check: Callable[[Check], None] | None = None,
    trust_rewards: bool = False,
    effort: Effort = ALONE,
    drawing: Drawing | None = None,
) -> Verification:
    """Recheck a study from its files alone; writes nothing, and needs no model.

    Args:
        root: Folder of the study.
        held: What is held from outside.
        on_check: Called with each check as it ends.
        trust_rewards: Whether the code of users' own rewards is run.
        effort: Among how many processes a large study is shared out, and who is told how far it is.
        drawing: What draws a report, to draw it again; None: `report.drawn` is *not checked*.

    Returns:
        All checks, the same whatever the effort. Whatever is wrong with the evidence is a failure
        there, never an exception.

    Raises:
        InputError: There is no such folder.
        MissingError: A signature is required, and there is no ssh-keygen to check it.
    """
    study = open_study(root, on_check, trust_rewards=trust_rewards)
    return examine(study, held, effort, drawing)


def open_study(
    root: Path, on_check: Callable[[Check], None] | None = None, *, trust_rewards: bool = False
) -> Study:
    """Open a study for `examine`; it keeps what was read and worked out.

    Raises:
        InputError: There is no such folder.
    """
    if not root.is_dir():
        raise InputError(
            f"{root}: expected the folder of a study, found none. Name a folder in results/."
        )
    return Study(root, Ledger(on_check), trust_rewards=trust_rewards)


def examine(
    study: Study, held: Held = NOTHING, effort: Effort = ALONE, drawing: Drawing | None = None
) -> Verification:
    """Make every check of a study that was opened.

    Raises:
        MissingError: A signature is required, and there is no ssh-keygen to check it.
    """
    ledger = study.ledger
    check_files(study, held.root, held.plan)
    check_signature(study, held.signers)
    journals = check_journals(study)
    study.row_counts = {name: facts.state.rows for name, facts in journals.items()}
    read_ahead(study)
    runs = runs_to_check(study, journals)
    sets, same = answers_to_check(study, journals)
    with Workers(study, [*runs, *sets], effort) as workers:
        check_prompts(study)
        check_runs(study, journals, workers.trained(runs))
        templates = check_templates(study, journals)
        check_protocols(study)
        check_rescored(study)
        answers, again = check_answers(study, journals, workers.answers(sets), same)
    cut = check_continuations(study, journals, answers)
    finish_answers(study)
    check_reflection(study, answers, cut)
    claims = _check_conclusions(study, answers, again, templates)
    check_report(study, claims, drawing)
    check_cards(study)
    ledger["origin.generation"].not_checked(
        "no file can show that a model generated the completions; train and evaluate again to see"
    )
    if study.plan is not None and backend_name(study.plan) == "openai":
        ledger["origin.generation"].not_checked(
            "which weights an endpoint served can't be seen: the digests of base, tokenizer, "
            "template and adapters are those of the local files"
        )
    ledger["origin.runs"].not_checked(
        "no file can show that no run was hidden before the plan was published"
    )
    return ledger.verification()


def _check_conclusions(
    study: Study, answers: Sets, again: Sets, templates: TemplateComparison | None
) -> Claims | None:
    """Check what was made of the answers, each time from the answers; return the claims."""
    prompts = [prompt for _, prompt in study.prompts("eval")]
    outcomes = None if study.plan is None else line_up(study.plan, prompts, answers)
    comparison = check_comparison(study, outcomes)
    check_changed(study, outcomes)
    ablation = check_ablation(study, outcomes)
    replay = check_replay(study, outcomes, again)
    return check_claims(study, comparison, ablation, replay, templates)
