"""Nobody is evicted for a claimant from whom another waiting job would take the room at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.actions.eviction import asking, equal_rivals, takeover
from pumice.actions.eviction.asking import Wanted
from pumice.api import names
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.task import Task

KINDS = 4  # of waiting jobs that are looked at in each queue, the smallest first
LOOKS = 64  # kinds that are looked at for one plan by the rules of one action
MORE = f"no more than {LOOKS} kinds of waiting jobs were looked at that could take the room over"


class Rival(Protocol):
    """A search by the rules of an action, as far as it is asked about."""

    @property
    def rules(self) -> Rules:
        """The rules that it goes by."""

    def fresh(self) -> Rival:
        """Return a search by the same rules that remembers nothing."""

    def could_serve(self, wanted: Wanted, spared: Plan) -> bool:
        """Tell whether a plan for somebody could be made as things stand, without evicting members of another plan."""


class EqualJobs:
    """Waiting jobs that nothing can tell apart; those in front that wait no more are passed over until some job waits anew."""

    __slots__ = ("_returned", "_served", "listed")

    def __init__(self) -> None:
        self.listed: list[Job] = []
        self._served = 0
        self._returned = -1

    def waiting(self, cluster: Cluster) -> Iterator[Job]:
        """Give those that still wait, in the order in which they were listed."""
        if self._returned != cluster.returned:
            self._served, self._returned = 0, cluster.returned
        while self._served < len(self.listed) and not self.listed[self._served].pending:
            self._served += 1
        for place in range(self._served, len(self.listed)):
            if self.listed[place].pending:
                yield self.listed[place]


class Successors:
    """Waiting jobs that may take a hold over in the next cycle, by queue, one for each kind; listed once for an action."""

    def __init__(self, session: Session, listed: Callable[[Session], Sequence[Rival]]) -> None:
        self._session = session
        self._listed = listed
        self._searches: Sequence[Rival] | None = None
        self._waiting: dict[str, list[EqualJobs]] | None = None

    def of(self, plan: Plan) -> Job | None:
        """Return a job that could take over what a plan holds, and would then have its minimum; None if there is none.

        The claimant keeps what it could take back in turn.
        """
        found = list(self._those_to_ask(plan))
        if not found:
            return None
        victims = plan.victims
        with plan.statement.trial():
            plan.statement.suppose(victims, [None] * len(victims), Status.PENDING)
            for search, job in found:
                if self._may_ask(search, plan, job) and self._takes_over(search, plan, job):
                    return job
        return None

    def _those_to_ask(self, plan: Plan) -> Iterator[tuple[Rival, Job]]:
        """Give one job of each kind that may take over by the rules of an action; those that are like the claimant's own cannot."""
        losing = {t.job_key: t.job.queue for t in plan.victims if t.job is not None}
        for search in self._rivals():
            for count, jobs in enumerate(self._waiting_beside(search, plan, losing)):
                if count == LOOKS:
                    plan.bounds[MORE] = None
                    break
                waiting = jobs.waiting(self._session.cluster)
                job = next((job for job in waiting if _may_come(self._session, plan, job, losing)), None)
                if job is not None and not equal_rivals.is_one(search.rules, plan, job):
                    yield search, job

    def _rivals(self) -> Sequence[Rival]:
        if self._searches is None:
            self._searches = self._listed(self._session)
        return self._searches

    def _waiting_beside(self, search: Rival, plan: Plan, losing: Mapping[str, str]) -> Iterator[EqualJobs]:
        """Give kinds of waiting jobs, those of the queues first whose due the plan opens; of the claimant's own queue where an action looks there."""
        kinds, own = self._kinds(plan), plan.job.queue
        if search.rules.own_queue:
            yield from kinds.get(own, ())
            return
        for queue in dict.fromkeys([*losing.values(), *kinds]):
            if queue != own:
                yield from kinds.get(queue, ())

    def _may_ask(self, search: Rival, plan: Plan, job: Job) -> bool:
        """Tell whether an action would serve a job, and lets it take from the claimant's."""
        claimant = next(iter(job.pending.values()))
        return search.rules.concerns(claimant, plan.members[0]) and self._session.job_starving(job)

    def _kinds(self, plan: Plan) -> dict[str, list[EqualJobs]]:
        """Return waiting jobs by queue and kind, the one that a plan is being made for included; jobs that nothing can tell apart stand together."""
        if self._waiting is None:
            kinds: dict[str, dict[Hashable, EqualJobs]] = {}
            for job in {**self._session.cluster.pending_jobs, plan.job.key: plan.job}.values():
                shapes = tuple(sorted(task.shape.serial for task in _waiting(job)))
                kind = (job.priority, job.min_member, job.tally.ready, shapes)
                kinds.setdefault(job.queue, {}).setdefault(kind, EqualJobs()).listed.append(job)
            self._waiting = {queue: sorted(found.values(), key=_size)[:KINDS] for queue, found in kinds.items()}
        return self._waiting

    def _takes_over(self, search: Rival, plan: Plan, job: Job) -> bool:
        """Tell whether a job could evict the claimant if it ran, not the other way round, and with its room has enough."""
        session = self._session
        queue, tasks = session.queue_of(job), asking.claimants(session, job)
        if queue is None or not tasks or session.job_valid(job) is not None:
            return False
        if not takeover.could_evict(session, search.rules, tasks[0], plan.members):
            return False
        wanted = Wanted(queue, job, tasks, lambda: asking.is_enough(session, job))
        with plan.statement.trial():
            plan.statement.suppose(plan.members, [None] * len(plan.members), Status.PENDING)
            return search.fresh().could_serve(wanted, spared=plan)


def _may_come(session: Session, plan: Plan, job: Job, losing: Mapping[str, str]) -> bool:
    """Tell whether a job that waits is another than those of the plan, and let in."""
    if job is plan.job or job.key in losing or not session.usable(job):
        return False
    return session.findings.phase(job) != names.PHASE_PENDING and not session.is_pipelined(job)


def _waiting(job: Job) -> list[Task]:
    """Return the tasks of a job that wait, those included that a plan has just placed."""
    return [task for task in job.tasks.values() if task.status in (Status.PENDING, Status.PIPELINED)]


def _size(jobs: EqualJobs) -> tuple[float, str]:
    """Rank kinds of jobs by what they ask for, the smallest first."""
    job = jobs.listed[0]
    return float(sum(int(task.shape.request.vector.sum()) for task in _waiting(job))), job.key
