"""Companion PodGroups: a group for every pod of ours that nobody grouped, so that it can be scheduled.

A pod under a controller shares the group of that controller, any other pod has one of its own. The controller only ever creates or
updates groups named `podgroup-<uid>` and sets the group annotation of pods that have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers import companions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.cache.reflector import EventType

Manifest = dict[str, Any]
_Name = tuple[str, str]

_WORKLOADS = (kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.DAEMON_SET, kinds.BATCH_JOB)
_SCALED = (kinds.REPLICA_SET, kinds.STATEFUL_SET)
WATCHED = (kinds.POD, kinds.POD_GROUP, *_WORKLOADS)


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete an object, if it still has this uid."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str


Request = effects.Create | effects.Patch | Delete


class CompanionGroups:
    """Fed with watch events of `WATCHED`, asked by `reconcile` what to write, told by `settled` how each write went."""

    def __init__(self, scheduler_names: Sequence[str] = (names.SCHEDULER,), *, inherit: bool = True) -> None:
        self._scheduler_names = tuple(scheduler_names)
        self._inherit = inherit
        self._pods: dict[_Name, Mapping[str, Any]] = {}  # ours that have no group, or have an owner that may be scaled
        self._workloads: dict[str, tuple[kinds.Kind, Mapping[str, Any]]] = {}  # by uid
        self._members: dict[str, dict[_Name, None]] = {}  # uid of an owner -> its pods in `_pods`
        self._groups: dict[_Name, Mapping[str, Any]] = {}  # companion groups that exist
        self._ungrouped: dict[_Name, None] = {}
        self._changed: dict[str, None] = {}  # workloads, by uid

    def feed(self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        """Take a watch event."""
        metadata = manifest["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        deleted = event_type == "DELETED"
        if kind is kinds.POD:
            self._feed_pod(name, None if deleted else manifest)
        elif kind is kinds.POD_GROUP:
            self._groups.pop(name, None)
            if not deleted and name[1].startswith(names.POD_GROUP_PREFIX):
                self._groups[name] = manifest
        elif kind in _WORKLOADS:
            self._feed_workload(kind, metadata["uid"], None if deleted else manifest)

    def reconcile(self) -> list[Request]:
        """Give the writes that are needed now; each is given once, until an event or a failure asks for it again."""
        requests: list[Request] = []
        changed, self._changed = self._changed, {}
        for uid in changed:
            requests += self._scaled(uid)
        ungrouped, self._ungrouped = self._ungrouped, {}
        for name in ungrouped:
            requests += self._grouped(name)
        return requests

    def settled(self, request: Request, failure: effects.Failure | None) -> None:
        """Take the answer to a write: what failed, unless its object is gone, is tried again at the next reconcile."""
        if isinstance(request, Delete) and (failure is None or failure.code == "notfound"):
            # Whoever was scaled up again meanwhile needs another one.
            self._groups.pop((request.namespace, request.name), None)
            self._again(request.name.removeprefix(names.POD_GROUP_PREFIX))
        elif failure is None:
            return
        elif isinstance(request, effects.Create):
            metadata = request.manifest["metadata"]
            self._groups.pop((metadata["namespace"], metadata["name"]), None)
            self._again(metadata["name"].removeprefix(names.POD_GROUP_PREFIX))
        elif failure.code == "notfound":
            return
        elif request.kind is kinds.POD:
            self._ungrouped[request.namespace, request.name] = None
        else:
            self._again(request.name.removeprefix(names.POD_GROUP_PREFIX))

    # ---- events

    def _feed_pod(self, name: _Name, pod: Mapping[str, Any] | None) -> None:
        old = self._pods.pop(name, None)
        if old is not None:
            self._leave(companions.owner_uid(old), name)
        self._ungrouped.pop(name, None)
        if pod is None or companions.scheduler_name(pod) not in self._scheduler_names:
            return
        ungrouped = not companions.group_name(pod)
        if not ungrouped and companions.controller(pod) is None:
            return
        self._pods[name] = pod
        self._members.setdefault(companions.owner_uid(pod), {})[name] = None
        if ungrouped:
            self._ungrouped[name] = None

    def _leave(self, owner: str, name: _Name) -> None:
        members = self._members[owner]
        del members[name]
        if not members:
            del self._members[owner]

    def _feed_workload(self, kind: kinds.Kind, uid: str, workload: Mapping[str, Any] | None) -> None:
        if workload is None:
            self._workloads.pop(uid, None)
            return
        self._workloads[uid] = (kind, workload)
        if kind in _SCALED:
            self._changed[uid] = None

    def _again(self, uid: str) -> None:
        self._ungrouped.update(
            {name: None for name in self._members.get(uid, {}) if not companions.group_name(self._pods[name])}
        )
        if uid in self._workloads:
            self._changed[uid] = None

    # ---- what is wanted

    def _grouped(self, name: _Name) -> list[Request]:
        """Give a pod its group: create that if it is absent, then annotate the pod."""
        pod = self._pods.get(name)
        if pod is None or companions.group_name(pod):
            return []
        uid = companions.owner_uid(pod)
        requests = self._present(pod, uid, update=False)
        annotation = {names.GROUP_NAME: f"{names.POD_GROUP_PREFIX}{uid}"}
        body: Manifest = {"metadata": {"annotations": annotation}}
        patch = effects.Patch(kind=kinds.POD, namespace=name[0], name=name[1], uid=pod["metadata"]["uid"], body=body)
        return [*requests, patch]

    def _scaled(self, uid: str) -> list[Request]:
        """Follow a workload's scale: none left, no group; otherwise the group is what its first pod asks for."""
        if uid not in self._workloads:
            return []
        kind, workload = self._workloads[uid]
        name = (workload["metadata"].get("namespace", ""), f"{names.POD_GROUP_PREFIX}{uid}")
        if companions.replicas(workload) == 0:
            group = self._groups.get(name)
            if group is None:
                return []
            return [Delete(kind=kinds.POD_GROUP, namespace=name[0], name=name[1], uid=group["metadata"].get("uid", ""))]
        revision = companions.update_revision(workload) if kind is kinds.STATEFUL_SET else ""
        members = (self._pods[member] for member in sorted(self._members.get(uid, {})))
        first = next((pod for pod in members if companions.at_revision(pod, revision)), None)
        if first is None or companions.group_name(first) not in ("", name[1]):
            return []
        return self._present(first, uid, update=True)

    def _present(self, pod: Mapping[str, Any], uid: str, *, update: bool) -> list[Request]:
        """Want a companion group to exist, and if asked to be as its pod and its owner say."""
        workload = self._workloads.get(uid)
        inherited = workload[1] if workload is not None and self._inherit else None
        wanted = companions.group(pod, uid, inherited)
        metadata = wanted["metadata"]
        name = (metadata["namespace"], metadata["name"])
        present = self._groups.get(name)
        if present is None:
            self._groups[name] = wanted
            return [effects.Create(kind=kinds.POD_GROUP, manifest=wanted)]
        body = companions.changes(present, wanted) if update else {}
        if not body:
            return []
        group_uid = present["metadata"].get("uid", "")
        return [effects.Patch(kind=kinds.POD_GROUP, namespace=name[0], name=name[1], uid=group_uid, body=body)]
