"""Validation at checkpoints: real runs, killed ones, and training that does not notice."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ahalab.records.base import decode_file
from ahalab.records.diagnostics import Diagnostics
from ahalab.records.validation import ValidationAnswer
from ahalab.scoring.answers import Asked, score_answer
from ahalab.store.layout import RunPaths, StudyPaths
from ahalab.store.models import end_ids, load_model, organism_folder, quiet_libraries
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.train.checkpoints import MARKER
from ahalab.verify.study import verify_study
from lab import (
    PLAN,
    REPEATED,
    Answerer,
    Command,
    Trained,
    WarmLab,
    batches_in,
    kinds,
    plan_of,
    repeated_bytes,
    write_plan,
)

pytestmark = pytest.mark.train
ASKING = PLAN + "validation: {prompts: 9, batch_size: 4}\n"
Fresh = Callable[..., Trained]


def answers_of(run: RunPaths) -> list[ValidationAnswer]:
    return [row for _, row in read_rows(run.validation, ValidationAnswer)]


def all_bytes(run: RunPaths) -> dict[str, bytes]:
    return {**repeated_bytes(run), "validation.jsonl": run.validation.read_bytes()}


@pytest.fixture(scope="module")
def validated(warm: WarmLab, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A whole study with validation that nobody disturbed."""
    folder = tmp_path_factory.mktemp("validated")
    plan_file, results = write_plan(folder, ASKING), folder / "results"
    train = ("train", plan_file, "--out", results, "--seed", 1)
    warm.run(*train, "--arm", "historical")
    warm.run(*train, "--arm", "random", "--like", results / "tiny/arms/historical/seed-1")
    for stage in ("evaluate", "replay", "report"):
        warm.run(stage, results / "tiny")
    return Trained(plan_of(ASKING), plan_file, StudyPaths(folder / "results" / "tiny"))


def test_every_checkpoint_asks_every_prompt_once_shorter_ones_first(validated: Trained) -> None:
    prompts = read_prompts(validated.paths, "validation")
    assert [p.split for p in prompts] == ["validation"] * 9
    order = [p.prompt_id for p in sorted(prompts, key=lambda p: p.prompt_tokens)]
    for arm in ("historical", "random"):
        run = validated.run(arm)
        found = [(row.step, row.prompt_id) for row in answers_of(run)]
        assert found == [(step, prompt) for step in (2, 4, 6) for prompt in order]
        journal = journal_path(run.validation)
        assert kinds(journal) == ["head", "attempt", *["batch"] * 3, "seal"]


def test_its_questions_are_in_no_other_split(validated: Trained) -> None:
    sets = [
        {p.question for p in read_prompts(validated.paths, split)}  # type: ignore[arg-type]
        for split in ("train", "eval", "validation")
    ]
    assert len(set.union(*sets)) == 12 + 12 + 9


def test_training_is_the_same_to_the_byte_with_and_without_it(
    validated: Trained, trained: Trained
) -> None:
    for arm in ("historical", "random"):
        with_, without = (repeated_bytes(study.run(arm)) for study in (validated, trained))
        for name in set(REPEATED) - {"diagnostics.json"}:
            assert with_[name] == without[name], name
        assert not trained.run(arm).validation.exists()
        assert b"validation" not in without["diagnostics.json"]
    for split in ("train", "eval"):
        paths = [study.paths.prompts(split) for study in (validated, trained)]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert not trained.paths.prompts("validation").exists()


def test_the_adapter_answers_as_it_stands_and_as_the_evaluation_lets_it_answer(
    warm: WarmLab, tmp_path: Path
) -> None:
    text = ASKING.replace("learning_rate: 1e-4", "learning_rate: 1e-2")
    plan_file = write_plan(tmp_path, text)
    warm.run("train", plan_file, "--out", tmp_path / "results", "--arm", "historical", "--seed", 1)
    paths = StudyPaths(tmp_path / "results" / "tiny")
    rows = answers_of(paths.run("historical", 1))
    by_step = {step: [r for r in rows if r.step == step] for step in (2, 4, 6)}
    prompts = {p.prompt_id: p for p in read_prompts(paths, "validation")}
    generator = Answerer(plan_of(text), organism_folder())

    def asked_again() -> list[tuple[str, tuple[int, ...], str]]:
        order = [prompts[row.prompt_id].prompt_ids for row in by_step[6]]
        batches = (order[:4], order[4:8], order[8:])
        return [(c.text, c.ids, c.finish) for b in batches for c in generator.generate(b, 0)]

    written = {
        step: [(r.completion, r.completion_ids, r.finish) for r in by_step[step]]
        for step in by_step
    }
    base = asked_again()
    assert base != written[2] != written[6] != base
    generator.use_adapter(paths.run("historical", 1).adapter)
    assert asked_again() == written[6]
    for row in rows:
        score = score_answer(
            row.completion, prompts[row.prompt_id].gold, row.finish, Asked("hashes")
        )
        assert (row.strict, row.lenient) == (score.strict.outcome, score.lenient.outcome)


