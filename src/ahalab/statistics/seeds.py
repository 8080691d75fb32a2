# Axis suffixes: S training seeds, N questions, G clusters, K answers, A arms.
# ruff: noqa: N803, N806, N815
"""Claims about a reward design: training seeds and questions are both samples.

One adapter is one draw of the training seed. McNemar's test on it answers for that adapter; as a
claim about the reward it is wrong in 12 to 55 % of true nulls. Here the seed is a unit beside the
question.

Model: d_is = mu + question_i + seed_s + rest_is. The mean D over both has variance

    SE^2 = SE_q^2 + SE_s^2 - SE_qs^2

where SE_q^2 comes from the question means, SE_s^2 from the seed means, and SE_qs^2 from the rest,
which the first two have both counted. Three choices keep it honest for few seeds:

* SE_qs^2 is taken from the residual after removing question AND seed means, (S-1)(N-1) degrees of
  freedom. The plain intersection term of Cameron, Gelbach and Miller uses d_is - D; with S small
  that subtracts a share 1/S of the question variance too much.
* SE^2 never falls below SE_q^2 or SE_s^2: a seed variance estimated from three numbers often comes
  out too small by luck, and the errors over questions still count.
* The interval is wider than t * SE: its half width is sqrt(t_{S-1}^2 SE_s^2 + t_{N-1}^2 SE_q^2),
  each part widened by what is known of it (combined_error.py), and the rest is left in both. Where
  the seeds dominate this is the t test on seed means. Where they vary little it is conservative, as
  three seeds cannot tell which case it is. Over simulated nulls it stays under the nominal 5 % for
  every seed variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike
from scipy import special

from ahalab.statistics.by_question import DUST, cluster_error
from ahalab.statistics.combined_error import Part, half_width, two_sided_p
from ahalab.statistics.inputs import (
    FloatArray,
    IntArray,
    cluster_index,
    cluster_sums,
    fractions,
    probability,
)
from ahalab.statistics.interval import Interval, clipped


@dataclass(frozen=True, slots=True)
class SeedEstimate:
    """What the seeds say of the reward; None wherever one seed, or one cluster, cannot tell."""

    questions: int  # N
    clusters: int  # G, equal to N when every question stands alone
    seeds: int  # S, of the treatment
    control_seeds: int | None  # T; None when compared with the one base
    difference: float  # fraction: adapter minus base, or treatment minus control
    by_seed: tuple[float, ...]  # fractions: D_s of each treatment seed against the base
    standard_error: float | None  # fraction; two-way, SE above
    questions_error: float | None  # SE_q: the questions' part, rest included
    seeds_error: float | None  # SE_s: the seeds' part, rest included
    rest_error: float | None  # SE_qs: what both parts contain
    degrees_of_freedom: int | None  # of the seeds' part: S - 1, or that of the arm with fewer seeds
    interval: Interval | None  # covers questions and seeds
    half_width: float | None  # fraction: of the interval before it is cut at -1 and 1
    p_value: float | None  # two-sided; the level at which the interval reaches 0

    def detectable(self, power: float = 0.8) -> float | None:
        """Return the difference (fraction) that this design would call a change so often, about.

        Half the interval's width is what the test asks for; the rest is the normal quantile of the
        power times the standard error. None where there is no interval; 1 at most.
        """
        if self.half_width is None or self.standard_error is None:
            return None
        return min(1.0, self.half_width + float(special.ndtri(power)) * self.standard_error)


@dataclass(frozen=True, slots=True)
class _Arm:
    """Squared errors of one arm's mean over seeds and questions."""

    mean_N: FloatArray  # mean over seeds, by question
    by_seed: tuple[float, ...]
    seeds: Part | None  # None: one seed
    rest_square: float


def reward_claim(
    differences_SN: ArrayLike,
    clusters: Sequence[object] | None = None,
    confidence: float = 0.95,
) -> SeedEstimate:
    """Estimate what a reward design does to accuracy, over training seeds and questions.

    Args:
        differences_SN: Adapter minus base by training seed and question (means over the k answers),
            fractions in [-1, 1], shape (S, N), the questions in one order.
        clusters: Labels, shape (N,), of questions that belong together; None: each stands alone.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        The estimate; its interval covers questions and seeds. With S = 1 the difference alone: one
        seed says nothing about the reward.

    Raises:
        ValueError: Wrong shape, values not finite or outside [-1, 1], labels missing.

    Source:
        Cameron, Gelbach and Miller 2011, J. Business & Economic Statistics 29:238; the floor and
        the residual term are described at the head of this file.
    """
    values_SN = fractions("differences_SN", differences_SN, axes=2)
    index, groups = cluster_index(clusters, values_SN.shape[1])
    arm = _arm(values_SN, index, groups)
    error = cluster_error(arm.mean_N, index, groups)
    return _estimate([arm], arm.mean_N, error, groups, probability("confidence", confidence))


