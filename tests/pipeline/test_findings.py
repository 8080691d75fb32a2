"""Each line of pre-flight, in order and not: what was found, what to do. Nothing trains here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ahalab.errors import InputError
from ahalab.pipeline.findings import (
    adapter_fits,
    arms_survive,
    base_answers,
    gold_is_all,
    memory_fits,
    prompts_fit,
    require_device,
    splits_apart,
    trackers_there,
    turn_ends,
    words_apart,
)
from ahalab.records.plan import ArmSpec
from ahalab.records.preflight import BaseProbe, MemoryEstimate, MemoryPart, PreflightCheck
from ahalab.records.prompt import Dropped, Prompt, Selection
from ahalab.scoring.arms import resolve_arm
from ahalab.tasks.prepare import DrawnPrompts
from lab import PLAN, plan_of


def prompts(lengths: list[int], split: str, first: str = "") -> list[Prompt]:
    return [
        Prompt(
            prompt_id=f"{n}", question=f"{first}{split} {n}", gold="1", source=f"{split}:{n}",
            split=split, prompt_ids=(1,) * length, prompt_tokens=length,
        )
        for n, length in enumerate(lengths)
    ]  # fmt: skip


def drawn(train: list[int], evaluation: list[int], dropped: int = 0) -> DrawnPrompts:
    gone = tuple(Dropped(split="train", source="x", reason="long") for _ in range(dropped))
    counts = {"train": len(train) + dropped, "eval": len(evaluation)}
    selection = Selection(plan_digest="", available=counts, drawn=counts, dropped=gone)
    kept = {"train": prompts(train, "train"), "eval": prompts(evaluation, "eval")}
    return DrawnPrompts(kept, selection)


def probe(cut: int = 0, unfinished: int = 0, strict: int = 4, lenient: int = 6) -> BaseProbe:
    return BaseProbe(
        prompts=8, samples=2, max_new_tokens=40, cut=cut, unfinished=unfinished, strict=strict,
        lenient=lenient, seconds=60.0,
    )  # fmt: skip


def estimate(size: int, available: int | None, processes: int = 1) -> MemoryEstimate:
    parts = (MemoryPart(name="weights", bytes=size, basis=""),)
    return MemoryEstimate(parts=parts, bytes=size, processes=processes, available_bytes=available)


def told(check: PreflightCheck, level: str, *texts: str) -> None:
    assert check.level == level, check
    assert bool(check.remedy) == (level != "ok"), check
    for text in texts:
        assert text in f"{check.found} {check.remedy}", check


# A completion takes 40 tokens in the plan, in training and in the evaluation.
@pytest.mark.parametrize(
    ("found", "context", "level", "text"),
    [
        (drawn([20, 30], [25]), None, "ok", "2 train, 0 dropped, longest 30 tokens; 1 eval, 0"),
        (drawn([20, 30], [25]), 70, "ok", "none is cut"),
        (drawn([20, 30], [25]), 69, "warning", "up to 70 tokens, the model's context is 69"),
        (drawn([20, 30], [35]), 74, "warning", "up to 75 tokens, the model's context is 74"),
        (drawn([20, 30], [25]), 30, "refused", "task.max_prompt_tokens"),
        (drawn([20] * 9, [25], dropped=1), 70, "ok", "9 train, 1 dropped"),
        (drawn([20] * 8, [25], dropped=2), 70, "warning", "8 train, 2 dropped"),
    ],
)
def test_prompts(found: DrawnPrompts, context: int | None, level: str, text: str) -> None:
    told(prompts_fit(plan_of(), found, context), level, text)


def test_an_evaluation_question_among_the_training_questions_is_wrong_input() -> None:
    found = drawn([20, 30], [25])
    told(splits_apart(found), "ok", "none of 1 evaluation questions is among 2 for training")
    found.prompts["eval"][:] = found.prompts["train"][:1]
    with pytest.raises(InputError, match="train:0 = train:0"):
        splits_apart(found)


def test_the_template_ends_a_turn_as_generation_does_or_not() -> None:
    told(turn_ends(["<e>", "\n"], ["<e>"], True, probe()), "ok", "'<e>\\n'")
    told(
        turn_ends(["<e>"], ["<s>"], False, probe(cut=15)), "warning", "1 completions ended all the"
    )
    told(turn_ends(["<e>"], ["<s>"], False, probe(cut=16)), "refused", "set eos_token_id")
    told(turn_ends([], ["<s>"], False, probe()), "note", "writes nothing")


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (probe(cut=3), "ok"),
        (probe(cut=4), "note"),  # a quarter: above a fifth
        (probe(cut=15), "note"),
        (probe(cut=16), "refused"),
        (probe(cut=7, unfinished=9), "note"),  # not known of all
        (probe(unfinished=8), "ok"),
        (probe(unfinished=9), "note"),
    ],
)
def test_only_a_base_whose_every_answer_is_cut_is_refused(found: BaseProbe, level: str) -> None:
    truncation, _ = base_answers(found)
    told(truncation, level, f"{found.cut} of 16 completions cut at 40 tokens")


def test_of_answers_that_were_mostly_given_up_nothing_is_said() -> None:
    for check in base_answers(probe(unfinished=9, strict=0, lenient=0)):
        told(check, "note", "0 of 16 completions cut", "9 given up after 60 s", "too few")
    _, accuracy = base_answers(probe(unfinished=8, strict=0, lenient=0))
    told(accuracy, "note", "take easier questions")


@pytest.mark.parametrize(
    ("strict", "lenient", "level", "text"),
    [
        (4, 6, "ok", "4 right in the asked format, 6 however stated"),
        (0, 0, "note", "take easier questions"),
        (16, 16, "note", "take harder questions"),
        (0, 6, "note", "say the format in the prompt"),
    ],
)
def test_accuracy_is_noted_where_groups_would_be_dead(
    strict: int, lenient: int, level: str, text: str
) -> None:
    _, accuracy = base_answers(probe(strict=strict, lenient=lenient))
    told(accuracy, level, text)


def of_words(train: list[str], evaluation: list[str]) -> DrawnPrompts:
    """Return prompts of given texts, all else alike."""
    sets = {"train": train, "eval": evaluation}
    kept = {
        split: [
            replace(prompt, question=text)
            for prompt, text in zip(prompts([1] * len(texts), split), texts, strict=True)
        ]
        for split, texts in sets.items()
    }
    return DrawnPrompts(kept, drawn([1], [1]).selection)


def test_shared_words_are_told_with_examples_and_warned_of_where_they_are_many() -> None:
    line = "a farmer sells two dozen eggs a day at the market for three dollars"
    apart = [f"{n} {word} " * 9 for n, word in enumerate(["x", "y"] * 10)]
    found = words_apart(of_words([line], [*apart[:19], "so short"]))
    told(found, "ok", "0 of 19 evaluation questions", "; 1 of fewer than 8 words")
    found = words_apart(of_words([line], [*apart, f"{line} each"]))  # 1 of 21, below 5 %
    told(found, "note", "1 of 21 evaluation questions share 13 words", "1 of them at least half")
    told(found, "note", "20 and 0 (67%): 'a farmer sells two dozen", "task.max_overlap_fraction")
    told(words_apart(of_words([line], [*apart[:18], f"{line} each"])), "warning", "1 of 19")


def test_a_generated_task_that_has_a_scorer_of_its_own_is_noted() -> None:
    told(gold_is_all("n_queens", "math", True), "note", "n_queens by code of its own")
    told(gold_is_all("gcd", "math", False), "ok", "gcd")
    told(gold_is_all("countdown", "countdown", True), "ok", "compared as countdown")


def test_adapter() -> None:
    told(adapter_fits(28, 39_424, (), ("q_proj",), None), "ok", "28 layers", "39,424 parameters")
    told(
        adapter_fits(4, 9, ("k",), ("q_proj",), None), "warning", "named k", "the model has q_proj"
    )
    nothing = adapter_fits(0, 0, ("k",), ("q_proj",), "Target modules not found")
    told(nothing, "refused", "nothing to adapt is named k", "the model has q_proj")
    told(adapter_fits(0, 0, (), ("q_proj",), "not supported"), "refused", "not supported")
    assert not nothing.forcible


@pytest.mark.parametrize(
    ("size", "available", "processes", "level"),
    [
        (800, 1000, 1, "ok"),
        (801, 1000, 1, "warning"),
        (1000, 1000, 1, "warning"),
        (1001, 1000, 1, "refused"),
        (501, 1000, 2, "refused"),
        (400, 1000, 2, "ok"),
    ],
)
def test_memory_is_warned_of_above_80_percent_and_refused_above_all(
    size: int, available: int, processes: int, level: str
) -> None:
    check = memory_fits(estimate(size * 10**7, available * 10**7, processes))
    told(check, level, f"of {available / 100:.1f} GB available")
    assert check.forcible
    assert ("side by side" in check.found) == (processes == 2)


def test_memory_that_is_not_known_is_said_to_be_so() -> None:
    check = memory_fits(estimate(10**9, None))
    assert (check.level, check.remedy) == ("note", "")
    assert "not known" in check.found


def test_an_arm_that_an_attack_games_is_warned_of_and_a_control_never() -> None:
    plan = plan_of(PLAN.replace("[historical, random]", "[historical, correctness, random]"))
    paying = ("thinking-only", "right-then-changed", "right-but-cut")
    specs = [
        (ArmSpec(name="historical"), "warning"),
        (ArmSpec(name="historical", accept=paying[:1]), "warning"),
        (ArmSpec(name="historical", accept=paying), "ok"),
        (ArmSpec(name="correctness"), "ok"),
        (ArmSpec(name="random"), None),
    ]
    for spec, level in specs:
        found = arms_survive(plan, [(spec, resolve_arm(spec.name))])
        assert [check.level for check in found] == ([level] if level else [])
    told(arms_survive(plan, [(specs[0][0], resolve_arm("historical"))])[0], "warning", *paying)
    (partly,) = arms_survive(plan, [(specs[1][0], resolve_arm("historical"))])
    assert "honest wrong answer: right-then-changed" in partly.found


def test_an_own_reward_that_was_not_loaded_is_said_to_be_unattacked() -> None:
    arm = resolve_arm("mine", {"my_rewards:brief": 1.0})
    (check,) = arms_survive(plan_of(), [(ArmSpec(name="mine"), arm)])
    told(check, "note", "my_rewards:brief was not loaded", "`ahalab preflight` attacks it")


def test_trackers() -> None:
    told(trackers_there(("tensorboard",), ()), "ok", "tensorboard")
    told(trackers_there((), ()), "ok", "none")
    check = trackers_there(("wandb", "trackio"), ("wandb",))
    told(check, "refused", "names wandb, not installed", "pip install wandb")
    assert not check.forcible


def test_a_gpu_that_is_not_there_is_wrong_input() -> None:
    require_device("cpu", False)
    require_device("cuda", True)
    with pytest.raises(InputError, match="expected a GPU"):
        require_device("cuda", False)
