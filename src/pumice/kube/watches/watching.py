"""What is watched, for whom, through what: the records and protocols that the watches of one API server share."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  msgspec reads the annotations at run time
from typing import TYPE_CHECKING, Protocol

import msgspec

from pumice.kube.watches.sharing import Sharing

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncGenerator, Awaitable, Mapping

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType


class Source(Protocol):
    """The part of the client that watches need."""

    async def list_page(self, kind: kinds.Kind, *, query: Mapping[str, str]) -> bytes:
        """Return the JSON of a list."""
        ...

    async def request(self, method: str, path: str, /) -> bytes:
        """Send a request and return the body of the answer."""
        ...

    def stream(self, kind: kinds.Kind, *, query: Mapping[str, str], silence: float) -> AsyncGenerator[bytes, None]:
        """Give the lines of a watch; an error is raised where one is met, a clean end is the end."""
        ...


class Sink(Protocol):
    """Whoever wants to know what changes; called on the event loop, so it must not block."""

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change; `raw` is the object's JSON if its watch keeps it (in which listed objects do not name their kind), else empty."""
        ...


class WatchSpec(msgspec.Struct, frozen=True):
    """What to follow; several watches of one kind are independent, so no object should be selected by two of them.

    `squeeze` makes less of an object's JSON before it is kept; of the object itself only its metadata is then read. A watch that comes `later` begins when the
    others have their lists, and nobody who only decides waits for it.
    """

    kind: kinds.Kind
    field_selector: str = ""
    label_selector: str = ""
    keep_raw: bool = False
    squeeze: Callable[[bytes], bytes] | None = None
    later: bool = False

    @property
    def query(self) -> dict[str, str]:
        """The selectors as the API server takes them."""
        selectors = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {key: value for key, value in selectors.items() if value}

    def __str__(self) -> str:
        """Return resource, group and selectors, as messages name the watch."""
        name = f"{self.kind.plural}.{self.kind.group}/{self.kind.version}" if self.kind.group else self.kind.plural
        return " ".join([name, *self.query.values()])


class FollowSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, and times in seconds."""

    page_size: int = 500
    silence: float = 90.0
    probe_interval: float = 60.0
    watch_seconds: tuple[int, int] = (300, 600)
    streaming: bool = True
    streaming_again: float = 600.0


class Surroundings:
    """What the watches of one API server share."""

    def __init__(
        self,
        source: Source,
        sink: Sink,
        settings: FollowSettings,
        *,
        rng: random.Random,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.source = source
        self.sink = sink
        self.settings = settings
        self.rng = rng
        self.now = now
        self.sleep = sleep
        self.sharing = Sharing()
        self._declined_until = float("-inf")

    @property
    def streaming(self) -> bool:
        """Whether lists are asked for as streams: not for a while after the server has declined."""
        return self.settings.streaming and self.now() >= self._declined_until

    def decline_streaming(self) -> None:
        """Note that the server offers no lists as streams."""
        self._declined_until = self.now() + self.settings.streaming_again
