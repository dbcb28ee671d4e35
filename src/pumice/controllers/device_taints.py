"""Pods leave devices that are tainted `NoExecute` while they use them, as kube-controller-manager has it: at once, or when the time is over for which their claim tolerates that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names
from pumice.controllers import device_claims
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
REASON: Final = "DeletionByDeviceTaintManager"
_EVICTS: Final = "NoExecute"
_SLICE, _RULE = kinds.RESOURCE_SLICE, kinds.DEVICE_TAINT_RULE


class TaintedClaims:
    """Deletes the pods of claims whose devices they must leave."""

    kind = kinds.RESOURCE_CLAIM
    watched = (_SLICE, _RULE)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the claims that have devices of a slice, or that a rule is about."""
        del kind
        spec = manifests.mapping(manifest, "spec")
        driver = spec.get("driver") or manifests.mapping(spec, "deviceSelector").get("driver")
        for claim in observed.all(self.kind):
            if any(driver in (None, result.get("driver")) for result in _results(claim)):
                yield claim["metadata"].get("namespace", ""), manifests.name(claim)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Delete the pods that use a claim when one of its devices is to be left."""
        claim = observed.find(self.kind, namespace, name)
        ends = [] if claim is None else list(_ends(claim, observed, moment))
        if claim is None or not ends:
            return requests.Reconciled()
        due, why = min(ends)
        if due > moment.now:
            return requests.Reconciled(again=due)
        steps = [
            step
            for each in manifests.items(claim, "status", "reservedFor")
            for step in _evicted(manifests.mapping(each), namespace, observed, moment, why)
        ]
        return requests.Reconciled(steps=steps)


def _results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [manifests.mapping(each) for each in manifests.items(claim, "status", "allocation", "devices", "results")]


def _ends(claim: Mapping[str, Any], observed: Observed, moment: Moment) -> Iterator[tuple[int, str]]:
    """Give when devices of a claim must be left, and because of which taint."""
    for result in _results(claim):
        for taint in _taints(result, observed):
            if taint.get("effect") != _EVICTS:
                continue
            until = _tolerated_until(taint, manifests.items(result, "tolerations"), moment)
            if until is not None:
                device = "/".join(str(result.get(part)) for part in ("driver", "pool", "device"))
                yield until, f"device {device} is tainted {taint.get('key')}:{_EVICTS}"


def _taints(result: Mapping[str, Any], observed: Observed) -> Iterator[Mapping[str, Any]]:
    """Give the taints of a device: of its slice, of the newest generation, and of the rules about it."""
    place = (result.get("driver"), result.get("pool"))
    slices = [manifests.mapping(each, "spec") for each in observed.all(_SLICE)]
    slices = [spec for spec in slices if (spec.get("driver"), manifests.mapping(spec, "pool").get("name")) == place]
    newest = max((_generation(spec) for spec in slices), default=0)
    for spec in slices:
        for device in manifests.items(spec, "devices"):
            if _generation(spec) == newest and manifests.mapping(device).get("name") == result.get("device"):
                yield from map(manifests.mapping, manifests.items(device, "taints"))
    for rule in observed.all(_RULE):
        selector = manifests.mapping(rule, "spec", "deviceSelector")
        if all(selector.get(part) in (None, result.get(part)) for part in ("driver", "pool", "device")):
            yield manifests.mapping(rule, "spec", "taint")


def _generation(spec: Mapping[str, Any]) -> int:
    return manifests.number(manifests.mapping(spec, "pool"), "generation")


def _tolerated_until(taint: Mapping[str, Any], tolerations: list[Any], moment: Moment) -> int | None:
    """Say until when a taint is tolerated: None is for ever."""
    fitting = [each for each in map(manifests.mapping, tolerations) if _tolerates(each, taint)]
    if not fitting:
        return moment.now
    spans = [each["tolerationSeconds"] for each in fitting if isinstance(each.get("tolerationSeconds"), int)]
    if not spans:
        return None
    since = manifests.moment_of(taint.get("timeAdded")) or moment.now
    return moment.reaches(since, max(0, min(spans)) * duration.SECOND)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _evicted(
    consumer: Mapping[str, Any], namespace: str, observed: Observed, moment: Moment, why: str
) -> Iterator[Step]:
    """Say on a pod why it goes, and delete it."""
    pod = observed.find(kinds.POD, namespace, str(consumer.get("name")))
    if pod is None or manifests.uid(pod) != consumer.get("uid"):
        return
    if manifests.is_going(pod) or device_claims.is_finished(pod):
        return
    said = {
        "type": names.CONDITION_DISRUPTION_TARGET,
        "status": "True",
        "reason": REASON,
        "message": f"Device Taint manager: {why}",
        "lastTransitionTime": manifests.stamp(moment),
    }
    status = manifests.with_condition(manifests.mapping(pod, "status"), said)
    yield steps_to.patch(
        kinds.POD, pod, {"status": {"conditions": status["conditions"]}}, exact=True, status=True
    )  # the list is replaced whole
    yield steps_to.delete(kinds.POD, pod)