def test_the_summary_and_diagnose_tell_accuracy_by_checkpoint(
    validated: Trained, warm: WarmLab
) -> None:
    run = validated.run("historical")
    summary = decode_file(run.diagnostics.read_bytes(), Diagnostics, "diagnostics.json")
    points = summary.validation or ()
    assert [(p.step, p.prompts) for p in points] == [(2, 9), (4, 9), (6, 9)]
    for point in points:
        rows = [row for row in answers_of(run) if row.step == point.step]
        assert point.strict_fraction == sum(r.strict == "correct" for r in rows) / 9
        assert point.lenient_fraction == sum(r.lenient == "correct" for r in rows) / 9
        assert point.truncated_fraction == sum(r.finish == "length" for r in rows) / 9
    assert 0 < points[0].lenient_fraction < 1
    said = warm.run("diagnose", run.folder)
    assert "validation: after step" in said


def test_the_study_verifies(validated: Trained) -> None:
    verification = verify_study(validated.paths.root)
    failed = [(c.name, c.failures) for c in verification.checks if c.status == "failed"]
    assert (verification.result, failed) == ("PASSED", [])


# Kills --------------------------------------------------------------------------------------------


def begin(warm: WarmLab, study: Trained) -> Command:
    out = study.paths.root.parent
    return warm.start("train", study.plan_file, "--out", out, "--arm", "historical", "--seed", 1)


def checkpoint(study: Trained, step: int) -> Path:
    return study.paths.work / "checkpoints/arms/historical/seed-1" / f"checkpoint-{step}"


def committed(study: Trained) -> int:
    return batches_in(journal_path(study.run("historical").validation))


INSTANTS: dict[str, Callable[[Trained], bool]] = {
    "while the second checkpoint is validated": lambda s: (
        (checkpoint(s, 4) / "trainer_state.json").exists() and committed(s) == 1
    ),
    "once its answers are committed": lambda s: committed(s) == 2,
    "past its marker": lambda s: (checkpoint(s, 4) / MARKER).exists(),
    "past the last marker": lambda s: (checkpoint(s, 6) / MARKER).exists(),
}


@pytest.mark.parametrize("instant", INSTANTS)
def test_killed_and_resumed_it_leaves_the_bytes_of_an_undisturbed_run(
    warm: WarmLab, validated: Trained, fresh: Fresh, instant: str
) -> None:
    study = fresh(ASKING)
    assert begin(warm, study).kill_when(lambda: INSTANTS[instant](study)) == -signal.SIGKILL
    command = begin(warm, study)
    assert command.finish() == 0, command.text()
    assert all_bytes(study.run("historical")) == all_bytes(validated.run("historical"))
    assert kinds(journal_path(study.run("historical").validation))[-1] == "seal"


# The model in training is left as it was ----------------------------------------------------------


class Kept:
    """Stands for the writer of the rows."""

    def __init__(self) -> None:
        self.rows: list[ValidationAnswer] = []

    def append(self, rows: list[ValidationAnswer]) -> None:
        self.rows += rows


@pytest.fixture
def adapted() -> Any:
    from peft import LoraConfig, get_peft_model

    model = load_model(plan_of(ASKING).model, organism_folder())
    with quiet_libraries():
        return get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", lora_dropout=0.5))


def ask(validated: Trained, model: Any) -> list[ValidationAnswer]:
    from ahalab.tasks.render import load_tokenizer
    from ahalab.train.ranks import ALONE
    from ahalab.train.validation import Validator, questions_of

    plan, kept = validated.plan, Kept()
    tokenizer = load_tokenizer(organism_folder())
    prompts = read_prompts(validated.paths, "validation")
    ends = end_ids(model.get_base_model(), tokenizer)
    assert plan.validation
    Validator(
        questions_of(plan, plan.validation, prompts),
        tokenizer,
        ends,
        writer=kept,  # type: ignore[arg-type]
        ranks=ALONE,
    )(model, 2)
    return kept.rows


def test_modes_generators_and_configuration_are_left_as_they_were(
    validated: Trained, adapted: Any
) -> None:
    import numpy as np
    import torch

    adapted.train()
    frozen = next(m for m in adapted.modules() if type(m).__name__ == "Dropout")
    frozen.eval()  # modes need not be alike
    modes = [m.training for m in adapted.modules()]
    held = adapted.get_base_model().generation_config
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    assert len(ask(validated, adapted)) == 9
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before[1:]  # type: ignore[index,union-attr]
    assert [m.training for m in adapted.modules()] == modes
    assert adapted.get_base_model().generation_config is held
    assert all(p.grad is None for p in adapted.parameters())
    assert not any(p.is_inference() for p in (*adapted.parameters(), *adapted.buffers()))


def fail(model: Any) -> None:
    assert not model.training
    raise RuntimeError


def test_they_are_left_so_when_generation_fails_too(adapted: Any) -> None:
    from transformers import GenerationConfig

    from ahalab.train.validation import undisturbed

    adapted.train()
    held = adapted.get_base_model().generation_config
    with pytest.raises(RuntimeError), undisturbed(adapted, GenerationConfig()):
        fail(adapted)
    assert all(m.training for m in adapted.modules())
    assert adapted.get_base_model().generation_config is held


def test_what_the_models_own_configuration_sets_does_not_slip_in(
    validated: Trained, adapted: Any
) -> None:
    plain = ask(validated, adapted)
    config = adapted.get_base_model().generation_config
    config.do_sample, config.repetition_penalty, config.max_new_tokens = True, 9.0, 3
    assert ask(validated, adapted) == plain
