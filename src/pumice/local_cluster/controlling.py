"""Controllers beside the API server, in its thread: they hear of changes at once, and their writes pass the same rules as anybody's."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver import collecting, emptying, statuses
from pumice.apiserver.access import upkeep
from pumice.apiserver.requests import Options, Target
from pumice.apiserver.webhooks.steps import at_once, awaited
from pumice.cache import effects
from pumice.controllers import standard
from pumice.controllers.queueing import engine, requests
from pumice.controllers.volcano import registry
from pumice.local_cluster import loading
from pumice.server.health import overdue
from pumice.sim import errors, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.webhooks.steps import Call, Steps
    from pumice.controllers.queueing.engine import Controller, Turn
    from pumice.controllers.queueing.requests import Answer, Code, Request, Step
    from pumice.local_cluster.clock import WallClock
    from pumice.sim.history import WatchEventType

Manifest = dict[str, Any]
_SLICE: Final = 20  # turns between two looks at what else there is to do
_HEARD: Final = 500  # and events
_LOOK: Final = 1.0  # seconds after which they look around though nothing has changed
_AT_ONCE: Final = 0.01  # seconds of writes before others have a moment
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

    def perform(self, request: Request, /) -> Answer:
        """Carry out a request that no webhook is asked about."""
        return at_once(self.performing(request))

    def performing(self, request: Request, /) -> Steps[Answer]:
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

    def _performed(self, request: Request, target: Target) -> Steps[Manifest | None]:
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

    def _created(self, request: effects.Create, target: Target, options: Options) -> Steps[Mapping[str, Any]]:
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


class _Playing:
    """A turn that is carried on, with the steps of the stage that it has come to."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.stage: list[Step] = []


class Controlling:
    """Controllers, garbage collection and the emptying of namespaces, run until cancelled."""

    def __init__(
        self, cluster: Cluster, time: WallClock, controllers: Sequence[Controller], part: overdue.Part | None = None
    ) -> None:
        self._time = time
        self._part = new_part() if part is None else part
        self._world = ServerWorld(cluster)
        self._webhooks = cluster.webhooks
        self._waiting: set[asyncio.Task[None]] = set()  # turns whose requests webhooks are asked about
        loaded = loading.recorded(cluster.store)
        self.engine = engine.Engine(controllers, tell=Notes(cluster).put, complain=_tell, spares=loaded.spares)
        self._watched = frozenset(self.engine.watched)
        self._arrived: deque[tuple[kinds.Kind, WatchEventType, Mapping[str, Any]]] = deque()
        self._stirred = asyncio.Event()
        self._collector = collecting.Collector(cluster.store, loaded.absent)
        self._upkeep = upkeep.Upkeep(cluster.store, cluster.tokens, cluster.authority)
        self._emptier = emptying.Emptier(cluster.store, cluster.registry, cluster.writing.stamp)
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
        self._stirred.set()

    async def run(self) -> None:
        """React to what changes, in slices, so that requests are answered in between."""
        while True:
            self._beat()
            self._stirred.clear()
            if await self.look():
                await asyncio.sleep(0)
                continue
            due = self.engine.queue.next_due(self._time.now())
            limit = _LOOK if due is None else min(_LOOK, max(0.0, (due - self._time.now()) / 1e6))
            try:
                async with asyncio.timeout(limit):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def look(self) -> int:
        """Do some of what is due now, and give how much there was."""
        return self._hear() + await self._turns() + self._collect()

    def _collect(self) -> int:
        """Do what follows from what is gone, from namespaces, and from roles."""
        return self._collector.collect() + self._emptier.empty() + self._upkeep.keep()

    def _beat(self) -> None:
        """Show that they go on."""
        self._part.begin()
        self._part.due(monotonic() + _LOOK)

    def _hear(self) -> int:
        count = 0
        while self._arrived and count < _HEARD:
            kind, event_type, manifest = self._arrived.popleft()
            if event_type != "BOOKMARK":
                self.engine.feed(kind, event_type, manifest)
            count += 1
        return count

    async def _turns(self) -> int:
        """Take some turns; others have theirs between the stages of a long one."""
        clock = asyncio.get_running_loop().time
        began = clock()
        for count in range(_SLICE):
            turn = self.engine.take(self._moment())
            if turn is None:
                return count
            playing = _Playing(turn)
            while self._advance(playing):
                if clock() - began > _AT_ONCE:
                    self._beat()
                    await asyncio.sleep(0)
                    began = clock()
        return _SLICE

    def _advance(self, playing: _Playing) -> bool:
        """Carry a turn on by a stage; tells whether it goes on here. One that has to wait for webhooks goes on by itself, and holds up nobody."""
        turn = playing.turn
        playing.stage = playing.stage or (list(self.engine.next_steps(turn)) if turn.left else [])
        while playing.stage:
            step = playing.stage.pop(0)
            performing = self._world.performing(step.request)
            try:
                calls = next(performing)
            except StopIteration as end:
                self.engine.answered(turn, step, end.value, self._time.now())
            else:
                task = asyncio.create_task(self._await(playing, step, performing, calls))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)
                return False
        if turn.left:
            return True
        self.engine.finish(turn, self._moment())
        return False

    async def _await(self, playing: _Playing, step: Step, performing: Steps[Answer], calls: list[Call]) -> None:
        """Wait for what webhooks say to a request, and carry its turn on."""
        try:
            answer = await awaited(performing, self._webhooks.call, calls)
        except Exception as error:  # noqa: BLE001  the turn must end, or its object would never have another
            _tell(f"{step.request.kind.name}: {type(error).__name__}: {error}")
            answer = requests.Answer(code="unavailable", message=str(error))
        self.engine.answered(playing.turn, step, answer, self._time.now())
        while self._advance(playing):  # noqa: ASYNC110  others have a moment between two stages
            await asyncio.sleep(0)
        self._stirred.set()

    def _moment(self) -> requests.Moment:
        return requests.Moment(self._time.now(), self._time.speed)


def new_part() -> overdue.Part:
    """Give what the controllers are watched by."""
    return overdue.Part("controllers", "a turn of the controllers")


async def run(cluster: Cluster, time: WallClock, part: overdue.Part | None = None) -> None:
    """Run the controllers of ordinary manifests and of Volcano's kinds."""
    watched = new_part() if part is None else part
    try:
        await Controlling(cluster, time, [*standard.controllers(), *registry.controllers()], watched).run()
    finally:
        watched.rest()


def _tell(message: str) -> None:
    print(message, flush=True)  # noqa: T201
