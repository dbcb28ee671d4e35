"""DaemonSets: a pod on every node that will have one; which node is said by its affinity, and the scheduler binds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import claims, history, manifests, naming, node_fit, pods, replica_sets, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
_GENERATION: Final = "pod-template-generation"
_NodePods = dict[str, list[Manifest]]


class DaemonSets:
    """Reconciles DaemonSets."""

    kind = kinds.DAEMON_SET
    watched = (kinds.POD, kinds.NODE, manifests.CONTROLLER_REVISION)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the set that a pod or a revision belongs to; a node concerns all sets."""
        if kind == kinds.NODE:
            return [(each["metadata"].get("namespace", ""), manifests.name(each)) for each in observed.all(self.kind)]
        return claims.owner_of(manifest, observed, of=self.kind)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Bring a pod to every node that is to have one, and away from all others."""
        subject = observed.find(self.kind, namespace, name)
        if subject is None:
            return requests.Reconciled()
        spec, selector = manifests.mapping(subject, "spec"), manifests.mapping(subject, "spec", "selector")
        owned, steps = claims.claim(
            subject, self.kind, kinds.POD, observed, lambda pod: manifests.selects(selector, manifests.labels(pod))
        )
        past = history.read(subject, self.kind, observed)
        if steps or past.steps:
            return requests.Reconciled(steps=steps + past.steps)
        places: _NodePods = {}
        for pod in owned:
            places.setdefault(node_fit.node_of(pod), []).append(pod)
        nodes = {manifests.name(node): node for node in observed.all(kinds.NODE)}
        wanted = {each: node_fit.judge(nodes[each], spec.get("template")) for each in sorted(nodes)}
        status = steps_to.write_status(self.kind, subject, _status(subject, places, wanted, past.code, moment))
        changes: list[Step] = []
        if not manifests.is_going(subject):
            changes = _placed(subject, places, wanted, past.code, observed)
            changes = changes or _rolled(subject, places, wanted, past.code, moment)
        old = history.forgotten(subject, past, {past.update}) if not changes else []
        again = replica_sets.next_available(owned, spec, moment)
        return requests.Reconciled(steps=status + changes + old, again=again, size=len(owned) + len(nodes))


def _placed(
    subject: Manifest, places: _NodePods, wanted: Mapping[str, node_fit.NodeFit], code: str, observed: Observed
) -> list[Step]:
    """Make pods where there is none, delete those that ended, are too many, or are where none is to be."""
    made: list[Step] = []
    gone: list[Step] = []
    for node in sorted({*places, *wanted}):
        verdict = wanted.get(node, node_fit.NOWHERE)
        found = places.get(node, [])
        live = sorted(
            (pod for pod in found if pods.is_active(pod)),
            key=lambda pod: (not pods.is_ready(pod), manifests.created(pod)),
        )
        gone += [pods.delete(pod) for pod in found if pods.is_finished(pod) and not manifests.is_going(pod)]
        if not verdict.stays:
            gone += [pods.delete(pod) for pod in live]
        elif verdict.runs and not found:
            made.append(pods.create(_pod(subject, node, code, observed)))
        else:
            surging = {_code(pod) == code for pod in live} == {True, False}
            gone += [pods.delete(pod) for pod in live[2 if surging else 1 :]]
    return gone + made


def _rolled(
    subject: Manifest, places: _NodePods, wanted: Mapping[str, node_fit.NodeFit], code: str, moment: Moment
) -> list[Step]:
    """Delete pods of old templates, as many as may be missing at once; those that do not run anyway first."""
    strategy = manifests.mapping(subject, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return []
    pause = manifests.number(manifests.mapping(subject, "spec"), "minReadySeconds")
    nodes = [node for node, verdict in wanted.items() if verdict.runs]
    stated = manifests.mapping(strategy, "rollingUpdate").get("maxUnavailable", 1)
    room = max(1, manifests.scaled(stated, len(nodes), up=True))
    healthy: list[Manifest] = []
    broken: list[Manifest] = []
    for node in nodes:
        live = [pod for pod in places.get(node, []) if pods.is_active(pod)]
        available = any(pods.is_available(pod, pause, moment) for pod in live)
        room -= not available
        for pod in live:
            if _code(pod) != code:
                (healthy if available else broken).append(pod)
    return [pods.delete(pod) for pod in broken + healthy[: max(0, room)]]


def _pod(subject: Manifest, node: str, code: str, observed: Observed) -> Manifest:
    namespace, uid = subject["metadata"].get("namespace", ""), manifests.uid(subject)
    name = next(naming.free_names(f"{manifests.name(subject)}-", namespace, uid, observed, node))
    spec = manifests.mapping(subject, "spec")
    pod = pods.from_template(subject, kinds.DAEMON_SET, spec.get("template"), name)
    labels = {history.LABEL: code, _GENERATION: str(subject["metadata"].get("generation", 1))}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
    pod["spec"] = node_fit.pinned(pod["spec"], node)
    return pod


def _code(pod: Mapping[str, Any]) -> str:
    return str(manifests.labels(pod).get(history.LABEL, ""))


def _status(
    subject: Manifest, places: _NodePods, wanted: Mapping[str, node_fit.NodeFit], code: str, moment: Moment
) -> Manifest:
    pause = manifests.number(manifests.mapping(subject, "spec"), "minReadySeconds")
    counts = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0)
    updated = available = 0
    for node, verdict in wanted.items():
        live = [pod for pod in places.get(node, []) if pods.is_active(pod)]
        if not verdict.runs:
            counts["numberMisscheduled"] += bool(live)
            continue
        counts["desiredNumberScheduled"] += 1
        counts["currentNumberScheduled"] += bool(live)
        counts["numberReady"] += any(pods.is_ready(pod) for pod in live)
        available += any(pods.is_available(pod, pause, moment) for pod in live)
        updated += any(_code(pod) == code for pod in live)
    missing = counts["desiredNumberScheduled"] - available
    more = {"updatedNumberScheduled": updated, "numberAvailable": available, "numberUnavailable": missing}
    old = manifests.mapping(subject, "status")
    kept = {field: value for field, value in old.items() if field not in counts and field not in more}
    said = {field: count for field, count in more.items() if count}
    return {**kept, **counts, **said, "observedGeneration": subject["metadata"].get("generation", 0)}
