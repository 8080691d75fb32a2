"""A chat template is a program by the model's author: it may fail, ask for more, or never end."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from ahalab.errors import AhaLabError, InputError
from ahalab.plan.resolve import resolve
from ahalab.records.plan import ArmSpec, EvaluationSpec, ModelSpec, Plan, TaskSpec
from ahalab.store.models import organism_folder
from ahalab.tasks import render
from ahalab.tasks.prepare import draw_prompts

pytest.importorskip("transformers")
pytestmark = pytest.mark.train
TASK = TaskSpec(name="arithmetic", train_prompts=8, eval_prompts=4)
PLAN = Plan(
    name="demo", model=ModelSpec(id="organism"), task=TASK, arms=(ArmSpec(name="random"),),
    control="random", seeds=(0,), grpo={"max_steps": 1}, lora={},
    evaluation=EvaluationSpec(max_new_tokens=8),
)  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    shutil.copytree(organism_folder(), folder)
    return folder


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
    ],
)
def test_a_template_that_fails_or_reaches_for_more_is_refused_in_one_line(
    base: Path, template: str, told: str
) -> None:
    said = refused(base, template)
    assert said.startswith(f"{base}: expected a chat template that takes the task's messages")
    assert told in said


def test_a_template_of_nested_loops_is_ended_after_its_time(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "RENDER_SECONDS", 0.3)
    loops = "{% for a in range(99999) %}" * 4 + "{% endfor %}" * 4
    before, began = signal.getsignal(signal.SIGALRM), time.monotonic()
    said = refused(base, loops)
    assert "the model's chat template: expected a prompt within 0.3 s, found none" in said
    assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_sound_template_is_rendered_in_any_thread(base: Path) -> None:
    tokenizer = render.load_tokenizer(base)
    found: list[tuple[int, ...]] = []
    ask = lambda: found.append(render.render(tokenizer, TASK, "1 + 1?"))  # noqa: E731
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    ask()
    assert found[0] == found[1] != ()
