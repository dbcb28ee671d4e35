"""Reads a cluster by list and watch, as far as the user may, and goes on whatever happens to the API server."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.kube.calls.scoped import Scoped
from pumice.kube.watches import watching
from pumice.kube.watches.following import Follower
from pumice.study import rights
from pumice.study.state import Denied, StudyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Sequence

    from pumice.kube.calls.client import Client

MOST_FAILURES: Final = 6
AGAIN: Final = 30.0
"""Seconds until somebody who lacked a right, or a kind that was not served, is tried again."""
PAGE: Final = 1000
NEEDED: Final = {
    "queues": (kinds.QUEUE, kinds.POD_GROUP, kinds.NATIVE_POD_GROUP, kinds.NODE),
    "jobs": (kinds.POD_GROUP, kinds.NATIVE_POD_GROUP, kinds.POD),
    "nodes": (kinds.NODE, kinds.POD),
}
"""What each table is made from."""
_COUNTED: Final = {"queues": kinds.POD_GROUP, "jobs": kinds.POD, "nodes": kinds.POD}
"""What the rows of each table count: without it they would be wrong, not only fewer."""


def specs(sections: Sequence[str]) -> list[watching.WatchSpec]:
    """Say what has to be followed for some tables."""
    return [watching.WatchSpec(kind) for kind in dict.fromkeys(kind for each in sections for kind in NEEDED[each])]


class Reading:
    """The watches of one cluster, and what they say about it."""

    def __init__(
        self, client: Client, specs: Iterable[watching.WatchSpec], sink: watching.Sink, namespace: str
    ) -> None:
        self._sink = sink
        self._namespace = namespace
        self._told = asyncio.Event()
        self._followers = [self._follower(client, spec) for spec in specs]

    def _follower(self, client: Client, spec: watching.WatchSpec) -> Follower:
        patience = _Patience(self._told)
        around = watching.Surroundings(
            Scoped(client, self._namespace),
            self._sink,
            watching.FollowSettings(page_size=PAGE),
            rng=random.Random(),  # noqa: S311  jitter
            now=time.monotonic,
            sleep=patience,
        )
        patience.follower = Follower(spec, around, self._told.set)
        return patience.follower

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow everything while the body runs; who cannot be reached at all is an error."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(follower.run()) for follower in self._followers]
                yield
                for task in tasks:
                    task.cancel()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    @property
    def complete(self) -> bool:
        """Whether everything is there that may be read."""
        return all(follower.synced or follower.state == "forbidden" for follower in self._followers)

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until the lists are complete, but not for longer than so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.complete:
                    self._told.clear()
                    await self._told.wait()

    def missing(self, of: Collection[kinds.Kind] = ()) -> tuple[str, ...]:
        """Say what is not shown, and why; of some kinds alone, if any are named."""
        asked = (follower for follower in self._followers if not of or follower.spec.kind in of)
        return tuple(line for follower in asked if (line := self._gap(follower)))

    def denied(self) -> tuple[Denied, ...]:
        """Name the kinds that may not be listed."""
        return tuple(Denied(each.spec.kind, each.error) for each in self._followers if each.state == "forbidden")

    def wrong(self) -> tuple[str, ...]:
        """Name the tables whose rows could be read and whose counts would be wrong."""
        forbidden = [follower.spec.kind for follower in self._followers if follower.state == "forbidden"]
        return tuple(
            section
            for section, counted in _COUNTED.items()
            if counted in forbidden and NEEDED[section][0] not in forbidden
        )

    def refused(self) -> bool:
        """Tell whether nothing at all may be read."""
        return all(follower.state == "forbidden" for follower in self._followers if not _is_rare(follower))

    def _gap(self, follower: Follower) -> str:
        kind = follower.spec.kind
        resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        if follower.state == "forbidden":
            inside = (
                f"in namespace {self._namespace}" if self._namespace and kind.namespaced else "in the whole cluster"
            )
            advice = "; -n NAMESPACE shows one" if kind.namespaced and not self._namespace else ""
            (rule,) = rights.rules_to_add([Denied(kind, "", verbs=("list", "watch"))])
            return f"{resource} are left out: you may not list and watch them {inside}{advice}; the rule to add: {rule}"
        if follower.state == "absent":
            return "" if _is_rare(follower) else rights.unserved(kind)
        if follower.state == "waiting" and follower.last_heard is not None:
            silent = int(time.monotonic() - follower.last_heard)
            return f"{resource} are as they were {silent} s ago: {follower.error}"
        return "" if follower.synced else f"{resource}: reading, {len(follower)} so far"


def _is_rare(follower: Follower) -> bool:
    """Tell whether a kind is not served that few clusters serve: nobody misses it."""
    return follower.state == "absent" and follower.spec.kind not in (kinds.QUEUE, kinds.POD_GROUP)


class _Patience:
    """Waits between two attempts: for ever once a list was complete, else up to a number of failures in a row."""

    def __init__(self, told: asyncio.Event) -> None:
        self.follower: Follower | None = None
        self._told = told
        self._failures = 0

    async def __call__(self, seconds: float) -> None:
        """Wait, or raise."""
        follower = self.follower
        self._told.set()
        if follower is None or follower.state in ("forbidden", "absent"):
            await asyncio.sleep(max(seconds, AGAIN))
            return
        self._failures += 1
        if not follower.synced and self._failures > MOST_FAILURES:
            raise StudyError(f"the cluster cannot be read: {follower.error}")
        await asyncio.sleep(seconds)
