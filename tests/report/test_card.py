"""The model card: read by the Hub's own classes, and rendered by another Markdown library."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard, parse_eval_result_entries
from markdown_it import MarkdownIt
from msgspec.structs import replace
from ruamel.yaml import YAML
from synthetic import ROOT, make_comparison, make_protocol, put, rewrite, write_study
from synthetic_answers import HOSTILE

from ahalab.errors import InputError
from ahalab.records.answer import comparable_digest
from ahalab.records.base import decode_file, digest
from ahalab.records.comparison import Comparison
from ahalab.records.plan import EvaluationSpec, ModelSpec, TaskSpec
from ahalab.records.prompt import Selection
from ahalab.records.run import Alarm, RunRecord
from ahalab.report.card import Card, build_card
from ahalab.report.sources import read_study
from ahalab.store.layout import StudyPaths

ALL = TaskSpec(name="gsm8k", train_prompts=64, eval_prompts=400)


def with_adapters(paths: StudyPaths) -> StudyPaths:
    for weights in paths.root.glob("arms/*/seed-*"):
        put(weights / "adapter/adapter_model.safetensors", weights.name.encode())
    return paths


def card_of(paths: StudyPaths, arm: str = "correctness", seed: int = 0) -> Card:
    return build_card(read_study(paths), paths, arm, seed, ROOT)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    return with_adapters(write_study(tmp_path_factory.mktemp("results") / "synthetic"))


def load(card: Card, folder: Path) -> ModelCard:
    path = folder / "README.md"
    path.write_bytes(card.files["README.md"].encode())
    return ModelCard.load(path)


def comparison_of(paths: StudyPaths) -> Comparison:
    return decode_file(paths.comparison.read_bytes(), Comparison, "comparison.json")


def cells(text: str, first: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_hub_reads_the_numbers_of_the_comparison(study: StudyPaths, tmp_path: Path) -> None:
    data = load(card_of(study), tmp_path).data
    adapters = {
        a.metric: a for a in comparison_of(study).adapters if (a.arm, a.seed) == ("correctness", 0)
    }
    found = {r.metric_name: r.metric_value for r in data.eval_results}
    assert found == {
        "Strict accuracy, %": pytest.approx(100 * adapters["strict"].adapter_correct / 400),
        "Lenient accuracy, %": pytest.approx(100 * adapters["lenient"].adapter_correct / 400),
    }
    assert data.model_name == "synthetic-correctness-seed-0"
    assert (data.library_name, data.pipeline_tag) == ("peft", "text-generation")
    assert data.get("base_model") is None  # the organism is not on the Hub
    assert data.license == "apache-2.0"
    assert data["ahalab"]["evidence_root"] == ROOT
    assert (data["ahalab"]["arm"], data["ahalab"]["seed"]) == ("correctness", 0)


def test_the_hub_writes_the_card_again_as_it_was(study: StudyPaths, tmp_path: Path) -> None:
    card = card_of(study)
    assert str(load(card, tmp_path)) == card.files["README.md"]


def test_base_adapter_difference_and_interval_stand_in_the_table(study: StudyPaths) -> None:
    # EFFECTS: seed 0 of correctness gained 96 and lost 21 of 400, from a base of 31.2 %.
    (row,) = cells(card_of(study).files["README.md"], "strict")
    assert row[1] == "31.2 %"
    assert row[3] == "+18.8"  # (96 - 21) / 400
    assert row[5:8] == ["96", "21", "400"]


def test_adapter_and_reward_are_told_apart_in_the_studys_own_sentences(study: StudyPaths) -> None:
    text = html.unescape(card_of(study).files["README.md"])
    adapter, _, reward = text.partition("**This reward**")
    found = comparison_of(study)
    own = [a for a in found.adapters if (a.arm, a.seed) == ("correctness", 0)]
    arms = [a for a in found.arms if a.arm == "correctness" and a.primary]
    assert [a.against for a in arms] == ["base", "control"]
    assert all(a.sentence in adapter for a in own)
    assert all(a.sentence in reward for a in arms)
    assert found.floor is not None
    assert found.floor.sentence in text


def test_the_same_files_give_the_same_card(study: StudyPaths) -> None:
    assert card_of(study) == card_of(study)


@pytest.mark.parametrize(
    ("arm", "seed", "expected"),
    [
        ("none", 0, "--arm: expected one of correctness, historical, format_only, random; found"),
        ("random", 9, "--seed: expected one of 0, 1, 2; found 9"),
    ],
)
def test_an_adapter_that_the_plan_does_not_have_is_refused(
    study: StudyPaths, arm: str, seed: int, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        card_of(study, arm, seed)


def test_one_seed_claims_nothing_of_the_reward(tmp_path: Path) -> None:
    paths = with_adapters(write_study(tmp_path / "one", seeds=(0,)))
    assert "One seed: nothing here is said of the reward" in card_of(paths).files["README.md"]


def test_an_alarm_of_the_run_stands_among_the_limits(study: StudyPaths) -> None:
    assert (
        "Alarm reward-without-ability: reward rose from 0.41 to 0.93"
        in (card_of(study, "format_only", 1).files["README.md"])
    )


@pytest.mark.parametrize(
    ("model", "base", "told"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct", "huggingface.co/Qwen/Qwen2.5"),
        ("/home/someone/models/mine", None, "a folder of the trainer's machine, `mine`"),
    ],
)
def test_only_a_base_on_the_hub_is_named_to_the_hub(
    tmp_path: Path, model: str, base: str | None, told: str
) -> None:
    paths = with_adapters(write_study(tmp_path / "results", model=ModelSpec(id=model)))
    card = card_of(paths)
    data = load(card, tmp_path).data
    assert data.base_model == base
    assert data.license is None
    assert (f"base_model:adapter:{base}" in data.tags) is (base is not None)
    assert told in card.files["README.md"]
    assert "/home/someone" not in card.files["README.md"]


def select(paths: StudyPaths, available: int, commit: str | None) -> None:
    selection = decode_file(paths.prompt_report.read_bytes(), Selection, "selection.json")
    changes: dict[str, Any] = {"available": {"train": 7473, "eval": available}}
    if commit is not None:
        changes["origin"] = {"dataset": "openai/gsm8k", "commit": commit, "datasets": "4.0"}
    rewrite(paths.prompt_report, replace(selection, **changes))


def test_a_whole_benchmark_of_the_hub_gets_an_entry_for_its_leaderboard(tmp_path: Path) -> None:
    paths = with_adapters(write_study(tmp_path / "results", task=ALL))
    select(paths, 400, "a" * 40)
    card = card_of(paths)
    assert card.no_entry is None
    tree = YAML(typ="safe").load(io.StringIO(card.files[".eval_results/gsm8k.yaml"]))
    (entry,) = parse_eval_result_entries(tree)
    assert (entry.dataset_id, entry.task_id) == ("openai/gsm8k", "gsm8k")
    assert entry.dataset_revision == "a" * 40
    assert entry.value == pytest.approx(31.2 + 100 * (96 - 21) / 400, abs=0.1)
    data = load(card, tmp_path).data
    assert data.datasets == ["openai/gsm8k"]
    assert {(r.dataset_type, r.dataset_split) for r in data.eval_results} == {
        ("openai/gsm8k", "test")
    }


@pytest.mark.parametrize(
    ("task", "available", "commit", "expected"),
    [
        (ALL, 1319, "a" * 40, "400 of the benchmark's 1319 questions were asked, not all"),
        (ALL, 400, None, "the questions were not read from the Hub"),
        (None, 400, "a" * 40, "the questions are of no benchmark of the Hub (openai/gsm8k)"),
    ],
)
def test_anything_less_gets_none_and_says_why(
    tmp_path: Path, task: TaskSpec | None, available: int, commit: str | None, expected: str
) -> None:
    paths = with_adapters(
        write_study(tmp_path / "results", **({} if task is None else {"task": task}))
    )
    select(paths, available, commit)
    card = card_of(paths)
    assert card.no_entry == expected
    assert list(card.files) == ["README.md"]


EVIL = "\n".join(HOSTILE) + "\n```\n---\nlicense: evil\n---\n# Heading\n![x](http://evil.example/x)"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    """A study in which every text that others wrote is hostile."""
    root = tmp_path_factory.mktemp("results") / "hostile"
    task = TaskSpec(
        name="jsonl", path=EVIL, train_prompts=64, eval_prompts=400,
        template=EVIL + "{question}", system=EVIL, scoring="gsm8k",
    )  # fmt: skip
    paths = write_study(
        root,
        task=task,
        model=ModelSpec(id=f"/x/{EVIL.replace('/', '')}"),
        evaluation=EvaluationSpec(max_new_tokens=9),
    )
    for path in paths.root.glob("arms/*/seed-*/run.json"):
        record = decode_file(path.read_bytes(), RunRecord, "run.json")
        alarm = Alarm(name="x", evidence=EVIL, remedy=EVIL)
        rewrite(
            path,
            replace(
                record, alarms=(alarm,), versions={"torch": EVIL}, device=EVIL, model_revision=EVIL,
                adapter_digest=EVIL, base_digest=EVIL, started_utc=EVIL, components={EVIL: 1.0},
                effective_lora={"r": EVIL, "target_modules": [EVIL]},
            ),
        )  # fmt: skip
    comparison = comparison_of(paths)
    adapters = tuple(replace(a, sentence=EVIL) for a in comparison.adapters)
    arms = tuple(replace(a, sentence=EVIL) for a in comparison.arms)
    rewrite(paths.comparison, replace(comparison, adapters=adapters, arms=arms))
    return with_adapters(paths)


def test_hostile_texts_break_neither_metadata_nor_markup(
    hostile: StudyPaths, tmp_path: Path
) -> None:
    card = card_of(hostile)
    loaded = load(card, tmp_path)
    assert loaded.data.license is None
    assert set(loaded.data.to_dict()) == {
        "library_name", "metrics", "pipeline_tag", "tags", "ahalab", "model-index",
    }  # fmt: skip
    assert str(loaded) == card.files["README.md"]
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(loaded.text)
    every = [*tokens, *(inner for token in tokens for inner in token.children or ())]
    kinds = {token.type for token in every}
    assert not kinds & {"html_block", "html_inline", "image", "link_open", "hr", "code_block"}
    headings = [t for t in tokens if t.type == "heading_open"]
    assert len(headings) == 6  # the card's own
    fences = [token for token in tokens if token.type == "fence"]
    assert [fence.info for fence in fences] == ["text", "sh", "python"]
    assert "license: evil" in fences[0].content
    compile(fences[2].content, "snippet", "exec")  # Python, whatever stands in the plan


def test_hostile_characters_are_written_out(hostile: StudyPaths) -> None:
    text = card_of(hostile).files["README.md"]
    assert not set(text) & set("\x1b\x07\x9b\x00\x7f\r\u202e\u2066\u200b")
    assert "\\u202e" in text


def test_what_synthetic_studies_are_made_of_is_one_protocol(study: StudyPaths) -> None:
    plan = read_study(study).plan
    expected = comparable_digest(make_protocol(plan))
    assert make_comparison(plan, expected).plan_digest == digest(plan)
