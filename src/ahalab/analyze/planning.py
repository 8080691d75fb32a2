"""The size of the next study: from a pilot's noise, or given numbers, to a table of power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ahalab.analyze.pilot import RANGE, Pilot
from ahalab.analyze.sentences import percent
from ahalab.errors import InputError
from ahalab.records.power import PowerAssumptions, PowerDesign, PowerNeed, PowerTable
from ahalab.statistics.design import (
    MOST_QUESTIONS,
    Design,
    Noise,
    design_detectable,
    design_power,
    noise_of,
    questions_needed,
)

SHARED = 0.2  # of a question's variance over seeds, where no pilot tells


@dataclass(frozen=True, slots=True)
class Given:
    """Numbers that stand in for a pilot's, or over them; None: not given."""

    base_accuracy: float | None = None  # fractions, all of them
    discordance: float | None = None
    seed_sd: float | None = None
    sampling_share: float | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The effect to be found, how surely, and the sizes to look at."""

    effect: float  # fraction
    power: float
    alpha: float
    questions: tuple[int, ...]
    seeds: tuple[int, ...]
    samples: tuple[int, ...]


def plan_power(wanted: Wanted, given: Given, pilot: Pilot | None, source: str) -> PowerTable:
    """Return what studies of each size would find.

    Args:
        wanted: Effect and sizes.
        given: Numbers, which stand over the pilot's.
        pilot: What was measured, if anything.
        source: Where that came from.

    Raises:
        InputError: Too little is known, or the effect is not possible with it.
    """
    noise, assumptions = _noise(wanted, given, pilot, source)
    seeds = () if noise.seed_sd is None else wanted.seeds  # nothing can be said of a reward
    claims = [Design(2, k, s) for k in wanted.samples for s in (None, *seeds)]
    return PowerTable(
        effect_points=100 * wanted.effect,
        wanted_power=wanted.power,
        alpha=wanted.alpha,
        assumptions=assumptions,
        designs=tuple(
            _designed(Design(n, claim.samples, claim.seeds), noise, wanted)
            for claim in claims
            for n in wanted.questions
        ),
        needs=tuple(_needed(claim, noise, wanted) for claim in claims),
    )


def _designed(design: Design, noise: Noise, wanted: Wanted) -> PowerDesign:
    found = design_detectable(design, noise, wanted.power, wanted.alpha)
    return PowerDesign(
        claim="adapter" if design.seeds is None else "reward",
        seeds=design.seeds or 1,
        samples=design.samples,
        questions=design.questions,
        power=design_power(design, noise, wanted.effect, wanted.alpha),
        detectable_points=None if found is None else 100 * found,
    )


def _needed(claim: Design, noise: Noise, wanted: Wanted) -> PowerNeed:
    enough = questions_needed(claim, noise, wanted.effect, wanted.power, wanted.alpha)
    seeds = claim.seeds or 1
    return PowerNeed(
        claim="adapter" if claim.seeds is None else "reward",
        seeds=seeds,
        samples=claim.samples,
        questions=enough,
        answers=None if enough is None else enough * claim.samples * (seeds + 1),
    )


def _noise(
    wanted: Wanted, given: Given, pilot: Pilot | None, source: str
) -> tuple[Noise, PowerAssumptions]:
    base = given.base_accuracy
    if base is None and pilot is not None and given.discordance is None:
        base = pilot.base_accuracy
    discordance, of_answers = _discordance(wanted, given, base, pilot)
    _refuse_impossible(wanted.effect, discordance, base)
    spread = None if pilot is None else pilot.spread
    seed_sd = given.seed_sd if given.seed_sd is not None or spread is None else spread.sd
    shared = SHARED if pilot is None or pilot.shared is None else pilot.shared
    sampling = _sampling(wanted, given, pilot)
    told = [of_answers, *_of_seeds(given, pilot, seed_sd)]
    if seed_sd is not None:
        measured = pilot is not None and pilot.shared is not None
        told.append(
            f"{100 * shared:.0f} % of a question's variance is the same for all seeds "
            f"({'measured' if measured else 'a guess'})."
        )
    if max(wanted.samples) > 1:
        told.append(
            f"{100 * sampling:.0f} % of the change is sampling noise, which more answers reduce."
        )
    assumptions = PowerAssumptions(
        source=source,
        base_accuracy=base,
        discordance=discordance,
        seed_sd_points=None if seed_sd is None else 100 * seed_sd,
        shared=shared,
        sampling_share=sampling,
        told=(*told, *_of_claims(wanted)),
    )
    return noise_of(assumptions), assumptions


def _sampling(wanted: Wanted, given: Given, pilot: Pilot | None) -> float:
    """Return how much of psi is sampling noise; it matters with several answers a question only."""
    share = given.sampling_share
    if share is None and pilot is not None:
        share = pilot.sampling_share
    if share is None and max(wanted.samples) > 1:
        raise InputError(
            "--samples: expected to know how much of the change is sampling noise, found no pilot "
            "with several answers a question. Give --sampling-share (0 for greedy answers)."
        )
    return share or 0.0


def _discordance(
    wanted: Wanted, given: Given, base: float | None, pilot: Pilot | None
) -> tuple[float, str]:
    """Return psi and where it comes from."""
    if given.discordance is not None:
        psi = given.discordance
        return psi, f"Base and adapter differ in outcome on {percent(psi)} of questions (given)."
    if pilot is not None:
        psi = pilot.discordance
        if psi == 0.0:
            raise InputError(
                "the pilot's adapters answer as its base does, so nothing can be measured. Give "
                "--discordance."
            )
        return psi, (
            f"Base and adapter differ in outcome on {percent(psi)} of questions (measured: "
            f"{pilot.adapters} adapters of {', '.join(pilot.arms)}, {pilot.questions} questions)."
        )
    if base is None:
        raise InputError(
            "expected a pilot (STUDY), --discordance or --base-accuracy, found none of them. Name "
            "a study's folder, or give the share of questions whose outcome you expect to change."
        )
    after = base + wanted.effect
    psi = base * (1.0 - after) + after * (1.0 - base)
    return psi, (
        f"Base and adapter differ in outcome on {percent(psi)} of questions: as if their answers "
        "had nothing to do with each other, the worst case. Give --discordance if you know it."
    )


def _refuse_impossible(effect: float, discordance: float, base: float | None) -> None:
    """Refuse an effect that this base, or this many changed answers, cannot show."""
    if base is not None and not 0.0 <= base + effect <= 1.0:
        raise InputError(
            f"--effect: expected at most what a base of {percent(base)} leaves, found "
            f"{100 * effect:+g} points."
        )
    if abs(effect) > discordance:
        raise InputError(
            f"--effect: expected at most the {100 * discordance:.1f} % of questions that change "
            f"outcome, found {100 * abs(effect):g} points. Give the --discordance of a reward with "
            "such an effect."
        )
    gained, lost = (discordance + effect) / 2, (discordance - effect) / 2
    if base is not None and (gained > 1.0 - base or lost > base):
        raise InputError(
            f"--discordance: expected no more than a base of {percent(base)} can gain or lose, "
            f"found {percent(discordance)}: with this effect {percent(gained)} would be gained and "
            f"{percent(lost)} lost."
        )


def _of_seeds(given: Given, pilot: Pilot | None, seed_sd: float | None) -> Iterator[str]:
    if seed_sd is None:
        yield (
            "How much accuracy differs between training seeds is not known, so nothing can be "
            "said of a reward: give --seed-sd, or a pilot with two seeds of an arm."
        )
    elif given.seed_sd is not None:
        yield (
            f"True accuracy differs between training seeds with SD {100 * seed_sd:.1f} points "
            "(given)."
        )
    elif pilot is not None and pilot.spread is not None:
        upper = 100 * pilot.spread.upper
        yield (
            f"True accuracy differs between training seeds with SD {100 * seed_sd:.1f} points "
            f"(measured, {pilot.spread.degrees} degrees of freedom). It may be {upper:.1f}, the "
            f"upper end of the {100 * RANGE:.0f} % range: look at --seed-sd {upper:.1f} too."
        )


def _of_claims(wanted: Wanted) -> Iterator[str]:
    yield "One seed carries no claim on a reward, whatever the number of questions."
    yield (
        f"A claim on this adapter is mid-p McNemar at {wanted.alpha:g} (t over questions for k > "
        f"1); one on a reward is the interval over questions and seeds. Where {MOST_QUESTIONS:,} "
        "questions would not do, more seeds may."
    )
    yield (
        "Against the base, one comparison. A control arm adds its own seeds' spread: with as many "
        "seeds, think of 1.4 times the detectable effect. For m planned comparisons take --alpha "
        f"{wanted.alpha:g}/m."
    )
