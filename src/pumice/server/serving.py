"""The small servers: metrics on one address, health on another, verbosity on a socket."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from pumice import client_faults
from pumice.server import handshakes
from pumice.server.flags import addresses
from pumice.server.logs import logs, verbosity
from pumice.server.metrics import text_format
from pumice.server.threads.io_thread import StartError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.server.flags.process_settings import ProcessSettings
    from pumice.server.health.checks import Health
    from pumice.server.logs.logs import Log

    Handler = Callable[[web.Request], Awaitable[web.Response]]

MOST_CONNECTIONS: Final = 64  # of one server; one more, and the oldest is closed


class Judged(Protocol):
    """A process whose health is asked for."""

    health: Health


class Shown(Judged, Protocol):
    """What there is to be served."""

    async def metrics(self) -> bytes:
        """Return the text that Prometheus scrapes."""


async def serve(settings: ProcessSettings, shown: Shown, log: Log, socket_folder: str = "") -> None:
    """Serve what the flags ask for, until cancelled."""
    runners: list[web.AppRunner | Listener] = []
    try:
        if socket_folder:
            runners.append(await _start_levels(log, socket_folder))
        if settings.enable_metrics:
            runners.append(await _start(metrics_app(shown), settings.listen_address, None, log, "metrics"))
        if settings.enable_healthz:
            secured = tls(settings)
            runners.append(await _start(health_app(shown), settings.healthz_address, secured, log, "health"))
        await asyncio.Event().wait()
    finally:
        for runner in runners:
            await runner.cleanup()


def metrics_app(shown: Shown) -> web.Application:
    """Serve /metrics."""

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=await shown.metrics(), headers={"Content-Type": text_format.CONTENT_TYPE})

    return _app({"/metrics": metrics})


def health_app(shown: Judged) -> web.Application:
    """Serve /healthz, /livez and /readyz; with `?verbose` they say what was looked at."""

    async def alive(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    def answering(judge: Callable[[], tuple[bool, str]]) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            good, text = judge()
            if good and "verbose" not in request.query:
                return web.Response(text="ok")
            return web.Response(text=text + "\n", status=200 if good else 503)

        return answer

    return _app(
        {
            "/healthz": alive,
            "/healthz/ping": alive,
            "/livez": answering(shown.health.live),
            "/readyz": answering(shown.health.ready),
        }
    )


def tls(settings: ProcessSettings) -> ssl.SSLContext | None:
    """Return how the health server identifies itself; None serves plain HTTP."""
    if not settings.tls_cert_file:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_verify_locations(settings.ca_cert_file)
        context.load_cert_chain(settings.tls_cert_file, settings.tls_private_key_file)
    except (OSError, ssl.SSLError) as error:
        files = f"{settings.ca_cert_file}, {settings.tls_cert_file}, {settings.tls_private_key_file}"
        raise StartError(f"the files of the health server's certificate ({files}) cannot be used: {error}") from error
    return context


def _app(routes: dict[str, Handler]) -> web.Application:
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    return app


async def _start_levels(log: Log, folder: str) -> web.AppRunner:
    try:
        return await verbosity.start(log, folder)
    except OSError as error:
        raise StartError(f"{logs.SOCKET_FOLDER}={folder}: cannot listen there: {error.strerror or error}") from error


class Listener:
    """Serves an application on one address, to so many clients at once that they cannot use up the files of the process.

    Whoever has been there longest goes first: a client that only keeps its connection locks nobody out. Those who are `spared` go after all others.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        most: int = MOST_CONNECTIONS,
        patience: float = 0.5,
        spared: Callable[[object], bool] = lambda _connection: False,
    ) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=patience, auto_decompress=False)
        self._most = most
        self._spared = spared
        self._listening: asyncio.Server | None = None
        self._handshakes: handshakes.Handshakes | None = None

    async def start(self, address: addresses.Address, context: ssl.SSLContext | None) -> addresses.Address:
        """Listen; returns where, with the port that was found if any would do."""
        client_faults.leave_out()
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(
            self._admit, address.host, address.port, start_serving=context is None
        )
        if context is not None:
            self._handshakes = handshakes.Handshakes(self._admit, context)
            self._handshakes.listen(self._listening)
        bound = self._listening.sockets[0].getsockname()
        return addresses.Address(bound[0], bound[1])

    def _admit(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        assert server is not None  # noqa: S101  it was set up before anybody could come
        there = server.connections
        for oldest in sorted(there, key=self._spared)[: max(0, len(there) + 1 - self._most)]:
            transport = oldest.transport
            oldest.force_close()
            if transport is not None:
                transport.abort()  # without the goodbye of TLS, for which a client may take its time
        return server()

    def close_those(self, which: Callable[[asyncio.BaseTransport], bool]) -> None:
        """Close some connections, whatever is under way on them."""
        server = self._runner.server
        for each in list(server.connections) if server is not None else ():
            if each.transport is not None and which(each.transport):
                each.transport.abort()

    async def cleanup(self) -> None:
        """Stop listening and close what is open."""
        if self._handshakes is not None:
            await self._handshakes.close()
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()


async def _start(app: web.Application, listen: str, context: ssl.SSLContext | None, log: Log, what: str) -> Listener:
    address = addresses.parse(listen)
    listener = Listener(app)
    try:
        bound = await listener.start(address, context)
    except OSError as error:
        await listener.cleanup()
        raise StartError(f"cannot serve {what} on {address}: {error.strerror or error}") from error
    log.info("serving", what=what, address=str(bound), tls=context is not None)
    return listener
