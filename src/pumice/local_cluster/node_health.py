"""What becomes of nodes: they fail when told to, their taints drive pods away, and pods of a node that is gone go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, timestamp
from pumice.apiserver import statuses
from pumice.apiserver.built_in import wrong
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.local_cluster.clock import WallClock
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
STATE: Final = "pumice.dev/node-state"  # NotReady: its kubelet says so; Vanished: nothing is heard of it any more
STATES: Final = ("NotReady", "Vanished")
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_OWN: Final = (_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE)
_GRACE: Final = 40 * duration.SECOND  # how long the silence of a node is borne


class NodeHealth:
    """Follows nodes and acts when told to, as the node controllers of a cluster do; of a cluster that is not `whole`, nodes may be absent that no pod misses."""

    def __init__(self, store: ObjectStore, clock: WallClock, *, whole: bool = True) -> None:
        self._store = store
        self._clock = clock
        self.again: Callable[[str], None] = _nobody  # who is told of a node that is well again
        self._failing: set[str] = set()
        store.observe(self._seen)
        # Of nodes that an earlier run has left, those that were not well are looked at, and those that were gone but for their pods.
        left = {node["metadata"]["name"]: node for node in store.scan(kinds.NODE)}
        homes = dict.fromkeys(
            structure.mapping(pod, "spec").get("nodeName") or "" for pod in store.scan(kinds.POD) if whole
        )
        self._missing = {name for name in homes if name and name not in left}
        unwell = (name for name, node in left.items() if STATE in structure.mapping(node, "metadata", "annotations"))
        self._changed: dict[str, None] = dict.fromkeys((*unwell, *sorted(self._missing)))

    def is_served(self, node: str) -> bool:
        """Tell whether a node has a kubelet that works."""
        found = self._store.find(Key(kinds.NODE, "", node))
        if found is None or node in self._failing:
            return False
        return structure.mapping(structure.condition(found, "Ready")).get("status") not in ("False", "Unknown")

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.NODE:
            self._changed[key.name] = None
            if event_type == "DELETED":
                self._missing.add(key.name)
        elif key.kind is kinds.POD and event_type == "ADDED":
            node = structure.mapping(manifest, "spec").get("nodeName")
            if node:
                self._changed[node] = None

    def react(self) -> int:
        """Look at every node that changed and give how many there were."""
        changed, self._changed = self._changed, {}
        for name in changed:
            node = self._store.find(Key(kinds.NODE, "", name))
            if node is None:
                self._clock.call_at(self._clock.now() + _GRACE, lambda name=name: self._collect(name))  # type: ignore[misc]
                continue
            self._look(name, node)
            if name in self._missing:
                self._missing.discard(name)
                self.again(name)
        return len(changed)

    def _look(self, name: str, node: Mapping[str, Any]) -> None:
        state = structure.mapping(node, "metadata", "annotations").get(STATE, "")
        failing = state in STATES
        if failing and name not in self._failing:
            self._failing.add(name)
            delay = 0 if state == "NotReady" else _GRACE
            self._clock.call_at(self._clock.now() + delay, lambda: self._mark(name))
        elif not failing and name in self._failing:
            self._failing.discard(name)
            self._mark(name)
            self.again(name)
        self._taint(name)
        self._drive_away(name)

    def _mark(self, name: str) -> None:
        """Write the condition of a node."""
        key = Key(kinds.NODE, "", name)
        node = self._store.find(key)
        if node is None:
            return
        state = structure.mapping(node, "metadata", "annotations").get(STATE, "")
        when = timestamp.format_timestamp(self._clock.now() // duration.SECOND * duration.SECOND)
        status, reason, message = {
            "NotReady": ("False", "KubeletNotReady", f"the annotation {STATE} says so"),
            "Vanished": ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        }.get(state, ("True", "KubeletReady", "simulated kubelet is ready"))
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        present = structure.mapping(structure.condition(node, "Ready"))
        if present.get("status") != status:
            stamps = {"lastHeartbeatTime": when, "lastTransitionTime": when}
            self._store.patch_status(key, {"status": {"conditions": [{**ready, **stamps}]}}, strategic=True)

    def _taint(self, name: str) -> None:
        """Give a node the taints that its state asks for, and take off those that it does not."""
        key = Key(kinds.NODE, "", name)
        node = self._store.peek(key)
        spec = structure.mapping(node, "spec")
        ready = structure.mapping(structure.condition(node, "Ready")).get("status", "True")
        wanted: list[Document] = []
        if ready in ("False", "Unknown"):
            taint = _NOT_READY if ready == "False" else _UNREACHABLE
            wanted = [{"key": taint, "effect": "NoSchedule"}, {"key": taint, "effect": "NoExecute"}]
        if spec.get("unschedulable"):
            wanted.append({"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
        present = spec.get("taints") or []
        own = [{k: v for k, v in each.items() if k != "timeAdded"} for each in present if each.get("key") in _OWN]
        if own != wanted:
            taints = [each for each in present if each.get("key") not in _OWN] + wanted
            rest = {k: v for k, v in spec.items() if k != "taints"}
            self._store.overwrite(key, {**node, "spec": {**rest, **({"taints": taints} if taints else {})}})

    # ---- pods that cannot stay

    def _drive_away(self, name: str) -> None:
        node = self._store.find(Key(kinds.NODE, "", name))
        taints = [
            each for each in structure.mapping(node, "spec").get("taints") or () if each.get("effect") == "NoExecute"
        ]
        if not taints:
            return
        for pod in list(self._store.scan(kinds.POD)):
            if structure.mapping(pod, "spec").get("nodeName") == name and not deletion.is_terminating(pod):
                stay = stays(pod, taints)
                if stay is not None:
                    key, uid = (
                        Key(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"]),
                        pod["metadata"]["uid"],
                    )
                    self._clock.call_at(self._clock.now() + stay, lambda key=key, uid=uid: self._evict(key, uid, name))  # type: ignore[misc]

    def _evict(self, key: Key, uid: str, node_name: str) -> None:
        pod = self._store.find(key)
        node = self._store.find(Key(kinds.NODE, "", node_name))
        if pod is None or pod["metadata"]["uid"] != uid or deletion.is_terminating(pod):
            return
        taints = [
            each for each in structure.mapping(node, "spec").get("taints") or () if each.get("effect") == "NoExecute"
        ]
        if taints and stays(pod, taints) is not None:
            self._store.delete(key)

    def _collect(self, name: str) -> None:
        """Take away the pods of a node that is gone."""
        if self._store.find(Key(kinds.NODE, "", name)) is not None:
            return
        for pod in list(self._store.scan(kinds.POD)):
            if structure.mapping(pod, "spec").get("nodeName") == name:
                self._store.delete(Key(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"]), grace=0)


def judge(node: Document, old: Mapping[str, Any] | None) -> None:
    """Refuse a state that no node can be told to have; one that is there already harms nobody."""
    state = structure.mapping(node, "metadata", "annotations").get(STATE)
    if state in (None, "", *STATES) or state == structure.mapping(old, "metadata", "annotations").get(STATE):
        return
    field = f"metadata.annotations[{STATE}]"
    raise statuses.invalid("Node", "", node["metadata"].get("name", ""), wrong.unsupported(field, state, STATES))


def _nobody(_: str) -> None:
    pass


def stays(pod: Mapping[str, Any], taints: list[Document]) -> int | None:
    """Give how long a pod stays on a node with such taints, in microseconds; None is for ever."""
    shortest: int | None = None
    for taint in taints:
        found = [each for each in structure.mapping(pod, "spec").get("tolerations") or () if _tolerates(each, taint)]
        if not found:
            return 0
        spans = [each["tolerationSeconds"] for each in found if each.get("tolerationSeconds") is not None]
        if spans:
            shortest = min(spans) if shortest is None else min(shortest, *spans)
    return None if shortest is None else max(0, shortest) * duration.SECOND


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")
