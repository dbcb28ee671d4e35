"""What a Job does next: it starts pods, counts those that ended, and ends itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import claims, manifests, steps_to
from pumice.controllers.workloads.jobs import ending, gangs, staffing, tallying

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
_OURS: Final = "kubernetes.io/job-controller"
_JOB_NAME: Final = "batch.kubernetes.io/job-name"


class Jobs:
    """Reconciles Jobs of batch/v1; where `gangs` is set, those whose pods all run at once are gangs of Kubernetes' own."""

    kind = kinds.BATCH_JOB

    def __init__(self, *, gangs: bool = False) -> None:
        self._gangs = gangs
        self.watched = (kinds.POD, kinds.NATIVE_POD_GROUP, kinds.WORKLOAD) if gangs else (kinds.POD,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the Job that a pod, or a group of its pods, belongs to, or belonged to if nobody has counted it."""
        if kind is not kinds.POD:
            owner = controller(manifest)
            if owner is not None and owner.get("kind") == self.kind.name:
                yield manifest["metadata"].get("namespace", ""), str(owner.get("name"))
            return
        yield from claims.owner_of(manifest, observed, of=self.kind)
        left = manifests.labels(manifest).get(_JOB_NAME)
        if controller(manifest) is None and left and tallying.is_tracked(manifest):
            yield manifest["metadata"].get("namespace", ""), str(left)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a Job; of one that is gone, let go what waits to be counted."""
        job = observed.find(self.kind, namespace, name)
        orphaned = _orphaned(namespace, name, job, observed)
        if job is None or manifests.mapping(job, "spec").get("managedBy") not in (None, _OURS):
            return requests.Reconciled(steps=orphaned)
        if ending.is_finished(job) and not manifests.is_going(job):
            return self._finished(job, observed, moment, orphaned)
        selector = manifests.mapping(job, "spec", "selector")
        owned, steps = claims.claim(
            job,
            self.kind,
            kinds.POD,
            observed,
            lambda pod: manifests.selects(selector, manifests.labels(pod)),
            finalizer=tallying.FINALIZER,
        )
        tally = tallying.Tally(job, owned)
        if manifests.is_going(job):
            return requests.Reconciled(steps=orphaned + tally.released(over=True))
        return self._ran(job, tally, observed, moment, orphaned + steps)

    def _ran(
        self, job: Manifest, tally: tallying.Tally, observed: Observed, moment: Moment, steps: list[Step]
    ) -> Reconciled:
        gang = gangs.of(job, tally.pods, observed) if self._gangs else gangs.Gang()
        if gang.steps:
            return requests.Reconciled(steps=steps + gang.steps)
        verdict = ending.judge(job, tally, moment)
        changes, again = staffing.changes(job, tally, verdict, observed, moment)
        gangs.join(changes, gang.group)
        made, leaving = staffing.balance(changes)
        status, notes = ending.status(job, tally, verdict, moment, made=made, leaving=leaving)
        written = steps_to.write_status(self.kind, job, status, exact=True)
        plain, _ = ending.status(job, tally, verdict, moment, made=0, leaving=frozenset())
        over = ending.is_finished({"status": status})
        return requests.Reconciled(
            steps=steps + changes + written + tally.released(over=over),
            notes=notes,
            size=len(tally.pods),
            again=manifests.first([again, ending.deadline(job, moment) if verdict.state == "running" else None]),
            when_refused=lambda _: steps_to.write_status(self.kind, job, plain, exact=True) + tally.released(over=over),
        )

    def _finished(self, job: Manifest, observed: Observed, moment: Moment, steps: list[Step]) -> Reconciled:
        """Count nothing more; delete the Job when its time to live is over."""
        tally = tallying.Tally(job, observed.owned(kinds.POD, manifests.uid(job)))
        left = [step for pod in tally.active for step in staffing.removed(pod)]
        due = ending.expires(job, moment)
        steps = steps + left + tally.released(over=True)
        if due is not None and due <= moment.now:
            return requests.Reconciled(steps=[*steps, steps_to.delete(self.kind, job, "Foreground")])
        return requests.Reconciled(steps=steps, again=due)


def _orphaned(namespace: str, name: str, job: Manifest | None, observed: Observed) -> list[Step]:
    """Let go the pods of a Job that is gone or going, and those of an earlier one of its name: nobody will count them any more."""
    if job is not None and not manifests.is_going(job) and manifests.mapping(job, "status").get("startTime"):
        return []
    return [
        tallying.release(pod)
        for pod in observed.inside(kinds.POD, namespace)
        if tallying.is_tracked(pod) and _is_left(pod, name, job)
    ]


def _is_left(pod: Manifest, name: str, job: Manifest | None) -> bool:
    owner = controller(pod)
    if owner is None:
        return manifests.labels(pod).get(_JOB_NAME) == name and (job is None or manifests.is_going(job))
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != (kinds.BATCH_JOB.api_version, "Job", name):
        return False
    return job is None or owner["uid"] != manifests.uid(job)
