"""Who has to go. It follows from what is written: a restart was counted before anybody is deleted for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.jobs import reading, states
from pumice.controllers.workloads import manifests, pods

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.volcano.jobs.members import Member, Members
    from pumice.controllers.volcano.jobs.policies import Answer
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
_POD: Final = "pod"
_TASK: Final = "task"
_PARTITION: Final = "partition"


class Target(msgspec.Struct, frozen=True):
    """Those that an action is for: one pod, the pods of a role, or of one partition of it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def includes(self, member: Member) -> bool:
        """Tell whether a pod is one of them."""
        if self.kind == _POD:
            return member.name == self.name
        if self.kind == _TASK:
            return member.role == self.name
        return f"{member.role}/{member.partition}" == self.name


def target(answer: Answer) -> Target | None:
    """Give whom an action is for, None if for nobody in particular."""
    member, role = answer.occurrence.member, answer.occurrence.role
    if role is None or answer.action not in states.RESTARTS_OF_SOME:
        return None
    if answer.action == "RestartTask":
        return Target(_TASK, role.name)
    if member is None:
        return None
    if answer.action == "RestartPartition" and member.partition:
        return Target(_PARTITION, f"{role.name}/{member.partition}")
    return Target(_POD, member.name)


def written(job: Job) -> Target | None:
    """Read whom a restart is for off the message of the status: `pod j-w-0: …`."""
    if job.reason not in states.RESTARTS_OF_SOME:
        return None
    kind, _, name = job.message.partition(":")[0].partition(" ")
    return Target(kind, name) if kind in (_POD, _TASK, _PARTITION) and name else None


def is_whole(job: Job) -> bool:
    """Tell whether a restart is one of the whole Job."""
    return job.reason not in states.RESTARTS_OF_SOME


def restarted(job: Job, found: Members, others: Iterable[Target]) -> list[Member]:
    """Give the pods that a restart does away with; `others` are for whom it was asked again meanwhile."""
    keeps_ended = job.is_at_its_last or job.reason == states.RESUME_JOB
    if is_whole(job):
        doomed = [each for each in found.all if each.version < job.version]
        return [each for each in doomed if not (each.is_ended and keeps_ended)]
    first = written(job)
    doomed = [
        each
        for each in found.all
        if (first is not None and first.includes(each) and each.retry_count < job.retry_count)
        or any(other.includes(each) for other in others)
    ]
    return [each for each in doomed if not (each.is_ended and keeps_ended)]


def leaving(job: Job, found: Members) -> list[Member]:
    """Give the pods that have to go for what a Job's status says, and are not going yet."""
    if states.is_ending(job.phase):
        return [each for each in found.all if not each.is_ended and not each.is_going]
    return restarted(job, found, ()) if job.phase == reading.RESTARTING else []


def unfinished(found: Members) -> list[Manifest]:
    """Give the pods that still run, or would."""
    alive = [each.pod for each in found.all if not each.is_ended and not each.is_going]
    return alive + [pod for pod in found.strangers if pods.is_active(pod)]


def delete(pod: Manifest) -> Step:
    """Delete a pod of which everything else tells that it is of the past."""
    where = {"kind": kinds.POD, "namespace": pod["metadata"].get("namespace", ""), "name": manifests.name(pod)}
    return requests.Step(
        request=requests.Delete(**where, uid=manifests.uid(pod)), refused=("FailedDelete", "Error deleting pods: ")
    )


def delete_marked(member: Member) -> list[Step]:
    """Delete a pod that looks like any other: a mark tells that it was us, so that nobody takes it for evicted."""
    steps: list[Step] = []
    metadata = member.pod["metadata"]
    if not member.is_marked:
        body = {"metadata": {"annotations": {names.CONTROLLER_OUT_OF_SYNC: "true"}}}
        where = {"kind": kinds.POD, "namespace": metadata.get("namespace", ""), "name": member.name}
        patch = effects.Patch(**where, uid=metadata.get("uid", ""), body=body)
        steps.append(requests.Step(request=patch, refused=("FailedDelete", "Error deleting pods: ")))
    return steps if member.is_going else [*steps, delete(member.pod)]
