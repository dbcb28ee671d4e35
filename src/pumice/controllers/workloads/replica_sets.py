"""ReplicaSets and ReplicationControllers: as many pods as are wanted, no matter which."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import claims, manifests, naming, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
_FAILURE = "ReplicaFailure"


class ReplicaSets:
    """Reconciles ReplicaSets, or what was there before them and differs in how it selects pods."""

    watched = (kinds.POD,)

    def __init__(self, kind: kinds.Kind = kinds.REPLICA_SET) -> None:
        self.kind = kind

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the set that a pod belongs to."""
        del kind
        return claims.owner_of(manifest, observed, of=self.kind)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Bring the number of pods to what is wanted, and the status to what is there."""
        replica_set = observed.find(self.kind, namespace, name)
        if replica_set is None:
            return requests.Reconciled()
        selector, spec = manifests.selector(replica_set), manifests.mapping(replica_set, "spec")
        owned, steps = claims.claim(
            replica_set, self.kind, kinds.POD, observed, lambda pod: manifests.selects(selector, manifests.labels(pod))
        )
        active = [pod for pod in owned if pods.is_active(pod)]
        changes = [] if manifests.is_going(replica_set) else self._changes(replica_set, spec, active, observed)
        status = _status(replica_set, owned, moment)
        creating = any(isinstance(step.request, effects.Create) for step in changes)
        if not creating:
            status = manifests.without_condition(status, _FAILURE)
        steps += steps_to.write_status(self.kind, replica_set, status)
        return requests.Reconciled(
            steps=steps + changes,
            again=next_available(active, spec, moment),
            size=len(owned),
            when_refused=lambda message: self._refused(replica_set, status, message, moment) if creating else [],
        )

    def _changes(
        self, replica_set: Manifest, spec: Mapping[str, Any], active: Sequence[Manifest], observed: Observed
    ) -> list[Step]:
        wanted = manifests.number(spec, "replicas", 1)
        namespace = replica_set["metadata"].get("namespace", "")
        if len(active) <= wanted:
            free = naming.free_names(f"{manifests.name(replica_set)}-", namespace, manifests.uid(replica_set), observed)
            template = spec.get("template")
            return [
                pods.create(pods.from_template(replica_set, self.kind, template, next(free)))
                for _ in range(min(wanted - len(active), pods.AT_ONCE))
            ]
        beside = Counter(manifests.mapping(pod, "spec").get("nodeName", "") for pod in active)
        ordered = sorted(
            active, key=lambda pod: pods.first_to_go(pod, beside[manifests.mapping(pod, "spec").get("nodeName", "")])
        )
        return [pods.delete(pod) for pod in ordered[: len(active) - wanted]]

    def _refused(self, replica_set: Manifest, status: Manifest, message: str, moment: Moment) -> list[Step]:
        failure = {
            "type": _FAILURE,
            "status": "True",
            "reason": "FailedCreate",
            "message": message,
            "lastTransitionTime": manifests.stamp(moment),
        }
        written = {**replica_set, "status": status}
        return steps_to.write_status(self.kind, written, manifests.with_condition(status, failure))


def _status(replica_set: Manifest, owned: Sequence[Manifest], moment: Moment) -> Manifest:
    spec = manifests.mapping(replica_set, "spec")
    active = [pod for pod in owned if pods.is_active(pod)]
    wanted = manifests.mapping(spec, "template", "metadata", "labels").items()
    pause = manifests.number(spec, "minReadySeconds")
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(wanted <= manifests.labels(pod).items() for pod in active),
        "readyReplicas": sum(pods.is_ready(pod) for pod in active),
        "availableReplicas": sum(pods.is_available(pod, pause, moment) for pod in active),
        "terminatingReplicas": sum(manifests.is_going(pod) and not pods.is_finished(pod) for pod in owned),
    }
    old = dict(manifests.mapping(replica_set, "status"))
    kept = {field: value for field, value in old.items() if field not in counts}
    said = {field: count for field, count in counts.items() if count or field in ("replicas", "terminatingReplicas")}
    return {**kept, **said, "observedGeneration": replica_set["metadata"].get("generation", 0)}


def next_available(active: Sequence[Manifest], spec: Mapping[str, Any], moment: Moment) -> int | None:
    """Give when the next ready pod will count as available."""
    pause = manifests.number(spec, "minReadySeconds")
    if pause <= 0:
        return None
    times = (pods.available_at(pod, pause, moment) for pod in active)
    return manifests.first(at for at in times if at is not None and at > moment.now)
