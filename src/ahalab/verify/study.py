"""Verifies a study: every check that its files allow, each independent of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ahalab.errors import InputError
from ahalab.plan.endpoint import backend_name
from ahalab.store.ssh import Signers
from ahalab.verify.ablation import check_ablation
from ahalab.verify.answers import check_answers, finish_answers
from ahalab.verify.cardfile import check_cards
from ahalab.verify.changed import check_changed
from ahalab.verify.checks import Check, Ledger, Verification
from ahalab.verify.claims import check_claims
from ahalab.verify.files import check_files
from ahalab.verify.journals import check_journals
from ahalab.verify.matrices import line_up
from ahalab.verify.prompts import check_prompts
from ahalab.verify.protocols import check_protocols, end_ids_of
from ahalab.verify.reading import Study
from ahalab.verify.reflection import check_continuations
from ahalab.verify.reflection_figures import check_reflection
from ahalab.verify.replay import check_replay
from ahalab.verify.reportfile import check_report
from ahalab.verify.rescored import check_rescored
from ahalab.verify.runs import check_runs
from ahalab.verify.signature import check_signature
from ahalab.verify.templates import check_templates
from ahalab.verify.verdicts import check_comparison


def verify_study(
    root: Path,
    *,
    on_check: Callable[[Check], None] | None = None,
    expected_root: str | None = None,
    expected_plan: str | None = None,
    signers: Signers | None = None,
    trust_rewards: bool = False,
) -> Verification:
    """Recheck a study from its files alone; writes nothing, and needs no model.

    Args:
        root: Folder of the study.
        on_check: Called with each check as it ends.
        expected_root: Evidence root published earlier; None: `root.anchor` is not checked.
        expected_plan: Plan digest published earlier; None: `plan.anchor` is not checked.
        signers: Whose signature is required; None: `sig.key` is not checked.
        trust_rewards: Whether the code of users' own rewards is run.

    Returns:
        All checks. Whatever is wrong with the evidence is a failure there, never an exception.

    Raises:
        InputError: There is no such folder.
        MissingError: A signature is required, and there is no ssh-keygen to check it.
    """
    if not root.is_dir():
        raise InputError(
            f"{root}: expected the folder of a study, found none. Name a folder in results/."
        )
    ledger = Ledger(on_check)
    study = Study(root, ledger, trust_rewards=trust_rewards)
    check_files(study, expected_root, expected_plan)
    check_signature(study, signers)
    journals = check_journals(study)
    check_prompts(study)
    check_runs(study, journals, end_ids_of(study))
    templates = check_templates(study, journals)
    check_protocols(study)
    check_rescored(study)
    answers, again = check_answers(study, journals)
    cut = check_continuations(study, journals, answers)
    finish_answers(study)
    prompts = [prompt for _, prompt in study.prompts("eval")]
    outcomes = None if study.plan is None else line_up(study.plan, prompts, answers)
    check_reflection(study, answers, cut)
    comparison = check_comparison(study, outcomes)
    check_changed(study, outcomes)
    ablation = check_ablation(study, outcomes)
    replay = check_replay(study, outcomes, again)
    check_report(study, check_claims(study, comparison, ablation, replay, templates))
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
