"""Judges what pre-flight measured: one line each, what was found and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ahalab.errors import InputError
from ahalab.records.plan import ArmSpec, Plan
from ahalab.records.preflight import BaseProbe, Level, MemoryEstimate, PreflightCheck
from ahalab.scoring.arms import ArmDefinition
from ahalab.scoring.attacks import check_arm
from ahalab.statistics.alarms import TRUNCATED_FRACTION
from ahalab.tasks.ngrams import measure_overlap
from ahalab.tasks.prepare import DrawnPrompts
from ahalab.tasks.questions import Question
from ahalab.tasks.selection import check_overlap

SHARED_FRACTION = 0.05  # of evaluation questions that are mostly made of training questions' words
SHOWN_SHARED = 2
DROPPED_FRACTION = 0.1  # of the training prompts; above it the study is one of short questions
MEMORY_WARNING = 0.8  # of what is available: the estimate leaves out short-lived buffers
NAMES_SHOWN = 30
UNKNOWN = (
    "too few were finished to tell: try again on a less busy machine, or watch the first steps"
)


def prompts_fit(plan: Plan, drawn: DrawnPrompts, context: int | None) -> PreflightCheck:
    """Say how many prompts are used and dropped, and whether they fit the model's context."""
    longest = {split: max(p.prompt_tokens for p in drawn.prompts[split]) for split in drawn.prompts}
    dropped = {split: sum(d.split == split for d in drawn.selection.dropped) for split in longest}
    found = "; ".join(
        f"{len(drawn.prompts[split])} {split}, {dropped[split]} dropped, longest "
        f"{longest[split]} tokens"
        for split in longest
    )
    needed = max(
        longest["train"] + int(plan.grpo["max_completion_length"]),
        longest["eval"] + plan.evaluation.max_new_tokens,
    )
    if context is not None and needed > context:
        return _check(
            "prompts",
            "refused" if max(longest.values()) >= context else "warning",
            f"{found}; with the completion up to {needed} tokens, the model's context is {context}",
            "lower grpo.max_completion_length and evaluation.max_new_tokens, or set "
            "task.max_prompt_tokens",
        )
    if dropped["train"] > DROPPED_FRACTION * drawn.selection.drawn["train"]:
        return _check(
            "prompts", "warning", found,
            "raise task.max_prompt_tokens: what is left are the short questions",
        )  # fmt: skip
    return _check("prompts", "ok", f"{found}; none is cut")


def splits_apart(drawn: DrawnPrompts) -> PreflightCheck:
    """Compare the questions of the two splits.

    Raises:
        InputError: A question stands in both.
    """
    train, evaluation = (
        [Question(p.question, p.gold, p.source) for p in drawn.prompts[split]]
        for split in ("train", "eval")
    )
    check_overlap(train, evaluation)
    told = f"none of {len(evaluation)} evaluation questions is among {len(train)} for training"
    return _check("overlap", "ok", told)


def words_apart(drawn: DrawnPrompts) -> PreflightCheck:
    """Say how many evaluation questions share word n-grams with training questions."""
    overlap = measure_overlap(drawn.prompts["train"], drawn.prompts["eval"])
    told = (
        f"{overlap.sharing} of {overlap.questions} evaluation questions share {overlap.words} "
        f"words in a row with a training question, {overlap.mostly} of them at least half"
    )
    short = len(drawn.prompts["eval"]) - overlap.questions
    if short:
        told += (
            f"; {short} of fewer than {overlap.least_words} words, or all boilerplate, were not "
            "measured"
        )
    if not overlap.sharing:
        return _check("shared words", "ok", told)
    listed = "; ".join(
        f"{e.prompt_id} and {e.train_prompt_id} ({e.fraction:.0%}): {e.words[:80]!r}"
        for e in overlap.examples[:SHOWN_SHARED]
    )
    return _check(
        "shared words",
        "warning" if overlap.mostly > SHARED_FRACTION * overlap.questions else "note",
        f"{told}: {listed}",
        "questions of one template share words by nature; of copied ones remove one. "
        "task.max_overlap_fraction sets a limit",
    )


