"""What a way to a server has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from pumice.kube import errors
    from pumice.kube.calls.http_answers import Answer
    from pumice.kube.calls.requests import Head, Request


class Channel(Protocol):
    """A way to the server; what it raises and is among its `failures` it can explain."""

    failures: tuple[type[Exception], ...]

    async def close(self) -> None:
        """End all connections."""

    async def exchange(self, request: Request, head: Head, context: ssl.SSLContext | None, limit: float) -> Answer:
        """Send a request and return the whole answer, within so many seconds."""
        ...

    def stream(
        self, request: Request, head: Head, context: ssl.SSLContext | None, answer: Answer, silence: float
    ) -> AsyncGenerator[bytes, None]:
        """Send a request and yield its answer as it arrives, first nothing when its head is there."""
        ...

    def explain(self, error: Exception, request: Request, limit: float, *, silence: bool = False) -> errors.KubeError:
        """Return what a failure means for a request."""
        ...
