"""What a change makes different: the same cluster simulated twice until nothing more happens, once as it is and once with the change.

The controller of Volcano's Jobs is there, too: what becomes of a Job is seen by its pods, which are made when its group is let in.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.api import duration, kinds, names
from pumice.controllers.volcano import registry as controllers
from pumice.framework.configuration import ConfigurationError
from pumice.model import native_groups, resources
from pumice.model.statuses import ALLOCATED_LIKE, FINISHED
from pumice.scenario.stage import SimulatedStage, StepError
from pumice.sim.clock import VirtualClock
from pumice.study import changing
from pumice.study.changing import NO_CHANGE
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.registry import Registry
    from pumice.model.job import Job
    from pumice.study.changing import Change
    from pumice.study.configuring import Policy
    from pumice.study.state import State

MOST: Final = 1000
"""Cycles after which a cluster that does not come to rest is left."""
HORIZON: Final = duration.HOUR
"""What is due later than this is not waited for."""
LATELY: Final = 10
_CONTROLLERS: Final = {"job-controller": controllers.REGISTERED["job-controller"]}

Standing = Literal["starts", "runs", "partly runs", "waits", "ends", "has no pods", "is not there"]


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a job stands after the cycles: `placed` of its `pods` have a node, `evicted` were sent away on the way there.

    One that ended and was taken away did so after `seconds`.
    """

    standing: Standing
    queue: str = ""
    placed: int = 0
    pods: int = 0
    nodes: dict[str, str] = {}
    evicted: tuple[str, ...] = ()
    seconds: int = 0
    reason: str = ""

    @property
    def decided(self) -> tuple[object, ...]:
        """What was decided about it, words aside."""
        return (self.standing, self.queue, self.placed, self.pods, self.nodes, self.evicted, self.seconds)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the cycles came to: jobs by name, and what each queue holds."""

    jobs: dict[str, JobOutcome]
    queues: dict[str, dict[str, str]]
    binds: int
    evictions: int
    cycles: int = 0
    seconds: int = 0
    settled: bool = True  # whether nothing more would happen
    lately: tuple[int, int] = (0, 0)  # binds and evictions in the last cycles, of one that was stopped before


class JobDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A job that fares differently."""

    job: str
    before: JobOutcome
    after: JobOutcome


class QueueDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A queue that holds something else."""

    queue: str
    resource: str
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The difference that a change makes; `same` counts the jobs that fare as before.

    Both were run until nothing more happened, the longer of them for so many `cycles` and `seconds`; where one was stopped before, it is not `settled`, and
    `lately` says how many binds and evictions there were in the last ten cycles.
    """

    source: str
    cycles: int
    jobs: tuple[JobDifference, ...]
    queues: tuple[QueueDifference, ...]
    same: int
    binds: tuple[int, int]
    evictions: tuple[int, int]
    seconds: int = 0
    settled: bool = True
    lately: tuple[int, int] = (0, 0)

    @property
    def differs(self) -> bool:
        """Whether any decision differs."""
        return bool(self.jobs or self.queues)


def compare(
    state: State,
    before: Policy,
    after: Policy,
    known: Registry,
    *,
    change: Change = NO_CHANGE,
    cycles: int | None = None,
) -> Comparison:
    """Run a cluster as it is, and with a change of objects, of the policy, or of both; without a number of cycles until nothing more happens."""
    first = run(state, before, NO_CHANGE, known, cycles)
    second = run(state, after, change, known, cycles)
    return difference(state.source, first, second)


def run(state: State, policy: Policy, change: Change, known: Registry, cycles: int | None = None) -> Outcome:
    """Simulate a cluster, a second for each cycle, and say what came of it."""
    stage = staged(state, policy, known)
    running = _running(stage)
    changing.make(stage, change, policy.options)
    stage.cluster.settle()
    leaving = _Leaving(stage)
    try:
        ran = _run(stage, MOST if cycles is None else cycles, leaving)
    except ConfigurationError as error:
        raise StudyError(str(error)) from error
    return msgspec.structs.replace(_outcome(stage, running, leaving), **ran)