def gold_is_all(dataset: str, scoring: str, by_itself: bool) -> PreflightCheck:
    """Say of a generated task whether other answers than the recorded one may be right.

    Args:
        dataset: Name of the data set.
        scoring: How the plan compares answers.
        by_itself: Whether the generator has a scorer for this data set.
    """
    if not by_itself or scoring == "countdown":
        return _check("golds", "ok", f"{dataset}: answers are compared as {scoring}")
    return _check(
        "golds",
        "note",
        f"reasoning-gym scores {dataset} by code of its own, which may accept several answers; "
        f"here only what equals the recorded one counts (task.scoring: {scoring})",
        "take another data set where a question has several right answers",
    )


def turn_ends(
    written: Sequence[str], ends: Sequence[str], matches: bool, probe: BaseProbe
) -> PreflightCheck:
    """Compare what the template writes after an assistant's turn with what ends a completion.

    Args:
        written: Tokens that the template writes there.
        ends: Tokens that end a completion.
        matches: Whether one is among the other.
        probe: What the base did.
    """
    told = f"{''.join(written)!r} after an assistant's turn, generation ends at {', '.join(ends)}"
    if matches:
        return _check("template", "ok", f"the template writes {told}")
    if not written:
        found = "the template writes nothing after an assistant's turn, or takes none: its end is "
        found += "not known"
        return _check("template", "note", found, "look at the truncation of the base")
    ended = probe.prompts * probe.samples - probe.cut - probe.unfinished
    return _check(
        "template",
        "warning" if ended else "refused",
        f"the template writes {told}" + (f"; {ended} completions ended all the same" * (ended > 0)),
        "set eos_token_id in the model's generation_config.json to the template's token, or "
        "mend the template",
    )


def base_answers(probe: BaseProbe) -> tuple[PreflightCheck, ...]:
    """Judge the base's truncation and accuracy."""
    n = probe.prompts * probe.samples
    told = f"{probe.cut} of {n} completions cut at {probe.max_new_tokens} tokens"
    if probe.unfinished:
        told += f", {probe.unfinished} given up after {probe.seconds:.0f} s"
    if probe.unfinished > n / 2:
        return tuple(_check(name, "note", told, UNKNOWN) for name in ("truncation", "accuracy"))
    level: Level = "ok"
    if probe.cut == n:
        level = "refused"
    elif probe.cut > TRUNCATED_FRACTION * n:
        level = "note"
    remedy = "" if level == "ok" else "raise grpo.max_completion_length, or ask for less text"
    return _check("truncation", level, told, remedy), _accuracy(probe, n)


def _accuracy(probe: BaseProbe, n: int) -> PreflightCheck:
    told = f"of {n} training answers {probe.strict} right in the asked format, {probe.lenient} "
    told += "however stated"
    remedy = ""
    if probe.lenient == 0:
        remedy = "groups without a right answer teach nothing: take easier questions, or a better "
        remedy += "base"
    elif probe.strict == n:
        remedy = "groups of right answers teach nothing: take harder questions"
    elif probe.strict == 0:
        remedy = "a reward for strict answers will pay nothing at first: say the format in the "
        remedy += "prompt"
    return _check("accuracy", "note" if remedy else "ok", told, remedy)


def adapter_fits(
    layers: int, parameters: int, unmatched: Sequence[str], names: Sequence[str], fault: str | None
) -> PreflightCheck:
    """Judge where the adapter found a place.

    Args:
        layers: Layers adapted.
        parameters: Parameters trained.
        unmatched: Target modules that the model has none of.
        names: Module names that could be adapted.
        fault: Why PEFT could not adapt the model.
    """
    there = f"the model has {', '.join(names[:NAMES_SHOWN])}"
    if fault is not None or parameters == 0:
        missing = f"nothing to adapt is named {', '.join(unmatched)}" if unmatched else fault
        remedy = f"set lora.target_modules to some of these: {there}"
        return PreflightCheck(
            name="adapter", level="refused", found=missing or "nothing is trained", remedy=remedy,
            forcible=False,
        )  # fmt: skip
    told = f"{layers} layers adapted, {parameters:,} parameters trained"
    if unmatched:
        return _check(
            "adapter", "warning", f"{told}, but nothing to adapt is named {', '.join(unmatched)}",
            f"mend lora.target_modules: {there}",
        )  # fmt: skip
    return _check("adapter", "ok", told)


