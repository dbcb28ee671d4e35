"""What a JobFlow does next: it makes the Jobs whose turn it is, says how far it has come, and cleans up at the end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.volcano.job_flows import flows, reporting
from pumice.controllers.workloads import manifests, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled

Manifest = dict[str, Any]
Note = tuple[str, str, str]
_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class JobFlows:
    """Reconciles JobFlows."""

    kind = kinds.JOB_FLOW
    watched = (kinds.JOB, kinds.JOB_TEMPLATE)
    remembered = (kinds.JOB,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the flow of a Job, and the flows that have yet to make a Job of a template."""
        namespace = manifest["metadata"].get("namespace", "")
        if kind == kinds.JOB_TEMPLATE:
            template = manifests.name(manifest)
            for flow in observed.inside(self.kind, namespace):
                steps = [step for step in flows.steps_of(flow) if step.template == template]
                if any(observed.find(kinds.JOB, namespace, step.job) is None for step in steps):
                    yield namespace, manifests.name(flow)
            return
        owner = controller(manifest)
        if owner and (owner.get("apiVersion"), owner.get("kind")) == (self.kind.api_version, self.kind.name):
            yield namespace, str(owner.get("name"))

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a flow."""
        flow = observed.find(self.kind, namespace, name)
        if flow is None or manifests.is_going(flow):
            return requests.Reconciled()
        jobs = [*_ended(flow, observed), *observed.owned(kinds.JOB, manifests.uid(flow))]
        steps, known = flows.steps_of(flow), flows.phases(flow, jobs)
        status = reporting.status(flow, steps, jobs, known, moment)
        done = steps_to.write_status(self.kind, flow, status)
        if reporting.phase_of(flow) not in reporting.OVER:
            made, notes = _made(flow, flows.ready(steps, known), observed)
            # Once the status is written there is another look, so nothing need be said twice.
            return requests.Reconciled(steps=[*done, *made], notes=notes if not done else [], size=len(jobs))
        cleans = manifests.mapping(flow, "spec").get("jobRetainPolicy") == "delete"
        if reporting.phase_of(flow) == reporting.SUCCEED and cleans and not done:
            here = observed.owned(kinds.JOB, manifests.uid(flow))
            left = [steps_to.delete(kinds.JOB, job) for job in here if not manifests.is_going(job)]
            return requests.Reconciled(steps=left, size=len(jobs))
        return requests.Reconciled(steps=done, size=len(jobs))


def _ended(flow: Manifest, observed: Observed) -> list[Manifest]:
    """Give the Jobs that have ended and are gone since the last look: a time to live may be over before anybody looks."""
    gone = observed.vanished(kinds.JOB, kinds.JOB_FLOW, flow)
    return [job for job in gone if flows.phase_of(job) in flows.ENDED]


def _made(flow: Manifest, ready: list[flows.FlowJob], observed: Observed) -> tuple[list[requests.Step], list[Note]]:
    """Make the Jobs whose turn it is; what keeps one from being made keeps no other."""
    namespace = flow["metadata"].get("namespace", "")
    steps: list[requests.Step] = []
    notes: list[Note] = []
    for step in ready:
        template = observed.find(kinds.JOB_TEMPLATE, namespace, step.template)
        taken = observed.find(kinds.JOB, namespace, step.job)
        if template is None:
            told = f"JobTemplate {namespace}/{step.template} is not found; {step.job} is made when it is there"
            notes.append(("Warning", "SyncJobFlow", told))
        elif taken is not None:
            told = f"Job {namespace}/{step.job} exists already and belongs to somebody else"
            notes.append(("Warning", "SyncJobFlow", told))
        else:
            said = ("Created", f"create a job named {step.job}!")
            steps.append(steps_to.create(kinds.JOB, _job(flow, template, step), said))
    return steps, notes


def _job(flow: Manifest, template: Manifest, step: flows.FlowJob) -> Manifest:
    namespace = flow["metadata"].get("namespace", "")
    origin = {
        names.CREATED_BY_JOB_TEMPLATE: f"{namespace}.{step.template}",
        names.CREATED_BY_JOB_FLOW: f"{namespace}.{manifests.name(flow)}",
    }
    metadata = {
        "name": step.job,
        "namespace": namespace,
        # A label is shorter than a name may be; whoever looks for Jobs of a flow finds the annotation too.
        "labels": {key: value for key, value in origin.items() if _LABEL.fullmatch(value)},
        "annotations": origin,
        "ownerReferences": [pods.controller_reference(flow, kinds.JOB_FLOW)],
    }
    spec = dict(manifests.mapping(template, "spec"))
    return {"apiVersion": kinds.JOB.api_version, "kind": kinds.JOB.name, "metadata": metadata, "spec": spec}
