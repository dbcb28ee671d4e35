"""A live cluster, read with the user's own kubeconfig: every kind that a scheduler watches, in pages, several kinds side by side, writing nothing.

A kind that the user may not list is left out and named with the right that is missing; one that the server does not serve counts as empty.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.api import core, decoding, kinds, names, timestamp
from pumice.cache import reflector
from pumice.cache.options import Options
from pumice.framework.configuration import config_maps
from pumice.kube import errors, rivals
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.calls.scoped import Scoped
from pumice.kube.watches import arrivals, informers, lists
from pumice.kube.watches.watching import WatchSpec
from pumice.model import native_groups
from pumice.scenario import policies
from pumice.study.state import Denied, State, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.kube.watches.watching import Source
    from pumice.study.state import Found, Manifest

PAGE: Final = 2000
SIDE_BY_SIDE: Final = 8
WARNINGS: Final = 50  # of one object that are read
STEP: Final = 1000  # objects between two words of progress
MOST_POLICY: Final = 1 << 20  # bytes of a configuration that a kubeconfig names
CONFIG_MAP: Final = kinds.Kind(name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True)
PLACES: Final = (
    ("pumice-system", "pumice-scheduler-configmap"),
    ("volcano-system", "volcano-scheduler-configmap"),
)
"""Where `pumice install` and Volcano's own installation keep the configuration."""
_ENDED: Final = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})

