"""Follows the objects of one kind on an API server: list, watch, and whatever it takes to go on when either fails.

```
              ┌──────────────── 410, silent twice, or asked for ─────────────┐
              ▼                                                              │
 starting ─▶ listing ── complete ──▶ watching ── broken, silent ──▶ waiting ─┴─▶ watching from the last version
              │   ▲                    │  ▲                         (back-off with jitter, for ever)
              │   │                    └──┘ ended by the server
              ├───┴─ 404: absent, probed now and then
              └───── 403: forbidden, tried again with back-off
```

What arrives is held against what is known (`cache.reflector`), so the sink sees each change once and in order, whatever was cut, repeated or lost.
A list is delivered when it is complete, never in parts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, NoReturn, cast

from pumice.api import kinds, meta, usage
from pumice.cache import reflector
from pumice.kube import errors
from pumice.kube.watches import arrivals, discovery, lists, recovery, streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pumice.cache.reflector import Delivery, EventType, Listing
    from pumice.kube.watches.arrivals import Arrival, Line
    from pumice.kube.watches.watching import Surroundings, WatchSpec

State = Literal["starting", "listing", "watching", "waiting", "absent", "forbidden"]
_MOST_DOUBLINGS: Final = 16


class Follower:
    """Runs one watch; `told` is called after each complete list."""

    def __init__(self, spec: WatchSpec, around: Surroundings, told: Callable[[], None]) -> None:
        self.spec = spec
        self.state: State = "starting"
        self.synced = False
        self.lists = 0
        self.errors = 0
        self.error = ""
        self.last_heard: float | None = None
        self._around = around
        self._told = told
        self._reflector = reflector.Reflector(spec.kind, arrivals.identify, arrivals.tombstone)
        self._backoff = recovery.Backoff(around.rng)
        self._doubts = 0  # failures in a row that a list may cure
        self._expired = 0  # answers in a row that the history is gone
        self._misses = 0  # answers in a row that the kind is not served
        self._unserved = False  # whether that was told
        self._requests = 0  # how often a list was asked for
        self._next_list = asyncio.Event()
        self._scope: asyncio.Timeout | None = None

    @property
    def version(self) -> str:
        """The version up to which everything has been seen; empty before the first list, and while the kind is not served."""
        return self._reflector.resource_version

    def __len__(self) -> int:
        return len(self._reflector)

    async def run(self) -> NoReturn:
        """Follow the objects until cancelled."""
        while True:
            try:
                async with asyncio.timeout(None) as self._scope:
                    await self._step()
            except TimeoutError:
                if not (self._scope and self._scope.expired()):
                    raise
            finally:
                self._scope = None

    async def catch_up(self, version: str, *, grace: float = 1.0) -> None:
        """Return when everything up to a version has been seen.

        A watch on which little happens learns of new versions once a minute only, so it is told to list; a large one is first given some time to
        get there by itself.
        """
        if len(self) > self._around.settings.page_size and not self._has_seen(version):
            await self._around.sleep(grace)
        if not self._has_seen(version):
            listed = self._next_list
            self.relist()
            await listed.wait()

    def relist(self) -> None:
        """Leave whatever is going on and list; what differs is delivered."""
        self._requests += 1
        self._reflector.gone()
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    def _has_seen(self, version: str) -> bool:
        return bool(self.version) and not reflector.newer(version, self.version)

    # -- list and watch ----------------------------------------------------------------------------------------

    async def _step(self) -> None:
        try:
            if not self._reflector.must_list:
                await self._resume()
            elif self._around.streaming:
                await self._list_as_stream()
            else:
                await self._list_in_pages()
        except errors.KubeError as error:
            await self._around.sleep(self._recover(await self._explained(error)))

    async def _explained(self, error: errors.KubeError) -> errors.KubeError:
        """Find out whether a kind that is forbidden is served at all: permissions are asked first, and discovery is open to everybody."""
        kind = self.spec.kind
        if not (isinstance(error, errors.ApiError) and error.status == 403 and kind.group):
            return error
        try:
            served = await discovery.served(self._around.source, [kind.api_version])
        except errors.KubeError:
            return error
        if (kind.api_version, kind.plural) in served:
            return error
        return errors.ApiError(404, "NotFound", f"{kind.plural} of {kind.api_version} are not served")

    async def _resume(self) -> None:
        query = {"resourceVersion": self.version}
        async with streams.opened(self._around, self.spec, query, self._heard) as events:
            await self._follow(events)

    async def _list_as_stream(self) -> None:
        """List and watch in one request; if the server does not offer that, the next step lists in pages."""
        self.state = "listing"
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            async with streams.opened(self._around, self.spec, query, self._heard) as events:
                await self._initial(events)
                await self._follow(events)
        except errors.KubeError as error:
            if not self._reflector.must_list or not recovery.declines_streaming(error):
                raise
            self._around.decline_streaming()

    async def _list_in_pages(self) -> None:
        self.state, request = "listing", self._requests
        pages = lists.PagedList(self._around.source, self.spec, self._around.settings.page_size, self._around.sharing)
        listing, version = await pages.read(self._reflector.listing)
        self._listed(listing, version, request)

    async def _initial(self, events: AsyncIterator[Line]) -> None:
        """Take the objects that exist, and what happens to them meanwhile, up to the bookmark that says that these were all."""
        request, listing = self._requests, self._reflector.listing()
        async for event in events:
            if event.type == "BOOKMARK":
                version, complete = arrivals.bookmark(event)
                if complete:
                    self._listed(listing, version, request)
                    return
                break
            if event.type == "DELETED":
                listing.remove(self._arrival(event))
            else:
                listing.add(self._arrival(event))
        raise recovery.NotOfferedError("the server did not say where its list ends")

    async def _follow(self, events: AsyncIterator[Line]) -> None:
        self.state = "watching"
        async for event in events:
            self._progressed()
            if event.type != "BOOKMARK":
                self._deliver(self._reflector.event(cast("EventType", event.type), self._arrival(event)))
                continue
            version, _ = arrivals.bookmark(event)
            if reflector.newer(self.version, version):
                text = f"version {version} came after {self.version}: the server's storage has gone back in time"
                raise errors.ApiError(410, "Expired", text)
            self._reflector.bookmark(version)

    # -- what comes of it --------------------------------------------------------------------------------------

    def _heard(self) -> None:
        self.last_heard = self._around.now()

    def _progressed(self) -> None:
        """Note that the watch works; a list alone does not show that, so that one which is always followed by a failure is not repeated at once."""
        self.error = ""
        self._backoff.reset()
        self._doubts = self._expired = 0

    def _arrival(self, event: Line) -> Arrival:
        spec, sharing = self.spec, self._around.sharing
        return arrivals.arrival(spec.kind, event.object, keep=spec.keep_raw, squeeze=spec.squeeze, sharing=sharing)

    def _deliver(self, deliveries: list[Delivery[Arrival]]) -> None:
        kind, feed, keep = self.spec.kind, self._around.sink.feed, self.spec.keep_raw
        deliveries.reverse()
        while deliveries:  # each is let go of at once: a list may be long
            event_type, (found, raw) = deliveries.pop()
            feed(kind, event_type, found, raw if keep else b"")

    def _listed(self, listing: Listing[Arrival], version: str, request: int) -> None:
        """Take a complete list; if another was asked for after this one had begun, that one is still due."""
        self._deliver(self._reflector.complete(listing, version))
        self.lists += 1
        self.error = ""
        self._misses = 0
        self.last_heard = self._around.now()
        if request != self._requests:
            self._reflector.gone()
            return
        listed, self._next_list = self._next_list, asyncio.Event()
        listed.set()
        self.synced = True
        if version:
            self._tell_served(served=True)
        self._told()

    def _tell_served(self, *, served: bool) -> None:
        """Say of a kind that pods refer to whether it is served, if that is news: who waits for an object of it is told so."""
        kind = self.spec.kind
        if kind is not kinds.NATIVE_POD_GROUP or self._unserved is (not served):
            return
        self._unserved = not served
        told = usage.UnservedKind(metadata=meta.ObjectMeta(name=f"{kind.plural}.{kind.group}"))
        self._around.sink.feed(kinds.UNSERVED_KIND, "DELETED" if served else "ADDED", told, b"")

    def _recover(self, error: errors.KubeError) -> float:
        """Decide how to go on after a failure, and return how long to wait before."""
        remedy = recovery.remedy(error, again=self._doubts > 0)
        self._doubts += 1
        if remedy != "resume":
            self._reflector.gone()
        if remedy == "absent" and self.spec.kind.group:
            return self._missed()
        self.state = "forbidden" if remedy == "forbidden" else "waiting"
        self.errors += 1
        self.error = f"{self.spec}: {error}"
        if isinstance(error, errors.ApiError) and remedy == "forbidden":
            self.error = f"{self.spec}: {recovery.missing_permission(self.spec.kind, error)}"
        asked = error.retry_after if isinstance(error, errors.ApiError) else None
        if remedy == "relist" and isinstance(error, errors.ApiError):
            if not self._expired:
                # It answers again: what was missed while it was away need not wait as long as that lasted.
                self._backoff.reset()
            self._expired += 1
        first = self._backoff.failures == 0
        delay = self._backoff.delay(asked=asked)
        return 0.0 if first and remedy == "relist" else delay

    def _missed(self) -> float:
        """Take a kind that is not served for empty, if there were objects only after a second look; look again soon, and then less and less often.

        Whoever replaces a definition does so within seconds.
        """
        self._misses += 1
        if len(self) and self._misses == 1:
            self.state = "waiting"
            return self._backoff.delay()
        self._backoff.reset()
        misses = self._misses
        self._listed(self._reflector.listing(), "", self._requests)
        self._misses = misses
        self._reflector.gone()
        self.state = "absent"
        self._tell_served(served=False)
        pause = min(self._around.settings.probe_interval, 2.0 ** min(misses, _MOST_DOUBLINGS))
        return pause * self._around.rng.uniform(0.9, 1.1)
