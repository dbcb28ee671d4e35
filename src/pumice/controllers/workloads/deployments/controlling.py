"""What a Deployment does next: it finds or makes the set of its present template, scales its sets, forgets old ones and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import claims, manifests, pods
from pumice.controllers.workloads.deployments import reporting, revisions, scaling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]


class Deployments:
    """Reconciles Deployments."""

    kind = manifests.DEPLOYMENT
    watched = (kinds.REPLICA_SET, kinds.POD)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the Deployment of a set; of a pod that of its set, for whoever waits for the old pods to be gone."""
        if kind == kinds.REPLICA_SET:
            return claims.owner_of(manifest, observed, of=self.kind)
        reference, namespace = controller(manifest), manifest["metadata"].get("namespace", "")
        if reference is None or reference.get("kind") != kinds.REPLICA_SET.name:
            return ()
        owner = observed.find(kinds.REPLICA_SET, namespace, str(reference.get("name")))
        if owner is None or controller(owner) is None:
            return ()
        return claims.owner_of(owner, observed, of=self.kind)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a roll-out."""
        deployment = observed.find(self.kind, namespace, name)
        if deployment is None:
            return requests.Reconciled()
        selector = manifests.mapping(deployment, "spec", "selector")
        owned, steps = claims.claim(
            deployment,
            self.kind,
            kinds.REPLICA_SET,
            observed,
            lambda each: manifests.selects(selector, manifests.labels(each)),
        )
        if steps:
            return requests.Reconciled(steps=steps)
        sets = scaling.Sets(deployment, owned)
        if manifests.is_going(deployment):
            return requests.Reconciled(steps=reporting.status_steps(sets, moment, []))
        if manifests.mapping(deployment, "spec").get("paused") is True or sets.is_scaling_event():
            return self._scaled(sets, moment)
        return self._rolled(sets, observed, moment)

    def _scaled(self, sets: scaling.Sets, moment: Moment) -> Reconciled:
        """Follow a change of the number of replicas; the roll-out itself stands still meanwhile."""
        changes = sets.proportional()
        # A report in the middle of it would tell of a roll-out that failed to move.
        steps = changes + reporting.status_steps(sets, moment, [], scaled=bool(changes))
        return requests.Reconciled(steps=steps + ([] if changes else revisions.forgotten(sets)))

    def _rolled(self, sets: scaling.Sets, observed: Observed, moment: Moment) -> Reconciled:
        strategy = manifests.mapping(sets.deployment, "spec", "strategy").get("type", "RollingUpdate")
        if strategy == "Recreate":
            down = sets.all_old_down()
            if down or self._old_pods_run(sets, observed):
                return self._reported(sets, moment, down)
        present = revisions.present(sets)
        if present:
            return self._reported(sets, moment, present)
        changes = sets.new_to_full() if strategy == "Recreate" else sets.rolling()
        return self._reported(sets, moment, changes)

    def _reported(self, sets: scaling.Sets, moment: Moment, changes: list[Step]) -> Reconciled:
        steps = changes + reporting.status_steps(sets, moment, changes)
        steps += revisions.forgotten(sets) if not changes else []
        return requests.Reconciled(steps=steps, again=reporting.deadline(sets, moment))

    def _old_pods_run(self, sets: scaling.Sets, observed: Observed) -> bool:
        return any(
            not pods.is_finished(pod) for each in sets.old for pod in observed.owned(kinds.POD, manifests.uid(each))
        )
