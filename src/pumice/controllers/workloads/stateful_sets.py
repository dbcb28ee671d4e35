"""StatefulSets: pods with numbers, each with its own volumes, in order or side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import claims, history, manifests, pods, replica_sets, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


class _Members(msgspec.Struct):
    """The pods of a set by their numbers, and what is wanted of them."""

    subject: Manifest
    spec: Mapping[str, Any]
    wanted: range
    found: dict[int, Manifest]
    history: history.History
    current: str

    def name(self, number: int) -> str:
        return f"{manifests.name(self.subject)}-{number}"

    @property
    def parallel(self) -> bool:
        return self.spec.get("podManagementPolicy") == "Parallel"

    def revision_for(self, number: int) -> str:
        """Give the revision that a pod is made of: below the partition, and while the update has not come that far, the current one."""
        rolling = manifests.mapping(self.spec, "updateStrategy", "rollingUpdate")
        if self.spec.get("updateStrategy") and manifests.mapping(self.spec, "updateStrategy").get("type") == "OnDelete":
            return self.history.update
        partition = manifests.number(rolling, "partition")
        if number < self.wanted.start + partition and self.history.template(self.current) is not None:
            return self.current
        return self.history.update


class StatefulSets:
    """Reconciles StatefulSets."""

    kind = kinds.STATEFUL_SET
    watched = (kinds.POD, manifests.CONTROLLER_REVISION, kinds.PERSISTENT_VOLUME_CLAIM)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the set that a pod or a revision belongs to; a claim is looked at with its pod."""
        if kind == kinds.PERSISTENT_VOLUME_CLAIM:
            return ()
        return claims.owner_of(manifest, observed, of=self.kind)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next step towards the pods that are wanted."""
        subject = observed.find(self.kind, namespace, name)
        if subject is None:
            return requests.Reconciled()
        spec = manifests.mapping(subject, "spec")
        owned, steps = claims.claim(subject, self.kind, kinds.POD, observed, lambda pod: _fits(subject, pod))
        past = history.read(subject, self.kind, observed)
        if steps or past.steps:
            return requests.Reconciled(steps=steps + past.steps)
        start = manifests.number(manifests.mapping(spec, "ordinals"), "start")
        wanted = range(start, start + manifests.number(spec, "replicas", 1))
        found = {number: pod for pod in owned if (number := ordinal(subject, pod)) is not None}
        current = str(manifests.mapping(subject, "status").get("currentRevision") or past.update)
        members = _Members(subject, spec, wanted, found, past, current)
        status = steps_to.write_status(self.kind, subject, _status(members, moment))
        changes = [] if manifests.is_going(subject) else _changes(members, observed, moment)
        live = {past.update, current}
        old = history.forgotten(subject, past, live) if not changes else []
        return requests.Reconciled(steps=status + changes + old, again=replica_sets.next_available(owned, spec, moment))


def ordinal(subject: Mapping[str, Any], pod: Mapping[str, Any]) -> int | None:
    """Give the number of a pod of a set."""
    prefix, _, text = manifests.name(pod).rpartition("-")
    fits = prefix == manifests.name(subject) and text.isdecimal() and str(int(text)) == text
    return int(text) if fits else None


def _fits(subject: Manifest, pod: Mapping[str, Any]) -> bool:
    selector = manifests.mapping(subject, "spec", "selector")
    return manifests.selects(selector, manifests.labels(pod)) and ordinal(subject, pod) is not None


def _changes(members: _Members, observed: Observed, moment: Moment) -> list[Step]:
    """Fill gaps from the lowest number, then remove from the highest, then update from the highest; in order, one at a time."""
    filled: list[Step] = []
    for number in members.wanted:
        steps, waits = _present(members, number, observed, moment)
        filled += steps
        if (waits and not members.parallel) or len(filled) >= pods.AT_ONCE:
            return filled
    if filled and not members.parallel:
        return filled
    beyond = [number for number in sorted(members.found, reverse=True) if number not in members.wanted]
    for number in beyond:
        pod = members.found[number]
        if not manifests.is_going(pod):
            filled.append(pods.delete(pod))
        if not members.parallel:
            return filled
    return filled or _updated(members, moment)


def _present(members: _Members, number: int, observed: Observed, moment: Moment) -> tuple[list[Step], bool]:
    """Want a pod to be there; tells whether those after it have to wait for it."""
    pod = members.found.get(number)
    if pod is not None and pods.is_finished(pod) and not manifests.is_going(pod):
        return [pods.delete(pod)], True
    if pod is not None:
        pause = manifests.number(members.spec, "minReadySeconds")
        return [], manifests.is_going(pod) or not pods.is_available(pod, pause, moment)
    if observed.find(kinds.POD, members.subject["metadata"].get("namespace", ""), members.name(number)) is not None:
        return [], True  # somebody else's pod has the name
    return [*_volumes(members, number, observed), pods.create(_pod(members, number))], True


def _updated(members: _Members, moment: Moment) -> list[Step]:
    """Delete the pod with the highest number that is of an old revision; those above it must be available before."""
    strategy = manifests.mapping(members.spec, "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return []
    partition = manifests.number(manifests.mapping(strategy, "rollingUpdate"), "partition")
    pause = manifests.number(members.spec, "minReadySeconds")
    most = manifests.scaled(
        manifests.mapping(strategy, "rollingUpdate").get("maxUnavailable", 1), len(members.wanted), up=True
    )
    room = max(1, most)
    steps: list[Step] = []
    for number in reversed(members.wanted):
        pod = members.found.get(number)
        if pod is None or manifests.is_going(pod) or not pods.is_available(pod, pause, moment):
            room -= 1
        stale = pod is not None and _revision(pod) != members.history.update
        if pod is not None and stale and not manifests.is_going(pod) and number >= members.wanted.start + partition:
            steps.append(pods.delete(pod))
            room -= pods.is_available(pod, pause, moment)  # one that is not has been counted
        if room <= 0:
            break
    return steps


def _revision(pod: Mapping[str, Any]) -> str:
    """Give the name of the revision that a pod was made of: its label carries the whole name."""
    return str(manifests.labels(pod).get(history.LABEL, ""))


def _pod(members: _Members, number: int) -> Manifest:
    revision = members.revision_for(number)
    template = members.history.template(revision) or members.spec.get("template")
    name = members.name(number)
    pod = pods.from_template(members.subject, kinds.STATEFUL_SET, template, name)
    own = {history.LABEL: revision, _POD_NAME: name, _POD_INDEX: str(number)}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **own}
    spec = pod["spec"]
    spec["hostname"] = name
    if members.spec.get("serviceName"):
        spec["subdomain"] = members.spec["serviceName"]
    claimed = {_template_name(each): _claim_name(members, each, number) for each in _templates(members)}
    others = [each for each in manifests.items(spec, "volumes") if manifests.mapping(each).get("name") not in claimed]
    if claimed:
        own_volumes = [{"name": each, "persistentVolumeClaim": {"claimName": claim}} for each, claim in claimed.items()]
        spec["volumes"] = others + own_volumes
    return pod


def _volumes(members: _Members, number: int, observed: Observed) -> list[Step]:
    """Make the claims of a pod that are not there; they outlive it."""
    steps: list[Step] = []
    namespace = members.subject["metadata"].get("namespace", "")
    selector = manifests.mapping(members.spec, "selector", "matchLabels")
    for template in _templates(members):
        name = _claim_name(members, template, number)
        if observed.find(kinds.PERSISTENT_VOLUME_CLAIM, namespace, name) is not None:
            continue
        labels = {**manifests.mapping(template, "metadata", "labels"), **selector}
        claim: Manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": dict(manifests.mapping(template, "spec")),
        }
        notes = manifests.mapping(template, "metadata", "annotations")
        if notes:
            claim["metadata"]["annotations"] = dict(notes)
        pod = members.name(number)
        said = f"create Claim {name} Pod {pod} in StatefulSet {manifests.name(members.subject)} success"
        steps.append(steps_to.create(kinds.PERSISTENT_VOLUME_CLAIM, claim, ("SuccessfulCreate", said)))
    return steps


def _templates(members: _Members) -> list[Any]:
    return manifests.items(members.spec, "volumeClaimTemplates")


def _template_name(template: Any) -> str:
    return str(manifests.mapping(template, "metadata").get("name", ""))


def _claim_name(members: _Members, template: Any, number: int) -> str:
    return f"{_template_name(template)}-{members.name(number)}"


def _status(members: _Members, moment: Moment) -> Manifest:
    """Count the pods; once all are of the update's revision and ready, it is the current one."""
    alive = [pod for pod in members.found.values() if pods.is_active(pod)]
    pause = manifests.number(members.spec, "minReadySeconds")
    ready = [pod for pod in alive if pods.phase(pod) == names.PHASE_RUNNING and pods.is_ready(pod)]
    updated = [pod for pod in alive if _revision(pod) == members.history.update]
    size = len(members.wanted)
    current = members.current
    fresh = len(updated) == len(ready) == len(members.found) == size
    if fresh or not members.history.template(current):
        current = members.history.update
    counts = {
        "replicas": len(members.found),
        "readyReplicas": len(ready),
        "availableReplicas": sum(pods.is_available(pod, pause, moment) for pod in ready),
        "currentReplicas": sum(_revision(pod) == current for pod in alive),
        "updatedReplicas": len(updated),
    }
    old = dict(manifests.mapping(members.subject, "status"))
    kept = {field: value for field, value in old.items() if field not in counts}
    said = {field: count for field, count in counts.items() if count or field in ("replicas", "availableReplicas")}
    return {
        **kept,
        **said,
        "currentRevision": current,
        "updateRevision": members.history.update,
        "collisionCount": manifests.number(old, "collisionCount"),
        "observedGeneration": members.subject["metadata"].get("generation", 0),
    }
