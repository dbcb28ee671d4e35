"""All watches of a scheduler, run side by side."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import kinds
from pumice.kube.watches import following, watching
from pumice.kube.watches.watching import WatchSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from pumice.cache.options import Options
    from pumice.kube.watches.following import State
    from pumice.kube.watches.watching import Sink, Source


class WatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one watch is doing; ages are in seconds."""

    watch: str
    kind: kinds.Kind
    state: State
    synced: bool
    objects: int
    version: str
    last_heard_age: float | None
    lists: int
    errors: int
    error: str


class Informers:
    """Follows everything that was asked for, and tells the sink what changes."""

    def __init__(
        self,
        client: Source,
        specs: Sequence[WatchSpec],
        sink: Sink,
        *,
        page_size: int = 500,
        silence: float = 90.0,
        probe_interval: float = 60.0,
        streaming: bool = True,
        rng: random.Random | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        settings = watching.FollowSettings(
            page_size=page_size, silence=silence, probe_interval=probe_interval, streaming=streaming
        )
        around = watching.Surroundings(client, sink, settings, rng=rng or random.Random(), now=now, sleep=sleep)  # noqa: S311  jitter
        self._now = now
        self._first_listed, self._all_listed = asyncio.Event(), asyncio.Event()
        self._followers = [following.Follower(spec, around, self._listed) for spec in specs]

    async def run(self) -> None:
        """Run all watches until cancelled: those that come later once the others have their lists."""
        self._listed()
        async with asyncio.TaskGroup() as running:
            for follower in self._first:
                running.create_task(follower.run(), name=f"watch {follower.spec}")
            await self._first_listed.wait()
            for follower in self._followers:
                if follower.spec.later:
                    running.create_task(follower.run(), name=f"watch {follower.spec}")

    @property
    def _first(self) -> list[following.Follower]:
        return [follower for follower in self._followers if not follower.spec.later]

    @property
    def synced(self) -> bool:
        """Whether every watch has had a complete list; one of a kind that is not served counts as empty."""
        return all(follower.synced for follower in self._followers)

    async def wait_first(self) -> None:
        """Return when every watch that does not come later has had a complete list."""
        await self._first_listed.wait()

    async def wait_synced(self) -> None:
        """Return when every watch has had a complete list."""
        await self._all_listed.wait()

    async def catch_up(self, version: str) -> None:
        """Return when every watch that does not come later has seen everything up to a version that was read from the API server, or has listed since."""
        await asyncio.gather(*(follower.catch_up(version) for follower in self._first))

    def report(self) -> list[WatchReport]:
        """Say how each watch is doing."""
        now = self._now()
        return [
            WatchReport(
                watch=str(follower.spec),
                kind=follower.spec.kind,
                state=follower.state,
                synced=follower.synced,
                objects=len(follower),
                version=follower.version,
                last_heard_age=None if follower.last_heard is None else now - follower.last_heard,
                lists=follower.lists,
                errors=follower.errors,
                error=follower.error,
            )
            for follower in self._followers
        ]

    def _listed(self) -> None:
        if all(follower.synced for follower in self._first):
            self._first_listed.set()
        if self.synced:
            self._all_listed.set()


_ALWAYS: Final = (
    kinds.NODE,
    kinds.POD_GROUP,
    kinds.NATIVE_POD_GROUP,
    kinds.QUEUE,
    kinds.INCUBATOR_POD_GROUP,
    kinds.INCUBATOR_QUEUE,
    kinds.SIGS_POD_GROUP,
    kinds.SIGS_QUEUE,
    kinds.RESOURCE_QUOTA,
    kinds.HYPER_NODE,
    kinds.NAMESPACE,
    kinds.SERVICE,
    kinds.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.VOLUME_ATTACHMENT,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
    kinds.RESOURCE_CLAIM,
    kinds.DEVICE_TAINT_RULE,
)
_SERVED_BY_OTHERS: Final = (kinds.JOB, kinds.CRON_JOB, kinds.JOB_FLOW)
_CSI_STORAGE: Final = (kinds.CSI_DRIVER, kinds.CSI_STORAGE_CAPACITY)
_WORKLOADS: Final = (kinds.REPLICATION_CONTROLLER, kinds.REPLICA_SET, kinds.STATEFUL_SET)


def standard(
    options: Options,
    *,
    csi_storage: bool = True,
    workloads: bool = True,
    disruption_budgets: bool = True,
    numatopology: bool = True,
    raw: Collection[kinds.Kind] = (),
) -> list[WatchSpec]:
    """Return what a scheduler with these flags follows; `raw` are the kinds whose JSON is wanted too, own pods only.

    Own pods are followed in every phase; those of other schedulers while they have a node and have not finished. What no decision reads comes later.
    """
    wanted = [*_ALWAYS]
    wanted += _CSI_STORAGE if csi_storage else ()
    wanted += _WORKLOADS if workloads else ()
    wanted += (kinds.PRIORITY_CLASS,) if options.priority_class else ()
    wanted += (kinds.POD_DISRUPTION_BUDGET,) if disruption_budgets else ()
    wanted += (kinds.NUMATOPOLOGY,) if numatopology else ()
    known = (*wanted, *_SERVED_BY_OTHERS, kinds.POD)
    later = [*_SERVED_BY_OTHERS, *(kind for kind in raw if kind not in known)]
    own = [f"spec.schedulerName={_escaped(name)}" for name in options.scheduler_name]
    others = [f"spec.schedulerName!={_escaped(name)}" for name in options.scheduler_name]
    others += ["spec.nodeName!=", "status.phase!=Succeeded", "status.phase!=Failed"]
    specs = [WatchSpec(kinds.POD, field_selector=selector, keep_raw=kinds.POD in raw) for selector in own]
    specs.append(WatchSpec(kinds.POD, field_selector=",".join(others)))
    specs += [WatchSpec(kind, keep_raw=kind in raw) for kind in wanted]
    return specs + [WatchSpec(kind, keep_raw=kind in raw, later=True) for kind in later]


def _escaped(value: str) -> str:
    """Write a value as field selectors take it."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
