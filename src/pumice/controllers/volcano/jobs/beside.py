"""The objects that a Job's plugins need beside its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import manifests, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.volcano.job_plugins.protocol import Beside, JobPlugin
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
PREFIX: Final = "plugin-"
_OTHERS: Final = (kinds.POD, kinds.POD_GROUP, kinds.PERSISTENT_VOLUME_CLAIM)  # these are not the plugins' alone


def keep(job: Job, plugins: Sequence[JobPlugin], observed: Observed) -> list[Step]:
    """Create what is missing, and bring up to date what a plugin wants fresh; what belongs to somebody else is left alone."""
    found: list[Step] = []
    for plugin in plugins:
        for wanted in plugin.objects(job):
            present = observed.find(wanted.kind, job.namespace, wanted.name)
            if present is None:
                found.append(steps_to.create(wanted.kind, _made(job, wanted)))
            elif not manifests.is_going(present) and (controller(present) or {}).get("uid") == job.uid:
                stale = [field for field in wanted.fresh if present.get(field) != wanted.content.get(field)]
                body = {field: manifests.merge_patch(present.get(field), wanted.content.get(field)) for field in stale}
                found += [steps_to.patch(wanted.kind, present, body)] if body else []
    return found


def remove(job: Job, makes: Iterable[kinds.Kind], observed: Observed) -> list[Step]:
    """Delete all that plugins have made for a Job."""
    return [
        steps_to.delete(kind, each)
        for kind in makes
        if kind not in _OTHERS
        for each in observed.owned(kind, job.uid)
        if not manifests.is_going(each)
    ]


def marks(job: Job) -> dict[str, str]:
    """Give what the status says of a Job's plugins."""
    return {PREFIX + name: name for name in job.plugins}


def _made(job: Job, wanted: Beside) -> Manifest:
    owner = pods.controller_reference(job.manifest, kinds.JOB)
    # By these labels the controller finds it again among all that others have made.
    labels = {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace}
    metadata = {"name": wanted.name, "namespace": job.namespace, "labels": labels, "ownerReferences": [owner]}
    content = wanted.make() if wanted.make is not None else wanted.content
    return {"apiVersion": wanted.kind.api_version, "kind": wanted.kind.name, "metadata": metadata, **content}
