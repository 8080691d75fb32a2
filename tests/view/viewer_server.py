"""Starts the real command on a study and asks it, as a browser or a stranger would."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from viewed_study import Viewed


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Running:
    """The real command, in a process of its own."""

    address: str  # with its token
    viewed: Viewed
    process: subprocess.Popen[str]
    port: int = field(init=False)
    token: str = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        self.port = int(parts.netloc.rpartition(":")[2])
        self.token = parts.query.removeprefix("token=")

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        return f"ahalab_view_{self.port}={self.token}"

    def stop(self) -> str:
        """Stop it as a terminal does, and return what it said on stderr."""
        self.process.send_signal(signal.SIGINT)
        told = self.process.communicate(timeout=30)[1]
        assert self.process.returncode == 0, told
        return told

    def ask(
        self, path: str, *, method: str = "GET", cookie: str | None = None, **headers: str
    ) -> Reply:
        """Send one request as it is written here, with the cookie unless another is given."""
        sent = {"cookie": self.cookie if cookie is None else cookie}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(method, path, headers=sent)
            reply = connection.getresponse()
            body = reply.read()
        return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, body)


def start(viewed: Viewed, cache: Path, *folders: Path) -> Running:
    process = subprocess.Popen(
        [sys.executable, "-m", "ahalab", "view", *map(str, folders or (viewed.paths.root,))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), process.communicate()[1]
    return Running(address, viewed, process)


def wait_for_index(server: Running) -> str:
    """Wait until all is indexed, and return the study's id."""
    for _ in range(200):
        found = json.loads(server.ask("/api/studies").body)["studies"]
        if found and 0 < found[0]["rows_total"] == found[0]["rows"]:
            return str(found[0]["id"])
        time.sleep(0.05)
    raise AssertionError(f"not indexed: {found}")


def wait_for_rows(server: Running, study: str, rows: int) -> None:
    """Wait until so many rollouts are found."""
    for _ in range(200):
        found = json.loads(server.ask(f"/api/study/{study}/rollouts").body)["total"]
        if found == rows:
            return
        time.sleep(0.05)
    raise AssertionError(f"expected {rows} rollouts, found {found}")