def memory_fits(estimate: MemoryEstimate) -> PreflightCheck:
    """Compare the estimate with what is available."""
    parts = ", ".join(f"{part.name} {gigabytes(part.bytes)}" for part in estimate.parts)
    each = f" x {estimate.processes} side by side" if estimate.processes > 1 else ""
    told = f"about {gigabytes(estimate.bytes)}{each} ({parts})"
    if estimate.available_bytes is None:
        return _check("memory", "note", f"{told}; what is available is not known here")
    share = estimate.bytes * estimate.processes / max(1, estimate.available_bytes)
    told = f"{told}: {share:.0%} of {gigabytes(estimate.available_bytes)} available"
    level: Level = "refused" if share > 1 else "warning" if share > MEMORY_WARNING else "ok"
    remedy = (
        ""
        if level == "ok"
        else "lower per_device_train_batch_size (and raise gradient_accumulation_steps)"
        + (" or --jobs" if estimate.processes > 1 else "")
        + ", or set gradient_checkpointing: true"
    )
    return _check("memory", level, told, remedy)


def arms_survive(
    plan: Plan, arms: Iterable[tuple[ArmSpec, ArmDefinition]]
) -> tuple[PreflightCheck, ...]:
    """Attack every arm of a plan that is not its control."""
    return tuple(_arm(plan, spec, arm) for spec, arm in arms if spec.name != plan.control)


def _arm(plan: Plan, spec: ArmSpec, arm: ArmDefinition) -> PreflightCheck:
    name = f"arm {spec.name}"
    if arm.control:
        return _check(name, "ok", "a control pays whatever is answered, by definition")
    if arm.not_loaded:
        told = f"not attacked: {', '.join(arm.not_loaded)} was not loaded"
        return _check(name, "note", told, "`ahalab preflight` attacks it in a process of its own")
    try:
        checked = check_arm(arm, plan.answer_format)
    except ValueError as error:
        return _check(name, "note", f"not attacked: {error}")
    accepted = frozenset(spec.accept)
    paying = [attack for attack in checked.paying if attack not in accepted]
    if not paying:
        also = f", {', '.join(checked.paying)} accepted" if checked.paying else ""
        return _check(name, "ok", f"no attack pays{also}")
    told = f"pays more than for an honest wrong answer: {', '.join(paying)}"
    return _check(
        name, "warning", told, f"`ahalab arms check {spec.name} --plan STUDY` shows how much"
    )


def trackers_there(wanted: Sequence[str], missing: Sequence[str]) -> PreflightCheck:
    """Say whether the trackers of `grpo.report_to` are installed."""
    if missing:
        return PreflightCheck(
            name="trackers", level="refused", forcible=False,
            found=f"grpo.report_to names {', '.join(missing)}, not installed here",
            remedy=f"pip install {' '.join(missing)}, or drop it from the plan",
        )  # fmt: skip
    return _check("trackers", "ok", ", ".join(wanted) or "none")


def gigabytes(size: int) -> str:
    """Return a size for a person."""
    return f"{size / 1e9:.1f} GB" if size >= 5e7 else f"{size / 1e6:.1f} MB"


def require_device(device: str, available: bool) -> None:
    """Refuse a plan for a GPU where there is none.

    Raises:
        InputError: There is none.
    """
    if device == "cuda" and not available:
        raise InputError("model.device: expected a GPU for `cuda`, found none. Set it to cpu.")


def _check(name: str, level: Level, found: str, remedy: str = "") -> PreflightCheck:
    return PreflightCheck(name=name, level=level, found=found, remedy=remedy)
