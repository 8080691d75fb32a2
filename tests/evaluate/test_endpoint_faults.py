"""An endpoint over real HTTP on loopback, with the organism behind it, that fails in every way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoint_server import Endpoint, Weights, serving

from ahalab.errors import AhaLabError, IncompleteError, InputError, MissingError
from ahalab.evaluate.backends import Batch, Kept, Side
from ahalab.evaluate.backends.local_tokenizer import LocalTokenizer
from ahalab.evaluate.backends.openai import OpenAIBackend
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.store.models import organism_folder
from ahalab.tasks.generation import Completion
from ahalab.tasks.questions import load_questions
from ahalab.tasks.render import render
from lab import PLAN, plan_of

pytestmark = pytest.mark.train
FORMS = [(api, dialect) for api in ("completions", "chat") for dialect in ("openai", "vllm")]


def plan_for(url: str, text: str = PLAN, **fields: object) -> Plan:
    """Return the tiny plan with its answers from an endpoint."""
    given = {"url": url, "base": "base", "adapter": "{arm}-seed-{seed}", "max_retries": 3, **fields}
    told = json.dumps(given)
    assert "replay: true" in text
    return plan_of(text.replace("replay: true", f"backend: openai, endpoint: {told}"))


@pytest.fixture(scope="module")
def weights() -> Weights:
    pytest.importorskip("torch")
    return Weights(plan_of(), None)


@pytest.fixture(scope="module")
def served(weights: Weights) -> Iterator[Endpoint]:
    with serving(weights) as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(served: Endpoint) -> Endpoint:
    served.reset()
    return served


@pytest.fixture(scope="module")
def batch(weights: Weights) -> Batch:
    task = plan_of().task
    asked = []
    questions = load_questions(task, "eval")[:4]
    rendered = render(weights.tokenizer, task, [question.question for question in questions])
    for number, (question, ids) in enumerate(zip(questions, rendered, strict=True)):
        prompt = Prompt(
            prompt_id=f"{number:05d}", question=question.question, gold=question.gold,
            source="here", split="eval", prompt_ids=ids, prompt_tokens=len(ids),
        )  # fmt: skip
        asked.append((prompt, 0))
    return Batch(tuple(asked), 7)


@pytest.fixture(scope="module")
def expected(weights: Weights, batch: Batch) -> list[Completion]:
    """What the transformers backend answers, the rows in one batch."""
    return weights.backend.generate(batch)[0]


def backend_of(plan: Plan, kept: Kept | None = None) -> OpenAIBackend:
    backend = OpenAIBackend(plan, LocalTokenizer(organism_folder()))
    backend.serve([Side("base", None, kept)])
    return backend


def ask(plan: Plan, batch: Batch, kept: Kept | None = None) -> list[Completion]:
    backend = backend_of(plan, kept)
    try:
        return backend.generate(batch)[0]
    finally:
        backend.close()


def refusal(kind: type[AhaLabError], plan: Plan, batch: Batch) -> str:
    with pytest.raises(kind) as caught:
        ask(plan, batch)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600
    return text


@pytest.mark.parametrize(("api", "dialect"), FORMS)
def test_greedy_answers_are_those_of_the_transformers_backend(
    endpoint: Endpoint, batch: Batch, expected: list[Completion], api: str, dialect: str
) -> None:
    found = ask(plan_for(endpoint.url, api=api, dialect=dialect), batch)
    assert [(c.text, c.finish) for c in found] == [(c.text, c.finish) for c in expected]
    known = [c.ids if dialect == "vllm" else None for c in expected]
    assert [c.ids for c in found] == known


def test_every_field_that_decides_is_sent_and_stands_in_the_protocol(
    endpoint: Endpoint, batch: Batch
) -> None:
    plan = plan_for(endpoint.url, dialect="vllm")
    backend = backend_of(plan)
    backend.generate(batch)
    body = endpoint.questions()[0]
    seed, prompt = body.pop("seed"), body.pop("prompt")
    assert body == {
        "model": "base", "max_tokens": 40, "temperature": 0.0, "top_p": 1.0, "n": 1, "stop": None,
        "stream": False, "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_k": 0,
        "min_p": 0.0, "repetition_penalty": 1.0, "min_tokens": 0, "ignore_eos": False,
        "stop_token_ids": [1], "skip_special_tokens": True, "return_token_ids": True,
    }  # fmt: skip
    assert prompt in [list(p.prompt_ids) for p, _ in batch.asked]
    assert 0 <= seed < 2**31
    assert (
        backend.facts.generation.items() >= {k: v for k, v in body.items() if k != "model"}.items()
    )
    assert backend.facts.generation["prompt"] == "token_ids"
    told = backend.facts.versions
    assert (told["server"], told["server_version"]) == ("organism", "1.2.3")
    assert told["system_fingerprint"] == "fp-1"
    assert "created" not in told["model"]  # a clock: the protocol must repeat
    assert backend_of(plan).facts == backend.facts


def test_rows_of_a_batch_have_seeds_of_their_own_that_repeat(
    endpoint: Endpoint, batch: Batch
) -> None:
    plan = plan_for(endpoint.url)
    ask(plan, batch)
    first = {json.dumps(b["prompt"]): b["seed"] for b in endpoint.questions()}
    endpoint.reset()
    ask(plan, batch)
    assert {json.dumps(b["prompt"]): b["seed"] for b in endpoint.questions()} == first
    assert len(set(first.values())) == 4
    endpoint.reset()
    ask(plan, Batch(batch.asked, 8))
    assert not {b["seed"] for b in endpoint.questions()} & set(first.values())


@pytest.mark.parametrize(
    "faults",
    [
        ["429", "500", "503"],
        ["cut", "drop", "half a JSON"],
        ["no choices", "no finish", "no text"],
        ["hang"],
    ],
    ids=" ".join,
)
def test_what_may_pass_is_tried_again_and_nothing_is_lost_or_doubled(
    endpoint: Endpoint, batch: Batch, expected: list[Completion], faults: list[str]
) -> None:
    endpoint.faults = list(faults)
    found = ask(plan_for(endpoint.url, timeout_s=1.5), batch)
    assert [c.text for c in found] == [c.text for c in expected]
    assert endpoint.faults == []
    assert len(endpoint.questions()) == 4 + len(faults)


def test_a_rate_limit_holds_every_request_as_long_as_the_server_asks(
    endpoint: Endpoint, batch: Batch
) -> None:
    endpoint.faults = ["429 wait"]
    backend = backend_of(plan_for(endpoint.url, concurrency=1))
    began = time.monotonic()
    backend.generate(batch)
    assert time.monotonic() - began >= 1.0


def test_a_pause_of_a_day_ends_the_run_with_what_to_do(endpoint: Endpoint, batch: Batch) -> None:
    endpoint.faults = ["429 day"]
    text = refusal(IncompleteError, plan_for(endpoint.url, concurrency=1), batch)
    assert "Retry-After: 86400 s" in text
    assert "nothing is lost" in text


def test_the_plans_limit_of_tries_ends_in_one_line(endpoint: Endpoint, batch: Batch) -> None:
    endpoint.faults = ["500"] * 3
    text = refusal(IncompleteError, plan_for(endpoint.url, concurrency=1, max_retries=2), batch)
    assert "expected a reply within 3 tries, found status 500 (oops)" in text
    assert "resume" in text
    assert len(endpoint.questions()) == 3


@pytest.mark.parametrize(
    ("fault", "told"), [("400", "max_tokens is too large"), ("501", "Unsupported method")]
)
def test_what_the_server_refuses_is_not_asked_twice_and_its_words_do_no_harm(
    endpoint: Endpoint, batch: Batch, fault: str, told: str
) -> None:
    endpoint.faults = [fault]
    text = refusal(InputError, plan_for(endpoint.url, concurrency=1), batch)
    assert f"status {fault}" in text
    assert told in text
    assert len(endpoint.questions()) == 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("other fingerprint", "expected system_fingerprint 'fp-1' as at the start, found 'fp-2'"),
        ("other prompt", "expected prompt 00000 read as its"),
        ("other ids", "expected the text of the token ids under the base's tokenizer"),
        ("no end", "expected token ids that end as finish_reason says"),
    ],
)
def test_a_server_that_reads_or_writes_other_tokens_is_refused(
    endpoint: Endpoint, batch: Batch, fault: str, told: str
) -> None:
    endpoint.faults = [fault]
    plan = plan_for(endpoint.url, dialect="vllm", concurrency=1)
    assert told in refusal(InputError, plan, batch)


def test_a_filtered_text_is_kept_and_called_so(endpoint: Endpoint, batch: Batch) -> None:
    endpoint.faults = ["filtered"]
    found = ask(plan_for(endpoint.url, concurrency=1), batch)
    assert found[0].finish == "content_filter"
    assert "content_filter" not in [c.finish for c in found][1:]


def test_a_model_that_is_not_served_is_missing_and_the_served_ones_are_named(
    endpoint: Endpoint, batch: Batch
) -> None:
    text = refusal(MissingError, plan_for(endpoint.url, base="llama"), batch)
    assert "expected the model 'llama'" in text
    assert "found base" in text
    with pytest.raises(MissingError, match="random-seed-1"):
        backend_of(plan_for(endpoint.url)).serve([Side("arms/random/seed-1")])


def test_a_server_that_is_not_there_is_resumable(batch: Batch) -> None:
    text = refusal(IncompleteError, plan_for("http://127.0.0.1:9/v1", max_retries=0), batch)
    assert "ConnectError" in text
    assert "evaluation.endpoint.url" in text


def test_the_key_comes_from_the_environment_and_stands_in_no_message(
    endpoint: Endpoint, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(endpoint.url, api_key_env="AHALAB_TEST_KEY")
    assert "AHALAB_TEST_KEY" in refusal(MissingError, plan, batch)
    endpoint.key = "right-key-9"
    monkeypatch.setenv("AHALAB_TEST_KEY", "wrong-key-7")
    text = refusal(InputError, plan, batch)
    assert "status 401" in text
    assert "Incorrect API key provided: Bearer ***" in text
    assert "wrong-key-7" not in text
    monkeypatch.setenv("AHALAB_TEST_KEY", "right-key-9")
    assert len(ask(plan, batch)) == 4
    assert "right-key-9" not in repr(backend_of(plan).facts)


# What was answered is never asked again -----------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    journal = tmp_path / "answers.journal.jsonl"
    journal.write_bytes(b'{"kind":"head"}\n{"kind":"attempt","utc":"1"}\n')
    return Kept(tmp_path / "work" / "replies.jsonl", journal)


def test_after_a_failure_only_what_is_missing_is_asked(
    endpoint: Endpoint, batch: Batch, expected: list[Completion], kept: Kept
) -> None:
    plan = plan_for(endpoint.url, concurrency=1, max_retries=0)
    endpoint.faults = ["", "", "500"]
    with pytest.raises(IncompleteError):
        ask(plan, batch, kept)
    assert endpoint.answered == 2
    endpoint.reset()
    found = ask(plan, batch, kept)
    assert [c.text for c in found] == [c.text for c in expected]
    assert endpoint.answered == 2


def test_a_torn_reply_is_cut_and_asked_again(
    endpoint: Endpoint, batch: Batch, expected: list[Completion], kept: Kept
) -> None:
    plan = plan_for(endpoint.url, dialect="vllm")
    ask(plan, batch, kept)
    whole = kept.path.read_bytes()
    for cut in (1, len(whole.splitlines()[-1]), len(whole.splitlines()[-1]) + 1):
        kept.path.write_bytes(whole[:-cut])
        endpoint.reset()
        found = ask(plan, batch, kept)
        assert found == expected
        assert endpoint.answered == 1
        assert sorted(kept.path.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_replies_of_answers_that_were_removed_are_not_taken_for_new_ones(
    endpoint: Endpoint, batch: Batch, kept: Kept
) -> None:
    plan = plan_for(endpoint.url)
    ask(plan, batch, kept)
    kept.journal.write_bytes(b'{"kind":"head"}\n{"kind":"attempt","utc":"2"}\n')
    endpoint.reset()
    ask(plan, batch, kept)
    assert endpoint.answered == 4


def test_damage_within_the_kept_replies_is_named(
    endpoint: Endpoint, batch: Batch, kept: Kept
) -> None:
    plan = plan_for(endpoint.url)
    ask(plan, batch, kept)
    lines = kept.path.read_bytes().splitlines(keepends=True)
    kept.path.write_bytes(lines[0] + b'{"request":1}\n' + b"".join(lines[2:]))
    with pytest.raises(InputError, match=r"replies\.jsonl:2: expected a reply"):
        ask(plan, batch, kept)


def test_an_evaluation_by_an_endpoint_imports_no_torch(endpoint: Endpoint) -> None:
    program = (
        "import sys\n"
        "from ahalab.evaluate.backends.choice import make_backend, tokenizer_of\n"
        "from ahalab.evaluate.pair import Evaluation\n"
        "from ahalab.plan.load import parse_plan\n"
        "from ahalab.store.models import organism_folder\n"
        "plan = parse_plan(sys.stdin.read(), 'study.yaml')\n"
        "made = make_backend(plan, organism_folder(), tokenizer_of(plan, organism_folder()))\n"
        "print(made.facts.name, [m for m in ('torch', 'transformers') if m in sys.modules])\n"
    )
    text = PLAN.replace(
        "replay: true",
        f'backend: openai, endpoint: {{url: "{endpoint.url}", base: base, '
        'adapter: "{arm}-seed-{seed}"}',
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=False,
        timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout == "openai []\n", done.stderr
