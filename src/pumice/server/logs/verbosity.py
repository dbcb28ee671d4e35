"""The verbosity of the log, changed while the process runs: a socket in the folder that `DEBUG_SOCKET_DIR` names.

`curl --unix-socket DIR/klog-klog.sock 'http://x/setlevel?level=4&duration=60s'`; after the duration the old verbosity is back. Without the variable there is
no socket: a name in a folder that everybody may write to is not ours to trust.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from pumice.api import duration

if TYPE_CHECKING:
    from pumice.server.logs.logs import Log

NAME: Final = "klog-klog.sock"
HIGHEST: Final = 10


class Verbosity:
    """Answers questions about the verbosity and changes it for a while."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._usual = log.verbosity
        self._ending: asyncio.TimerHandle | None = None

    def app(self) -> web.Application:
        """Serve /setlevel and /getlevel."""
        app = web.Application()
        app.router.add_get("/setlevel", self._set)
        app.router.add_get("/getlevel", self._get)
        return app

    async def _get(self, _request: web.Request) -> web.Response:
        return web.Response(text=f"{self._log.verbosity}\n")

    async def _set(self, request: web.Request) -> web.Response:
        level, length = request.query.get("level", ""), request.query.get("duration", "")
        if not (level.isascii() and level.isdigit() and len(level) <= len(str(HIGHEST)) and 1 <= int(level) <= HIGHEST):
            return web.Response(status=400, text=f"level {level[:40]!r} is not a number from 1 to {HIGHEST}\n")
        try:
            span = duration.parse(length) if length else 0
        except duration.DurationError as error:
            return web.Response(status=400, text=f"duration: {error}\n")
        if span <= 0:
            return web.Response(status=400, text="say for how long, as in duration=60s\n")
        if self._ending is not None:
            self._ending.cancel()
        self._log.verbosity = int(level)
        self._ending = asyncio.get_running_loop().call_later(span / 1e6, self._end)
        self._log.info("verbosity changed", level=int(level), duration=duration.format_duration(span))
        return web.Response(text=f"verbosity {level} for {duration.format_duration(span)}\n")

    def _end(self) -> None:
        self._log.verbosity = self._usual


async def start(log: Log, folder: str) -> web.AppRunner:
    """Listen on the socket; only the user of this process may use it."""
    path = Path(folder) / NAME
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    runner = web.AppRunner(Verbosity(log).app(), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    path.chmod(0o600)  # before anybody can connect, which is from here on
    await web.SockSite(runner, listening).start()
    log.info("serving", what="verbosity", address=str(path))
    return runner
