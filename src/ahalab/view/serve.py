"""Serves the viewer on this machine until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from ahalab.errors import InputError, MissingError
from ahalab.view.follow import Follower, Report
from ahalab.view.sources import check_folders

HOST = "127.0.0.1"


def serve(
    folders: Sequence[Path], port: int, announce: Callable[[str], None], report: Report
) -> None:
    """Serve the viewer over some folders; returns when it is stopped.

    Args:
        folders: Studies, or folders of studies.
        port: On 127.0.0.1; 0 for any free one.
        announce: Told the address, with its token, once it can be opened.
        report: Told how far an index is while it is made.

    Raises:
        MissingError: starlette or uvicorn is not installed.
        InputError: A folder holds no study, or the port is taken.
    """
    try:
        import uvicorn

        from ahalab.view.guard import Guard
        from ahalab.view.server import application
    except ModuleNotFoundError as error:
        raise MissingError(
            f"{error.name}: the viewer needs it, and it is not installed. "
            "Install it: pip install 'ahalab[view]'"
        ) from error
    check_folders(folders)
    listener = _listener(port)
    bound = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    follower = Follower(folders, report)
    guarded = Guard(application(lambda: follower.catalogue), token, f"ahalab_view_{bound}")
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
    )
    follower.start()
    announce(f"http://{HOST}:{bound}/?token={token}")
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        follower.stop()


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)  # so that the address announced can be opened at once
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port {port}: expected a free port of {HOST}, found: {error.strerror}. "
            "Leave --port out for any free one."
        ) from error
    return listener