def arm_against_control(
    treatment_SN: ArrayLike,
    control_TN: ArrayLike,
    clusters: Sequence[object] | None = None,
    confidence: float = 0.95,
) -> SeedEstimate:
    """Compare a treatment arm with a control arm, both with training seeds, on the same questions.

    Question i contributes the treatment's mean over its S seeds minus the control's over its T
    seeds, so the base and the question's difficulty cancel. Each arm adds its own seed variance,
    widened by its own t quantile.

    Args:
        treatment_SN: Adapter minus base (or plain accuracy), by seed and question, in [-1, 1], (S,
            N).
        control_TN: The same for the control arm's seeds, shape (T, N), the questions in the same
            order.
        clusters: Labels, shape (N,), of questions that belong together; None: each stands alone.
        confidence: Coverage aimed at, in (0, 1).

    Returns:
        Treatment minus control; the interval covers questions and seeds, and is None if either arm
        has one seed.

    Raises:
        ValueError: Another number of questions in the arms, values not finite or outside [-1, 1].

    Source:
        Cameron, Gelbach and Miller 2011, J. Business & Economic Statistics 29:238; Banerjee 1961,
        Sankhya A 23:1.
    """
    treated_SN = fractions("treatment_SN", treatment_SN, axes=2)
    placebo_TN = fractions("control_TN", control_TN, axes=2)
    n = treated_SN.shape[1]
    if placebo_TN.shape[1] != n:
        raise ValueError(f"control_TN: expected {n} questions, found {placebo_TN.shape[1]}")
    index, groups = cluster_index(clusters, n)
    arms = [_arm(treated_SN, index, groups), _arm(placebo_TN, index, groups)]
    mean_N = arms[0].mean_N - arms[1].mean_N
    error = cluster_error(mean_N, index, groups)
    return _estimate(arms, mean_N, error, groups, probability("confidence", confidence))


def _arm(values_SN: FloatArray, index: IntArray, groups: int) -> _Arm:
    """Split one arm's spread into seeds and rest."""
    seeds, n = values_SN.shape
    by_seed = values_SN.mean(axis=1)
    if seeds < 2 or groups < 2:
        return _Arm(values_SN.mean(axis=0), tuple(by_seed.tolist()), None, 0.0)
    deviations_SG = cluster_sums(values_SN - by_seed[:, None], index, groups)
    rest = float(((deviations_SG - deviations_SG.mean(axis=0)) ** 2).sum()) / n**2
    return _Arm(
        mean_N=values_SN.mean(axis=0),
        by_seed=tuple(by_seed.tolist()),
        seeds=Part(float(by_seed.var(ddof=1)) / seeds, seeds - 1),
        rest_square=groups / (groups - 1) * rest / (seeds * (seeds - 1)),
    )


def _estimate(
    arms: list[_Arm],
    mean_N: FloatArray,
    questions_error: float | None,
    groups: int,
    confidence: float,
) -> SeedEstimate:
    """Combine seeds, questions and rest; `mean_N` is the mean over seeds, by question."""
    difference = float(mean_N.mean())
    parts = [arm.seeds for arm in arms if arm.seeds is not None]
    estimate = SeedEstimate(
        questions=mean_N.size,
        clusters=groups,
        seeds=len(arms[0].by_seed),
        control_seeds=len(arms[1].by_seed) if len(arms) > 1 else None,
        difference=difference,
        by_seed=arms[0].by_seed,
        standard_error=None,
        questions_error=questions_error,
        seeds_error=None,
        rest_error=None,
        degrees_of_freedom=None,
        interval=None,
        half_width=None,
        p_value=None,
    )
    if len(parts) < len(arms) or questions_error is None:
        return estimate
    seeds_square = sum(part.square for part in parts)
    rest_square = sum(arm.rest_square for arm in arms)
    square = max(questions_error**2, seeds_square, questions_error**2 + seeds_square - rest_square)
    estimate = replace(
        estimate,
        standard_error=math.sqrt(square) if square > DUST else None,
        seeds_error=math.sqrt(seeds_square),
        rest_error=math.sqrt(rest_square),
        degrees_of_freedom=min(part.degrees for part in parts),
    )
    if square <= DUST:  # nothing varies: no error to judge by
        return estimate
    parts.append(Part(questions_error**2, groups - 1))
    width = half_width(parts, 1.0 - confidence)
    return replace(
        estimate,
        interval=clipped(difference, width, "questions and seeds"),
        half_width=width,
        p_value=two_sided_p(parts, difference),
    )
