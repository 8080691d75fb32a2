"""Who may ask what: the token, the Host, the methods; and the headers of every reply.

A page of another site can reach a port of this machine, by its address or by a name that it lets
point here. So nothing is told without the token, under no other name than this machine's own, and
nothing can be written.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Any port: a tunnel brings its own. A name that another site lets point here is not among these.
LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """Stands before the application and lets only a holder of the token through.

    The token comes in the address that the terminal prints, and then as a cookie that no script
    reads and no other site's page sends.
    """

    app: ASGIApp
    token: str
    cookie: str  # its name; cookies are shared by the ports of a machine, so it holds the port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on; every reply gets the headers."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        in_address = self._is_token(_parameter(scope, "token"))
        refusal = self._refusal(scope, headers, in_address)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    out[name] = value
                if in_address and refusal is None:
                    out.append(
                        "set-cookie",
                        f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict",
                    )
            await send(message)

        await (refusal or self.app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers, in_address: bool) -> Response | None:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse(
                "Nothing can be written here.\n", 405, headers={"allow": "GET, HEAD"}
            )
        if not LOOPBACK.fullmatch(headers.get("host", "")):
            return PlainTextResponse("This viewer answers to 127.0.0.1 and localhost only.\n", 403)
        foreign = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Another site's page asks; it is told nothing.\n", 403)
        if not in_address and not self._is_token(self._from_cookie(headers)):
            return PlainTextResponse(
                "Open the address that `ahalab view` printed: it holds a token, which this request "
                "lacks.\n",
                403,
            )
        return None

    def _from_cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def _parameter(scope: Scope, name: str) -> str:
    found = parse_qs(scope["query_string"].decode("latin-1")).get(name, [])
    return found[0] if len(found) == 1 else ""
