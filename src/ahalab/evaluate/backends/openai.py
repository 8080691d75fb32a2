"""Answers from an OpenAI-compatible endpoint: base and adapters are models by name there.

The server loads, renders (api chat) and decodes; which weights it holds, no client can see.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from typing import Any, TypeVar

from ahalab.errors import InputError, MissingError
from ahalab.evaluate.backends import BackendFacts, Batch, Side
from ahalab.evaluate.backends.client import Client, first_expected
from ahalab.evaluate.backends.local_tokenizer import LocalTokenizer
from ahalab.evaluate.backends.spool import Reply, Spool
from ahalab.evaluate.backends.wire import (
    Told,
    prompt_fields,
    prompt_form,
    read_reply,
    sampling_fields,
)
from ahalab.evaluate.seeds import row_seed
from ahalab.plan.cells import find_cell
from ahalab.plan.endpoint import endpoint_of, model_name
from ahalab.records.base import digest_bytes
from ahalab.records.plan import Plan
from ahalab.records.prompt import Prompt
from ahalab.tasks.generation import Completion, completion_of

NAME = "openai"
PATHS = {"completions": "/completions", "chat": "/chat/completions"}
KEPT_OF_A_MODEL = ("id", "owned_by", "root", "max_model_len")  # the rest are clocks and rights
T = TypeVar("T")


class OpenAIBackend:
    """A server, and the models that answer for the sides.

    Raises:
        MissingError: httpx2, the key, or the base's model is not there.
        InputError: The server refuses to answer.
        IncompleteError: It can't be reached.
    """

    def __init__(self, plan: Plan, tokenizer: LocalTokenizer) -> None:
        self.plan = plan
        self.endpoint = endpoint_of(plan)
        self.tokenizer = tokenizer
        self.fields = sampling_fields(plan, tokenizer.end_ids)
        self.models: list[str] = []  # of each side
        self.sides: tuple[Side, ...] = ()
        self.spools: list[Spool | None] | None = None  # opened with the first batch
        self.listed: dict[str, dict[str, Any]] | None = None  # None: the server lists no models
        self.fingerprint: str | None = None
        versions = _run(self._look())
        self.facts = BackendFacts(
            name=NAME,
            decoder="server",
            device="endpoint",
            generation={
                "api": self.endpoint.api,
                "prompt": prompt_form(plan),
                "eos_token_id": sorted(tokenizer.end_ids),  # by the base's own files
                **self.fields,
            },
            versions=versions,
        )

    async def _look(self) -> dict[str, str]:
        """Return what tells this server from another one."""
        client = Client(self.endpoint)
        try:
            found = {"python": platform.python_version(), "httpx2": version("httpx2")}
            page = await client.get(f"{client.url}/models")
            if page is not None:
                found["server"] = page[0].get("server", "unknown")
                self.listed = _models(page[1])
            if self.endpoint.dialect == "vllm":
                own = await client.get(f"{client.url.removesuffix('/v1')}/version")
                found["server_version"] = _version(own[1]) if own else "unknown"
            self._require_served("base", self.endpoint.base)
            if self.listed is not None:
                found["model"] = json.dumps(self.listed[self.endpoint.base], sort_keys=True)
            self.fingerprint = await self._greet(client)
            return found | {"system_fingerprint": self.fingerprint or "unknown"}
        finally:
            await client.close()

    async def _greet(self, client: Client) -> str | None:
        """Ask the base for one token, so that what is wrong is told now; return its fingerprint."""
        hello: dict[str, Any] = {"prompt": "1"}
        if self.endpoint.api == "chat":
            hello = {"messages": [{"role": "user", "content": "1"}]}
        body = {"model": self.endpoint.base, **hello, **self.fields, "max_tokens": 1, "seed": 0}
        told = await client.post(
            PATHS[self.endpoint.api], body, lambda b: read_reply(b, self.endpoint.api)
        )
        return told.fingerprint

    def _require_served(self, side: str, model: str) -> None:
        if self.listed is None or model in self.listed:
            return
        names = ", ".join(sorted(self.listed)[:20])[:400]
        shown = "".join(c for c in names if c.isprintable())
        raise MissingError(
            f"{side}: expected the model {model!r} at {self.endpoint.url}, found "
            f"{shown or 'no model'}. Serve it under that name, or mend evaluation.endpoint; then "
            "run the same command to resume."
        )

    def serve(self, sides: Sequence[Side]) -> None:
        """Take the models of these sides, and what was answered for them before a kill.

        Raises:
            MissingError: The server has no such model.
        """
        self.close()
        self.sides = tuple(sides)
        self.models = [model_name(self.plan, find_cell(self.plan, side.name)) for side in sides]
        for side, model in zip(sides, self.models, strict=True):
            self._require_served(side.name, model)

    def close(self) -> None:
        """Close what is kept of replies."""
        for spool in self.spools or ():
            if spool is not None:
                spool.close()
        self.spools = None

    def generate(self, batch: Batch) -> list[list[Completion]]:
        """Answer one batch; what a spool holds is not asked again.

        Returns:
            One list per side, one completion per question.

        Raises:
            InputError: The server refuses a request, or is not the one that was greeted.
            IncompleteError: A request failed too often; the same command resumes.
        """
        if self.spools is None:  # here, and not in `serve`: now nobody else writes these answers
            self.spools = [None if side.kept is None else Spool(side.kept) for side in self.sides]
        return _run(self._generate(batch, self.spools))

    def check_weights(self) -> None:
        """Check nothing: the weights are the server's, and no client can see them."""

    async def _generate(
        self, batch: Batch, spools: Sequence[Spool | None]
    ) -> list[list[Completion]]:
        asked = [
            (prompt, row_seed(batch.seed, row, sample))
            for row, (prompt, sample) in enumerate(batch.asked)
        ]
        client = Client(self.endpoint)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    [
                        group.create_task(self._answer(client, (model, spool), prompt, seed))
                        for prompt, seed in asked
                    ]
                    for model, spool in zip(self.models, spools, strict=True)
                ]
        finally:
            await client.close()
        return [[task.result() for task in row] for row in tasks]

    async def _answer(
        self, client: Client, side: tuple[str, Spool | None], prompt: Prompt, seed: int
    ) -> Completion:
        model, spool = side
        body = {
            "model": model,
            **prompt_fields(self.plan, prompt, self.tokenizer),
            **self.fields,
            "seed": seed,
        }
        request = digest_bytes(json.dumps(body, sort_keys=True).encode())
        reply = None if spool is None else spool.replies.get(request)
        if reply is None:
            api = self.endpoint.api
            told = await client.post(PATHS[api], body, lambda b: read_reply(b, api))
            completion = self._completion(told, prompt)
            reply = Reply(
                request=request,
                text=completion.text,
                ids=completion.ids,
                finish=completion.finish,
            )
            if spool is not None:
                spool.keep(reply)
        return Completion(reply.text, reply.ids, reply.finish)

    def _completion(self, told: Told, prompt: Prompt) -> Completion:
        """Return the completion, after what can be checked of it.

        Raises:
            InputError: The server changed, or reads or writes other tokens than the base does.
        """
        if told.fingerprint != self.fingerprint:
            raise self._fault(
                f"system_fingerprint {self.fingerprint!r} as at the start",
                repr(told.fingerprint),
                "The server changed meanwhile; evaluate again with one server.",
            )
        if told.prompt_ids is not None and told.prompt_ids != prompt.prompt_ids:
            raise self._fault(
                f"prompt {prompt.prompt_id} read as its {len(prompt.prompt_ids)} token ids",
                f"{len(told.prompt_ids)} other ones",
                "Serve the base with its own tokenizer and template.",
            )
        if self.endpoint.dialect == "openai":
            return Completion(told.text, None, told.finish)
        return self._checked_ids(told)

    def _checked_ids(self, told: Told) -> Completion:
        remedy = "Mend the server, or take dialect openai, which goes without token ids."
        if told.ids is None:
            raise self._fault("token ids beside the text", "none", remedy)
        try:
            found = completion_of(told.ids, self.tokenizer.end_ids, self.tokenizer)
        except (OverflowError, TypeError, ValueError) as error:
            raise self._fault("token ids of the base's tokenizer", "others", remedy) from error
        if told.finish in ("eos", "length") and found.finish != told.finish:
            raise self._fault(
                "token ids that end as finish_reason says",
                f"finish {told.finish}, and ids that end in {told.ids[-3:]}",
                remedy,
            )
        # A character that the limit cut in two is written one way or another.
        if found.text.rstrip("\ufffd") != told.text.rstrip("\ufffd"):
            raise self._fault(
                "the text of the token ids under the base's tokenizer", "another text", remedy
            )
        return Completion(found.text, found.ids, told.finish)

    def _fault(self, expected: str, found: str, remedy: str) -> InputError:
        shown = "".join(c for c in found[:200] if c.isprintable())
        return InputError(f"{self.endpoint.url}: expected {expected}, found {shown}. {remedy}")


def _models(payload: bytes) -> dict[str, dict[str, Any]] | None:
    """Return what a server says of each model, by id; None when the page is no list of models."""
    try:
        rows = json.loads(payload)["data"]
        return {str(row["id"]): {k: row.get(k) for k in KEPT_OF_A_MODEL} for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _version(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["version"])[:80]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "unknown"


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; of several faults at once the one that a person should read is raised."""
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        raise first_expected(group) from None
