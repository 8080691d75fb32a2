"""Models by folder and by hub id; the hub is a real HTTP server on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ahalab.errors import InputError
from ahalab.records.plan import ModelSpec
from ahalab.store.models import organism_folder, resolve_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"pickle"}
FAULTS = {  # repository -> status and the hub's own word for it
    "gone": (404, "RepoNotFound"),
    "gated": (403, "GatedRepo"),
    "down": (503, ""),
}


def refused(kind: type[Exception] = InputError, **spec: str) -> str:
    with pytest.raises(kind) as caught:
        resolve_model(ModelSpec(**spec))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def folder(path: Path, *names: str) -> str:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return str(path)


def test_a_folder_is_taken_as_it_is_and_the_organism_by_its_name(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", "config.json", "model-00001-of-00002.safetensors")
    assert resolve_model(ModelSpec(id=model)) == tmp_path / "m"
    assert resolve_model(ModelSpec(id="organism")) == organism_folder()


def test_a_revision_beside_a_folder_is_refused_as_nothing_would_check_it(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", "config.json", "model.safetensors")
    for name in (model, "organism"):
        said = refused(id=name, revision="main")
        assert said.startswith(f"model.revision: expected none with {name}, which is no hub id")


def test_a_folder_without_a_model_that_may_be_loaded_is_refused(tmp_path: Path) -> None:
    assert "(config.json), found none" in refused(id=folder(tmp_path / "a"))
    assert "safetensors, found none" in refused(id=folder(tmp_path / "b", "config.json"))
    pickled = folder(tmp_path / "c", "config.json", "pytorch_model.bin")
    assert "found pytorch_model.bin, which is never loaded" in refused(id=pickled)


@pytest.mark.parametrize("name", ["", "nope", "a/b/c", "./a", "~/no such", "/no/such"])
def test_what_is_neither_folder_nor_hub_id_is_refused(name: str) -> None:
    said = refused(id=name)
    assert said.startswith("model.id: expected `organism`, a model folder or a hub id (owner/name)")


# The hub ------------------------------------------------------------------------------------------


class Hub(BaseHTTPRequestHandler):
    """What `snapshot_download` asks of a hub: a revision's files, and each file."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.count("/") < 3:  # the library asks for lists of its own, too
            return self.answer(404, b"", {})
        name = path.removeprefix("/api/models").split("/")[2]
        if name in FAULTS:
            return self.answer(FAULTS[name][0], b"", {"X-Error-Code": FAULTS[name][1]})
        if path.startswith("/api/models/"):
            asked, revision = path.split("/")[-2:]
            if revision not in ("main", COMMIT):
                return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
            listed = self.tree() if asked == "tree" else self.repository(name)
            return self.answer(200, json.dumps(listed).encode(), {})
        content = FILES[path.rpartition("/")[2]]
        tag = hashlib.sha256(content).hexdigest()
        return self.answer(200, content, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})

    def tree(self) -> list[dict[str, object]]:
        return [
            {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
            for name, content in FILES.items()
        ]

    def repository(self, name: str) -> dict[str, object]:
        files = [{"rfilename": file} for file in FILES]
        fixed = {"private": False, "tags": [], "downloads": 0, "likes": 0}
        return {"id": f"a/{name}", "sha": COMMIT, "siblings": files, **fixed}

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    pytest.importorskip("huggingface_hub", reason="the [train] extra is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


# The library reads its endpoint once, when it is imported: so in a process of its own.
PROGRAM = """
import json, sys
from ahalab.errors import AhaLabError
from ahalab.records.plan import ModelSpec
from ahalab.store.models import resolve_model
for name, revision in json.loads(sys.argv[1]):
    try:
        folder = resolve_model(ModelSpec(id=name, revision=revision))
        print(json.dumps([0, folder.name, sorted(p.name for p in folder.iterdir())]))
    except AhaLabError as error:
        print(json.dumps([error.exit_code, str(error), []]))
"""


def test_a_hub_id_is_fetched_without_pickles_and_each_refusal_of_the_hub_is_told(
    endpoint: str, tmp_path: Path
) -> None:
    cases: list[tuple[str, str | None, int, str]] = [
        ("a/model", None, 0, COMMIT),
        ("a/model", COMMIT, 0, COMMIT),
        ("a/model", "nope", 2, "model.revision: a/model has no revision 'nope'. Mend the key."),
        ("a/gone", None, 2, "model.id: the hub has no model 'a/gone' that is open to you"),
        ("a/gated", None, 5, "model a/gated: gated. Ask for access on its page"),
        ("a/down", "main", 5, "model a/down at main: not in the local cache, and the hub can't"),
        ("a b/c", None, 2, "model.id: expected a hub id (owner/name), found: Repo id must"),
    ]
    variables = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    asked = json.dumps([case[:2] for case in cases])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked],
        env={**os.environ, **variables, "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1"},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [code for code, *_ in found] == [code for *_, code, _ in cases], done.stdout
    for (_, said, files), (*_, code, expected) in zip(found, cases, strict=True):
        assert said.startswith(expected)
        assert files == (["config.json", "model.safetensors"] if code == 0 else [])
