"""Every backend keeps the same promises; what can't run here is skipped with the reason."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest
from endpoint_server import Weights, serving
from msgspec.structs import replace

from ahalab.evaluate.backends import Backend, Batch, Side
from ahalab.evaluate.backends.choice import make_backend, tokenizer_of
from ahalab.plan.endpoint import backend_name
from ahalab.plan.load import parse_plan
from ahalab.records.plan import Plan
from ahalab.store.models import organism_folder
from ahalab.tasks.prepare import read_prompts
from ahalab.verify.protocols import DECODERS, device_of, generation_of, tells_ids
from lab import PLAN, Trained

pytestmark = pytest.mark.train
SIDES = ("base", "arms/historical/seed-1", "arms/random/seed-1")
ENDPOINT = (
    'backend: openai, endpoint: {{url: "{url}", base: base, adapter: "{{arm}}-seed-{{seed}}", '
)


def chosen(name: str, url: str) -> Plan:
    told = {
        "transformers": "backend: transformers",
        "vllm": "backend: vllm",
        "openai": ENDPOINT.format(url=url) + "dialect: openai}",
        "openai with token ids": ENDPOINT.format(url=url) + "dialect: vllm}",
    }[name]
    text = PLAN.replace("replay: true", told)
    return parse_plan(text.replace("{id: organism}", "{id: organism, device: cuda}")
                      if name == "vllm" else text, "study.yaml")  # fmt: skip


@pytest.fixture(scope="module", params=["transformers", "openai", "openai with token ids", "vllm"])
def made(request: pytest.FixtureRequest, trained: Trained) -> Iterator[tuple[Plan, Backend]]:
    name: str = request.param
    if name == "vllm" and importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (it needs CUDA): pip install 'ahalab[vllm]'")
    if not name.startswith("openai"):
        plan = chosen(name, "")
        yield plan, make_backend(plan, organism_folder(), tokenizer_of(plan, organism_folder()))
        return
    with serving(Weights(trained.plan, trained.paths)) as endpoint:
        plan = chosen(name, endpoint.url)
        yield plan, make_backend(plan, organism_folder(), tokenizer_of(plan, organism_folder()))


@pytest.fixture(scope="module")
def batch(trained: Trained) -> Batch:
    return Batch(tuple((p, 0) for p in read_prompts(trained.paths, "eval")[:3]), 11)


def side(trained: Trained, name: str) -> Side:
    return Side(name, None if name == "base" else trained.paths.root / name / "adapter")


def test_its_facts_are_what_the_verifier_expects_of_the_plan(made: tuple[Plan, Backend]) -> None:
    plan, backend = made
    facts = backend.facts
    assert facts.name == backend_name(plan)
    assert facts.decoder in DECODERS[facts.name]
    assert facts.device == device_of(plan)
    assert facts.generation.items() >= generation_of(plan).items()
    assert facts.generation["eos_token_id"] == [1]
    assert all(isinstance(value, str) for value in facts.versions.values())


def test_every_side_answers_every_question_in_order(
    made: tuple[Plan, Backend], trained: Trained, batch: Batch
) -> None:
    plan, backend = made
    backend.serve([side(trained, name) for name in SIDES])
    together = backend.generate(batch)
    assert [len(found) for found in together] == [3, 3, 3]
    for completion in (c for found in together for c in found):
        assert completion.finish in ("eos", "length")
        assert (completion.ids is not None) == tells_ids(plan)
        if completion.ids is not None:
            assert (completion.ids[-1] == 1) == (completion.finish == "eos")
    for name, found in zip(SIDES, together, strict=True):  # in fp32 company changes nothing
        backend.serve([side(trained, name)])
        assert backend.generate(batch) == [found]


def test_a_batch_asked_twice_is_answered_alike_and_alone_as_in_company(
    made: tuple[Plan, Backend], trained: Trained, batch: Batch
) -> None:
    _, backend = made
    backend.serve([side(trained, SIDES[1])])
    first = backend.generate(batch)
    assert backend.generate(batch) == first
    alone = [backend.generate(replace_asked(batch, at))[0][0] for at in range(3)]
    assert alone == first[0]


def replace_asked(batch: Batch, at: int) -> Batch:
    return Batch(batch.asked[at : at + 1], batch.seed)


def test_a_plan_without_a_backend_takes_transformers_and_keeps_its_digest() -> None:
    plan = parse_plan(PLAN, "study.yaml")
    assert backend_name(plan) == "transformers"
    named = parse_plan(PLAN.replace("replay: true", "replay: true, backend: transformers"), "s")
    assert replace(plan.evaluation, backend="transformers") == named.evaluation
