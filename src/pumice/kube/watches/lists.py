"""Reads a list in pages, all of them of one version, and no longer than a list can be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pumice.kube import errors
from pumice.kube.watches import arrivals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from pumice.cache.reflector import Listing
    from pumice.kube.watches.arrivals import Arrival
    from pumice.kube.watches.sharing import Sharing
    from pumice.kube.watches.watching import Source, WatchSpec

CHUNK: Final = 200
"""Objects that are decoded before others get a turn on the event loop."""
MOST: Final = 10_000_000
"""Objects of one list: more than the storage of any API server holds."""
BARREN: Final = 100
"""Pages in a row that may bring nothing new; a server that filters late sends a few."""
_RESTARTS: Final = 4
_STEP: Final = 4


class EndlessListError(errors.KubeError):
    """A list whose end is not in sight: some server or proxy hands out tokens for ever."""


class PagedList:
    """Reads the objects of one watch; a list that falls apart on the way is begun anew, in pages of another size."""

    def __init__(self, source: Source, spec: WatchSpec, page_size: int, sharing: Sharing | None = None) -> None:
        self._source = source
        self._sharing = sharing
        self._spec = spec
        self._page_size = page_size

    async def read(self, begin: Callable[[], Listing[Arrival]]) -> tuple[Listing[Arrival], str]:
        """Return the complete list and its version.

        When a page is gone because the version has been compacted, reading took too long, so that larger pages help; when a page is larger than what
        the client reads, smaller ones do.
        """
        size = self._page_size
        for _ in range(_RESTARTS):
            listing = begin()
            try:
                return listing, await self._pages(listing, size)
            except errors.ApiError as error:
                if error.status != 410:
                    raise
                size *= _STEP
            except errors.OversizeError:
                if size == 1:
                    raise
                size = max(1, size // _STEP)
        listing = begin()
        return listing, await self._pages(listing, size)

    async def _pages(self, listing: Listing[Arrival], size: int) -> str:
        """Read page after page and return the version that they all have; the server writes the next one while we read this one."""
        progress, version = _Progress(self._spec), ""
        asked = self._ask(size)
        try:
            while True:
                page = arrivals.page(await asked)
                version = version or page.version
                if page.token:
                    asked = self._ask(size, page.token)
                await self._take(listing, page.items)
                if not page.token:
                    return version
                progress.check(len(listing.found), page.token)
        finally:
            asked.cancel()

    def _ask(self, size: int, token: str = "") -> asyncio.Task[bytes]:
        query = {**self._spec.query, "limit": str(size), **({"continue": token} if token else {})}
        return asyncio.ensure_future(self._source.list_page(self._spec.kind, query=query))

    async def _take(self, listing: Listing[Arrival], items: Sequence[msgspec.Raw]) -> None:
        spec, sharing = self._spec, self._sharing
        for index, raw in enumerate(items):
            if index % CHUNK == 0:
                await asyncio.sleep(0)
            listing.add(arrivals.arrival(spec.kind, raw, keep=spec.keep_raw, squeeze=spec.squeeze, sharing=sharing))


class _Progress:
    """Looks at a list after each page that is not its last."""

    def __init__(self, spec: WatchSpec) -> None:
        self._spec = spec
        self._token = ""
        self._pages = 0
        self._objects = 0
        self._barren = 0

    def check(self, objects: int, token: str) -> None:
        """Take note of a page: so many objects are known now, and this asks for the next. Raise `EndlessListError` if that leads nowhere."""
        self._pages += 1
        self._barren = 0 if objects > self._objects else self._barren + 1
        self._objects = objects
        if token == self._token:
            raise self._endless("the next page would be the same once more")
        if self._barren >= BARREN:
            raise self._endless(f"the last {BARREN} of them brought nothing new")
        if objects > MOST:
            raise self._endless(f"that is more than the {MOST} objects that are read of one list")
        self._token = token

    def _endless(self, why: str) -> EndlessListError:
        return EndlessListError(
            f"the list of {self._spec} does not end: {self._objects} objects in {self._pages} pages, and {why}; "
            "look at the API server, or at what answers in its place"
        )
