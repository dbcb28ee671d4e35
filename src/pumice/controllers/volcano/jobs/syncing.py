"""What a Job at work needs: its pods, and nobody beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.job_plugins import hosts
from pumice.controllers.volcano.jobs import killing, policies
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.volcano.jobs.members import Members
    from pumice.controllers.volcano.jobs.pod_making import PodMaker
    from pumice.controllers.volcano.jobs.reading import Job, Role

Manifest = dict[str, Any]
_AT_ONCE: Final = 1000  # made in one look; the next one goes on


class Staffing(msgspec.Struct, kw_only=True):
    """Pods that go and pods that come; `taken` are names that somebody else has."""

    deletions: list[Step] = []
    creations: list[Step] = []
    taken: list[str] = []

    @property
    def is_partial(self) -> bool:
        """Whether the next look has more to make."""
        return len(self.creations) >= _AT_ONCE


def staff(job: Job, found: Members, maker: PodMaker, observed: Observed) -> Staffing:
    """Delete what is too many or marked, and create what is missing and not kept waiting by its dependencies."""
    result = Staffing(deletions=_surplus(job, found))
    evicted = {member.name for member in found.vanished if not member.is_marked and member.version >= job.version}
    for role in job.roles:
        missing = _missing(job, role, found)[: max(0, _AT_ONCE - len(result.creations))]
        flagged = bool(evicted) and policies.waits_for_eviction(job, role)
        for index, name in missing:
            present = observed.find(kinds.POD, job.namespace, name)
            if present is None:
                pod = maker.make(role, index, replaces_evicted=flagged and name in evicted)
                result.creations.append(_create(pod))
            elif not manifests.is_going(present):
                result.taken.append(name)
    return result


def _surplus(job: Job, found: Members) -> list[Step]:
    steps: list[Step] = []
    for member in found.all:
        if member.is_going:
            continue
        role = job.by_name.get(member.role)
        if member.version < job.version and not member.is_ended:
            # Made before the last restart by a request that was under way for long; what has ended may have been kept.
            steps.append(killing.delete(member.pod))
        elif role is None or member.index >= role.replicas or member.is_marked:
            steps += killing.delete_marked(member)
    return steps


def _missing(job: Job, role: Role, found: Members) -> list[tuple[int, str]]:
    present = sum(member.index < role.replicas for member in found.by_role[role.name])
    if present >= role.replicas or not _may_begin(job, role, found):
        return []
    expected = ((index, hosts.pod_name(job, role, index)) for index in range(role.replicas))
    return [(index, name) for index, name in expected if name not in found.by_name]


def _create(pod: Manifest) -> Step:
    name = pod["metadata"]["name"]
    return requests.Step(
        request=effects.Create(kind=kinds.POD, manifest=pod), refused=("FailedCreate", f"Error creating pod {name}: ")
    )


def _may_begin(job: Job, role: Role, found: Members) -> bool:
    """Tell whether the roles that a role depends on are ready: all of them, or if it says so any."""
    if not role.depends_on:
        return True
    ready = [_is_ready(job, name, found) for name in role.depends_on]
    return any(ready) if role.any_dependency and len(ready) > 1 else all(ready)


def _is_ready(job: Job, name: str, found: Members) -> bool:
    role = job.by_name.get(name)
    if role is None:
        return False
    return role.min_available is None or found.ready(role) >= role.min_available
