"""The verbs of the Kubernetes API that a scheduler uses, typed by kind, limited in rate, sent again where that is safe."""

from __future__ import annotations

import asyncio
import math
import random
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from pumice import __version__
from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls import lines
from pumice.kube.calls.limiter import Limiter
from pumice.kube.calls.paths import path, with_query
from pumice.kube.calls.retrying import RetryPolicy
from pumice.kube.calls.transport import LARGEST_ANSWER, Request, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from types import TracebackType

    from pumice.kube.access.endpoint import Connection
    from pumice.kube.calls.channels import Channel

__all__ = ["Client", "RetryPolicy", "path"]

Manifest = dict[str, Any]

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
STRATEGIC: Final = "application/strategic-merge-patch+json"
USER_AGENT: Final = f"pumice/{__version__}"
CONCURRENCY: Final = 64
_SHORTEST: Final = 0.5

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Manifest)


class Client:
    """A client of one API server, used inside `async with`.

    Reads are tried several times. A write is sent again only if it certainly did not happen; if it may have happened, `UnknownOutcomeError` is
    raised. At most `concurrency` requests are on their way at once (watches not counted), `qps` start each second after a burst. `allowance` is the
    fence before every write: it says how many seconds a write may take from now on, and with less than half a second none leaves.
    `way` makes the way to the server, given the size of the largest answer, where that is not the connection's.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        qps: float = 2000.0,
        burst: int = 2000,
        timeout: float = 30.0,
        user_agent: str = USER_AGENT,
        retry: RetryPolicy | None = None,
        concurrency: int = CONCURRENCY,
        largest_answer: int = LARGEST_ANSWER,
        rng: random.Random | None = None,
        allowance: Callable[[], float] = lambda: math.inf,
        way: Callable[[int], Channel] | None = None,
    ) -> None:
        self.connection = connection
        self._allowance = allowance
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._rng = rng or random.Random()  # noqa: S311  spreads retries, guards nothing
        self._limiter = Limiter(qps, burst)
        self.sent = 0  # requests, watches aside
        self._transport = Transport(connection, user_agent=user_agent, largest=largest_answer, way=way)

    def __repr__(self) -> str:
        return f"Client({self.connection!r})"

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool] | None = None,
        body: object = None,
        content_type: str = JSON,
        attempts: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  one limit for each attempt, not for all of them
    ) -> bytes:
        """Send a request, again if need be, and return the body of the answer; `body` is bytes, or anything that is JSON."""
        data = body if body is None or isinstance(body, bytes) else _ENCODER.encode(body)
        request = Request(
            method=method,
            path=with_query(path, query),
            body=data,
            content_type="" if data is None else content_type,
        )
        most, limit = attempts or self._retry.attempts, timeout or self._timeout
        attempt = 1
        while True:
            await self._limiter.acquire()
            self.sent += 1
            try:
                async with self._slots:
                    return await self._transport.exchange(request, lambda: self._limit(request, limit))
            except errors.KubeError as error:
                delay = self._retry.delay(error, attempt, write=request.write, rng=self._rng)
                if delay is None or attempt >= most:
                    raise
            await asyncio.sleep(delay)
            attempt += 1

    def _limit(self, request: Request, most: float) -> float:
        """Return how long a request may take, asked right before it leaves: a write may have waited long for its turn, or for credentials."""
        if not request.write:
            return most
        allowed = self._allowance()
        if allowed < _SHORTEST:
            text = f"{request.title} was not sent: the lease is not held, or was renewed too long ago"
            raise errors.UnreachableError(text, transient=False)
        # In halves of a second, so that there are few different limits.
        return most if allowed >= most else math.floor(2 * allowed) / 2

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> Manifest:
        """Read one object."""
        where = path(kind, namespace, name)
        return _manifest(await self.request("GET", where), f"GET {where}")

    async def list_page(
        self, kind: kinds.Kind, *, namespace: str = "", query: Mapping[str, str | int | bool] | None = None
    ) -> bytes:
        """Read a page of a list, as the JSON that the server sent."""
        return await self.request("GET", path(kind, namespace), query=query)

    def stream(
        self,
        kind: kinds.Kind,
        *,
        namespace: str = "",
        query: Mapping[str, str | int | bool] | None = None,
        silence: float,
    ) -> AsyncGenerator[bytes, None]:
        """Watch a kind: yield each line until the server ends the stream.

        Raises `ApiError` if it is refused, `SilenceError` after so many seconds without a byte, `BrokenConnectionError` if it is cut.
        """
        request = Request(method="GET", path=with_query(path(kind, namespace), {**(query or {}), "watch": True}))
        return lines.stream(self._transport, self._limiter, request, silence)

    async def create(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object and return it as it was stored."""
        where = path(kind, manifest.get("metadata", {}).get("namespace", "") if kind.namespaced else "")
        return _written(await self.request("POST", where, body=manifest), f"POST {where}")

    async def replace(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> Manifest:
        """Replace an object that nobody has changed since the `resourceVersion` in it; meant for leases."""
        metadata = manifest["metadata"]
        where = path(kind, metadata.get("namespace", "") if kind.namespaced else "", metadata["name"])
        return _written(await self.request("PUT", where, body=manifest), f"PUT {where}")

    async def patch(
        self,
        kind: kinds.Kind,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        strategic: bool = False,
    ) -> Manifest:
        """Merge a body into an object and return the result; `strategic` merges lists by their keys, for built-in kinds only."""
        where = path(kind, namespace, name, subresource)
        content_type = STRATEGIC if strategic else MERGE
        return _written(await self.request("PATCH", where, body=body, content_type=content_type), f"PATCH {where}")

    async def apply(
        self,
        kind: kinds.Kind,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        *,
        manager: str,
        subresource: str = "",
    ) -> Manifest:
        """Apply fields in the name of a manager, whoever else owns them, and return the result."""
        where = path(kind, namespace, name, subresource)
        query: dict[str, str | int | bool] = {"fieldManager": manager, "force": True}
        answer = await self.request("PATCH", where, query=query, body=document, content_type=APPLY)
        return _written(answer, f"PATCH {where}")

    async def delete(
        self,
        kind: kinds.Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_seconds: int | None = None,
        policy: str = "",
    ) -> None:
        """Delete an object, if a uid is given only the one with it; the policy says what becomes of those it owns."""
        options = _delete_options(uid, grace_seconds)
        if policy:
            options["propagationPolicy"] = policy
        await self.request("DELETE", path(kind, namespace, name), body=options)

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind a pod to a node."""
        metadata: Manifest = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self.request("POST", path(kinds.POD, namespace, name, "binding"), body=body)

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Ask for a pod's eviction, which disruption budgets may refuse."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid, grace_seconds),
        }
        await self.request("POST", path(kinds.POD, namespace, name, "eviction"), body=body)


def _delete_options(uid: str, grace_seconds: int | None) -> Manifest:
    options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _manifest(body: bytes, title: str) -> Manifest:
    """Decode an object that was read."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise errors.BrokenConnectionError(f"{title}: the answer of {len(body)} bytes is no JSON object") from None


def _written(body: bytes, title: str) -> Manifest:
    """Decode the answer to a write; one that cannot be read does not say that it happened."""
    try:
        return _manifest(body, title)
    except errors.BrokenConnectionError as error:
        raise errors.UnknownOutcomeError(f"{error}; the write may have happened") from None
