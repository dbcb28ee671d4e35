"""Every other kind of object: nodes, groups, queues and classes become the model, the rest is kept to be looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pumice.api import core, decoding, kinds, meta, names, quantity, scheduling, usage
from pumice.cache import hypernodes, reflector, unserved
from pumice.cache.mirror import Mirror
from pumice.model import resources, volumes
from pumice.model.devices import registry as devices
from pumice.model.queue import MAX_WEIGHT

if TYPE_CHECKING:
    from pumice.cache.native_groups import NativeGroups
    from pumice.cache.pods import Pods
    from pumice.cache.publishing import Publisher
    from pumice.cache.reflector import EventType
    from pumice.cache.shadows import Shadows
    from pumice.cache.unserved import Unserved
    from pumice.model.queue import Queue

_MOST_PERCENT: Final = 100


class ObjectsMirror(Mirror, Protocol):
    """The cache, as what is no pod sees it."""

    @property
    def pods(self) -> Pods:
        """The pods that were taken in."""

    @property
    def publisher(self) -> Publisher:
        """What writes about groups, pods and queues."""

    @property
    def shadows(self) -> Shadows:
        """Groups for pods that have none."""

    @property
    def native_groups(self) -> NativeGroups:
        """Groups of Kubernetes' own."""

    @property
    def unserved(self) -> Unserved:
        """Workloads that nobody has touched."""