def _run(stage: SimulatedStage, most: int, leaving: _Leaving) -> dict[str, Any]:
    """Run cycles until one of them, and all that is due later, could only repeat the last; say how long that took."""
    begun, counts = stage.cluster.clock.now(), [stage.counts()]
    settled = False
    while not settled and len(counts) <= most:
        version = stage.cluster.store.resource_version
        stage.cycle(duration.SECOND)
        leaving.look()
        counts.append(stage.counts())
        # A policy that reads the clock has no cycle that it could leave out.
        calm = stage.rests or counts[-1 - LATELY :] == [counts[-1]] * (LATELY + 1)
        calm = calm and stage.cluster.store.resource_version == version
        settled = calm and not _wait(stage, begun)
    before, now = counts[max(0, len(counts) - 1 - LATELY)], counts[-1]
    return {
        "cycles": len(counts) - 1,
        "seconds": (stage.cluster.clock.now() - begun) // duration.SECOND,
        "settled": settled,
        "lately": (0, 0) if settled else (now.binds - before.binds, now.evictions - before.evictions),
    }


def _wait(stage: SimulatedStage, begun: int) -> bool:
    """Let time pass to what is due next, and tell whether anything is."""
    due = stage.next_due()
    if due is None or due > begun + HORIZON:
        return False
    stage.advance(max(0, due - stage.cluster.clock.now()))
    return True


def staged(state: State, policy: Policy, known: Registry) -> SimulatedStage:
    """Put a cluster that was read on a stage, with a scheduler that knows it and has decided nothing yet."""
    stage = SimulatedStage(policy.configuration, policy.options, known, VirtualClock(state.now), _CONTROLLERS)
    stage.breakdowns = True  # as a running scheduler bears them
    try:
        stage.apply(state.manifests())
    except StepError as error:
        raise StudyError(f"{state.source}: {error}") from error
    stage.connect()
    stage.cluster.settle()  # kubelets and controllers have seen what was there before anything changes
    return stage


def difference(source: str, before: Outcome, after: Outcome) -> Comparison:
    """Hold two outcomes against each other."""
    absent = JobOutcome(standing="is not there")
    keys = sorted({*before.jobs, *after.jobs})
    pairs = [(key, before.jobs.get(key, absent), after.jobs.get(key, absent)) for key in keys]
    jobs = [JobDifference(job=key, before=old, after=new) for key, old, new in pairs if old.decided != new.decided]
    queues = [
        QueueDifference(queue=name, resource=resource, before=old.get(resource, "0"), after=new.get(resource, "0"))
        for name in sorted({*before.queues, *after.queues})
        for old, new in [(before.queues.get(name, {}), after.queues.get(name, {}))]
        for resource in sorted({*old, *new})
        if old.get(resource, "0") != new.get(resource, "0")
    ]
    return Comparison(
        source=source,
        cycles=max(before.cycles, after.cycles),
        jobs=tuple(jobs),
        queues=tuple(queues),
        same=len(keys) - len(jobs),
        binds=(before.binds, after.binds),
        evictions=(before.evictions, after.evictions),
        seconds=max(before.seconds, after.seconds),
        settled=before.settled and after.settled,
        lately=max(before.lately, after.lately),
    )


# -- outcomes --------------------------------------------------------------------------------------------------


def _jobs(stage: SimulatedStage) -> list[tuple[str, Job]]:
    return [(key, job) for key, job in stage.model.jobs.items() if job.group is not None]


def _shown(stage: SimulatedStage) -> dict[str, str]:
    """Return the names under which groups are told, by their keys: the group of a Job is told by the name of the Job, unless another group has that."""
    keys = {key for key, _ in _jobs(stage)}
    named = {key: key for key in keys}
    for found in stage.cluster.store.scan(kinds.POD_GROUP):
        key, job = f"{found['metadata']['namespace']}/{found['metadata']['name']}", changing.job_of(stage, found)
        if job and job not in keys:
            named[key] = job
    return named


