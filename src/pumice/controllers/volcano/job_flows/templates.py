"""JobTemplates: they list the Jobs that were made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled


class JobTemplates:
    """Reconciles JobTemplates."""

    kind = kinds.JOB_TEMPLATE
    watched = (kinds.JOB,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the template that a Job was made of."""
        del kind
        namespace, template = manifest["metadata"].get("namespace", ""), origin_of(manifest)
        if template and observed.find(self.kind, namespace, template.removeprefix(f"{namespace}.")) is not None:
            yield namespace, template.removeprefix(f"{namespace}.")

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Write down the Jobs of a template; a list is never emptied."""
        del moment
        template = observed.find(self.kind, namespace, name)
        if template is None or manifests.is_going(template):
            return requests.Reconciled()
        origin = f"{namespace}.{name}"
        jobs = list(observed.inside(kinds.JOB, namespace))
        made = sorted(manifests.name(job) for job in jobs if origin_of(job) == origin)
        status = {**manifests.mapping(template, "status"), "jobDependsOnList": made}
        steps = steps_to.write_status(self.kind, template, status) if made else []
        return requests.Reconciled(steps=steps, size=len(jobs))


def origin_of(job: Mapping[str, Any]) -> str:
    """Give the template that a Job was made of, as `namespace.name`."""
    label = manifests.labels(job).get(names.CREATED_BY_JOB_TEMPLATE)
    found = label or manifests.mapping(job, "metadata", "annotations").get(names.CREATED_BY_JOB_TEMPLATE)
    return found if isinstance(found, str) else ""