class Objects:
    """Applies events of everything but pods to the cluster."""

    def __init__(self, cache: ObjectsMirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self.hyper_nodes = hypernodes.HyperNodes(cache)

    def apply(self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject | decoding.Malformed) -> None:
        """Apply one event."""
        gone = event_type == "DELETED"
        if kind in unserved.KINDS:
            self._cache.unserved.apply(kind, found, gone=gone)
            return
        if kind is kinds.NATIVE_POD_GROUP:
            self._cache.native_groups.apply(found, gone=gone)
            return
        match kind.name:
            case "PodGroup":
                self._group(kind, found, gone=gone)
            case "Queue":
                self._queue(kind, found, gone=gone)
            case "Node":
                self._node(found, gone=gone)
            case "PriorityClass":
                self._priority_class(found, gone=gone)
            case "HyperNode":
                self.hyper_nodes.apply(found, gone=gone)
            case "Event" | "Lease" | "Binding":
                return
            case "ResourceClaim" if not gone and self._is_old_claim(found.metadata):
                return
            case _:
                self._keep(kind, found, gone=gone)

    def _group(self, kind: kinds.Kind, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        metadata = found.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        if gone:
            self._cluster.remove_group(key)
            self._cache.pods.orphan(key)
            self._cache.publisher.forget_job(key)
            self._cache.record.forget(key)
            self._cache.forget(kind, metadata, key)
            return
        if self._cache.assignment is not None and not self._cache.assignment.holds(metadata.name):
            return
        self._cache.publisher.answer_to(key, kind)
        if isinstance(found, decoding.Malformed):
            # Nothing but the name can be read: its job is invalid until it changes.
            job = self._cluster.set_group(scheduling.PodGroup(metadata=metadata), found.message)
        elif isinstance(found, scheduling.PodGroup):
            if self._is_echo_of_group(key, found):
                return
            if self._cache.options.enable_namespace_as_queue:
                found = self._in_queue_of_namespace(found)
            job = self._cluster.set_group(found)
            if not self._cache.publisher.is_writing(key):
                self._cluster.set_status(job, found.status)
        else:
            return
        self._cache.pods.adopt(key)
        if job.bad:
            self._cache.record.state(key, f"the PodGroup is invalid: {job.bad}")
            self._cache.disable(kind, metadata, key, job.bad)
        else:
            self._cache.enable(kind, metadata, key)

    def _in_queue_of_namespace(self, group: scheduling.PodGroup) -> scheduling.PodGroup:
        """Put a group in the queue of its namespace, which exists with the first group in it; Queue objects do not count."""
        namespace = group.metadata.namespace
        if namespace not in self._cluster.queues:
            self._weigh_namespace(namespace)
        return msgspec.structs.replace(group, spec=msgspec.structs.replace(group.spec, queue=namespace))

    def _weigh_namespace(self, namespace: str) -> None:
        """Make a namespace a queue, of the weight that its quotas give it, else 1."""
        weight = 1
        for quota in self._cluster.objects.get(kinds.RESOURCE_QUOTA.name, {}).values():
            if isinstance(quota, core.ResourceQuota) and quota.metadata.namespace == namespace:
                weight = max(weight, _weight(str(quota.spec.hard.get(names.NAMESPACE_WEIGHT, "1"))))
        spec = scheduling.QueueSpec(weight=weight)
        self._cluster.set_queue(scheduling.Queue(metadata=meta.ObjectMeta(name=namespace), spec=spec))

    def _same_spec(self, known: scheduling.PodGroupSpec, found: scheduling.PodGroupSpec) -> bool:
        if self._cache.options.enable_namespace_as_queue:
            found = msgspec.structs.replace(found, queue=known.queue)
        return known == found

    def _is_echo_of_group(self, key: str, found: scheduling.PodGroup) -> bool:
        """Take over a group that says nothing new, mostly our own status coming back, and tell that it does."""
        job = self._cluster.jobs.get(key)
        if job is None or job.group is None or job.bad or not self._same_spec(job.group.spec, found.spec):
            return False
        if not _same_metadata(job.group.metadata, found.metadata):
            return False
        if not self._cache.publisher.is_writing(key) and job.status != found.status:
            return False
        job.group = found
        return True

    def _is_echo_of_queue(self, found: scheduling.Queue) -> bool:
        """Take over a queue that says nothing new, and tell that it does."""
        queue = self._cluster.queues.get(found.metadata.name)
        if queue is None or queue.object is None or queue.bad or queue.object.spec != found.spec:
            return False
        if not _same_metadata(queue.object.metadata, found.metadata) or queue.status != found.status:
            return False
        queue.object = found
        return True

    def _queue(self, kind: kinds.Kind, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        metadata = found.metadata
        if self._cache.options.enable_namespace_as_queue:
            return
        if gone:
            self._cluster.remove_queue(metadata.name)
            self._cache.publisher.forget_queue(metadata.name)
            self._cache.forget(kinds.QUEUE, metadata, "")
            return
        self._cache.publisher.answer_queue(metadata.name, kind)
        if isinstance(found, scheduling.Queue):
            if self._is_echo_of_queue(found):
                return
            queue = self._cluster.set_queue(found)
        else:
            queue = self._cluster.set_queue(scheduling.Queue(metadata=metadata))
            if isinstance(found, decoding.Malformed):
                queue.bad = found.message
        if queue.bad:
            self._cache.disable(kinds.QUEUE, metadata, "", queue.bad)
            return
        self._cache.enable(kinds.QUEUE, metadata, "")
        if text := _guarantee_above_capability(queue):
            reason = names.EVENT_GUARANTEE_ABOVE_CAPABILITY
            self._cache.note(kind, metadata, "Warning", reason, text, once=True)

    def _node(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        metadata = found.metadata
        if gone or isinstance(found, decoding.Malformed) or not isinstance(found, core.Node):
            self._cluster.remove_node(metadata.name)
            if isinstance(found, decoding.Malformed) and not gone:
                self._cache.disable(kinds.NODE, metadata, "", found.message)
            else:
                self._cache.forget(kinds.NODE, metadata, "")
            return
        assignment = self._cache.assignment
        if not self._cache.options.selects(metadata.labels) or (assignment and not assignment.holds(metadata.name)):
            self._cluster.remove_node(metadata.name)
            self._cache.forget(kinds.NODE, metadata, "")
            return
        try:
            offered, native = offer(found)
        except resources.BadValueError as error:
            self._cluster.remove_node(metadata.name)
            self._cache.disable(kinds.NODE, metadata, "", str(error))
            return
        self._cluster.set_node(found, offered, native)
        self._cache.enable(kinds.NODE, metadata, "")

    def _priority_class(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        if not self._cache.options.priority_class:
            return
        if isinstance(found, decoding.Malformed) and not gone:
            self._cache.disable(kinds.PRIORITY_CLASS, found.metadata, "", found.message)
        else:
            self._cache.enable(kinds.PRIORITY_CLASS, found.metadata, "")
        usable = found if isinstance(found, scheduling.PriorityClass) and not gone else None
        self._cluster.set_priority_class(found.metadata.name, usable)

    def _keep(self, kind: kinds.Kind, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        """Keep an object for whoever looks it up; a kind nobody reads yet is let go."""
        metadata = found.metadata
        key = f"{metadata.namespace}/{metadata.name}" if kind.namespaced else metadata.name
        kept = self._cluster.objects.setdefault(kind.name, {})
        before = kept.get(key)
        problem = found.message if isinstance(found, decoding.Malformed) else _bad(found)
        if gone or problem or isinstance(found, decoding.Malformed | decoding.Opaque):
            kept.pop(key, None)
        else:
            kept[key] = found
        if problem and not gone:
            self._cache.disable(kind, metadata, "", problem)
        else:
            self._cache.enable(kind, metadata, "")
        if kind is kinds.NAMESPACE:
            self._cache.native_groups.touch_namespace(metadata.name)
        if kind is kinds.POD_DISRUPTION_BUDGET:
            self._cache.shadows.budget(kept.get(key), metadata)
            if gone:
                self._cluster.disruptions.pop(key, None)
        if kind.name in volumes.KINDS:
            self._cluster.volumes.changed(kind.name, key, before, kept.get(key))
        if kind.name in devices.KINDS:
            # What a claim has counts, whatever it asks for, and as far as that can be read.
            read = found.rest if isinstance(found, decoding.Malformed) else found
            unreadable = found.message if isinstance(found, decoding.Malformed) else ""
            self._cluster.devices.changed(kind.name, key, None if gone else read, unreadable)
        self._touch_nodes(kind, key)
        self._cluster.kinship.consider(kind.name, metadata, kept.get(key))
        namespaces = self._cache.options.enable_namespace_as_queue
        if namespaces and kind is kinds.RESOURCE_QUOTA and metadata.namespace in self._cluster.queues:
            self._weigh_namespace(metadata.namespace)
        self._cluster.changed += 1

    def _is_old_claim(self, found: meta.ObjectMeta) -> bool:
        """Tell whether a claim is an older state than the known one, which an answer has shown before the watch did."""
        known = self._cluster.devices.claims.get(f"{found.namespace}/{found.name}")
        if known is None or known.metadata.uid != found.uid:
            return False
        return reflector.follows(known.metadata.resource_version, found.resource_version)

    def _touch_nodes(self, kind: kinds.Kind, name: str) -> None:
        """Log the nodes about which an object says something that decisions read."""
        nodes = self._cluster.nodes
        if kind is kinds.NUMATOPOLOGY and (record := nodes.by_name.get(name)) is not None:
            nodes.touch(record.row)
        elif kind is kinds.CARD_GEOMETRIES:
            nodes.touch_all(range(nodes.count))


def _weight(text: str) -> int:
    """Read the weight of a namespace; what no queue may weigh counts as 1."""
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WEIGHT))
    return int(text) if digits and int(text) <= MAX_WEIGHT else 1


def _guarantee_above_capability(queue: Queue) -> str:
    """Say of which resources a queue is promised more than it may ever hold; empty if of none."""
    above = [
        f"{name} {resources.shown(name, units)} in spec.guarantee is above {resources.shown(name, queue.capability[name])} in spec.capability"
        for name, units in sorted(queue.guarantee.items())
        if name in queue.capability and units > queue.capability[name]
    ]
    return f"{'; '.join(above)}: only as much as the queue may hold is kept for it" if above else ""


def _bad(found: meta.KubeObject) -> str:
    """Say what of an object that is only kept makes no sense."""
    return _bad_quota(found) or _bad_load(found) or devices.problem(found)


def _bad_quota(found: meta.KubeObject) -> str:
    """Say which amount of a quota makes no sense; the other kinds that are only kept hold no amounts that everybody reads."""
    if not isinstance(found, core.ResourceQuota):
        return ""
    listed = {"spec.hard": found.spec.hard, "status.hard": found.status.hard, "status.used": found.status.used}
    for field, amounts in listed.items():
        for name, text in amounts.items():
            if name == names.NAMESPACE_WEIGHT:
                continue
            try:
                if quantity.parse(text) >= 0:
                    continue
            except quantity.QuantityError as error:
                return f"{field}[{name}]: {error}"
            return f"{field}[{name}] is {text}, which is negative"
    return ""


def _bad_load(found: meta.KubeObject) -> str:
    """Say which load of a node makes no sense."""
    if not isinstance(found, usage.NodeUsage):
        return ""
    for node, load in found.nodes.items():
        for name, text in (("cpu", load.cpu), ("memory", load.memory)):
            try:
                if 0 <= quantity.parse(text) <= _MOST_PERCENT:
                    continue
            except quantity.QuantityError as error:
                return f"nodes[{node}].{name}: {error}"
            return f"nodes[{node}].{name} is {text}, which is no percentage from 0 to {_MOST_PERCENT}"
    return ""


def _same_metadata(left: meta.ObjectMeta, right: meta.ObjectMeta) -> bool:
    return (left.uid, left.labels, left.annotations) == (right.uid, right.labels, right.annotations)


def offer(node: core.Node) -> tuple[resources.Amounts, tuple[int, int]]:
    """Return what a node offers, what may be used beyond its allocatable amounts included, and its cpu and memory without that."""
    amounts = resources.parse(node.status.allocatable, "status.allocatable")
    native = (amounts.get("cpu", 0), amounts.get("memory", 0))
    for key, name in ((names.OVERSUBSCRIPTION_CPU, "cpu"), (names.OVERSUBSCRIPTION_MEMORY, "memory")):
        text = node.metadata.annotations.get(key)
        if text is None:
            continue
        field = f"metadata.annotations[{key}]"
        if not (text.isascii() and text.isdigit()) or len(text) > 16:
            raise resources.BadValueError(field, f"{text:.40} is not a whole number of 0 or more")
        amounts[name] = amounts.get(name, 0) + int(text)
        if amounts[name] > resources.LIMIT:
            raise resources.BadValueError(field, f"{text} brings {name} beyond the largest amount that is counted")
    return amounts, native
