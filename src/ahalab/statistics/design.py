"""Questions, answers a question, and training seeds: what a study of that size would find.

Claims on one adapter go by McNemar's mid-p test (power.py), with several answers a question by the
t test over questions; claims on a reward by the interval over questions and seeds (power_seeds.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy import optimize, stats

from ahalab.records.power import PowerAssumptions
from ahalab.statistics.inputs import count, probability
from ahalab.statistics.power import detectable_difference, mcnemar_power
from ahalab.statistics.power_seeds import SeedPlan, reward_detectable_difference, reward_power

MOST_QUESTIONS = 1_000_000
"""Where the search for enough questions ends: what these don't find, more of them don't."""

FAR = 30.0
"""Standard errors from 0 at which a difference is always found."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How much answers change, and why: what a power calculation rests on."""

    discordance: float  # psi: share of questions where one answer of each side differs in outcome
    seed_sd: float | None  # fraction: true accuracy over training seeds; None: unknown
    shared: float = 0.2  # share of a question's variance that is the same for all seeds
    sampling_share: float = 0.0  # share of psi that comes from sampling answers; greedy: 0

    def __post_init__(self) -> None:
        """Refuse what cannot be planned with."""
        if not 0.0 <= self.sampling_share <= 1.0:
            raise ValueError(
                f"sampling_share: expected a share in [0, 1], found {self.sampling_share!r}"
            )
        SeedPlan(2, 2, self.discordance, self.seed_sd or 0.0, self.shared)

    def of_means(self, samples: int) -> float:
        """Variance of one question's difference between means over so many answers.

        Sampling noise falls with the number of answers; what differs between questions stays.
        """
        return self.discordance * (1.0 - self.sampling_share * (1.0 - 1.0 / samples))


def noise_of(assumptions: PowerAssumptions) -> Noise:
    """Return the noise that a table was computed with."""
    a = assumptions
    seed_sd = None if a.seed_sd_points is None else a.seed_sd_points / 100
    return Noise(a.discordance, seed_sd, a.shared, a.sampling_share)


@dataclass(frozen=True, slots=True)
class Design:
    """The size of a study of one reward design, or (one seed) of one adapter."""

    questions: int
    samples: int = 1  # answers a question, of base and adapter
    seeds: int | None = None  # None: the claim is on one adapter

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        count("questions", self.questions, at_least=2)
        count("samples", self.samples, at_least=1)
        if self.seeds is not None:
            count("seeds", self.seeds, at_least=1)


def design_power(design: Design, noise: Noise, difference: float, alpha: float = 0.05) -> float:
    """Chance that the claim is made when the true difference is this.

    Args:
        design: The study's size.
        noise: How much answers change.
        difference: True difference of accuracies, a fraction; at most psi in size.
        alpha: Two-sided level.

    Returns:
        Probability; 0 for a reward with one seed, or where the spread over seeds is unknown.

    Raises:
        ValueError: A difference larger than psi, or alpha outside (0, 1).

    Source:
        Fagerland, Lydersen and Laake 2013 (one adapter); power_seeds.py (a reward).
    """
    alpha, psi = probability("alpha", alpha), noise.discordance
    if not abs(difference) <= psi:
        raise ValueError(f"difference: expected at most psi={psi} in size, found {difference!r}")
    if design.seeds is not None:
        plan = _seed_plan(design, noise)
        return 0.0 if plan is None else reward_power(plan, difference, alpha)
    if design.samples == 1:
        rates = (psi + difference) / 2.0, (psi - difference) / 2.0
        return mcnemar_power(*rates, design.questions, alpha)
    square = max(1e-12, noise.of_means(design.samples) - difference**2) / design.questions
    freedom = design.questions - 1
    critical, shift = stats.t.ppf(1.0 - alpha / 2.0, freedom), abs(difference) / math.sqrt(square)
    if shift > FAR:  # nothing is left to miss
        return 1.0
    # The other tail is below 1e-7 past 5, where scipy's noncentral t now and then is NaN.
    other = float(stats.nct.cdf(-critical, freedom, shift)) if shift < 5.0 else 0.0
    return float(stats.nct.sf(critical, freedom, shift)) + other


def design_detectable(
    design: Design, noise: Noise, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Smallest true difference that the design finds with the given power.

    Args:
        design: The study's size.
        noise: How much answers change.
        power: Chance wanted of finding it.
        alpha: Two-sided level.

    Returns:
        A fraction up to psi; None where none is found so often.

    Raises:
        ValueError: power or alpha outside (0, 1).
    """
    power, psi = probability("power", power), noise.discordance
    if design.seeds is not None:
        plan = _seed_plan(design, noise)
        found = None if plan is None else reward_detectable_difference(plan, power, alpha)
        return found if found is not None and found <= psi else None
    if design.samples == 1:
        return detectable_difference(psi, design.questions, power, alpha, "midp")
    if design_power(design, noise, psi, alpha) < power:
        return None
    return float(
        optimize.brentq(
            lambda d: design_power(design, noise, d, alpha) - power, 0.0, psi, xtol=1e-6
        )
    )


def questions_needed(
    design: Design, noise: Noise, difference: float, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Fewest questions with which the design finds the difference.

    Args:
        design: The study's size; its number of questions does not matter.
        noise: How much answers change.
        difference: True difference of accuracies, a fraction.
        power: Chance wanted of finding it.
        alpha: Two-sided level.

    Returns:
        Questions, to within the saw-tooth of an exact test (a few in a hundred); None where a
        million are too few, as with one seed for a claim on a reward.

    Raises:
        ValueError: A difference larger than psi, power or alpha outside (0, 1).
    """
    power = probability("power", power)

    def enough(questions: int) -> bool:
        sized = replace(design, questions=questions)
        return design_power(sized, noise, difference, alpha) >= power

    low, high = 1, 64
    while not enough(high):
        if high == MOST_QUESTIONS:
            return None
        low, high = high, min(4 * high, MOST_QUESTIONS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _seed_plan(design: Design, noise: Noise) -> SeedPlan | None:
    """Return the plan of a claim on a reward; None where none can be made."""
    if design.seeds is None or design.seeds < 2 or noise.seed_sd is None:
        return None
    variance = min(1.0, noise.of_means(design.samples))
    return SeedPlan(design.questions, design.seeds, variance, noise.seed_sd, noise.shared)
