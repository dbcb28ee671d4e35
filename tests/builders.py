"""What many tests start from: manifests, a world that only remembers, and a scheduler at a desk with a hand-wound clock.

Nothing here knows a rule that is under test.
"""

from __future__ import annotations

import functools
import re

from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.cache.effects import NOBODY, Bind, Create, Evict, Failure, Note, Outcome, Patch, Read
from pumice.framework import configuration, registry
from pumice.framework.engine import Engine
from pumice.scheduler import Options, Scheduler

NOW = 1_767_225_600_000_000
SECOND = 1_000_000
GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"

GANG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


# ---- manifests


def metadata(name, namespace="", uid="", created=0, **fields):
    made = {"name": name, "uid": uid or f"{namespace or 'cluster'}.{name}", "creationTimestamp": stamp(created)}
    if namespace:
        made["namespace"] = namespace
    return {**made, **{field: value for field, value in fields.items() if value}}


def stamp(second):
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def node(
    name,
    cpu="8",
    memory="16Gi",
    pods="110",
    *,
    labels=None,
    taints=(),
    cordoned=False,
    ready=None,
    annotations=None,
    **more,
):
    """A Node; further resources by name, a slash written as a double underscore."""
    offered = {"cpu": cpu, "memory": memory, "pods": pods, **{k.replace("__", "/"): v for k, v in more.items()}}
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, labels=labels, annotations=annotations),
        "spec": {"unschedulable": cordoned, "taints": list(taints)},
        "status": {
            "allocatable": {name: units for name, units in offered.items() if units is not None},
            "conditions": conditions,
        },
    }


def pod(
    name,
    group="",
    *,
    namespace="a",
    uid="",
    created=0,
    cpu=None,
    memory=None,
    requests=None,
    node="",
    phase="",
    deleting=False,
    role="",
    labels=None,
    annotations=None,
    scheduler="volcano",
    ports=(),
    **spec,
):
    """A Pod; it is Running if it has a node, else Pending, unless a phase is given. `deleting` may be the second of its end."""
    asked = {"cpu": cpu, "memory": memory, **(requests or {})}
    container = {
        "name": "c",
        "resources": {"requests": {name: units for name, units in asked.items() if units is not None}},
        "ports": list(ports),
    }
    notes = {**({GROUP_NAME: group} if group else {}), **({ROLE: role} if role else {}), **(annotations or {})}
    made = metadata(name, namespace, uid, created, labels=labels, annotations=notes)
    if deleting:
        made["deletionTimestamp"] = stamp(int(deleting))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": made,
        "spec": {"schedulerName": scheduler, "nodeName": node, "containers": [container], **spec},
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }


def group(name, minimum=1, *, namespace="a", created=0, queue="", phase="", annotations=None, **spec):
    written = {"minMember": minimum, **({"queue": queue} if queue else {}), **spec}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(name, namespace, f"group.{name}", created, annotations=annotations),
        "spec": written,
        "status": {"phase": phase} if phase else {},
    }


def queue(name="default", *, created=0, state="", annotations=None, **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata(name, created=created, annotations=annotations),
        "spec": {"weight": 1, **spec},
        "status": {"state": state} if state else {},
    }


def priority_class(name, value, *, default=False):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(name),
        "value": value,
        "globalDefault": default,
    }


def kind_of(manifest):
    return kinds.find(manifest["apiVersion"], manifest["kind"])


# ---- a world that only remembers


class World:
    """Takes every effect and does nothing; a test answers for it."""

    def __init__(self, observer=NOBODY):
        self.effects = []
        self._observer = observer

    def send(self, effect):
        self._observer.sent(effect)
        self.effects.append(effect)

    def of(self, *types):
        return [effect for effect in self.effects if isinstance(effect, types)]

    @property
    def binds(self):
        return {effect.name: effect.node for effect in self.of(Bind)}

    @property
    def evictions(self):
        return [effect.name for effect in self.of(Evict)]

    @property
    def notes(self):
        return [(effect.name, effect.reason, effect.message) for effect in self.of(Note)]

    @property
    def reads(self):
        return [effect.name for effect in self.of(Read)]

    def patches(self, kind):
        return [effect for effect in self.of(Patch) if effect.kind.name == kind]

    @property
    def created(self):
        return [effect.manifest["metadata"]["name"] for effect in self.of(Create)]


# ---- a scheduler at a desk


@functools.lru_cache(maxsize=64)  # a test that draws worlds asks for the same hundreds of times
def settings(text, *classes):
    """Read a configuration that may also name classes of a test; give it with the registry that knows them."""
    known = registry.installed()
    mine = {each.name: each for each in classes}
    actions = {name: each for name, each in mine.items() if hasattr(each, "execute")}
    plugins = {name: each for name, each in mine.items() if name not in actions}
    full = registry.Registry({**known.plugins, **plugins}, {**known.actions, **actions})
    return configuration.load(text, full.catalog()), full


class Desk:
    """A cache, a scheduler and a clock; queues `root` and `default` are there."""

    def __init__(self, text=GANG, *classes, options=None, queues=("root", "default"), plain=False, taken=None):
        self.world = World()
        self.cache = Cache(self.world, Options(plain=True) if plain else options)
        self.now = NOW
        loaded, known = settings(text, *classes)
        self.scheduler = Scheduler(self.cache, settings(GANG)[0], lambda: self.now)
        self.scheduler.engine = Engine(loaded, known, self.cluster, taken=taken or self.cache.options.shortcuts)
        self.feed(*(queue(name) for name in queues))

    @property
    def cluster(self):
        return self.cache.cluster

    def feed(self, *manifests, event="ADDED"):
        for manifest in manifests:
            self.cache.feed(kind_of(manifest), event, manifest)
        return self

    def modify(self, *manifests):
        return self.feed(*manifests, event="MODIFIED")

    def delete(self, *manifests):
        return self.feed(*manifests, event="DELETED")

    def settle(self, effect, code=None, message="as the test says", read=None):
        failure = Failure(code, message) if code else None
        self.cache.settled(Outcome(effect=effect, failure=failure, object=read))
        return self

    def apply(self):
        self.cache.apply(self.now)
        return self

    def cycle(self, seconds=1):
        """Run one cycle, then let time pass."""
        record = self.scheduler.cycle()
        self.now += int(seconds * SECOND)
        return record

    def session(self):
        """Open a session on what was fed."""
        self.apply()
        return self.scheduler.engine.open(self.cache.record, self.cache, number=1, now=self.now)

    def task(self, name, namespace="a"):
        return next(t for t in self.cluster.tasks.values() if (t.namespace, t.name) == (namespace, name))

    def node(self, name):
        return self.cluster.nodes.by_name[name]


_SINCE = re.compile(r" \(cycle \d+\)")
_OF_QUEUE = re.compile(r": queue .*$", re.MULTILINE)


def said_of(record, key):
    """Return what is said of a job but for when, and for the numbers of its queue: who lies dormant was told so in an earlier cycle, with the numbers of then."""
    return _OF_QUEUE.sub(lambda found: re.sub(r"\d", "", found[0]), _SINCE.sub("", record.explain(key)))


def played(desk, waves, told=list, look=lambda _cluster: None):
    """Feed waves of objects, a cycle each; give what was sent and what was said, lines as `told` shows them."""
    said = []
    for wave in waves:
        desk.feed(*wave)
        record = desk.cycle()
        said.append([*told(record.trace()), *(said_of(record, key) for key in sorted(desk.cluster.jobs))])
        look(desk.cluster)
    return [repr(effect) for effect in desk.world.effects], said