Told = Callable[[str, int], None]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a cluster; what is empty is found as kubectl finds it."""

    kubeconfig: str = ""
    context: str = ""
    master: str = ""


def read(access: Access, told: Told = lambda _kind, _count: None, namespace: str = "") -> State:
    """Read a cluster; `told` hears now and then how many objects of a kind are there.

    What may not be listed in all namespaces is listed in the one that is named, if one is.
    """
    try:
        return asyncio.run(_read(access, told, namespace))
    except errors.KubeError as error:
        raise StudyError(f"the cluster cannot be read: {error}") from error


async def _read(access: Access, told: Told, namespace: str) -> State:
    where = connection.load(access.kubeconfig, access.context, access.master)
    async with Client(where) as client:
        wanted = specs()
        turns = asyncio.Semaphore(SIDE_BY_SIDE)
        reading = _Reading(client, told, turns, namespace)
        found = await asyncio.gather(*(reading.kind(spec) for spec in wanted))
        objects = [(spec.kind, each) for spec, listed in zip(wanted, found, strict=True) for each in listed]
        text, place, unread, _ = await configuration(client)
        served = () if where.scheduled.names else await rivals.served(client)
    scheduled = where.scheduled
    if text is None and scheduled.configuration:
        text, place, unread = named_policy(scheduled.configuration), scheduled.configuration, []
    return State(
        source=f"cluster {where.server}",
        now=time.time_ns() // 1000,
        objects=objects,
        jobs=reading.jobs,
        text=text,
        configuration_source=place,
        flags={"scheduler-name": list(scheduled.names)} if scheduled.names else {},
        served=served,
        denied=tuple(sorted([*reading.denied, *unread], key=lambda each: each.right)),
    )


def named_policy(file: str) -> str:
    """Read the configuration that the kubeconfig says the cluster is scheduled with; somebody else may have written that."""
    named = "; the kubeconfig names it as the scheduler's configuration, --config another"
    try:
        if not Path(file).is_file() or Path(file).stat().st_size > MOST_POLICY:
            raise StudyError(f"{file}: no file of at most {MOST_POLICY} bytes{named}")
        return policies.load(file).text
    except (policies.PolicyError, OSError, ValueError) as error:
        raise StudyError(f"{error}{named}") from error


def specs() -> list[WatchSpec]:
    """Say what is read: everything that a scheduler watches, and all pods in one list: whose scheduler is meant is known only when they are there."""
    standard = informers.standard(Options(), csi_storage=True, raw=(kinds.JOB,))
    return [WatchSpec(kinds.POD), *(spec for spec in standard if spec.kind is not kinds.POD)]


class _Resource(msgspec.Struct):
    name: str


class _Served(msgspec.Struct):
    """What is served of a version."""

    resources: list[_Resource] = []


class _Reading:
    """Lists kind after kind."""

    def __init__(self, client: Client, told: Told, turns: asyncio.Semaphore, namespace: str) -> None:
        self._client = client
        self._inside = Scoped(client, namespace) if namespace else None
        self._told = told
        self._turns = turns
        self.denied: list[Denied] = []
        self.jobs: dict[str, Manifest] = {}  # those of Volcano, whole, by uid: what their controllers make of them

    async def kind(self, spec: WatchSpec) -> list[Found]:
        """List a kind, as far as the user may."""
        async with self._turns:
            try:
                return await self._pages(self._client, spec)
            except errors.ApiError as error:
                if error.status == 403:
                    return await self._own(spec, error) if await self._is_served(spec.kind) else []
                if error.status != 404:
                    raise
                return []

    async def _own(self, spec: WatchSpec, refusal: errors.ApiError) -> list[Found]:
        """List a kind in the one namespace that is asked about."""
        if self._inside is not None and spec.kind.namespaced:
            try:
                found = await self._pages(self._inside, spec)
            except errors.ApiError as error:
                if error.status not in (403, 404):
                    raise
            else:
                self.denied.append(Denied(spec.kind, refusal.message, self._inside.namespace))
                return found
        self.denied.append(Denied(spec.kind, refusal.message))
        return []

    async def _is_served(self, kind: kinds.Kind) -> bool:
        """Tell whether a kind is there at all: who may not list it is refused either way."""
        if not kind.group:
            return True
        try:
            told = msgspec.json.decode(await self._client.request("GET", f"/apis/{kind.api_version}"), type=_Served)
        except errors.ApiError as error:
            return error.status != 404
        except msgspec.MsgspecError:
            return True
        return any(each.name == kind.plural for each in told.resources)

    async def _pages(self, source: Source, spec: WatchSpec) -> list[Found]:
        listing, _ = await lists.PagedList(source, spec, PAGE).read(lambda: _Listing(spec, self._told))
        self._told(spec.kind.plural, len(listing.found))
        if spec.kind is kinds.JOB:
            self.jobs = dict(_whole(listing.changed.values()))
        return [each.object for each in listing.changed.values() if not _is_done(each.object)]


class _Listing(reflector.Listing[arrivals.Arrival]):
    """What has come of one list."""

    def __init__(self, spec: WatchSpec, told: Told) -> None:
        super().__init__({}, arrivals.identify)
        self._plural = spec.kind.plural
        self._told = told

    def add(self, listed: arrivals.Arrival) -> None:
        """Take an object, and tell now and then how many there are."""
        super().add(listed)
        if len(self.found) % STEP == 0:
            self._told(self._plural, len(self.found))


def _whole(jobs: Iterable[arrivals.Arrival]) -> Iterator[tuple[str, Manifest]]:
    for each in jobs:
        if not isinstance(each.object, decoding.Malformed):
            job = msgspec.json.decode(each.raw)
            yield job["metadata"]["uid"], {"apiVersion": kinds.JOB.api_version, "kind": kinds.JOB.name, **job}


def _is_done(found: Found) -> bool:
    """Tell whether a pod has ended and belongs to no group, so that it counts for nothing."""
    return isinstance(found, core.Pod) and found.status.phase in _ENDED and not native_groups.job_key(found)


class Configured(NamedTuple):
    """A configuration that was found, where, what may not be read, and when it was last written, in microseconds; 0 if that is not told."""

    text: str | None
    place: str
    unread: list[Denied]
    written: int = 0


async def configuration(client: Client) -> Configured:
    """Find the configuration that a scheduler of this cluster runs with, in the places where installations keep it."""
    unread = []
    for namespace, name in PLACES:
        try:
            found = await client.get(CONFIG_MAP, namespace, name)
        except errors.ApiError as error:
            if error.status == 403:
                unread.append(Denied(CONFIG_MAP, error.message, verbs=("get",), names=(name,)))
            elif error.status != 404:
                raise
            continue
        data = found.get("data") or {}
        key = config_maps.choose(data)
        if key is not None:
            place = f"configmap {namespace}/{name}"
            return Configured(config_maps.text(data, key), place, [], _written(found["metadata"]))
    return Configured(None, "", unread)


def _written(metadata: Manifest) -> int:
    """Say when an object was last written, by what is noted of those who wrote to it."""
    times = [metadata.get("creationTimestamp"), *(each.get("time") for each in metadata.get("managedFields") or ())]
    try:
        return max((timestamp.parse(each) for each in times if each), default=0)
    except timestamp.TimestampError:
        return 0


def config_map(access: Access, namespace: str, name: str, key: str = "") -> str:
    """Read a configuration from a ConfigMap."""

    async def get() -> dict[str, Any]:
        async with Client(connection.load(access.kubeconfig, access.context, access.master)) as client:
            return await client.get(CONFIG_MAP, namespace, name)

    try:
        data = asyncio.run(get()).get("data") or {}
    except errors.KubeError as error:
        raise StudyError(f"configmap {namespace}/{name} cannot be read: {error}") from error
    chosen = config_maps.choose(data, key)
    if chosen is None:
        raise StudyError(
            f"configmap {namespace}/{name} has {config_maps.listed(data)}; say which: configmap:{namespace}/{name}/KEY"
        )
    return config_maps.text(data, chosen)


def warnings(access: Access, objects: Sequence[tuple[str, str]]) -> list[core.Event]:
    """Read the warnings about objects, by namespace and name, the latest last; none where events may not be read."""

    async def listed() -> list[core.Event]:
        async with Client(connection.load(access.kubeconfig, access.context, access.master)) as client:
            found = await asyncio.gather(*(_warnings(client, *each) for each in objects))
        return [event for each in found for event in each]

    try:
        found = asyncio.run(listed())
    except errors.KubeError:
        return []
    return sorted(found, key=lambda event: (event.last_timestamp or "", event.metadata.name))


async def _warnings(client: Client, namespace: str, name: str) -> list[core.Event]:
    query = {"fieldSelector": f"type=Warning,involvedObject.name={name}", "limit": str(WARNINGS)}
    try:
        page = arrivals.page(await client.list_page(kinds.EVENT, namespace=namespace, query=query))
    except errors.ApiError:
        return []
    decoded = [arrivals.arrival(kinds.EVENT, raw, keep=False).object for raw in page.items]
    return [event for event in decoded if isinstance(event, core.Event)]