def _running(stage: SimulatedStage) -> Counter[str]:
    """Count the pods of each job that have a node."""
    counted: Counter[str] = Counter()
    for pod in stage.cluster.store.scan(kinds.POD):
        if (pod.get("spec") or {}).get("nodeName") and not changing.is_finished(pod):
            counted[_group_of(pod)] += 1
    return counted


def _group_of(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    named = (metadata.get("annotations") or {}).get(names.GROUP_NAME, "")
    native = ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    if native and (not named or named.startswith(names.POD_GROUP_PREFIX)):
        return native_groups.key_of(metadata["namespace"], native)
    return f"{metadata['namespace']}/{named}"


class _Leaving:
    """Notes which jobs are taken away while their cluster is simulated, and when: a controller deletes the group of a Job that has ended."""

    def __init__(self, stage: SimulatedStage) -> None:
        self._stage = stage
        self._begun = stage.cluster.clock.now()
        self._there: dict[str, tuple[str, str]] = {}  # name and queue by key
        self.gone: dict[str, tuple[str, str, int]] = {}  # with the seconds until then
        self.look()

    def look(self) -> None:
        """Note who has come, and who has gone."""
        there = {key: job.queue for key, job in _jobs(self._stage)}
        for key in self._there.keys() - there.keys():
            seconds = (self._stage.cluster.clock.now() - self._begun) // duration.SECOND
            self.gone[key] = (*self._there.pop(key), seconds)
        if there.keys() - self._there.keys():
            names_of = _shown(self._stage)
            self._there = {key: (names_of[key], queue) for key, queue in there.items()}


def _outcome(stage: SimulatedStage, running: Counter[str], leaving: _Leaving) -> Outcome:
    evicted: dict[str, list[str]] = {}
    for pod in stage.cluster.evicted.values():
        evicted.setdefault(_group_of(pod), []).append(pod["metadata"]["name"])
    seen = stage.view(stage.counts())
    shown = _shown(stage)
    jobs = {
        name: JobOutcome(standing="ends", queue=queue, evicted=tuple(sorted(evicted.get(key, ()))), seconds=seconds)
        for key, (name, queue, seconds) in leaving.gone.items()
    }
    jobs |= {
        shown[key]: _job_outcome(job, running[key], evicted.get(key, []), seen.explain(key))
        for key, job in _jobs(stage)
    }
    counts = stage.counts()
    return Outcome(jobs=jobs, queues=_queues(stage), binds=counts.binds, evictions=counts.evictions)


def _job_outcome(job: Job, before: int, evicted: Sequence[str], explained: str) -> JobOutcome:
    nodes = {
        task.name: task.node.name
        for task in sorted(job.tasks.values(), key=lambda each: each.name)
        if task.node is not None and task.status in ALLOCATED_LIKE
    }
    standing = _standing(job, before, len(nodes))
    waits = standing in ("waits", "partly runs")
    return JobOutcome(
        standing=standing,
        queue=job.queue,
        placed=len(nodes),
        pods=sum(1 for task in job.tasks.values() if task.status not in FINISHED),
        nodes=nodes,
        evicted=tuple(sorted(evicted)),
        reason=explained.rpartition(": ")[2] if waits else "",
    )


def _standing(job: Job, before: int, placed: int) -> Standing:
    if not job.tasks:
        return "has no pods"
    if all(task.status in FINISHED for task in job.tasks.values()):
        return "ends"
    if not placed:
        return "waits"
    if job.pending or not job.is_ready:
        return "partly runs"
    return "starts" if placed > before else "runs"


def _queues(stage: SimulatedStage) -> dict[str, dict[str, str]]:
    """Return what the jobs of each queue hold."""
    model = stage.model
    return {
        name: {
            resource: resources.shown(resource, units)
            for resource, units in model.vocabulary.amounts(
                model.queue_sums.allocated[model.queue_sums.rows[name]]
            ).items()
            if units and resource != "pods"
        }
        for name in sorted(model.queues)
    }
