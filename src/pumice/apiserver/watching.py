"""Watches: events of one kind from a version on, filtered, in the form that was asked for.

A watch holds a place in the history and nothing else: one that nobody reads costs a full socket buffer, and once the history has passed it, it ends.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver import reading, requests, selectors, statuses, versions
from pumice.apiserver.tables import rendering
from pumice.sim import errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pumice.apiserver.durability import Bells, Durability
    from pumice.apiserver.requests import Form, Target
    from pumice.apiserver.resources import Resource
    from pumice.sim.history import Watch, WatchEvent
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
BOOKMARK_SECONDS: Final = 60.0
BATCH_BYTES: Final = 256 * 1024
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}
_KEPT: Final = 4096


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch was asked for."""

    target: Any
    matches: Any
    form: Any
    include: str = "Metadata"
    version: int = 0
    initial: bool = False  # everything that is there comes first
    initial_end: bool = False  # and its end is told
    bookmarks: bool = False
    seconds: float = 1800.0


def asked(target: Target, query: Mapping[str, str], form: Form, now: int) -> Ask:
    """Read what a watch is to be."""
    stated = query.get("resourceVersion", "")
    version = reading.parse_version(stated)
    send = query.get("sendInitialEvents")
    if send is not None and query.get("resourceVersionMatch") != "NotOlderThan":
        raise statuses.Problem(422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')  # fmt: skip
    if send is None and query.get("resourceVersionMatch"):
        raise statuses.Problem(422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')  # fmt: skip
    if version > now:
        raise reading.too_new(version, now)
    seconds = requests.number(query, "timeoutSeconds") or 0
    bookmarks = requests.is_true(query.get("allowWatchBookmarks"))
    initial = requests.is_true(send) if send is not None else version == 0
    return Ask(
        target=target,
        matches=reading.selection(target, query),
        form=form,
        include=query.get("includeObject") or "Metadata",
        version=now if initial or version == 0 else version,
        initial=initial,
        initial_end=requests.is_true(send) and bookmarks,
        bookmarks=bookmarks,
        seconds=float(seconds) if seconds > 0 else random.uniform(1800, 3600),  # noqa: S311
    )


class Watching:
    """Serves watches; what several of them send is encoded once."""

    def __init__(self, store: ObjectStore, durability: Durability, bells: Bells, now: Callable[[], int]) -> None:
        self._store = store
        self._durability = durability
        self._bells = bells
        self._now = now
        self._encoded: dict[tuple[str, str], tuple[Mapping[str, Any], bytes]] = {}
        self.open = 0

    def start(self, ask: Ask) -> tuple[Watch, list[Mapping[str, Any]]]:
        """Take a place in the history, and all that is there if that is to come first; refuses a version that is forgotten."""
        resource = ask.target.resource
        try:
            watch = self._store.watch(resource.kind, str(ask.version))
        except errors.GoneError as error:
            raise statuses.expired(f"too old resource version: {ask.version} ({error})") from None
        first: list[Mapping[str, Any]] = []
        if ask.initial:
            first = [each for each in self._store.scan(resource.kind) if self._wanted(ask, each)]
            first.sort(key=reading.place)
        return watch, first

    async def stream(self, ask: Ask, watch: Watch, first: list[Mapping[str, Any]]) -> AsyncIterator[bytes]:
        """Give the events in batches of lines until the time is over."""
        self.open += 1
        try:
            async for batch in self._batches(ask, watch, first):
                yield batch
        finally:
            self.open -= 1

    async def _batches(self, ask: Ask, watch: Watch, first: list[Mapping[str, Any]]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end, bookmark_at = loop.time() + ask.seconds, loop.time() + BOOKMARK_SECONDS
        for batch in _joined(self._line(ask, "ADDED", each) for each in first):
            yield batch
        if ask.initial_end:
            yield self._bookmark(ask, ask.version, _INITIAL_END)
        while loop.time() < end:
            try:
                events = watch.take()
            except errors.GoneError as error:
                yield _error(statuses.expired(f"too old resource version ({error})"))
                return
            if events:
                await self._durability.wait(events[-1].version)
                for batch in _joined(self._lines(ask, events)):
                    yield batch
                continue
            await self._bells.wait(ask.target.resource.kind, min(end, bookmark_at) - loop.time())
            if ask.bookmarks and loop.time() >= bookmark_at:
                bookmark_at = loop.time() + BOOKMARK_SECONDS
                yield self._bookmark(ask, watch.bookmark().version)

    def _lines(self, ask: Ask, events: list[WatchEvent]) -> list[bytes]:
        lines = []
        for event in events:
            kind = self._seen_as(ask, event)
            if kind:
                lines.append(self._line(ask, kind, event.object))
        return lines

    def _seen_as(self, ask: Ask, event: WatchEvent) -> str:
        """Say what an event is to a watch of a selection: an object may enter it and leave it by a change."""
        now = self._wanted(ask, event.object)
        if event.type == "ADDED":
            return "ADDED" if now else ""
        before = event.previous is not None and self._wanted(ask, event.previous)
        if event.type == "DELETED":
            return "DELETED" if before or now else ""
        return ("MODIFIED" if before else "ADDED") if now else "DELETED" if before else ""

    def _wanted(self, ask: Ask, manifest: Mapping[str, Any]) -> bool:
        if ask.target.namespace and manifest["metadata"].get("namespace") != ask.target.namespace:
            return False
        return ask.matches is selectors.everything or bool(ask.matches(manifest))

    def _line(self, ask: Ask, kind: str, manifest: Mapping[str, Any]) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self._object(ask, manifest))

    def _object(self, ask: Ask, manifest: Mapping[str, Any]) -> bytes:
        resource: Resource = ask.target.resource
        if ask.form == "table":
            metadata = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
            return msgspec.json.encode(rendering.table(resource, [manifest], self._now(), ask.include, metadata))
        if ask.form == "metadata":
            return msgspec.json.encode(rendering.partial(manifest))
        return self.encoded(manifest, resource)

    def encoded(self, manifest: Mapping[str, Any], resource: Resource) -> bytes:
        """Encode an object as a version has it; a stored one only once, however many ask for it."""
        version = manifest["metadata"].get("resourceVersion")
        if version is None:
            return msgspec.json.encode(versions.told(manifest, resource))
        key = (version, resource.api_version)
        found = self._encoded.get(key)
        if found is None or found[0] is not manifest:
            if len(self._encoded) >= _KEPT:
                self._encoded.clear()
            found = self._encoded[key] = (manifest, msgspec.json.encode(versions.told(manifest, resource)))
        return found[1]

    def _bookmark(self, ask: Ask, version: int, annotations: Document | None = None) -> bytes:
        resource: Resource = ask.target.resource
        metadata: Document = {"resourceVersion": str(version), "creationTimestamp": None}
        metadata |= {"annotations": annotations} if annotations else {}
        told: Document = {"kind": resource.kind_name, "apiVersion": resource.api_version, "metadata": metadata}
        if ask.form == "table":
            told = rendering.table(resource, [], self._now(), ask.include, metadata)
        elif ask.form == "metadata":
            told = rendering.partial(told)
        return msgspec.json.encode({"type": "BOOKMARK", "object": told}) + b"\n"


def _error(problem: statuses.Problem) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": problem.status()}) + b"\n"


def _joined(lines: Any) -> Any:
    """Put lines together into pieces of a decent size."""
    piece: list[bytes] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= BATCH_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)
