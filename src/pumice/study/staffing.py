"""The Volcano Job that a group belongs to, with its own controller, while cycles are rehearsed: the group follows the Job, and pods are made once it is let in.

The controller is that of `controllers/volcano`; it works on a simulated cluster that holds the Job, its group and its pods and nobody else.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pumice.api import core, decoding, duration, kinds, names, timestamp
from pumice.api.meta import ObjectMeta
from pumice.controllers.volcano import registry
from pumice.model import resources
from pumice.sim import errors
from pumice.sim.clock import VirtualClock
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.identity import Key
from pumice.study import quotas
from pumice.study.state import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from pumice.api.meta import KubeObject
    from pumice.model.job import Job
    from pumice.study.rehearsal import Rehearsal, Replaced
    from pumice.study.state import Manifest

MOST_OTHERS: Final = 16  # Jobs whose controllers are looked at beside that of the one that is asked about
_PAUSE: Final = 2 * duration.SECOND
_CONTROLLER: Final = "job-controller"
_TOLD: Final = (kinds.PERSISTENT_VOLUME_CLAIM, kinds.POD_GROUP, kinds.POD)


def job_of(rehearsal: Rehearsal, job: Job | None) -> Manifest | None:
    """Return the Volcano Job that a group belongs to, if it was read."""
    owners = job.group.metadata.owner_references if job is not None and job.group is not None else ()
    return next((rehearsal.jobs[owner.uid] for owner in owners if owner.uid in rehearsal.jobs), None)


def is_let_in(job: Job) -> bool:
    """Tell whether a group was let in."""
    return job.group is not None and job.group.status.phase not in ("", names.PHASE_PENDING)


def replicas(job: Manifest) -> int:
    """Return how many pods a Job wants."""
    tasks = (job.get("spec") or {}).get("tasks") or ()
    return sum(_count(task.get("replicas")) for task in tasks if isinstance(task, dict))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1


class Staff(Protocol):
    """Whoever makes the pods of a group."""

    refusal: str  # why a pod could not be made

    def follow(self, changes: Iterable[Replaced], now: int) -> list[Replaced]:
        """See what has changed, and return what is done about it."""

    def next_due(self) -> int | None:
        """Return when there is something to do though nothing has happened."""

    def preview(self) -> list[core.Pod]:
        """Return the pods that are yet to be made, whatever keeps them from being made now."""


class Founder:
    """Makes the pods of a group of which nobody knows who makes them: as many as its minimum, which share its minResources, once it is let in."""

    def __init__(self, rehearsal: Rehearsal, key: str) -> None:
        self._rehearsal, self._key = rehearsal, key
        self._quotas = quotas.Quotas(rehearsal.cluster)
        self.refusal = ""

    def follow(self, changes: Iterable[Replaced], now: int) -> list[Replaced]:  # noqa: ARG002  it looks at the group alone
        """Make the pods as soon as the group is let in."""
        job = self._rehearsal.cluster.jobs.get(self._key)
        if job is None or job.tasks or not is_let_in(job):
            return []
        beside: dict[str, int] = {}
        made: list[Replaced] = []
        for pod in imagined(job, now, self._rehearsal.cache.options.scheduler_name[0]):
            self.refusal = self._quotas.refusal(manifest(kinds.POD, pod), beside)
            if self.refusal:
                break
            for name, amount in quotas.charges(pod).items():
                beside[name] = beside.get(name, 0) + amount
            made.append((kinds.POD, None, pod))
        return made

    def next_due(self) -> int | None:
        """Wait for the scheduler alone."""
        return None

    def preview(self) -> list[core.Pod]:
        """Return the pods that the group states."""
        job = self._rehearsal.cluster.jobs.get(self._key)
        if job is None:
            return []
        return imagined(job, self._rehearsal.now, self._rehearsal.cache.options.scheduler_name[0])


def imagined(job: Job, now: int, scheduler: str, count: int | None = None) -> list[core.Pod]:
    """Return the pods that a group without any states: they share its minResources."""
    group = job.group
    if group is None:
        return []
    members = max(1, job.min_member)
    shares = {
        name: resources.shown(name, -(-amount // members)) for name, amount in sorted((job.min_resources or {}).items())
    }
    roles = [role for role, least in sorted(job.min_task_member.items()) for _ in range(least)]
    container = core.Container(name="main", resources=core.ResourceRequirements(requests=dict(shares)))
    return [
        core.Pod(
            metadata=ObjectMeta(
                name=f"{group.metadata.name}-made-{index}",
                namespace=group.metadata.namespace,
                uid=f"pod-{group.metadata.namespace}-{group.metadata.name}-made-{index}",
                creation_timestamp=timestamp.format_timestamp(now),
                annotations={
                    names.GROUP_NAME: group.metadata.name,
                    **({names.TASK_SPEC: roles[index]} if index < len(roles) else {}),
                },
            ),
            spec=core.PodSpec(scheduler_name=scheduler, containers=(container,)),
            status=core.PodStatus(phase=names.PHASE_PENDING),
        )
        for index in range(members if count is None else count)
    ]


class Controller:
    """The controller of one Job, and what it sees."""

    def __init__(self, rehearsal: Rehearsal, key: str, job: Manifest, *, refused: bool | None = None) -> None:
        self._rehearsal = rehearsal
        self._key = key
        self._uid = job["metadata"]["uid"]
        self._quotas = quotas.Quotas(rehearsal.cluster)
        self._beside: dict[str, int] = {}
        self.refusal = ""
        controllers = {_CONTROLLER: registry.REGISTERED[_CONTROLLER]}
        numbers = itertools.count()
        self._cluster = SimulatedCluster(
            VirtualClock(rehearsal.now),
            registered=controllers,
            check=self._check,
            new_uid=lambda: f"{self._uid}-made-{next(numbers)}",
        )
        self._cluster.companions = False
        self._job = job
        self._begun = self._lenient = self._stopped = False
        # A controller that was refused a pod before goes on one by one, so what comes after a pod that is refused is not made.
        known = rehearsal.cluster.jobs.get(key)
        self._one_by_one = (known is not None and is_let_in(known)) if refused is None else refused
        self._roused = False

    def follow(self, changes: Iterable[Replaced], now: int) -> list[Replaced]:
        """Let the controller see what has changed, and return what it does about it."""
        self._beside = {}
        self._stopped = False
        if self._one_by_one and not self._roused:
            self._roused = True  # it looks again when its pause is over, and others come first
            return []
        if self._begun:
            self._tell(changes)
        else:
            self._begin()
        version = int(self._cluster.store.resource_version)
        self._cluster.advance(max(0, now - self._cluster.clock.now()))
        self._cluster.settle()
        return self._done(version)

    def next_due(self) -> int | None:
        """Return when the controller looks again though nothing has happened."""
        return self._cluster.clock.next_due() if self._begun else self._rehearsal.now + _PAUSE

    def preview(self) -> list[core.Pod]:
        """Let the controller believe that the group is let in and that no quota refuses anything, and return the pods that it makes."""
        self._lenient = True
        self._begin()
        for found in list(self._cluster.store.scan(kinds.POD_GROUP)):
            status = {**(found.get("status") or {}), "phase": names.PHASE_INQUEUE}
            metadata = found["metadata"]
            key = Key(kinds.POD_GROUP, metadata["namespace"], metadata["name"])
            self._cluster.store.overwrite(key, {**found, "status": status})
        version = int(self._cluster.store.resource_version)
        self._cluster.settle()
        made = [after for kind, before, after in self._done(version) if kind is kinds.POD and before is None]
        return [pod for pod in made if isinstance(pod, core.Pod)]

    def _begin(self) -> None:
        """Put the Job on its own cluster, with its group and its pods as they are after the first changes."""
        self._begun = True
        cluster, known = self._rehearsal.cluster, self._rehearsal.cluster.jobs.get(self._key)
        given = [manifest(kinds.PRIORITY_CLASS, found) for found in cluster.priority_classes.values()]
        given += [manifest(kinds.QUEUE, each.object) for each in cluster.queues.values() if each.object is not None]
        place = self._job["metadata"].get("namespace", "")
        claims = cluster.objects.get(kinds.PERSISTENT_VOLUME_CLAIM.name, {})
        given += [
            manifest(kinds.PERSISTENT_VOLUME_CLAIM, found)
            for found in claims.values()
            if found.metadata.namespace == place
        ]
        given.append(self._job)
        if known is not None and known.group is not None:
            given.append(manifest(kinds.POD_GROUP, known.group))
            given += [manifest(kinds.POD, task.pod) for task in known.tasks.values() if self._is_own(task.pod)]
        self._cluster.apply([each for each in given if not _is_there(self._cluster, each)])

    def _tell(self, changes: Iterable[Replaced]) -> None:
        for kind, before, after in changes:
            found = after if after is not None else before
            if found is None or kind not in (kinds.POD, kinds.POD_GROUP) or not self._is_own(found):
                continue
            key = Key(kind, found.metadata.namespace, found.metadata.name)
            there = self._cluster.store.find(key)
            if after is None:
                if there is not None and there["metadata"]["uid"] == found.metadata.uid:
                    self._cluster.store.remove(key)
            elif there is not None:
                self._cluster.store.overwrite(key, {**there, **manifest(kind, after)})

    def _is_own(self, found: KubeObject) -> bool:
        return any(owner.uid == self._uid for owner in found.metadata.owner_references)

    def _done(self, version: int) -> list[Replaced]:
        """Return what the controller has written since a version, as far as a scheduler reads it; pods that only changed are as we told it."""
        touched: dict[tuple[kinds.Kind, str], None] = {}
        for kind in _TOLD:
            for event in self._cluster.store.since(kind, version):
                if kind is not kinds.POD or event.type != "MODIFIED":
                    touched[kind, event.object["metadata"]["uid"]] = None
        return [replaced for kind, uid in touched for replaced in self._replaced(kind, uid)]

    def _replaced(self, kind: kinds.Kind, uid: str) -> Sequence[Replaced]:
        """Hold an object as it is there against what the model knows."""
        key = self._cluster.store.owner(uid)
        found = None if key is None else decoding.decode(self._cluster.store.peek(key))
        before = self._known(kind, uid)
        if isinstance(found, decoding.Malformed) or (found is None and before is None):
            return ()
        return ((kind, before, found),)

    def _known(self, kind: kinds.Kind, uid: str) -> KubeObject | None:
        cluster = self._rehearsal.cluster
        if kind is kinds.POD:
            task = cluster.tasks.get(uid)
            return None if task is None else task.pod
        if kind is kinds.POD_GROUP:
            job = cluster.jobs.get(self._key)
            return None if job is None else job.group
        known = cluster.objects.get(kind.name, {}).values()
        return next((found for found in known if found.metadata.uid == uid), None)

    # -- admission ---------------------------------------------------------------------------------------------

    def _check(self, made: Mapping[str, Any]) -> None:
        """Refuse a pod that a quota has no room for."""
        if made.get("kind") != kinds.POD.name or self._lenient:
            return
        pod = dict(made)
        refusal = self.refusal if self._stopped else self._quotas.refusal(pod, self._beside)
        if refusal:
            self.refusal, self._stopped = refusal, self._one_by_one
            raise errors.InvalidError(refusal)
        self.refusal = ""
        for name, amount in quotas.charged(pod).items():
            self._beside[name] = self._beside.get(name, 0) + amount


class Crew:
    """Everybody who makes pods while a job is played: whoever makes its own, and the controllers of other Jobs that are let in and lack some.

    They race for what a quota allows. Who comes first is not known; `last` lets whoever makes the job's own pods come after all others.
    """

    def __init__(self, rehearsal: Rehearsal, key: str, own: Staff | None, *, last: bool = False) -> None:
        self._rehearsal = rehearsal
        self._last = last
        self._own = own
        self._members: dict[str, Staff] = {} if own is None else {key: own}
        self._key = key
        self._begun = False

    @property
    def refusal(self) -> str:
        """Why a pod of the job itself could not be made."""
        return "" if self._own is None else self._own.refusal

    def at_work(self, changes: Iterable[Replaced]) -> list[Staff]:
        """Return who looks at changes: those who did before, and whose group was let in by them."""
        if not self._begun:
            self._begun = True
            self._hire(behind(self._rehearsal), refused=not self._last)
        else:
            groups = [after.metadata for kind, _, after in changes if kind is kinds.POD_GROUP and after is not None]
            self._hire((f"{each.namespace}/{each.name}" for each in groups), refused=False)
        ranked = sorted(self._members.items(), key=lambda entry: (self._last and entry[0] == self._key, entry[0]))
        return [staff for _, staff in ranked]

    @property
    def races(self) -> bool:
        """Whether others make pods in the same namespace, for which a quota may lack room."""
        namespace = self._key.partition("/")[0]
        others = [key for key in self._members if key != self._key and key.partition("/")[0] == namespace]
        return bool(others and self._own is not None and quotas.Quotas(self._rehearsal.cluster).of(namespace))

    def makes(self, key: str) -> bool:
        """Tell whether one of them makes the pods of a group anew."""
        return isinstance(self._members.get(key), Controller)

    def _hire(self, keys: Iterable[str], *, refused: bool) -> None:
        for key in keys:
            if len(self._members) < MOST_OTHERS and key not in self._members and key != self._key:
                job = self._rehearsal.cluster.jobs.get(key)
                owner = job_of(self._rehearsal, job)
                if owner is not None and job is not None and _is_behind(job, owner):
                    self._members[key] = Controller(self._rehearsal, key, owner, refused=refused)

    def next_due(self) -> int | None:
        """Return when one of them looks again; one that was refused something tries again in vain as long as nothing else happens."""
        due = [staff.next_due() for staff in self._members.values() if not staff.refusal]
        return min((each for each in due if each is not None), default=None)


def behind(rehearsal: Rehearsal) -> list[str]:
    """Return the groups of Jobs that are let in and lack pods."""
    return [key for key in lacking(rehearsal) if is_let_in(rehearsal.cluster.jobs[key])]


def lacking(rehearsal: Rehearsal) -> list[str]:
    """Return the groups of Jobs that lack pods, let in or not."""
    if not rehearsal.jobs:
        return []
    return [
        job.key
        for job in rehearsal.cluster.jobs.values()
        if (owner := job_of(rehearsal, job)) is not None and len(job.tasks) < replicas(owner)
    ]


def _is_behind(job: Job, owner: Manifest) -> bool:
    return is_let_in(job) and len(job.tasks) < replicas(owner)


def changed_template(change: Callable[[core.PodSpec], core.PodSpec]) -> Callable[[Manifest], Manifest]:
    """Change the pods that a Job makes from now on."""

    def changed(job: Manifest) -> Manifest:
        tasks = []
        for task in job["spec"].get("tasks") or ():
            template = task.get("template") or {}
            spec = change(msgspec.convert(template.get("spec") or {}, core.PodSpec))
            written = msgspec.json.decode(msgspec.json.encode(spec))  # lists, as JSON has them
            tasks.append({**task, "template": {**template, "spec": written}})
        return {**job, "spec": {**job["spec"], "tasks": tasks}}

    return changed


def _is_there(cluster: SimulatedCluster, given: Manifest) -> bool:
    kind = kinds.find(given["apiVersion"], given["kind"])
    metadata = given["metadata"]
    return (
        kind is not None and cluster.store.find(Key(kind, metadata.get("namespace", ""), metadata["name"])) is not None
    )
