"""Several studies in one ablation: as when a reward was developed in stages."""

from __future__ import annotations

from collections.abc import Sequence

from ahalab.analyze.answers import load_study_answers
from ahalab.analyze.protocols import recorded_exceptions
from ahalab.analyze.ranking import rank_stages
from ahalab.errors import InputError, ProtocolError
from ahalab.records.comparison import Ablation, AblationStage, RankedArm, StagedAblation
from ahalab.records.plan import Plan
from ahalab.store.layout import StudyPaths


def staged(
    studies: Sequence[tuple[Plan, StudyPaths]], ablations: Sequence[Ablation]
) -> StagedAblation:
    """Put the ablations of several studies together, their arms ranked where one protocol allows.

    Args:
        studies: Each with its plan, at least two.
        ablations: One a study.

    Raises:
        InputError: Two studies have one name.
    """
    names = [plan.name for plan, _ in studies]
    if len(set(names)) < len(names):  # as copies of one study do
        names = [str(paths.root) for _, paths in studies]
    if len(set(names)) < len(names):
        raise InputError(f"STUDY: expected different studies, found {', '.join(names)}.")
    ranking: tuple[RankedArm, ...] | None = None
    reason = None
    try:
        ranking = rank_stages(
            {
                name: load_study_answers(plan, paths, recorded_exceptions(paths))
                for name, (plan, paths) in zip(names, studies, strict=True)
            }
        )
    except (ProtocolError, InputError) as error:
        reason = str(error)
    return StagedAblation(
        stages=tuple(
            AblationStage(study=name, ablation=ablation)
            for name, ablation in zip(names, ablations, strict=True)
        ),
        ranking=ranking,
        not_comparable=reason,
    )
