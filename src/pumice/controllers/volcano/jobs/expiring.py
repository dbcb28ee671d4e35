"""Jobs that have been finished for as long as they said they may stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, kinds
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.jobs import reading
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled


class ExpiredJobs:
    """Deletes Jobs `ttlSecondsAfterFinished` after they were Completed, Failed or Terminated."""

    kind = kinds.JOB
    watched: tuple[kinds.Kind, ...] = ()

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name nobody: a Job says everything itself."""
        del kind, manifest, observed
        return ()

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Delete a Job whose time is over, or say when it will be."""
        job = observed.find(self.kind, namespace, name)
        if job is None or manifests.is_going(job):
            return requests.Reconciled()
        ttl = manifests.mapping(job, "spec").get("ttlSecondsAfterFinished")
        state = manifests.mapping(job, "status", "state")
        if not isinstance(ttl, int) or ttl < 0 or state.get("phase") not in reading.FINISHED:
            return requests.Reconciled()
        finished = manifests.moment_of(state.get("lastTransitionTime"))
        if finished is None:
            return requests.Reconciled(
                stuck="status.state.lastTransitionTime is missing: nobody knows when it finished"
            )
        due = moment.reaches(finished, ttl * duration.SECOND)
        if due > moment.now:
            return requests.Reconciled(again=due)
        confirmation = requests.Confirm(kind=kinds.JOB, namespace=namespace, name=name, uid=manifests.uid(job))
        return requests.Reconciled(
            steps=[requests.Step(request=confirmation), steps_to.delete(kinds.JOB, job, "Foreground")]
        )
