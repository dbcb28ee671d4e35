"""Controllers beside the API server, in its thread: they hear of changes at once, and their writes pass the same rules as anybody's."""

from __future__ import annotations

from collections import OrderedDict, deque
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver import collecting, emptying, statuses
from pumice.apiserver.access import upkeep
from pumice.apiserver.requests import Options, Target
from pumice.apiserver.webhooks.asking import awaited
from pumice.cache import effects
from pumice.controllers import standard
from pumice.controllers.queueing import engine, requests, running
from pumice.controllers.volcano import registry
from pumice.local_cluster import loading
from pumice.server.health import overdue
from pumice.sim import errors, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.requests import Answer, Code, Request
    from pumice.local_cluster.clock import WallClock
    from pumice.sim.history import WatchEventType

Manifest = dict[str, Any]
_HEARD: Final = 500  # events that are taken between two looks at what else there is to do
_REMEMBERED: Final = 4096
_CODES: Final[dict[int, Code]] = {
    404: "notfound",
    409: "conflict",
    429: "unavailable",
    500: "unavailable",
    503: "unavailable",
}


class ServerWorld:
    """Performs requests as if they had come in through a socket."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def perform(self, request: Request, /) -> Answer | Coroutine[Any, Any, Answer]:
        """Carry a request out; what webhooks are asked about is waited for."""
        performing = self._performing(request)
        try:
            calls = next(performing)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        return awaited(performing, self._cluster.webhooks.call, calls)

    def _performing(self, request: Request, /) -> Asking[Answer]:
        """Carry a request out."""
        kind, namespace, name = requests.target(request)
        resource = self._cluster.registry.of_kind(kind.api_version, kind.name)
        if resource is None:
            return requests.Answer(code="notfound", message=f"{kind.api_version} {kind.name} is not served")
        target = Target(resource=resource, namespace=namespace, name=name)
        try:
            self._cluster.durable.check_writable()
            return requests.Answer(object=(yield from self._performed(request, target)))
        except statuses.Problem as problem:
            exists = problem.code == 409 and problem.reason == "AlreadyExists"
            return requests.Answer(
                code="exists" if exists else _CODES.get(problem.code, "refused"), message=str(problem)
            )
        except errors.ApiError as error:
            return requests.Answer(code="conflict", message=str(error))

    def _performed(self, request: Request, target: Target) -> Asking[Manifest | None]:
        options = Options(manager="pumice-controllers", validation="Ignore")
        key = Key(target.resource.kind, target.namespace, target.name)
        match request:
            case effects.Create():
                return dict((yield from self._created(request, msgspec.structs.replace(target, name=""), options)))
            case effects.Patch():
                self._check(key, request.uid, target)
                target = msgspec.structs.replace(target, subresource=request.subresource)
                patch = ("merge", structure.copied(request.body))
                written, _ = yield from self._cluster.writing.patching(target, patch, options, [])
                return dict(written)
            case requests.Apply():
                target = msgspec.structs.replace(target, subresource=request.subresource)
                forced = msgspec.structs.replace(options, manager=request.manager, force=True)
                patch = ("apply", request.document)
                written, _ = yield from self._cluster.writing.patching(target, patch, forced, [])
                return dict(written)
            case requests.Delete():
                wanted = {"preconditions": {"uid": request.uid}, "propagationPolicy": request.policy}
                deleting = self._cluster.deleting
                yield from deleting.deleting(target, wanted, dry_run=False, asking=options, warnings=[])
                return None
        found = self._cluster.store.find(key)
        if found is None:
            raise statuses.not_found(target.resource.plural, target.resource.group, target.name)
        return dict(found)

    def _created(self, request: effects.Create, target: Target, options: Options) -> Asking[Mapping[str, Any]]:
        writing = self._cluster.writing
        if request.kind is kinds.POD:
            # Equal pods share what was read of the first of them.
            data = msgspec.json.encode(request.manifest)
            return (yield from writing.creating_pod(target, data, options, []))
        return (yield from writing.creating(target, structure.copied(request.manifest), options, []))

    def _check(self, key: Key, uid: str, target: Target) -> None:
        found = self._cluster.store.find(key)
        if found is not None and uid not in ("", found["metadata"]["uid"]):
            why = f"its uid is {found['metadata']['uid']}, not {uid}"
            raise statuses.conflict(target.resource.plural, target.resource.group, target.name, why)


class Notes:
    """Writes what controllers say as Events; the same said again counts up the Event that is there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told: OrderedDict[tuple[str, str, str], Key] = OrderedDict()
        self._count = 0

    def put(self, note: effects.Note) -> None:
        """Write an Event."""
        store, now = self._cluster.store, self._cluster.writing.stamp()
        cause = (note.uid, note.reason, note.message)
        known = self._told.get(cause)
        present = store.find(known) if known is not None else None
        if known is not None and present is not None:
            store.patch(known, {"count": int(present.get("count", 1)) + 1, "lastTimestamp": now})
            return
        self._count += 1
        namespace = note.namespace or "default"
        name = f"{note.name[:200]}.{self._cluster.now():x}{self._count & 0xFFFF:04x}"
        key = Key(kinds.EVENT, namespace, name)
        store.adopt(_event(note, name, namespace, now), key)
        self._told[cause] = key
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)


