"""Who may be evicted for whom: the conditions of each action, and the protections."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

from pumice.actions.eviction import simulation
from pumice.actions.eviction.settings import Asked
from pumice.framework import independence, subject
from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.extensions import Registered
    from pumice.framework.naming_tasks import Intersection
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Rules:
    """The conditions of one action; what plugins say is for `votes`."""

    name: ClassVar[str] = ""
    within: ClassVar[bool] = False
    own_queue: ClassVar[bool] = False  # whether victims are of the claimant's queue
    node_by_node: ClassVar[bool] = True
    asks_each: ClassVar[bool] = False  # whether its queue must let every member of a plan take from others
    protects_important: bool = False  # whether no tier gives a pod away that is more important than the claimant
    statuses: frozenset[Status] = frozenset({Status.RUNNING})

    def __init__(self, session: Session, asked: Asked | None = None) -> None:
        self.session = session
        asked = asked or Asked()
        self.keeps_gangs = session.gangs_are_kept and asked.keeps_gangs
        self.hold_for = asked.hold_for
        self._spare_for = asked.spare_for
        self.has_spared = False  # whether somebody was no candidate because of the time
        self.most_domains = asked.most_domains
        self.allows_whole = asked.allows_whole  # whether a job that could run may be evicted whole
        settings = session.configuration
        self._guarded = settings.plugin("capacity") is not None or settings.plugin("proportion") is not None
        aware = asked.simulates and simulation.wanted(session)
        self.simulation = simulation.of(session) if aware else None

    def look_ahead(self) -> None:
        """Ask as in a later cycle, when what is being bound now runs."""
        self.statuses = ALLOCATED_LIKE

    def extension(self) -> Intersection[Any]:
        """Return the extension point that decides about victims."""
        raise NotImplementedError  # pragma: no cover  every action has its own

    def functions(self) -> list[Registered[..., Any]]:
        """Return the functions that decide about victims."""
        return list(self.extension())

    @functools.cached_property
    def facts(self) -> independence.Victims:
        """What is known of those who decide."""
        return independence.Victims(self.extension(), self.session.protection)

    @functools.cached_property
    def plugins(self) -> list[str]:
        """The plugins whose functions these are."""
        return list(dict.fromkeys(registered.plugin for registered in self.functions()))

    def sources(self, claimant: Task) -> list[Job]:
        """Return the jobs that victims could come from: the claimant's own, those of its queue, or those of the other queues that may be reclaimed from."""
        own, cluster = claimant.job, self.session.cluster
        if own is None or self.within:
            return [] if own is None else [own]
        queues = [
            queue
            for name, queue in cluster.queues.items()
            if (name == own.queue if self.own_queue else name != own.queue and queue.reclaimable and not queue.bad)
        ]
        return [cluster.jobs[key] for queue in queues for key in queue.jobs if key in cluster.jobs]

    def highest_taken(self, job: Job) -> int | None:
        """Return up to which priority other jobs of the queue may lose pods for one; None if any may."""
        return job.priority if self.protects_important else None

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Tell whether the action may look at a candidate at all."""
        raise NotImplementedError  # pragma: no cover  every action has its own

    def asking(self, claimant: Task, _domain: HyperNode | None = None) -> object:
        """Return what the functions are asked about."""
        return claimant

    def may_ask(self, _queue: Queue, _member: Task) -> str | None:
        """Return why a queue may not have anybody evicted for a member; None if it may."""
        return None

    def may_go(self, claimant: Task, candidate: Task) -> bool:
        """Tell whether a candidate is neither out of reach nor protected, in the present state of the plan."""
        return self.reaches(claimant, candidate) and self.protection(claimant, candidate) is None

    def reaches(self, claimant: Task, candidate: Task) -> bool:
        """Tell whether a candidate is one that the action may take for a claimant, protected or not; a pod without requests takes only the place of its like."""
        if candidate.status not in self.statuses or candidate.job is None or candidate.job.group is None:
            return False
        if self.is_spared(candidate) or (claimant.best_effort and not candidate.best_effort):
            return False
        return candidate.job.queue in self.session.cluster.queues and self.concerns(claimant, candidate)

    def is_spared(self, candidate: Task) -> bool:
        """Tell whether a candidate's eviction was refused of late; if so, ask for a cycle when it is one again."""
        refused = candidate.eviction_refused
        if refused is None or refused + self._spare_for <= self.session.started:
            return False
        self.session.wake_at(refused + self._spare_for)
        self.has_spared = True
        return True

    def candidates(self, claimant: Task, domain: HyperNode | None = None) -> list[Task]:
        """Return everybody who may go, on the nodes of a domain or anywhere."""
        raise NotImplementedError  # pragma: no cover  the gang forms have their own, and nobody asks the others

    def leaving(self, claimant: Task) -> list[Task]:
        """Return whoever could leave a node for a claimant; where victims are offered node by node, the others of their gangs may go with them."""
        return [task for source in self.sources(claimant) for task in source.tasks.values() if task.node is not None]

    def protection(self, claimant: Task | None, candidate: Task) -> str | None:
        """Return why a candidate must not be evicted, whatever any tier says; None if nothing protects it."""
        if not candidate.preemptable:
            return f"{candidate.key} is marked as not preemptable"
        if claimant is not None and claimant.job is not None and candidate.job is not None:
            if self.protects_important and self._is_outranked(claimant.job, claimant, candidate):
                return f"{candidate.key} is more important"
            reason = self._queue_protection(claimant.job.queue, candidate)
            if reason is not None:
                return reason
        return self.session.protection(claimant, candidate, self.name)

    @staticmethod
    def _is_outranked(own: Job, claimant: Task, candidate: Task) -> bool:
        """Tell whether a candidate is more important than a claimant: by the priority of its job, inside one job by its own."""
        other = candidate.job
        if other is None or other is own:
            return candidate.priority > claimant.priority
        return other.priority > own.priority

    def budget(self, claimant: Task | None, candidate: Task) -> str | None:
        """Return which budget of disruptions a candidate would break, counting those who go before it; None if it breaks none."""
        return self.session.protection.among(independence.counts_evictions, claimant, candidate, self.name)

    @functools.cached_property
    def judges_apart(self) -> bool:
        """Tell whether who is protected stays so whoever else goes: victims are of the claimant's queue, from which queues protect nobody, and nothing counts evictions."""
        return self.own_queue and self.facts.protections_stay

    @functools.cached_property
    def is_blind(self) -> bool:
        """Whether nobody who has a say knows who a job is, since when a pod runs, or who else goes: jobs of equal numbers are judged alike."""
        facts = self.facts
        return (
            self.session.shortcuts.equal_claimants
            and facts.votes_go_by_numbers
            and facts.protections_go_by_pod_or_queue
        )

    def _queue_protection(self, queue: str, candidate: Task) -> str | None:
        """Protect queues that must not be reclaimed from, and, where no plugin that shares does it, what is guaranteed to them."""
        job = candidate.job
        owner = self.session.cluster.queues.get(job.queue) if job else None
        if owner is None or owner.name == queue:
            return None
        if not owner.reclaimable:
            return f"queue {owner.name} is not reclaimable"
        if self._guarded:
            return None
        cluster = self.session.cluster
        held = cluster.queue_sums.held(owner.row)
        for name, units in owner.guarantee.items():
            column = cluster.vocabulary.columns.get(name)
            asked = candidate.shape.request.amounts.get(name, 0)
            if column is not None and asked and held[column] - asked < units:
                return f"queue {owner.name} holds {held[column]} of {name}, {units} are guaranteed to it"
        return None

    def in_order(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Sort candidates so that the first to go comes first."""
        return victim_order(self.session, claimant, candidates)


class Preempt(Rules):
    """Take from other jobs of the claimant's queue."""

    name = "preempt"
    own_queue = True
    statuses = frozenset({Status.BOUND, Status.RUNNING})

    def __init__(self, session: Session, asked: Asked | None = None) -> None:
        super().__init__(session, asked)
        asked = asked or Asked()
        is_as_there = session.configuration.compatibility == "volcano"
        self.protects_important = asked.protects_important and not is_as_there and "priority" in self.plugins

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Look at other jobs of the same queue."""
        own, other = claimant.job, candidate.job
        return own is not None and other is not None and other is not own and other.queue == own.queue

    def extension(self) -> Intersection[Any]:
        """Return Preemptable."""
        return self.session.preemptable


class PreemptWithin(Preempt):
    """Take from the claimant's own job."""

    within = True

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Look at the claimant's own job."""
        return candidate.job is claimant.job and candidate.uid != claimant.uid


class Reclaim(Rules):
    """Take from other queues."""

    name = "reclaim"
    asks_each = True

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Look at jobs of other queues."""
        own, other = claimant.job, candidate.job
        return own is not None and other is not None and other.queue != own.queue

    def may_ask(self, queue: Queue, member: Task) -> str | None:
        """Ask whether the queue may reclaim for a member."""
        return self.session.preemptive(queue, subject.equal_tasks([member]))

    def extension(self) -> Intersection[Any]:
        """Return Reclaimable."""
        return self.session.reclaimable


def victim_order(session: Session, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
    """Sort victims: between queues by VictimQueueOrder, inside a queue by reverse job order, inside a job by reverse task order.

    Jobs that the plugins find equal are kept apart, the newest first, then the larger name: if their pods alternated, no gang could go whole.
    """
    if len(candidates) < 2:
        return list(candidates)
    by_job: dict[str, list[Task]] = {}
    for task in candidates:
        by_job.setdefault(task.job_key, []).append(task)
    jobs = in_victim_order(session, claimant, [session.cluster.jobs[key] for key in by_job])
    ordered: list[Task] = []
    for job in jobs:
        tasks = by_job[job.key]
        ordered += tasks if len(tasks) == 1 else reversed(session.task_order.sort(tasks))
    return ordered


def in_victim_order(session: Session, claimant: Task, jobs: Sequence[Job]) -> list[Job]:
    """Sort jobs so that the first to lose something comes first."""
    if len(jobs) == 1:
        return list(jobs)
    ranks = {job.key: (session.job_order.parts(job), job.creation, job.key) for job in jobs}
    if len({job.queue for job in jobs}) == 1:
        return sorted(jobs, key=lambda job: ranks[job.key], reverse=True)
    queues = session.cluster.queues
    own = queues.get(claimant.job.queue) if claimant.job is not None else None

    @functools.cache
    def compare_queues(left: str, right: str) -> int:
        return session.victim_queue_compare(queues[left], queues[right], own)

    def compare(left: Job, right: Job) -> int:
        if left.queue != right.queue and (decided := compare_queues(left.queue, right.queue)):
            return decided
        return -1 if ranks[left.key] > ranks[right.key] else 1

    return sorted(jobs, key=functools.cmp_to_key(compare))
