"""The pods that a Job wants: their names, what is stamped on them, and what its volumes and plugins add."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.volcano.job_plugins import hosts, protocol
from pumice.controllers.volcano.job_plugins import pods as job_pods
from pumice.controllers.volcano.jobs import policies
from pumice.controllers.workloads import manifests, pods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.controllers.volcano.job_plugins.protocol import JobPlugin
    from pumice.controllers.volcano.jobs.reading import Job, Role

Manifest = dict[str, Any]
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LETTERS: Final = 12
_LONGEST_LABEL: Final = 63
_COPIED_ANNOTATIONS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME)


def suffix(*parts: object) -> str:
    """Give twelve letters and digits that depend on the parts alone: who asks twice asks for the same name."""
    number = int.from_bytes(hashlib.blake2s("/".join(map(str, parts)).encode(), digest_size=16).digest(), "big")
    found = ""
    for _ in range(_LETTERS):
        number, rest = divmod(number, len(_ALPHABET))
        found += _ALPHABET[rest]
    return found


class PodMaker:
    """Makes the pods of one Job; `group` is the name of their PodGroup."""

    def __init__(self, job: Job, group: str, plugins: Sequence[JobPlugin], *, forwarded: bool) -> None:
        self._job, self._group, self._plugins = job, group, plugins
        self._forwarded = forwarded

    def make(self, role: Role, index: int, *, replaces_evicted: bool) -> Manifest:
        """Make one pod."""
        job = self._job
        pod = pods.from_template(job.manifest, kinds.JOB, role.template, hosts.pod_name(job, role, index))
        metadata, spec = pod["metadata"], pod["spec"]
        metadata["annotations"] = {**metadata.get("annotations", {}), **self._annotations(role, index)}
        metadata["labels"] = {**metadata.get("labels", {}), **self._labels(role, index)}
        if replaces_evicted:
            metadata["annotations"][policies.REPLACES_EVICTED] = "true"
        for field in ("schedulerName", "priorityClassName"):
            stated = job.spec.get(field)
            if stated and not spec.get(field):
                spec[field] = stated
        volumes = _volumes(job)
        if volumes or self._plugins:
            pod["spec"] = _copied(spec)
        for volume in volumes:
            _mount(pod, job, volume)
        place = protocol.Place(job, role, index)
        for plugin in self._plugins:
            plugin.complete(pod, place)
        return pod

    def _annotations(self, role: Role, index: int) -> dict[str, str]:
        job = self._job
        found = {
            names.TASK_INDEX: str(index),
            names.TASK_SPEC: role.name,
            names.JOB_NAME: job.name,
            names.JOB_QUEUE_NAME: job.queue,
            names.JOB_VERSION: str(job.version),
            names.JOB_RETRY_COUNT: str(job.retry_count),
            names.TEMPLATE_UID: f"{job.name}-{role.name}",
            names.GROUP_NAME: self._group,
        }
        if role.topology_policy:
            found[names.NUMA_TOPOLOGY_POLICY] = role.topology_policy
        if self._forwarded:
            found[names.JOB_FORWARDING] = "true"
        own = manifests.mapping(job.manifest, "metadata", "annotations")
        budget = next((key for key in (names.BUDGET_MIN_AVAILABLE, names.BUDGET_MAX_UNAVAILABLE) if key in own), None)
        keys = (*_COPIED_ANNOTATIONS, *((budget,) if budget else ()))
        return found | {key: own[key] for key in keys if key in own}

    def _labels(self, role: Role, index: int) -> dict[str, str]:
        job = self._job
        found = {
            names.TASK_INDEX: str(index),
            names.JOB_NAME: job.name,
            names.TASK_SPEC: role.name,
            names.JOB_NAMESPACE: job.namespace,
        }
        if len(job.queue) <= _LONGEST_LABEL:  # a queue may have a longer name, which the annotation tells
            found[names.JOB_QUEUE_NAME] = job.queue
        if role.partition is not None:
            found[names.PARTITION_ID] = str(index // role.partition.size)
        own = manifests.labels(job.manifest)
        return found | {key: own[key] for key in _COPIED_LABELS if key in own}


def _volumes(job: Job) -> list[Mapping[str, Any]]:
    """Give a Job's volumes, of several with one claim the first."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in manifests.items(job.spec, "volumes"):
        stated = manifests.mapping(each)
        if stated.get("volumeClaimName"):
            found.setdefault(str(stated["volumeClaimName"]), stated)
    return list(found.values())


def _mount(pod: Manifest, job: Job, volume: Mapping[str, Any]) -> None:
    claim = str(volume["volumeClaimName"])
    name = job_pods.volume_name(job.name, suffix(job.uid, "volume", claim))
    spec = pod["spec"]
    spec["volumes"] = [
        *manifests.items(pod, "spec", "volumes"),
        {"name": name, "persistentVolumeClaim": {"claimName": claim}},
    ]
    for container in manifests.items(pod, "spec", "containers"):
        present = manifests.items(container, "volumeMounts")
        container["volumeMounts"] = [*present, {"name": name, "mountPath": volume.get("mountPath", "")}]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
