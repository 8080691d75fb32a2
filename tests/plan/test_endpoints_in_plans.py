"""Which backend answers, as a plan says it."""

from __future__ import annotations

import json

import pytest

from ahalab.errors import PlanError
from ahalab.plan.cells import BASE, FLOOR, find_cell
from ahalab.plan.endpoint import backend_name, model_name
from ahalab.plan.load import dump_plan, parse_plan
from ahalab.records.base import digest
from ahalab.records.plan import Plan
from lab import PLAN

GOOD = {
    "url": "http://localhost:8000/v1",
    "base": "llama",
    "adapter": "{arm}-seed-{seed}",
}
CELL = "arms/historical/seed-1"
OTHER = "arms/random/seed-1"


def plan_with(backend: str = "openai", text: str = PLAN, **fields: object) -> Plan:
    endpoint = {k: v for k, v in {**GOOD, **fields}.items() if v is not None}
    told = f"backend: {backend}, endpoint: {json.dumps(endpoint)}"
    return parse_plan(text.replace("replay: true", told), "study.yaml")


def test_a_plan_that_names_no_backend_is_what_it_was_before() -> None:
    plan = parse_plan(PLAN, "study.yaml")
    assert backend_name(plan) == "transformers"
    assert "backend" not in dump_plan(plan)
    assert "endpoint" not in dump_plan(plan)


def test_an_endpoint_reads_back_to_the_same_digest() -> None:
    plan = plan_with(api_key_env="MY_KEY", concurrency=3)
    again = parse_plan(dump_plan(plan), "study.yaml")
    assert digest(again) == digest(plan)
    assert digest(plan) != digest(plan_with())


def test_models_are_named_by_pattern_or_by_cell() -> None:
    plan = plan_with()
    assert model_name(plan, BASE) == model_name(plan, FLOOR) == "llama"
    assert model_name(plan, find_cell(plan, CELL)) == "historical-seed-1"
    plan = plan_with(adapter={CELL: "one", OTHER: "two"})
    assert model_name(plan, find_cell(plan, OTHER)) == "two"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "localhost:8000"}, "evaluation.endpoint.url: expected http"),
        ({"url": "ftp://host/v1"}, "evaluation.endpoint.url: expected http"),
        ({"url": "http:///v1"}, "evaluation.endpoint.url: expected http"),
        ({"url": "http://host:99999/v1"}, "evaluation.endpoint.url: expected http"),
        ({"url": "http://host/v1?key=sk-secret"}, "and a query"),
        ({"url": "http://me:sk-secret@host/v1"}, "expected no user or password"),
        ({"url": "http://host/v1/chat/completions"}, "Drop what follows /v1"),
        ({"concurrency": 0}, "concurrency: expected a number from 1 to 512, found 0"),
        ({"max_retries": -1}, "max_retries: expected a number from 0 to 100, found -1"),
        ({"timeout_s": 0}, "timeout_s: expected seconds above 0"),
        ({"api_key_env": "sk-secret"}, "expected the name of an environment variable"),
        ({"adapter": "mine"}, "found 'mine' for arms/historical/seed-1 and arms/random/seed-1"),
        ({"adapter": "{arm}", "base": "random"}, "found 'random' for base and arms/random/seed-1"),
        ({"adapter": {CELL: "one"}}, "found none for arms/random/seed-1"),
        ({"adapter": {CELL: "a", OTHER: "b", "arms/x/seed-1": "c"}}, "found 'arms/x/seed-1'"),
        ({"base": " "}, "expected names of models"),
        ({"base": None}, "the key `base` is missing"),
        ({"api": "embeddings"}, "evaluation.endpoint.api: invalid enum value"),
        ({"concurency": 3}, "unknown key `concurency` in evaluation.endpoint. Did you mean "
                            "`concurrency`?"),
    ],
)  # fmt: skip
def test_each_fault_of_an_endpoint_is_one_line_with_its_place(
    fields: dict[str, object], told: str
) -> None:
    with pytest.raises(PlanError) as caught:
        plan_with(**fields)
    text = str(caught.value)
    assert told in text
    assert text.startswith("study.yaml:15:")
    assert "\n" not in text
    assert "sk-secret" not in text


def test_an_endpoint_and_its_backend_come_together() -> None:
    with pytest.raises(PlanError, match="expected none with backend transformers"):
        plan_with("transformers")
    with pytest.raises(PlanError, match="expected the endpoint that backend openai asks"):
        parse_plan(PLAN.replace("replay: true", "backend: openai"), "study.yaml")


def test_vllm_needs_a_gpu() -> None:
    text = PLAN.replace("replay: true", "backend: vllm")
    with pytest.raises(PlanError, match=r"expected model\.device cuda for vllm, found cpu"):
        parse_plan(text, "study.yaml")
    plan = parse_plan(text.replace("{id: organism}", "{id: organism, device: cuda}"), "study.yaml")
    assert backend_name(plan) == "vllm"


def test_a_chat_endpoint_is_refused_where_the_template_is_handed_more_than_messages() -> None:
    text = PLAN.replace("grpo:\n", "grpo:\n  chat_template_kwargs: {enable_thinking: false}\n")
    assert backend_name(plan_with(text=text)) == "openai"
    with pytest.raises(PlanError, match=r"evaluation\.endpoint\.api: expected completions"):
        plan_with(text=text, api="chat")
