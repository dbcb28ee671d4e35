"""Reads a list in pages, all of them of one version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pumice.kube import errors
from pumice.kube.watches import arrivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.reflector import Listing
    from pumice.kube.watches.arrivals import Arrival
    from pumice.kube.watches.watching import Source, WatchSpec

CHUNK: Final = 200
"""Objects that are decoded before others get a turn on the event loop."""
_RESTARTS: Final = 4
_STEP: Final = 4


class PagedList:
    """Reads the objects of one watch; a list that falls apart on the way is begun anew, in pages of another size."""

    def __init__(self, source: Source, spec: WatchSpec, page_size: int) -> None:
        self._source = source
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
        """Read page after page and return the version that they all have."""
        spec, query, version = self._spec, {**self._spec.query, "limit": str(size)}, ""
        while True:
            page = arrivals.page(await self._source.list_page(spec.kind, query=query))
            version = version or page.version
            for index, raw in enumerate(page.items, start=1):
                listing.add(arrivals.arrival(spec.kind, raw, keep=spec.keep_raw))
                if index % CHUNK == 0:
                    await asyncio.sleep(0)
            if not page.token:
                return version
            query["continue"] = page.token
