import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the recipe trains: it needs the [train] extra")
pytest.importorskip("transformers", reason="the recipe trains: it needs the [train] extra")

from ahalab.errors import InputError  # noqa: E402
from ahalab.organism.digests import MODEL_FOLDER, file_digests, read_digests  # noqa: E402
from ahalab.organism.measure import (  # noqa: E402
    Answer,
    answer_questions,
    load_organism,
    measure,
    measure_folder,
)
from ahalab.organism.recipe import Progress, Recipe, build, rate_fraction  # noqa: E402
from ahalab.organism.tokenizer import render_prompt  # noqa: E402
from ahalab.organism.world import Problem, draw_problems  # noqa: E402

pytestmark = pytest.mark.train

SHORT = Recipe(steps=3, batch_texts=8)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_the_packaged_model_lies_within_its_bounds_on_100_development_questions() -> None:
    model, tokenizer = load_organism(MODEL_FOLDER)
    problems = draw_problems("development", 100, 2)
    measured = measure(problems, answer_questions(model, tokenizer, [p.question for p in problems]))
    # The bounds are 15-50 % and 40-75 %; two standard errors of 100 questions are 10 points.
    assert 0.10 <= measured.strict_fraction <= 0.60
    assert 0.30 <= measured.lenient_fraction <= 0.85
    assert measured.truncated_fraction <= 0.02


def test_measuring_a_folder_counts_every_answer_greedy_and_sampled() -> None:
    seen: list[tuple[int, int]] = []
    greedy, sampled = measure_folder(MODEL_FOLDER, 20, 1, lambda *done: seen.append(done))
    assert (greedy.answers, sampled.answers) == (20, 160)
    assert seen == [(20, 20), (128, 160), (160, 160)]


def test_sampling_gives_groups_that_disagree() -> None:
    model, tokenizer = load_organism(MODEL_FOLDER)
    problems = draw_problems("development", 16, 3)
    questions = [problem.question for problem in problems for _ in range(8)]
    answers = answer_questions(model, tokenizer, questions, sampling_seed=1)
    assert measure(problems, answers).mixed_groups_fraction >= 0.5
    openings = {answer.completion.rsplit("\n", 1)[-1][:6] for answer in answers}
    assert {"#### ", "The an"} <= {opening.rstrip("0123456789") for opening in openings}


def test_the_chat_template_gives_the_prompt_that_training_used() -> None:
    _, tokenizer = load_organism(MODEL_FOLDER)
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": "2 + 3 = ?"}], tokenize=False, add_generation_prompt=True
    )
    assert rendered == render_prompt("2 + 3 = ?")


def test_the_chat_template_accepts_a_system_message() -> None:
    _, tokenizer = load_organism(MODEL_FOLDER)
    turns = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 3 = ?"}]
    rendered = tokenizer.apply_chat_template(turns, tokenize=False)
    assert rendered == "<|system|>Add.<|end|><|user|>2 + 3 = ?<|end|>"


def test_three_steps_with_one_seed_give_the_same_bytes_and_another_seed_gives_others(
    tmp_path: Path,
) -> None:
    seen: list[Progress] = []
    build(tmp_path / "a", seed=1, progress=seen.append, recipe=SHORT)
    build(tmp_path / "b", seed=1, recipe=SHORT)
    build(tmp_path / "c", seed=2, recipe=SHORT)
    assert file_digests(tmp_path / "a") == file_digests(tmp_path / "b")
    weights = [file_digests(tmp_path / name)["model.safetensors"] for name in "ac"]
    assert weights[0] != weights[1]
    assert [(p.step, p.total) for p in seen] == [(1, 3), (2, 3), (3, 3)]
    assert all(math.isfinite(p.loss) and p.steps_per_second > 0 for p in seen)
    assert seen[-1].left_seconds == 0
    assert read_digests(tmp_path / "a") == file_digests(tmp_path / "a")
    assert set(file_digests(tmp_path / "a")) == set(read_digests(MODEL_FOLDER))


def test_a_build_never_writes_over_files(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="expected no folder or an empty one"):
        build(tmp_path, recipe=SHORT)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_the_rate_rises_to_its_peak_at_the_end_of_the_warm_up_and_falls_after() -> None:
    recipe = Recipe(steps=10, warmup_fraction=0.2)
    rates = [rate_fraction(step, recipe) for step in range(1, 11)]
    assert rates == [0.5, *(pytest.approx((11 - step) / 9) for step in range(2, 11))]


def test_measuring_counts_strict_lenient_and_mixed_groups() -> None:
    problems = [Problem("a", "1", "expression", ()), Problem("b", "2", "expression", ())]
    texts = ["#### 1", "Answer: 1", "#### 2", "1 + 1 = 3, wait, 1 + 1 = 2\n#### 2"]
    measured = measure(problems, [Answer(text, 5, truncated=False) for text in texts])
    assert measured.strict_fraction == 0.75
    assert measured.lenient_fraction == 1.0
    assert measured.mixed_groups_fraction == 0.5
    assert measured.wait_fraction == 0.25
    assert measured.mean_tokens == 5


def test_answers_that_are_no_whole_groups_are_refused() -> None:
    problems = [Problem("a", "1", "expression", ()), Problem("b", "2", "expression", ())]
    with pytest.raises(ValueError, match="expected a multiple of 2 problems, found 3"):
        measure(problems, [Answer("#### 1", 3, truncated=False)] * 3)
