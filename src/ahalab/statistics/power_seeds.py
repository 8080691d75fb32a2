"""How many training seeds: power of a claim about a reward design, before any of it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from ahalab.statistics.combined_error import Part, half_width
from ahalab.statistics.inputs import count, probability

_CHANCES = (np.arange(400) + 0.5) / 400  # midpoints of equally likely slices


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """A planned study of one reward design."""

    n: int  # questions
    seeds: int  # training seeds, S
    discordance: float  # psi: share of questions that base and one adapter answer differently
    seed_sd: float  # fraction: spread of true accuracy over training seeds
    shared: float = 0.2  # share of a question's variance that is the same for all seeds, in [0, 1]

    def __post_init__(self) -> None:
        """Refuse what cannot be planned."""
        count("n", self.n, at_least=2)
        count("seeds", self.seeds, at_least=1)
        if not 0.0 < self.discordance <= 1.0:
            raise ValueError(f"discordance: expected a share in (0, 1], found {self.discordance!r}")
        if not 0.0 <= self.seed_sd <= 1.0:
            raise ValueError(f"seed_sd: expected a fraction in [0, 1], found {self.seed_sd!r}")
        if not 0.0 <= self.shared <= 1.0:
            raise ValueError(f"shared: expected a share in [0, 1], found {self.shared!r}")


def reward_power(plan: SeedPlan, difference: float, alpha: float = 0.05) -> float:
    """Chance that the interval over seeds and questions excludes 0 (seeds.reward_claim).

    The spread of the seed means is averaged over its chi-square law, with the question's error as
    planned.

    Args:
        plan: The planned study.
        difference: True mean effect of the reward, a fraction.
        alpha: Two-sided level.

    Returns:
        Probability; 0 with one seed, which never carries a claim on the reward.

    Raises:
        ValueError: A difference outside [-1, 1] or alpha outside (0, 1).
    """
    if not -1.0 <= difference <= 1.0:
        raise ValueError(f"difference: expected a number in [-1, 1], found {difference!r}")
    alpha = probability("alpha", alpha)
    if plan.seeds < 2:
        return 0.0
    of_question = plan.discordance / plan.n
    rest, shared = (1.0 - plan.shared) * of_question, plan.shared * of_question
    seeds_square = (plan.seed_sd**2 + rest) / plan.seeds
    error = math.sqrt(seeds_square + shared)
    questions = Part(rest / plan.seeds + shared, plan.n - 1)
    freedom = plan.seeds - 1
    found = 0.0
    for drawn in special.chdtri(freedom, _CHANCES) / freedom:
        width = half_width([Part(seeds_square * float(drawn), freedom), questions], alpha)
        found += float(
            special.ndtr((difference - width) / error) + special.ndtr((-difference - width) / error)
        )
    return found / len(_CHANCES)


def reward_detectable_difference(
    plan: SeedPlan, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Smallest effect of the reward that the plan finds with the given power.

    Args:
        plan: The planned study.
        power: Chance wanted of finding it.
        alpha: Two-sided level.

    Returns:
        A fraction; None when no difference up to 1 is found so often, as with one seed.

    Raises:
        ValueError: power or alpha outside (0, 1).
    """
    power = probability("power", power)
    if reward_power(plan, 1.0, alpha) < power:
        return None
    if reward_power(plan, 0.0, alpha) >= power:
        return 0.0
    return float(
        optimize.brentq(lambda d: reward_power(plan, d, alpha) - power, 0.0, 1.0, xtol=1e-5)
    )
