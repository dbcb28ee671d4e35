"""Requests to a server without a proxy in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pumice.kube import errors
from pumice.kube.calls import answers
from pumice.kube.calls.dialling import Dialler, DiallingError
from pumice.kube.calls.http_answers import Answer, GarbledAnswerError
from pumice.kube.calls.pool import Pool

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from pumice.kube.calls.requests import Head, Request

_PORTS: Final = {"http": 80, "https": 443}


class Direct:
    """A pool of connections to one server."""

    failures: tuple[type[Exception], ...] = (DiallingError, OSError, GarbledAnswerError, errors.OversizeError)

    def __init__(self, server: str, server_name: str, largest: int) -> None:
        parts = urlsplit(server)
        self._server = server
        self._prefix = parts.path
        self._largest = largest
        port = parts.port or _PORTS[parts.scheme]
        self._pool = Pool(Dialler(parts.hostname or "", port, server_name=server_name))

    async def close(self) -> None:
        """End all connections."""
        self._pool.close()

    async def exchange(self, request: Request, head: Head, context: ssl.SSLContext | None, limit: float) -> Answer:
        """Send a request and return the whole answer, within so many seconds."""
        answer = Answer(self._largest, bodiless=request.method == "HEAD")
        await self._pool.exchange(head.written(request, self._prefix), answer, context, limit)
        return answer

    def stream(
        self, request: Request, head: Head, context: ssl.SSLContext | None, answer: Answer, silence: float
    ) -> AsyncGenerator[bytes, None]:
        """Send a request and yield its answer as it arrives, first nothing when its head is there."""
        return self._pool.stream(head.written(request, self._prefix), answer, context, silence)

    def explain(self, error: Exception, request: Request, limit: float, *, silence: bool = False) -> errors.KubeError:
        """Return what a failure means for a request."""
        if isinstance(error, DiallingError):
            return answers.unreachable(error.cause, request, self._server)
        if isinstance(error, errors.OversizeError):
            return answers.oversized(error, request, self._server)
        if not isinstance(error, TimeoutError) or error.errno:
            return answers.broken(error, request, self._server)
        if silence:
            return errors.SilenceError(f"{request.title}: no byte arrived for {limit:g} s")
        return answers.unanswered(request, self._server, f"no whole answer within {limit:g} s")