def _event(note: effects.Note, name: str, namespace: str, now: str) -> Manifest:
    about = {"apiVersion": note.kind.api_version, "kind": note.kind.name, "name": note.name, "uid": note.uid}
    volcanos = registry.SOURCE if note.kind.group.endswith(".volcano.sh") else "pumice-controllers"
    source = standard.SOURCES.get(note.kind, volcanos)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": now},
        "involvedObject": {**about, **({"namespace": note.namespace} if note.namespace else {})},
        "type": note.type,
        "reason": note.reason,
        "message": note.message[:1024],
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": source},
        "reportingComponent": source,
        "reportingInstance": "",
    }


class Controlling:
    """Controllers, garbage collection and the emptying of namespaces, run until cancelled."""

    def __init__(
        self, cluster: Cluster, time: WallClock, controllers: Sequence[Controller], part: overdue.Part | None = None
    ) -> None:
        self._part = new_part() if part is None else part
        loaded = loading.recorded(cluster.store)
        self.engine = engine.Engine(controllers, tell=Notes(cluster).put, complain=_tell, spares=loaded.spares)
        self._watched = frozenset(self.engine.watched)
        self._arrived: deque[tuple[kinds.Kind, WatchEventType, Mapping[str, Any]]] = deque()
        self._runner = running.Runner(
            self.engine,
            ServerWorld(cluster),
            lambda: requests.Moment(time.now(), time.speed),
            before=self._hear,
            after=self._collect,
            beat=self._beat,
            complain=_tell,
        )
        self._collector = collecting.Collector(cluster.store, loaded.absent)
        self._upkeep = upkeep.Upkeep(cluster.store, cluster.tokens, cluster.authority)
        self._emptier = emptying.Emptier(cluster.store, cluster.registry, cluster.writing.stamp, cluster.authority)
        for kind in self.engine.watched:
            present = list(cluster.store.scan(kind))
            self._arrived.extend((kind, "ADDED", manifest) for manifest in present)
            if kind not in (kinds.POD, kinds.NODE):
                uids = [manifest["metadata"]["uid"] for manifest in present]
                self.engine.observed.names.inherit(uids, cluster.store.resource_version)
        cluster.store.observe(self._seen)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind in self._watched:
            self._arrived.append((key.kind, event_type, manifest))
        self._runner.stir()

    async def run(self) -> None:
        """React to what changes, in slices, so that requests are answered in between."""
        await self._runner.work()

    async def look(self) -> int:
        """Do some of what is due now, and give how much there was."""
        return await self._runner.look()

    def _collect(self) -> int:
        """Do what follows from what is gone, from namespaces, and from roles."""
        return self._collector.collect() + self._emptier.empty() + self._upkeep.keep()

    def _beat(self) -> None:
        """Show that they go on."""
        self._part.begin()
        self._part.due(monotonic() + running.LOOK)

    def _hear(self) -> int:
        count = 0
        while self._arrived and count < _HEARD:
            kind, event_type, manifest = self._arrived.popleft()
            if event_type != "BOOKMARK":
                self.engine.feed(kind, event_type, manifest)
            count += 1
        return count


def new_part() -> overdue.Part:
    """Give what the controllers are watched by."""
    return overdue.Part("controllers", "a turn of the controllers")


async def run(cluster: Cluster, time: WallClock, part: overdue.Part | None = None, *, gang_jobs: bool = False) -> None:
    """Run the controllers of ordinary manifests and of Volcano's kinds."""
    watched = new_part() if part is None else part
    every = [*standard.controllers(gang_jobs=gang_jobs), *registry.controllers()]
    try:
        await Controlling(cluster, time, every, watched).run()
    finally:
        watched.rest()


def _tell(message: str) -> None:
    print(message, flush=True)  # noqa: T201
