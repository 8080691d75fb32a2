"""A real OpenAI-compatible server over the organism: base and adapters are models by name.

Completions and chat, with or without token ids. Faults are injected one by one: each named one
spoils the next request. As a program it serves a trained study until it is killed:
`python endpoint_server.py STUDY PORT`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ahalab.evaluate.backends import Batch, Side
from ahalab.plan.cells import training_cells
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.store.layout import StudyPaths
from ahalab.store.models import organism_folder
from ahalab.tasks.places import run_paths

Body = dict[str, Any]


class Weights:
    """The organism with every adapter of a study; one request at a time is computed."""

    def __init__(self, plan: Plan, paths: StudyPaths | None) -> None:
        from ahalab.evaluate.backends.transformers import TransformersBackend
        from ahalab.tasks.render import load_tokenizer

        self.plan = plan
        self.tokenizer = load_tokenizer(organism_folder())
        self.backend = TransformersBackend(plan, organism_folder(), self.tokenizer)
        sides = {"base": Side("base")}
        for cell in training_cells(plan) if paths else ():
            assert paths is not None
            folder = run_paths(paths, cell).adapter
            if folder.is_dir():
                sides[f"{cell.arm}-seed-{cell.seed}"] = Side(cell.name, folder)
        self.backend.serve(list(sides.values()))
        self.models = list(sides)
        self.turn = threading.Lock()

    def answer(self, body: Body) -> tuple[str, tuple[int, ...], str]:
        """Return text, token ids and finish_reason of one completion."""
        if "messages" in body:
            ids = self.tokenizer.apply_chat_template(
                body["messages"], add_generation_prompt=True, tokenize=True, return_dict=True
            )["input_ids"]
        else:
            asked = body["prompt"]
            ids = self.tokenizer(asked)["input_ids"] if isinstance(asked, str) else asked
        prompt = Prompt(
            prompt_id="p", question="?", gold="1", source="here", split="eval",
            prompt_ids=tuple(ids), prompt_tokens=len(ids),
        )  # fmt: skip
        with self.turn:
            sides = self.backend.generate(Batch(((prompt, 0),), body["seed"]))
        found = sides[self.models.index(body["model"])][0]
        assert found.ids is not None
        kept = found.ids[: body["max_tokens"]]
        cut = len(kept) < len(found.ids) or found.finish == "length"
        text = self.tokenizer.decode(kept, skip_special_tokens=True)
        return text, kept, "length" if cut else "stop"


@dataclass
class Endpoint:
    """A server, what it was asked, and what it will spoil."""

    weights: Weights
    faults: list[str] = field(default_factory=list)
    asked: list[Body] = field(default_factory=list)  # completions only, spoiled ones too
    answered: int = 0
    keys: set[str] = field(default_factory=set)
    key: str | None = None  # that it wants
    fingerprint: str | None = "fp-1"
    url: str = ""

    def reset(self) -> None:
        self.faults, self.asked, self.answered = [], [], 0
        self.keys, self.key, self.fingerprint = set(), None, "fp-1"

    def questions(self) -> list[Body]:
        """Return the requests that asked a question: not the greeting."""
        return [body for body in self.asked if body["max_tokens"] > 1]


def reply_of(endpoint: Endpoint, body: Body, chat: bool) -> Body:
    text, ids, finish = endpoint.weights.answer(body)
    choice: Body = {"index": 0, "finish_reason": finish, "logprobs": None}
    choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    if body.get("return_token_ids"):
        choice["token_ids"] = list(ids)
    return {
        "id": "x",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [choice],
        "system_fingerprint": endpoint.fingerprint,
        "usage": {"completion_tokens": len(ids)},
    }


ERRORS = {
    "429": (429, {"Retry-After": "0"}, "slow down"),
    "429 wait": (429, {"Retry-After": "1"}, "slow down"),
    "429 day": (429, {"Retry-After": "86400"}, "tomorrow"),
    "500": (500, {}, "oops"),
    "501": (501, {}, "Unsupported method"),
    "503": (503, {}, "<html>\x1b[31mbusy</html>"),
    "400": (400, {}, "\x1b]52;c;aGk=\x07 max_tokens is too large\nfor secret-key-1 " + "x" * 999),
}


def spoiled(reply: Body, fault: str) -> bytes:
    """Return a reply as a broken server sends it."""
    choice = reply["choices"][0]
    if fault == "no choices":
        reply["choices"] = []
    elif fault == "no finish":
        choice["finish_reason"] = None
    elif fault == "no text":
        choice.pop("text", None)
        choice.pop("message", None)
    elif fault == "filtered":
        choice["finish_reason"] = "content_filter"
    elif fault == "other fingerprint":
        reply["system_fingerprint"] = "fp-2"
    elif fault == "other prompt":
        choice["prompt_token_ids"] = [1, 2, 3]
    elif fault == "other ids":
        choice["token_ids"] = [9, *choice["token_ids"][1:]]
    elif fault == "no end":
        choice["token_ids"] = choice["token_ids"][:-1]
    payload = json.dumps(reply).encode()
    return payload[: len(payload) // 2] if fault == "half a JSON" else payload


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "organism"
    sys_version = ""
    endpoint: Endpoint

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            created = time.time_ns()  # a clock: nothing that may enter a protocol
            models = self.endpoint.weights.models
            rows = [{"id": m, "owned_by": "tests", "created": created} for m in models]
            self.reply(200, json.dumps({"object": "list", "data": rows}).encode())
        elif self.path == "/version":
            self.reply(200, b'{"version": "1.2.3"}')
        else:
            self.reply(404, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.keys.add(self.headers.get("Authorization", ""))
        self.endpoint.asked.append(body)
        wanted = self.endpoint.key
        if wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
            self.reply(401, b'{"error": {"message": "Incorrect API key provided: ' +
                       self.headers.get("Authorization", "").encode() + b'"}}')  # fmt: skip
            return
        hello = body["max_tokens"] == 1
        fault = "" if hello or not self.endpoint.faults else self.endpoint.faults.pop(0)
        if fault in ERRORS:
            status, headers, text = ERRORS[fault]
            self.reply(status, text.encode(), headers)
            return
        if fault == "hang":
            time.sleep(3)
        if fault == "drop":
            self.close_connection = True
            return
        reply = reply_of(self.endpoint, body, self.path.endswith("/chat/completions"))
        payload = spoiled(reply, fault)
        if fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload[: len(payload) // 2])
            self.close_connection = True
            return
        self.endpoint.answered += not hello
        self.reply(200, payload)

    def reply(self, status: int, payload: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except ConnectionError:  # the client gave up, or was killed
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """A client that is killed is no fault of the server's."""


@contextmanager
def serving(weights: Weights, port: int = 0) -> Iterator[Endpoint]:
    """Serve on loopback in a thread."""
    endpoint = Endpoint(weights)
    handler = type("Bound", (Handler,), {"endpoint": endpoint})
    server = Server(("127.0.0.1", port), handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    from ahalab.plan.load import load_plan

    root = Path(sys.argv[1])
    with serving(Weights(load_plan(root / "study.yaml"), StudyPaths(root)), int(sys.argv[2])) as e:
        sys.stdout.write(e.url + "\n")
        sys.stdout.flush()
        threading.Event().wait()
