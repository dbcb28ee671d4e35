"""The pods of a Job, each with its place in it, and how many there are of each kind."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import names
from pumice.controllers.workloads import manifests, pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.volcano.jobs.reading import Job, Role

Manifest = dict[str, Any]
PHASES: Final = (names.PHASE_PENDING, names.PHASE_RUNNING, names.PHASE_SUCCEEDED, names.PHASE_FAILED)
_ENDED: Final = (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


class Member(msgspec.Struct, frozen=True, gc=False):
    """One pod; `version` and `retry_count` are what it was stamped with when it was made, `is_marked` tells that we delete it on purpose."""

    pod: Manifest
    role: str
    index: int
    version: int
    retry_count: int
    phase: str
    is_going: bool
    is_marked: bool

    @property
    def name(self) -> str:
        """Its name."""
        found: str = self.pod["metadata"]["name"]
        return found

    @property
    def is_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self.phase in _ENDED

    @property
    def partition(self) -> str:
        """The number of its partition, empty if its role has none."""
        return str(manifests.labels(self.pod).get(names.PARTITION_ID, ""))


class Members:
    """What a Job has: `all` are its pods, `strangers` those it owns that it did not make, `vanished` what is gone since the last look."""

    def __init__(self, job: Job, owned: Iterable[Manifest], vanished: Iterable[Manifest] = ()) -> None:
        self.all: list[Member] = []
        self.strangers: list[Manifest] = []
        for pod in owned:
            member = _member(pod)
            if member is None:
                self.strangers.append(pod)
            else:
                self.all.append(member)
        self.vanished = [member for pod in vanished if (member := _member(pod)) is not None]
        self._file([role.name for role in job.roles])

    def _file(self, roles: Iterable[str]) -> None:
        self.by_name = {member.name: member for member in self.all}
        self.by_role: dict[str, list[Member]] = {role: [] for role in roles}
        for member in self.all:
            self.by_role.setdefault(member.role, []).append(member)
        self.counts = _counts(self.all)
        self.terminating = sum(member.is_going for member in self.all)

    def when_gone(self, leaving: Iterable[Member]) -> Members:
        """Give them as they are once some of them are being deleted."""
        going = {member.name for member in leaving}
        found = copy.copy(self)
        found.all = [
            msgspec.structs.replace(member, is_going=True) if member.name in going else member for member in self.all
        ]
        found._file(list(self.by_role))  # noqa: SLF001  of the same class
        return found

    def count(self, phase: str) -> int:
        """Give how many are in a phase and not being deleted."""
        return self.counts.get(phase, 0)

    def role_counts(self) -> dict[str, dict[str, int]]:
        """Count them by role and phase."""
        found = {role: _counts(members) for role, members in self.by_role.items()}
        return {role: counts for role, counts in found.items() if counts}

    @property
    def ended(self) -> int:
        """How many have ended by themselves."""
        return sum(map(self.count, _ENDED))

    def ready(self, role: Role) -> int:
        """Give how many of a role have succeeded, or run and are ready."""
        return sum(_is_ready(member) for member in self.by_role.get(role.name, ()) if not member.is_going)


def ended_at(pod: Mapping[str, Any]) -> int | None:
    """Give when a pod ended, None if it does not say: one that its node has lost may have no statuses of containers."""
    times = [
        manifests.moment_of(manifests.mapping(each, "state", "terminated").get("finishedAt"))
        for each in manifests.items(pod, "status", "containerStatuses")
    ]
    ready = manifests.condition(manifests.mapping(pod, "status"), names.CONDITION_READY)
    if ready.get("status") == "False":
        times.append(manifests.moment_of(ready.get("lastTransitionTime")))
    return max((each for each in times if each is not None), default=None)


def changed_at(member: Member) -> int:
    """Give when a pod was made, became ready or ended: the last of these."""
    ready = manifests.condition(manifests.mapping(member.pod, "status"), names.CONDITION_READY)
    changed = manifests.moment_of(ready.get("lastTransitionTime")) or 0
    return max(manifests.created(member.pod), changed, ended_at(member.pod) or 0)


def exit_code(pod: Mapping[str, Any]) -> int:
    """Give the exit code of a pod's first container, 0 if it is not known."""
    statuses = manifests.items(pod, "status", "containerStatuses")
    return manifests.number(manifests.mapping(statuses[0], "state", "terminated"), "exitCode") if statuses else 0


def _member(pod: Manifest) -> Member | None:
    """Read a pod; one that does not say which Job, version and role it belongs to is none of the Job's making."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or names.JOB_NAME not in annotations:
        return None
    role, version = annotations.get(names.TASK_SPEC), _number(annotations.get(names.JOB_VERSION))
    index = _number(metadata["name"].rpartition("-")[2])
    if not isinstance(role, str) or version is None or index is None:
        return None
    phase = pods.phase(pod)
    return Member(
        pod,
        role,
        index,
        version,
        _number(annotations.get(names.JOB_RETRY_COUNT)) or 0,
        phase if phase in PHASES else names.PHASE_UNKNOWN,
        bool(metadata.get("deletionTimestamp")),
        names.CONTROLLER_OUT_OF_SYNC in annotations,
    )


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else None


def _counts(members: Iterable[Member]) -> dict[str, int]:
    found: dict[str, int] = {}
    for member in members:
        if not member.is_going:
            found[member.phase] = found.get(member.phase, 0) + 1
    return found


def _is_ready(member: Member) -> bool:
    if member.phase == names.PHASE_SUCCEEDED:
        return True
    if member.phase != names.PHASE_RUNNING:
        return False
    statuses = manifests.items(member.pod, "status", "containerStatuses")
    if statuses:
        return all(manifests.mapping(each).get("ready") is True for each in statuses)
    return pods.is_ready(member.pod)
