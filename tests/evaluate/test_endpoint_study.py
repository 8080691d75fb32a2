"""`ahalab evaluate` by an endpoint: a trained study, a real server, both killed in the middle."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoint_server import Endpoint, Weights, serving

from ahalab.evaluate.backends import Batch
from ahalab.records.answer import Answer, Protocol
from ahalab.records.base import decode_file
from ahalab.store.layout import StudyPaths
from ahalab.store.reading import journal_path, read_rows
from ahalab.tasks.prepare import read_prompts
from ahalab.verify.study import verify_study
from lab import PLAN, Trained, WarmLab, batches_in, environment, plan_of, write_plan

pytestmark = pytest.mark.train
ARM = "arms/historical/seed-1"
CELLS = ("--cell", "base", "--cell", ARM)
SERVER = Path(__file__).with_name("endpoint_server.py")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module", params=["greedy", "sampled"])
def trained_here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: WarmLab,
    port: int,
) -> Trained:  # fmt: skip
    """One arm, trained under a plan whose answers come from an endpoint."""
    told = json.dumps(
        {
            "url": f"http://127.0.0.1:{port}/v1",
            "base": "base",
            "adapter": "{arm}-seed-{seed}",
            "concurrency": 2,
            "max_retries": 1,
        }
    )
    text = (
        PLAN.replace("replay: true", f"backend: openai, endpoint: {told}")
        .replace("max_steps: 6", "max_steps: 2")
        .replace("learning_rate: 1e-4", "learning_rate: 1e-2")  # its answers must differ
    )
    if request.param == "sampled":
        text = text.replace("backend: openai", "temperature: 0.8, samples: 2, backend: openai")
    folder = tmp_path_factory.mktemp("endpoint")
    plan_file = write_plan(folder, text)
    out = folder / "results"
    warm.run("train", plan_file, "--out", out, "--arm", "historical", "--seed", 1, "--force")
    return Trained(plan_of(text), plan_file, StudyPaths(out / "tiny"))


@pytest.fixture(scope="module")
def weights(trained_here: Trained) -> Weights:
    return Weights(trained_here.plan, trained_here.paths)


@pytest.fixture
def endpoint(weights: Weights, port: int) -> Iterator[Endpoint]:
    with serving(weights, port) as endpoint:
        yield endpoint


@pytest.fixture
def study(trained_here: Trained, tmp_path: Path) -> StudyPaths:
    """A copy of the trained study without answers."""
    root = tmp_path / "results" / "tiny"
    shutil.copytree(trained_here.paths.root, root)
    return StudyPaths(root)


@pytest.fixture(scope="module")
def whole(
    trained_here: Trained, weights: Weights, port: int, warm: WarmLab,
    tmp_path_factory: pytest.TempPathFactory,
) -> StudyPaths:  # fmt: skip
    """The study with the answers of base, floor and arm, uninterrupted."""
    root = tmp_path_factory.mktemp("whole") / "results" / "tiny"
    shutil.copytree(trained_here.paths.root, root)
    with serving(weights, port):
        warm.run("evaluate", root, *CELLS, "--cell", "floor")
    return StudyPaths(root)


def answers_of(paths: StudyPaths) -> dict[str, list[Answer]]:
    found = {"base": paths.base_answers(), ARM: paths.answers("historical", 1)}
    return {k: [row for _, row in read_rows(t.answers, Answer)] for k, t in found.items()}


def bytes_of(paths: StudyPaths) -> list[bytes]:
    return [t.answers.read_bytes() for t in (paths.base_answers(), paths.answers("historical", 1))]


def replies(paths: StudyPaths) -> int:
    """Return how many replies are kept for answers that are not committed yet."""
    files = (paths.work / "replies").glob("*.jsonl")
    return sum(path.read_bytes().count(b"\n") - 1 for path in files)


def sampled_answers(paths: StudyPaths) -> int:
    """Return the answers per question."""
    return len({row.sample for row in answers_of(paths)["base"]})


def test_base_and_adapter_answer_as_their_weights_do(weights: Weights, whole: StudyPaths) -> None:
    if sampled_answers(whole) > 1:  # by random numbers that are the server's own
        first, second = ([r for r in answers_of(whole)["base"] if r.sample == n] for n in (0, 1))
        assert [row.prompt_id for row in first] == [row.prompt_id for row in second]
        assert [row.completion for row in first] != [row.completion for row in second]
        return
    prompts = {p.prompt_id: p for p in read_prompts(whole, "eval")}
    for number, (_, rows) in enumerate(answers_of(whole).items()):
        batch = Batch(tuple((prompts[row.prompt_id], 0) for row in rows), 0)
        own = weights.backend.generate(batch)[number]
        assert [(r.completion, r.finish) for r in rows] == [(c.text, c.finish) for c in own]
        assert {row.completion_ids for row in rows} == {None}
    base, adapter = (
        {row.prompt_id: row.completion for row in rows} for rows in answers_of(whole).values()
    )
    assert base.keys() == adapter.keys() == prompts.keys()
    assert base != adapter
    assert not list((whole.work / "replies").iterdir())


def test_the_protocol_says_that_a_server_answered(whole: StudyPaths) -> None:
    path = whole.base_answers().protocol
    protocol = decode_file(path.read_bytes(), Protocol, str(path))
    assert (protocol.backend, protocol.device, protocol.decoder) == ("openai", "endpoint", "server")
    assert protocol.generation["prompt"] == "text"
    assert protocol.versions["server"] == "organism"


def test_such_a_study_verifies_and_says_what_an_endpoint_hides(whole: StudyPaths) -> None:
    found = verify_study(whole.root)
    assert [c.name for c in found.checks if c.status == "failed" and c.name != "manifest.schema"
            and not c.name.startswith("file.")] == []  # fmt: skip
    checks = {check.name: check for check in found.checks}
    assert "which weights an endpoint served can't be seen" in checks["origin.generation"].note
    assert checks["tokens.text"].status == "not checked"
    assert "the endpoint told no token ids" in checks["tokens.text"].note


def test_killed_within_a_batch_only_the_missing_is_asked_and_the_bytes_are_the_same(
    study: StudyPaths, whole: StudyPaths, warm: WarmLab, endpoint: Endpoint
) -> None:
    journal = journal_path(study.base_answers().answers)
    kills = 0
    for batches in (0, 2):
        command = warm.start("evaluate", study.root, *CELLS)
        command.kill_when(
            lambda n=batches: batches_in(journal) >= n and replies(study) >= 4 * n + 2  # type: ignore[misc]
        )
        kills += 1
        time.sleep(0.5)  # what was under way is answered to nobody
    warm.run("evaluate", study.root, *CELLS)
    assert bytes_of(study) == bytes_of(whole)
    rows = sum(len(found) for found in answers_of(study).values())
    assert rows == 24 * sampled_answers(study)
    assert rows <= endpoint.answered <= rows + 2 * kills  # at most two are under way at once


def test_a_server_killed_in_the_middle_and_started_again_changes_nothing(
    study: StudyPaths, whole: StudyPaths, warm: WarmLab, port: int
) -> None:
    def start() -> subprocess.Popen[str]:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(study.root), str(port)],
            stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline().startswith("http://127.0.0.1:")
        return server

    server = start()
    command = warm.start("evaluate", study.root, *CELLS)
    while command.running() and replies(study) < 3:
        time.sleep(0.001)
    server.send_signal(signal.SIGKILL)
    server.communicate()
    assert command.finish() == 4
    last = command.text().strip().splitlines()[-1]
    assert "run the same command to resume" in last
    server = start()
    try:
        warm.run("evaluate", study.root, *CELLS)
    finally:
        server.kill()
        server.communicate()
    assert bytes_of(study) == bytes_of(whole)


def test_a_replay_asks_the_server_again(
    whole: StudyPaths, warm: WarmLab, endpoint: Endpoint, tmp_path: Path
) -> None:
    study = StudyPaths(Path(shutil.copytree(whole.root, tmp_path / "results" / "tiny")))
    warm.run("replay", study.root, "--cell", "base")
    assert endpoint.answered == 12 * sampled_answers(study)
    again = study.base_answers("replay/").answers
    assert again.read_bytes() == study.base_answers().answers.read_bytes()
