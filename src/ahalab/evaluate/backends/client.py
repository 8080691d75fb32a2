"""HTTP to an endpoint: bounded replies, retries with backoff and jitter, the server's own pauses.

Rate limits, server errors, timeouts, cut connections and broken replies are tried again, up to the
plan's limit; what the server refuses for good is told at once, in one line.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from ahalab.errors import AhaLabError, IncompleteError, InputError, MissingError
from ahalab.evaluate.backends.wire import MalformedReplyError
from ahalab.records.plan import EndpointSpec

if TYPE_CHECKING:
    import httpx2

FIRST_WAIT_SECONDS = 0.5  # before the first retry; doubled with every one, up to
LONGEST_WAIT_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 600.0  # that a server may ask for
MAX_REPLY_BYTES = 16 << 20
SHOWN = 200  # characters of a server's message
RETRIED = (408, 425, 429)
NOT_IMPLEMENTED = 501  # no other try will find it implemented
FIELDS = (
    "Mend evaluation.endpoint (dialect vllm is for servers that take vLLM's fields) or what the "
    "server was started with."
)
ADVICE = {
    400: FIELDS,
    422: FIELDS,
    401: "Mend the key in the variable that evaluation.endpoint.api_key_env names.",
    403: "Mend the key in the variable that evaluation.endpoint.api_key_env names.",
    404: "Mend evaluation.endpoint (url, api, base, adapter), or serve the model.",
}
T = TypeVar("T")


class _AgainError(Exception):
    """A try failed in a way that another may mend."""

    def __init__(self, fault: str, pause: float | None = None) -> None:
        super().__init__(fault)
        self.pause = pause  # seconds that the server asked for


def api_key(endpoint: EndpointSpec) -> str | None:
    """Return the key from the environment; it never stands in a record.

    Raises:
        MissingError: The plan names a variable that is not set.
    """
    if endpoint.api_key_env is None:
        return None
    key = os.environ.get(endpoint.api_key_env, "").strip()
    if not key:
        raise MissingError(
            f"evaluation.endpoint.api_key_env: expected a key in the environment variable "
            f"{endpoint.api_key_env}, found none. Set it, then run the same command."
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            f"{endpoint.api_key_env}: expected a key of plain characters, found others. Mend it."
        )
    return key


class Client:
    """Requests to one endpoint; for use within one event loop.

    Raises:
        MissingError: httpx2 is not installed, or the key is not set.
    """

    def __init__(self, endpoint: EndpointSpec) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise MissingError(
                "an endpoint needs httpx2, not installed here. Type: pip install 'ahalab[endpoint]'"
            ) from error
        self.endpoint = endpoint
        self.url = endpoint.url.rstrip("/")
        self._key = api_key(endpoint)
        self._faults = (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError)
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=endpoint.timeout_s,
            limits=httpx2.Limits(max_connections=endpoint.concurrency),
        )
        self._turn = asyncio.Semaphore(endpoint.concurrency)
        self._paused_until = 0.0  # monotonic; a rate limit holds for every request

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def post(self, path: str, body: dict[str, Any], read: Callable[[bytes], T]) -> T:
        """Send a request until it is answered, and return what `read` makes of the reply.

        Raises:
            InputError: The server refuses it for good.
            IncompleteError: Every try failed; the same command resumes.
        """
        async with self._turn:
            for tried in range(self.endpoint.max_retries + 1):
                await self._wait(tried)
                try:
                    _, payload = await self._send("POST", f"{self.url}{path}", body)
                    return read(payload)
                except MalformedReplyError as error:
                    fault = self._harmless(f"a broken reply: {error}")
                except _AgainError as error:
                    fault = str(error)
                    self._pause(error.pause)
        raise IncompleteError(
            f"{self.url}{path}: expected a reply within {self.endpoint.max_retries + 1} tries, "
            f"found {fault}. Nothing that was answered is lost; run the same command to resume."
        )

    async def get(self, url: str) -> tuple[dict[str, str], bytes] | None:
        """Return headers (names in lower case) and body of a page; None where there is none.

        Raises:
            InputError: The server refuses the key.
            IncompleteError: It can't be reached.
        """
        fault = ""
        for tried in range(self.endpoint.max_retries + 1):
            await self._wait(tried)
            try:
                return await self._send("GET", url, None)
            except _RefusedError as refused:
                if refused.status in (401, 403):
                    raise
                return None
            except _AgainError as error:
                fault = str(error)
                self._pause(error.pause)
        raise IncompleteError(
            f"{url}: expected a server, found {fault}. Start it or mend evaluation.endpoint.url, "
            "then run the same command to resume."
        )

    async def _send(
        self, method: str, url: str, body: dict[str, Any] | None
    ) -> tuple[dict[str, str], bytes]:
        """Send once; the limit of time is for the whole of it, however slowly bytes drip."""
        limit = self.endpoint.timeout_s
        try:
            async with (
                asyncio.timeout(limit),
                self._http.stream(method, url, json=body) as response,
            ):
                payload = await self._body(response)
                self._check(method, url, response, payload)
                return {k.lower(): v for k, v in response.headers.items()}, payload
        except TimeoutError as error:
            raise _AgainError(f"no whole reply within {limit:g} s") from error
        except self._faults as error:
            told = self._harmless(str(error)) or "no reason given"
            raise _AgainError(f"{type(error).__name__} ({told})") from error

    async def _body(self, response: httpx2.Response) -> bytes:
        found = bytearray()
        async for part in response.aiter_bytes():
            found += part
            if len(found) > MAX_REPLY_BYTES:
                raise _AgainError(f"a reply of more than {MAX_REPLY_BYTES >> 20} MB")
        return bytes(found)

    def _check(self, method: str, url: str, response: httpx2.Response, payload: bytes) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        told = self._harmless(_message(payload))
        fault = f"status {status} ({told or 'no message'})"
        if status in RETRIED or (status >= 500 and status != NOT_IMPLEMENTED):
            raise _AgainError(fault, _asked_pause(response.headers.get("retry-after")))
        advice = ADVICE.get(status, "Mend evaluation.endpoint, or what answers there.")
        raise _RefusedError(
            f"{url}: expected an answer to {method}, found {fault}. {advice}", status
        )

    async def _wait(self, tried: int) -> None:
        """Wait before a try: longer with each one, never in step with others, and any pause."""
        if tried:
            longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (tried - 1))
            await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311
        while (left := self._paused_until - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def _pause(self, seconds: float | None) -> None:
        """Let every request wait as long as the server asks.

        Raises:
            IncompleteError: It asks for very long.
        """
        if seconds is None:
            return
        if seconds > LONGEST_PAUSE_SECONDS:
            raise IncompleteError(
                f"{self.url}: expected a pause of at most {LONGEST_PAUSE_SECONDS:g} s, found "
                f"Retry-After: {seconds:g} s. Run the same command then; nothing is lost."
            )
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def _harmless(self, text: str) -> str:
        """Return a server's words: short, on one line, no control character, never the key."""
        if self._key:
            text = text.replace(self._key, "***")
        plain = "".join(c if unicodedata.category(c)[0] not in "CZ" else " " for c in text)
        plain = " ".join(plain.split())
        return plain if len(plain) <= SHOWN else plain[: SHOWN - 1] + "…"


class _RefusedError(InputError):
    """The server refuses for good."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _message(payload: bytes) -> str:
    """Return the message of an error's body, or the beginning of another body."""
    try:
        error = json.loads(payload)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, RecursionError):
        return payload[: 4 * SHOWN].decode("utf-8", "replace")


def _asked_pause(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number or a date; None for anything else."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            then = parsedate_to_datetime(value)
        except ValueError:
            return None
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        seconds = (then - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds == seconds else None  # a NaN is no number of seconds


def first_expected(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one fault that a person should read: a bug before an expected error."""
    leaves: list[BaseException] = []
    left: list[BaseException] = [group]
    while left:
        error = left.pop()
        if isinstance(error, BaseExceptionGroup):
            left += error.exceptions
        else:
            leaves.append(error)
    return min(leaves, key=lambda error: isinstance(error, AhaLabError))
