"""The volume claims of a Job: named by us where it names none, made where it says what they are, and never deleted before the Job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.controllers.volcano.jobs import pod_making
from pumice.controllers.workloads import manifests, pods, steps_to

if TYPE_CHECKING:
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
PREFIX: Final = "volume-pvc-"


class Claims(msgspec.Struct, kw_only=True):
    """What is to be done about claims: `naming` comes alone, as it changes the Job; `missing` are those that somebody else has to make."""

    naming: list[Step] = []
    steps: list[Step] = []
    missing: list[str] = []
    controlled: dict[str, str] = {}


def look(job: Job, observed: Observed) -> Claims:
    """See to the claims of a Job."""
    stated = [manifests.mapping(each) for each in manifests.items(job.spec, "volumes")]
    if any(not each.get("volumeClaimName") for each in stated):
        named = [
            {**each, "volumeClaimName": each.get("volumeClaimName") or _name(job, place)}
            for place, each in enumerate(stated)
        ]
        return Claims(naming=[steps_to.patch(kinds.JOB, job.manifest, {"spec": {"volumes": named}}, exact=True)])
    found = Claims()
    for place, each in enumerate(stated):
        name = str(each["volumeClaimName"])
        wanted = manifests.mapping(each, "volumeClaim")
        if observed.find(kinds.PERSISTENT_VOLUME_CLAIM, job.namespace, name) is None:
            if not wanted or name != _name(job, place):
                found.missing.append(name)
                continue
            found.steps.append(steps_to.create(kinds.PERSISTENT_VOLUME_CLAIM, _claim(job, name, dict(wanted))))
        found.controlled[PREFIX + name] = name
    return found


def _name(job: Job, place: int) -> str:
    return f"{job.name}-pvc-{pod_making.suffix(job.uid, 'claim', place)}"


def _claim(job: Job, name: str, spec: Manifest) -> Manifest:
    owner = pods.controller_reference(job.manifest, kinds.JOB)
    metadata = {"name": name, "namespace": job.namespace, "ownerReferences": [owner]}
    kind = kinds.PERSISTENT_VOLUME_CLAIM
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
