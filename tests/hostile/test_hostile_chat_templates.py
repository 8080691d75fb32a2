"""A chat template is a program by the model's author: it may fail, ask for more, or never end."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ahalab.errors import AhaLabError, InputError
from ahalab.plan.resolve import resolve
from ahalab.records.plan import ArmSpec, EvaluationSpec, ModelSpec, Plan, TaskSpec
from ahalab.store.models import organism_folder
from ahalab.tasks import chat_template, render
from ahalab.tasks.prepare import draw_prompts

pytest.importorskip("transformers")
pytestmark = pytest.mark.train
TASK = TaskSpec(name="arithmetic", train_prompts=8, eval_prompts=4)
PLAN = Plan(
    name="demo", model=ModelSpec(id="organism"), task=TASK, arms=(ArmSpec(name="random"),),
    control="random", seeds=(0,), grpo={"max_steps": 1}, lora={},
    evaluation=EvaluationSpec(max_new_tokens=8),
)  # fmt: skip
LOOPS = "{% for a in range(99999) %}" * 4 + "{% endfor %}" * 4
DOUBLED = "{% set n = namespace(v='a' * 4096) %}{% for i in range(40) %}"
DOUBLED += "{% set n.v = n.v ~ n.v %}{% endfor %}"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    shutil.copytree(organism_folder(), folder)
    return folder


@pytest.fixture
def tokenizer(base: Path) -> Any:
    return render.load_tokenizer(base)


def refused(base: Path, template: str) -> str:
    (base / "chat_template.jinja").write_text(template)
    with pytest.raises(AhaLabError) as error:
        draw_prompts(resolve(PLAN), base)
    assert type(error.value) is InputError
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ raise_exception('no\n system') }}", "no system"),
        ("{% for %}", "Expected an expression"),
        ("{{ a.b.c }}", "'a' is undefined"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ messages + 1 }}", "can only concatenate list"),
        ("{% for a in range(1000000000) %}{% endfor %}", "Range too big"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ cycler.__init__.__globals__.os.system('true') }}", "unsafe"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "maximum recursion depth"),
        ("{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}", "maximum recursion depth"),
        ("{% if 1 %}" * 100 + "{% endif %}" * 100, "too many levels of indentation"),
        (r"{{ '\ud800' }}", "surrogates not allowed"),
    ],
)
def test_a_template_that_fails_or_reaches_for_more_is_refused_in_one_line(
    base: Path, template: str, told: str
) -> None:
    said = refused(base, template)
    assert said.startswith(f"{base}: expected a chat template that takes the task's messages")
    assert told in said


@pytest.mark.parametrize(
    ("template", "found"),
    [
        (LOOPS, "none after 2 s"),
        ("{{ 9 ** (9 ** 9) }}", "none after 2 s"),  # one instruction, which no signal ends
        ("{{ 'a' * 10 ** 10 }}", "more memory asked for"),
        ("{{ '%*d' % (10 ** 10, 5) }}", "more memory asked for"),
        (DOUBLED, "more memory asked for"),
        ("{{ 'a' * 10 ** 7 }}", "one of 10000000 characters"),
    ],
)
def test_a_template_without_end_or_bounds_is_ended_and_the_next_one_is_rendered(
    base: Path, template: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = (base / "chat_template.jinja").read_text()
    draw_prompts(resolve(PLAN), base)  # the process is up
    seconds = 2 if "none" in found else 60  # how fast memory is taken depends on the machine
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", float(seconds))
    began = time.monotonic()
    said = refused(base, template)
    assert time.monotonic() - began < seconds + 30
    assert said.startswith(
        f"the model's chat template: expected prompts within {seconds} s, 1 GiB of memory and "
        f"1048576 characters beyond the messages, found {found}. Look for"
    )
    (base / "chat_template.jinja").write_text(sound)
    assert draw_prompts(resolve(PLAN), base).prompts["train"]


def test_a_process_that_a_template_brings_down_is_told_by_its_signal(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    render.render(tokenizer, TASK, ["1 + 1?"])
    child = chat_template._RENDERER.child
    assert child is not None
    threading.Timer(0.5, child.process.kill).start()
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 20.0)
    tokenizer.chat_template = LOOPS
    with pytest.raises(InputError, match=r"found that its process ended \(SIGKILL\)"):
        render.render(tokenizer, TASK, ["1 + 1?"])


def test_a_set_is_rendered_at_once_to_what_transformers_renders_one_by_one(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import tokenization_utils_base as tokenizers
    from transformers.utils.chat_template_utils import render_jinja_template

    questions = ["1 + 1?", "", "\u2028\x00 {{ 7 * 7 }} <|end|>", "é" * 3_000, "{question}"]
    task = TaskSpec(name="arithmetic", train_prompts=1, eval_prompts=1, system="Be\n brief. ")
    monkeypatch.setattr(chat_template, "REQUEST_CHARACTERS", 300)  # several requests
    found = render.render(tokenizer, task, questions)
    monkeypatch.setattr(tokenizers, "render_jinja_template", render_jinja_template)
    for question, ids in zip(questions, found, strict=True):
        asked = render.messages(task, question)
        alone = tokenizer.apply_chat_template(
            asked, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        assert ids == tuple(alone["input_ids"])
    assert render.render(tokenizer, task, []) == []


def test_a_template_that_quotes_its_messages_at_length_is_no_bomb(tokenizer: Any) -> None:
    long = "a b " * 400_000
    (ids,) = render.render(tokenizer, TASK, [long])
    assert len(ids) > 400_000


def test_trl_renders_through_the_same_door(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.data_utils import maybe_apply_chat_template

    row = {"prompt": [{"role": "user", "content": "1 + 1?"}]}
    text = maybe_apply_chat_template(row, tokenizer)["prompt"]
    assert tuple(tokenizer(text)["input_ids"]) == render.render(tokenizer, TASK, ["1 + 1?"])[0]
    tokenizer.chat_template = "{{ 'a' * 10 ** 10 }}"
    with pytest.raises(InputError, match="more memory asked for"):
        maybe_apply_chat_template(row, tokenizer)


def test_templates_are_bounded_in_any_thread(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(render.render(tokenizer, TASK, ["1 + 1?"]))
        except InputError as error:
            found.append(str(error))

    ask()
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.5)
    tokenizer.chat_template = LOOPS
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(30)
    assert "found none after 0.5 s" in str(found[-1])


def test_a_forked_child_starts_a_process_of_its_own(tokenizer: Any) -> None:
    ids = render.render(tokenizer, TASK, ["1 + 1?"])
    child = chat_template._RENDERER.child
    assert child is not None
    program = (
        "import os, sys\n"
        "from ahalab.tasks import chat_template as c\n"
        "arguments = {'chat_template': '{{ messages[0].content }}!'}\n"
        "ask = lambda: c.rendered([[{'role': 'user', 'content': 'a'}]], **arguments)[0]\n"
        "assert ask() == ['a!']\n"
        "if not os.fork():\n"
        "    os._exit(ask() != ['a!'])\n"
        "assert os.wait()[1] == 0\n"
        "assert ask() == ['a!']\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
    assert render.render(tokenizer, TASK, ["1 + 1?"]) == ids


COMMAND = "import sys; from ahalab.tasks import chat_template as c; c.RENDER_SECONDS = 5.0; "
COMMAND += "from ahalab.cli import main; sys.exit(main())"
STUDY = """
name: demo
model: {{id: {}}}
task: {{name: arithmetic, train_prompts: 8, eval_prompts: 4}}
arms: [correctness, random]
control: random
seeds: [0]
grpo: {{max_steps: 1, num_generations: 4, per_device_train_batch_size: 8}}
lora: {{r: 2, target_modules: [q_proj]}}
evaluation: {{max_new_tokens: 8}}
"""


@pytest.mark.parametrize(
    ("command", "template", "found"),
    [
        ("train", "{{ 'a' * 10 ** 10 }}", "more memory asked for"),
        # Sound for the prompts; only the pre-flight asks about an assistant's turn.
        ("preflight", "{{ messages[0].content }}{% if messages[-1].role == 'assistant' %}"
         + LOOPS + "{% endif %}", "none after 5 s"),
    ],
)  # fmt: skip
def test_a_command_that_meets_such_a_template_ends_in_one_line_and_leaves_no_process(
    tmp_path: Path, base: Path, command: str, template: str, found: str
) -> None:
    (base / "chat_template.jinja").write_text(template)
    (tmp_path / "study.yaml").write_text(STUDY.format(base))
    arguments = ["--arm", "random", "--seed", "0", "--force"] if command == "train" else []
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, command, "study.yaml", *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    (line,) = [row for row in done.stderr.splitlines() if "chat template" in row]
    assert line.startswith("ahalab: the model's chat template: expected prompts within 5 s")
    assert f"found {found}. " in line
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("results/demo/prompts/*.jsonl"))
