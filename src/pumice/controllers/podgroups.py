"""Companion PodGroups: a group for every pod of ours that nobody grouped, so that it can be scheduled.

A pod under a controller shares the group of that controller, any other pod has one of its own. The controllers only ever create, update or
delete groups named `podgroup-<uid>` and set the group annotation of pods that have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names, timestamp
from pumice.cache import effects
from pumice.controllers import companions
from pumice.controllers.queueing import observed as knowing
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.requests import Reconciled, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment

Manifest = dict[str, Any]

SCALED: Final = (kinds.REPLICA_SET, kinds.STATEFUL_SET)
_WORKLOADS: Final = (*SCALED, kinds.DAEMON_SET, kinds.BATCH_JOB)
WATCHED: Final = (kinds.POD, kinds.POD_GROUP, *_WORKLOADS)


def controllers(
    scheduler_names: Sequence[str] = (names.SCHEDULER,), *, inherit: bool = True, patience: int = 0
) -> list[Controller]:
    """Make the controllers of companion groups; `inherit` says whether groups take over what the owners of pods are annotated with.

    For so many microseconds of `patience` a pod is left to whoever binds it and lets it name its group with that.
    """
    members = Members(tuple(scheduler_names), inherit=inherit)
    found: list[Controller] = [GroupedPods(members, patience), *(ScaledGroups(kind, members) for kind in SCALED)]
    return [*found, EndingGroups()] if inherit else found


class Members:
    """Whose pods get groups, and what a group says by them."""

    def __init__(self, scheduler_names: tuple[str, ...], *, inherit: bool) -> None:
        self._scheduler_names = scheduler_names
        self._inherit = inherit

    def are_ours(self, pod: Mapping[str, Any]) -> bool:
        """Tell whether a pod is to be scheduled by us."""
        return companions.scheduler_name(pod) in self._scheduler_names

    def waits(self, pod: Mapping[str, Any]) -> bool:
        """Tell whether a pod needs a group."""
        return self.are_ours(pod) and not companions.group_name(pod) and not companions.names_native_group(pod)

    def lacks(self, pod: Mapping[str, Any], observed: Observed) -> bool:
        """Tell whether the group of a pod that waits is gone, of a pod whose workload brings it back for nobody."""
        metadata, name = pod["metadata"], _group_name(companions.owner_uid(pod))
        if companions.group_name(pod) != name or not self.are_ours(pod) or pod["spec"].get("nodeName"):
            return False
        owner = knowing.controller(pod) or {}
        scaled = owner.get("kind") in [kind.name for kind in SCALED]
        there = observed.has(kinds.POD_GROUP, metadata.get("namespace", ""), name)
        return not (scaled or there or metadata.get("deletionTimestamp"))

    def first(self, uid: str, workload: Mapping[str, Any] | None, observed: Observed) -> Mapping[str, Any] | None:
        """Give the pod of a controller that its group follows: the first by name, of a StatefulSet that is updated the first of the new ones."""
        revision = companions.update_revision(workload) if workload is not None else ""
        pods = (pod for pod in observed.owned(kinds.POD, uid) if self.are_ours(pod))
        return next((pod for pod in pods if companions.at_revision(pod, revision)), None)

    def group(self, pod: Mapping[str, Any], uid: str, workload: Mapping[str, Any] | None) -> Manifest:
        """Give the group that a pod, and the workload that owns it, ask for."""
        return companions.group(pod, uid, workload if self._inherit else None)


class GroupedPods:
    """Gives pods their groups. Of several pods that wait for the group of their controller one creates it, and the others name it when it is there."""

    kind: Final = kinds.POD
    watched: Final = WATCHED

    def __init__(self, members: Members, patience: int) -> None:
        self._members = members
        self._patience = patience

    def is_same(self, kind: kinds.Kind, _: Mapping[str, Any], __: Mapping[str, Any]) -> bool:
        """Tell whether a change is none: of a group only that it comes or goes counts, of workloads nothing."""
        return kind is not kinds.POD

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the pods that wait for a group which has come, or the one that is to create it if there is none."""
        owner = knowing.controller(manifest) if kind in (kinds.POD, kinds.POD_GROUP) else None
        if owner is None:
            return []
        namespace = manifest["metadata"].get("namespace", "")
        if kind is kinds.POD_GROUP and owner.get("kind") == kinds.POD.name:
            return [(namespace, str(owner.get("name")))]
        if not observed.has(kinds.POD_GROUP, namespace, _group_name(owner["uid"])):
            creating = self._creating(owner["uid"], observed)
            return [] if creating is None else [_place(creating)]
        pods = observed.owned(kinds.POD, owner["uid"]) if kind is kinds.POD_GROUP else []
        return [_place(pod) for pod in pods if self._members.waits(pod)]

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Create the group of a pod that has none, and let the pod name it, unless that may wait."""
        pod = observed.find(kinds.POD, namespace, name)
        if pod is None:
            return Reconciled()
        uid = companions.owner_uid(pod)
        if self._members.lacks(pod, observed):
            creates = self._creates(pod, uid, observed)
            return Reconciled(steps=[Step(request=self._creation(pod, uid, observed))] if creates else [])
        if not self._members.waits(pod):
            return Reconciled(steps=self._resized(pod, observed))
        group = observed.find(kinds.POD_GROUP, namespace, _group_name(uid))
        steps = []
        if group is None:
            if not self._creates(pod, uid, observed):
                return Reconciled()
            steps.append(Step(request=self._creation(pod, uid, observed)))
        elif group["metadata"].get("deletionTimestamp"):
            return Reconciled()
        if (due := self._left_alone_until(pod, moment)) > moment.now:
            return Reconciled(steps=steps, again=due)
        body: Manifest = {"metadata": {"annotations": {names.GROUP_NAME: _group_name(uid)}}}
        own = pod["metadata"].get("uid", "")
        patch = effects.Patch(kind=kinds.POD, namespace=namespace, name=name, uid=own, body=body)
        return Reconciled(steps=[*steps, Step(request=patch)])

    def _left_alone_until(self, pod: Mapping[str, Any], moment: Moment) -> int:
        """Give until when a pod is not told of its group."""
        if not self._patience or pod["spec"].get("nodeName"):
            return 0
        try:
            created = timestamp.parse(pod["metadata"].get("creationTimestamp") or "")
        except timestamp.TimestampError:
            return 0
        return moment.since(created) + self._patience

    def _resized(self, pod: Mapping[str, Any], observed: Observed) -> list[Step]:
        """Let the group of a pod that was resized before it had a node ask for what the pod asks for now, or it might never be let in."""
        metadata, uid = pod["metadata"], pod["metadata"].get("uid", "")
        own = companions.group_name(pod) == _group_name(uid) and self._members.are_ours(pod)
        if not own or metadata.get("generation", 1) == 1 or pod["spec"].get("nodeName"):
            return []
        group = observed.find(kinds.POD_GROUP, metadata.get("namespace", ""), _group_name(uid))
        if group is None or group["metadata"].get("deletionTimestamp"):
            return []
        asked = companions.changes(group, self._members.group(pod, uid, None)).get("spec", {})
        amounts = {"minResources": asked["minResources"]} if "minResources" in asked else {}
        return [Step(request=_change(group, {"spec": amounts}))] if amounts else []

    def _creates(self, pod: Mapping[str, Any], uid: str, observed: Observed) -> bool:
        if knowing.controller(pod) is None:
            return True
        creating = self._creating(uid, observed)
        return creating is not None and _place(creating) == _place(pod)

    def _creating(self, uid: str, observed: Observed) -> Mapping[str, Any] | None:
        """Give the pod of a controller that is to create the group of all."""
        return observed.first_owned(
            kinds.POD, uid, lambda pod: self._members.waits(pod) or self._members.lacks(pod, observed)
        )

    def _creation(self, pod: Mapping[str, Any], uid: str, observed: Observed) -> effects.Create:
        workload = _workload(pod, observed)
        first = self._members.first(uid, workload, observed) if workload is not None else None
        return effects.Create(kind=kinds.POD_GROUP, manifest=self._members.group(first or pod, uid, workload))


class ScaledGroups:
    """Lets the groups of workloads of a kind follow these: none left, no group; otherwise the group is what its first pod asks for."""

    watched: Final = (kinds.POD, kinds.POD_GROUP)

    def __init__(self, kind: kinds.Kind, members: Members) -> None:
        self.kind = kind
        self._members = members

    def is_same(self, _: kinds.Kind, __: Mapping[str, Any], ___: Mapping[str, Any]) -> bool:
        """Tell whether a change is none: it is the workload that groups follow."""
        return True

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the workload of a group that is gone: it may have been scaled up again meanwhile."""
        metadata = manifest["metadata"]
        owner = knowing.controller(manifest) if kind is kinds.POD_GROUP else None
        if owner is None or owner.get("kind") != self.kind.name or observed.has(kind, *_place(manifest)):
            return []
        return [(metadata.get("namespace", ""), str(owner.get("name")))]

    def reconcile(self, namespace: str, name: str, observed: Observed, _: Moment) -> Reconciled:
        """Follow a workload's scale."""
        workload = observed.find(self.kind, namespace, name)
        if workload is None:
            return Reconciled()
        uid = workload["metadata"].get("uid", "")
        group = observed.find(kinds.POD_GROUP, namespace, _group_name(uid))
        if group is not None and group["metadata"].get("deletionTimestamp"):
            return Reconciled()
        if companions.replicas(workload) == 0:
            return Reconciled(steps=[] if group is None else [Step(request=_deletion(group))])
        first = self._members.first(uid, workload if self.kind is kinds.STATEFUL_SET else None, observed)
        if first is None or companions.group_name(first) not in ("", _group_name(uid)):
            return Reconciled()
        wanted = self._members.group(first, uid, workload)
        if group is None:
            # Whoever waits for it creates it.
            waits = observed.first_owned(kinds.POD, uid, self._members.waits) is not None
            creation = effects.Create(kind=kinds.POD_GROUP, manifest=wanted)
            return Reconciled(steps=[] if waits else [Step(request=creation)])
        body = companions.changes(group, wanted)
        return Reconciled(steps=[Step(request=_change(group, body))] if body else [])


