"""What has happened to a Job, read off its pods and its group, and what its policies say to that.

Nothing is remembered: a pod that failed has failed for as long as it is there, is of the current version and does not carry the mark of those we delete. An
action makes each of that untrue, so it is not taken twice; and a timeout counts from what the pod says of itself, so no restart of a controller forgets it. An
eviction is seen while the pod goes, or by `Observed` if it vanished at once, which is what a restart may miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import names
from pumice.controllers.volcano.jobs import members as reading_pods
from pumice.controllers.volcano.jobs import reading
from pumice.controllers.workloads import manifests, pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.controllers.queueing.requests import Moment
    from pumice.controllers.volcano.jobs.members import Member, Members
    from pumice.controllers.volcano.jobs.reading import Job, LifecyclePolicy, Role

ANY: Final = "*"
POD_PENDING: Final = "PodPending"
POD_FAILED: Final = "PodFailed"
POD_EVICTED: Final = "PodEvicted"
TASK_COMPLETED: Final = "TaskCompleted"
TASK_FAILED: Final = "TaskFailed"
UNKNOWN: Final = "Unknown"

REPLACES_EVICTED: Final = "pumice.dev/replaces-evicted"  # a policy waits whether this pod gets to run
HAPPENED: Final = "pumice.dev/happened-at"  # when what a policy waits for was first seen on a pod that does not say
_DEFAULT_RESTARTS: Final = 3
_FOR_EVER: Final = -1


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, when (None if nobody says), and to whom."""

    event: str
    at: int | None
    role: Role | None = None
    member: Member | None = None
    exit_code: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says to an occurrence, and from when on that is to be done."""

    action: str
    due: int
    delay: int | None
    occurrence: Occurrence
    unstamped: bool = False  # since when it waits has to be written on the pod, which does not say itself

    def __str__(self) -> str:
        found = self.occurrence
        if found.role is not None and found.event in (TASK_COMPLETED, TASK_FAILED):
            return f"{found.event} of task {found.role.name}"
        code = f", exit code {found.exit_code}" if found.exit_code else ""
        return f"{found.event} of {found.member.name}{code}" if found.member is not None else found.event


def answers(job: Job, found: Members, group: Mapping[str, object] | None, moment: Moment) -> list[Answer]:
    """Give what policies say to all that has happened, in the order in which it is due."""
    if not job.asked.heard and not job.asked.hears_codes:
        return []
    answered: list[Answer] = []
    for each in _occurrences(job, found, group, moment):
        policy = choose(job, each)
        if policy is not None:
            answered.append(_answer(policy, each, moment))
    return sorted(answered, key=lambda answer: (answer.due, *_place(answer.occurrence)))


def _answer(policy: LifecyclePolicy, occurrence: Occurrence, moment: Moment) -> Answer:
    at, unstamped = occurrence.at, False
    if at is None and occurrence.member is not None:
        written = manifests.mapping(occurrence.member.pod, "metadata", "annotations").get(HAPPENED)
        at = manifests.moment_of(written)
        at = None if at is not None and at > moment.now else at  # by a clock ahead of ours, for which nobody waits
        unstamped = at is None and policy.timeout is not None
    at = moment.now if at is None else at
    due = at if policy.timeout is None else moment.reaches(at, policy.timeout)
    return Answer(action=policy.action, due=due, delay=policy.timeout, occurrence=occurrence, unstamped=unstamped)


def choose(job: Job, occurrence: Occurrence) -> LifecyclePolicy | None:
    """Give the policy that speaks about an occurrence: the first of its role, else of the Job."""
    own = occurrence.role.policies if occurrence.role is not None else ()
    return next((each for each in (*own, *job.policies) if _speaks(each, occurrence)), None)


def waits_for_eviction(job: Job, role: Role) -> bool:
    """Tell whether an evicted pod of a role has some time to run again."""
    policy = choose(job, Occurrence(event=POD_EVICTED, at=0, role=role))
    return policy is not None and policy.timeout is not None


def _speaks(policy: LifecyclePolicy, occurrence: Occurrence) -> bool:
    if policy.exit_code is not None and policy.exit_code == occurrence.exit_code and occurrence.exit_code:
        return True
    if occurrence.event not in policy.events and ANY not in policy.events:
        return False
    return occurrence.event != POD_PENDING or policy.timeout is not None


def _place(occurrence: Occurrence) -> tuple[int, int]:
    role = occurrence.role.place if occurrence.role is not None else -1
    return role, occurrence.member.index if occurrence.member is not None else -1


# ---- what has happened


def _occurrences(job: Job, found: Members, group: Mapping[str, object] | None, moment: Moment) -> Iterator[Occurrence]:
    quiet = () if _hears(job, POD_PENDING) or _hears(job, POD_EVICTED) else (names.PHASE_PENDING,)
    for member in found.all:
        if not member.is_going and member.phase in (names.PHASE_RUNNING, names.PHASE_SUCCEEDED, *quiet):
            continue
        role = _role(job, member)
        if role is not None:
            yield from _of_pod(job, member, role, moment)
    for member in found.vanished:
        role = _role(job, member)
        if role is not None:
            yield from _of_failed(member, role)
            if not waits_for_eviction(job, role):
                yield Occurrence(event=POD_EVICTED, at=moment.now, role=role, member=member)
    for role in job.roles:
        present = [each for each in found.by_role[role.name] if not each.is_going]
        yield from _of_completed(job, role, present) if _hears(job, TASK_COMPLETED) else ()
        yield from _of_restarts(job, role, present) if _hears(job, TASK_FAILED) else ()
    phase = manifests.mapping(group, "status").get("phase") if group is not None else None
    if phase == names.PHASE_UNKNOWN and job.version == 0:
        # The event says nothing of a version, so it counts as of the first, as Volcano has it.
        yield Occurrence(event=UNKNOWN, at=_last_change(group))


def _last_change(group: Mapping[str, object] | None) -> int | None:
    conditions = manifests.items(group, "status", "conditions")
    times = [manifests.moment_of(manifests.mapping(each).get("lastTransitionTime")) for each in conditions]
    return max((each for each in times if each is not None), default=None)


def _role(job: Job, member: Member) -> Role | None:
    """Give the role of a pod whose fate is of interest: of this version, wanted, and not deleted by us."""
    role = job.by_name.get(member.role)
    if role is None or member.version < job.version or member.is_marked or member.index >= role.replicas:
        return None
    return role


def _of_pod(job: Job, member: Member, role: Role, moment: Moment) -> Iterator[Occurrence]:
    yield from _of_failed(member, role)
    if member.is_going:
        if waits_for_eviction(job, role):
            return  # its time begins when it is replaced
        yield Occurrence(event=POD_EVICTED, at=moment.now, role=role, member=member)
    elif member.phase == names.PHASE_PENDING:
        since = manifests.created(member.pod)
        yield Occurrence(event=POD_PENDING, at=since, role=role, member=member)
        replaces = REPLACES_EVICTED in manifests.mapping(member.pod, "metadata", "annotations")
        if replaces and waits_for_eviction(job, role):
            yield Occurrence(event=POD_EVICTED, at=since, role=role, member=member)


def _of_failed(member: Member, role: Role) -> Iterator[Occurrence]:
    if member.phase == names.PHASE_FAILED:
        code, ended = reading_pods.exit_code(member.pod), reading_pods.ended_at(member.pod)
        yield Occurrence(event=POD_FAILED, at=ended, role=role, member=member, exit_code=code)


def _hears(job: Job, event: str) -> bool:
    return event in job.asked.heard or ANY in job.asked.heard


def _of_completed(job: Job, role: Role, present: list[Member]) -> Iterator[Occurrence]:
    done = [each for each in present if each.phase == names.PHASE_SUCCEEDED]
    if role.replicas and len(done) >= role.replicas and any(each.version >= job.version for each in done):
        last = max(done, key=lambda each: (reading_pods.ended_at(each.pod) or 0, each.index))
        yield Occurrence(event=TASK_COMPLETED, at=reading_pods.ended_at(last.pod), role=role, member=last)


def _of_restarts(job: Job, role: Role, present: list[Member]) -> Iterator[Occurrence]:
    limit = role.max_retry or _DEFAULT_RESTARTS
    if limit == _FOR_EVER:
        return
    alive = [each for each in present if not each.is_ended and each.version >= job.version and not each.is_marked]
    restarts = [(pods.restarts(each.pod), each) for each in alive]
    if restarts and sum(count for count, _ in restarts) >= limit:
        _, worst = max(restarts, key=lambda pair: (pair[0], pair[1].index))
        yield Occurrence(event=TASK_FAILED, at=None, role=role, member=worst)


def is_held_open(job: Job, due_later: list[Answer]) -> bool:
    """Tell whether a Job whose pods have all ended waits for a policy that is not due yet."""
    return job.phase == reading.RUNNING and any(each.occurrence.event != POD_PENDING for each in due_later)