class EndingGroups:
    """Lets the groups of Jobs say when these end all of their pods: a Job that goes on after a pause starts anew."""

    kind: Final = kinds.BATCH_JOB
    watched: Final = (kinds.POD_GROUP,)

    def is_same(self, _: kinds.Kind, __: Mapping[str, Any], ___: Mapping[str, Any]) -> bool:
        """Tell whether a change is none: it is the Job that groups follow."""
        return True

    def concerns(self, _: kinds.Kind, manifest: Mapping[str, Any], __: Observed) -> Iterable[tuple[str, str]]:
        """Name the Job of a group that has come: it may have started meanwhile."""
        owner = knowing.controller(manifest)
        if owner is None or owner.get("kind") != self.kind.name:
            return []
        return [(_place(manifest)[0], str(owner.get("name")))]

    def reconcile(self, namespace: str, name: str, observed: Observed, _: Moment) -> Reconciled:
        """Follow when a Job has started, and how long it may take."""
        workload = observed.find(self.kind, namespace, name)
        if workload is None:
            return Reconciled()
        group = observed.find(kinds.POD_GROUP, namespace, _group_name(workload["metadata"].get("uid", "")))
        if group is None or group["metadata"].get("deletionTimestamp"):
            return Reconciled()
        end = companions.ends_by(workload)
        if (group["metadata"].get("annotations") or {}).get(names.ENDS_BY) == end:
            return Reconciled()
        return Reconciled(steps=[Step(request=_change(group, {"metadata": {"annotations": {names.ENDS_BY: end}}}))])


def _group_name(uid: str) -> str:
    return f"{names.POD_GROUP_PREFIX}{uid}"


def _place(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _workload(pod: Mapping[str, Any], observed: Observed) -> Mapping[str, Any] | None:
    """Give the workload that a pod is controlled by, if it is of a kind that is followed."""
    owner = knowing.controller(pod)
    if owner is None:
        return None
    kind = kinds.find(str(owner.get("apiVersion")), str(owner.get("kind")))
    found = observed.find(kind, _place(pod)[0], str(owner.get("name"))) if kind in _WORKLOADS else None
    return found if found is not None and found["metadata"].get("uid") == owner["uid"] else None


def _deletion(group: Mapping[str, Any]) -> requests.Delete:
    namespace, name = _place(group)
    uid = group["metadata"].get("uid", "")
    return requests.Delete(kind=kinds.POD_GROUP, namespace=namespace, name=name, uid=uid, policy="")


def _change(group: Mapping[str, Any], body: Manifest) -> effects.Patch:
    namespace, name = _place(group)
    uid = group["metadata"].get("uid", "")
    return effects.Patch(kind=kinds.POD_GROUP, namespace=namespace, name=name, uid=uid, body=body)
