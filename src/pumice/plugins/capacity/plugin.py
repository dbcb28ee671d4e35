"""capacity: queues with amounts they are due, may borrow beyond, and give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.explaining.queue_accounts import QueueAccount
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import FitSummary, Invalid
from pumice.model.resources import PODS
from pumice.plugins.capacity import accounts, queue_tree, victims
from pumice.plugins.capacity.device_quotas import DeviceQuotas
from pumice.plugins.sharing import admission, flat_limits, minima, queue_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Demand, EvictionContext
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix
    from pumice.model.task import Task
    from pumice.plugins.capacity.accounts import Account
    from pumice.plugins.sharing import rooms

NO_PLACE = "QueueTakesNoJobs"


class CapacitySettings(Settings):
    """How far reclaim looks up the tree."""

    ancestors = settings.whole(
        "ancestorReclaimLevel",
        0,
        minimum=0,
        replacement=0,
        help="how many ancestors of a queue take part when something is reclaimed; 0 asks the queue alone",
    )
    device_quotas = settings.truth(
        "capacity.DynamicResourceAllocationEnable",
        default=True,
        help="whether `deviceclass/<class>` in a capability limits the devices of a class that the claims of a queue have",
    )
    consumable_quotas = settings.truth(
        "capacity.DRAConsumableCapacityEnable",
        default=True,
        help="whether `<dimension>.deviceclass/<class>` in a capability limits what these claims take of a capacity of the devices",
    )


class Capacity(Plugin):
    """Give queues explicit amounts: `deserved` is what a queue is due, `capability` what it may hold at most, `guarantee` what nobody may take from it.

    A queue may borrow beyond its due up to its limit: its `capability`, and what is left of the cluster without the guarantees of others. A resource that `capability` does
    not list is not limited by it. Guarantees hold jointly: what all borrowers together leave is always enough for the guarantees of the others, as far as these count: at most up to the queue's own
    capability, not at all if one is larger than the cluster without foreign pods, and scaled down where siblings ask for more than there is; then a queue within its guarantee as written is refused only by what its siblings hold. Reclaim gives queues below their due what others hold above theirs. The queue with the higher `spec.priority` comes first,
    then the one that holds the smaller part of its due; one that is due nothing comes last.

    With `enableHierarchy: true` queues form a tree by `spec.parent`; without one the parent is `root`, which the cluster's size does not limit. Jobs run in queues without children. Limits
    hold on every level, and leaves are compared by the branches in which they differ. A queue whose parents are missing or go in a circle takes no jobs and counts for nothing,
    and neither do jobs of queues that have children; everybody else is served as if they were not there. With `ancestorReclaimLevel` above 0, that many ancestors of a victim's queue must
    be above their due too, and a queue may reclaim if one of that many ancestors is below its own.

    `deviceclass/<class>` in a `capability` is how many devices of a class the claims of the queue's pods may have (0 says nothing), `<dimension>.deviceclass/<class>` how much of a capacity of theirs; where a class is
    listed, a dimension that claims ask for must be, too. A claim counts once for a queue, by what it has, or before that by what it asks for: the largest of several options, one device where all are asked for. A group with `minResources` is let in
    if the claims of its minimum fit beside those that are held and were let in, less what it could evict.
    """

    name = "capacity"
    points = frozenset(
        {
            "QueueOrder",
            "VictimQueueOrder",
            "JobValid",
            "Allocatable",
            "Preemptive",
            "Reclaimable",
            "UnifiedEvictable",
            "Due",
            "Protection",
            "JobEnqueueable",
            "JobEnqueued",
            "Hierarchy",
        }
    )
    settings = Configured(CapacitySettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self.limits = flat_limits.Limits()
        self.admitted = admission.Admitted()
        self.tree: queue_tree.CapacityTree | None = None
        self.accounts: dict[str, Account] = {}
        self.rooms: rooms.Rooms | None = None
        self._seen: list[object] = []
        self._opened = 0  # how often accounts were opened anew

    def open(self, session: Session) -> None:
        """Bring limits and dues up to date and register the rules."""
        self.session = session
        self.cluster = session.cluster
        self._refresh(session.cluster)
        self.level = self.settings.ancestors if self.tree is not None else 0
        self.victims = victims.Victims(session.cluster, self.accounts, self.level, whole=session.gangs_are_kept)
        if self.tree is None:
            session.queue_order.add(self.order)
            self.admitted.open(session.cluster, minima=minima.shared(session))
        else:
            self._register_tree(session, self.tree)
            self.admitted.open(session.cluster, self.tree.rows_above(), minima.shared(session))
        if self.rooms is not None:
            self.rooms.open(session.cluster)
            self.rooms.warn(session)
            session.never_running.ceilings = self.rooms.branch_ceilings
            admission.guard(session, admission.Guard(self.rooms, self.admitted, self.beyond_limit))
        session.announced.queue_accounts = self.account
        session.allocatable.add(self.refuse, reads=Reads.QUEUE)
        self._limit_devices(session)
        session.preemptive.add(self.may_not_reclaim)
        # Which resources a claimant asks for, and whether its queue is due any of them, says whom it may take.
        session.reclaimable.add(self.victims.reclaimable, reads=Reads.QUEUE | Reads.COLUMNS, basis=self._basis)
        session.unified_evictable.add(self.evictable, reads=Reads.QUEUE, basis=self._basis)
        session.protection.add(self.victims.protection, reads=Reads.QUEUE, basis=self._basis)
        session.due.add(self.due)
        session.job_enqueueable.add(self.vote)
        session.job_enqueued.add(self.let_in)

    def _limit_devices(self, session: Session) -> None:
        """Register the quotas of device classes, if there are claims and any queue has one."""
        devices = session.cluster.devices
        if not self.settings.device_quotas or not (devices.claims or devices.has_special):
            return
        quotas = DeviceQuotas(session, self._with_above, dimensions=self.settings.consumable_quotas)
        if quotas.limits:
            session.allocatable.add(quotas.refuse, reads=Reads.QUEUE | Reads.TASK)
            session.follow(quotas.follow)
            session.job_enqueueable.add(quotas.vote)
            session.job_enqueued.add(quotas.let_in)

    def _with_above(self, name: str) -> Sequence[Queue]:
        """Return a queue and those above it."""
        account = self.accounts.get(name)
        return () if account is None else [account.queue, *(each.queue for each in account.above)]

    def _refresh(self, cluster: Cluster) -> None:
        """Bring accounts up to date, opening them anew only if some queue, the cluster's size or what foreign pods hold says something else."""
        if not self.switches["enableHierarchy"]:
            if self.limits.refresh(cluster) or not self.accounts:
                self._opened += 1
                self.accounts = accounts.flat(cluster, self.limits)
                self.rooms = self.limits.rooms
            return
        seen: list[object] = [len(cluster.vocabulary), queue_limits.total(cluster).tolist()]
        for queue in cluster.queues.values():
            stated = (queue.parent, queue.priority, queue.capability, queue.guarantee, queue.deserved)
            seen.append((queue, queue.bad, *stated))
        if self.tree is not None and seen == self._seen and self.rooms is not None:
            # What foreign pods hold bears on guarantees only.
            seen_there = self.rooms.available if not self.rooms.states_any else self.tree.available(cluster)
            if np.array_equal(self.rooms.available, seen_there):
                self.tree.count(cluster)
                return
        self._seen = seen
        self._opened += 1
        self.tree = queue_tree.CapacityTree(cluster)
        self.accounts = self.tree.accounts
        self.rooms = self.tree.rooms
        self.tree.count(cluster)

    def _basis(self) -> object:
        """Return what tells that dues, limits and guarantees are what they were."""
        return self._opened

    # -- tree --------------------------------------------------------------------------------------------------

    def _register_tree(self, session: Session, tree: queue_tree.CapacityTree) -> None:
        session.queue_order.add_tree(tree.path)
        session.victim_queue_order.add(self.victims.nearness)
        session.job_valid.add(self.out_of_place, reads=Reads.QUEUE)
        session.follow(self._follow, one_job=True)
        for name, problem in tree.problems.items():
            session.record.say(self.name, f"queue {name} takes no jobs: {problem}")

    def _follow(self, runs: Sequence[Run], sign: int) -> None:
        """Count runs for the queues above their own."""
        for run in runs:
            first = run.tasks[0]
            account = self.accounts.get(first.job.queue) if first.job is not None else None
            if account is None or self.tree is None or not account.is_leaf:
                continue
            change = first.shape.request.vector * (sign * len(run.tasks))
            for ancestor in account.above:
                ancestor.add(change)
            for queue in self.tree.witnesses(account):
                self.session.queue_order.touch(queue)

    def due(self, _job: Job) -> Matrix:
        """Return what every queue is due; it does not depend on who asks."""
        due: Matrix = np.zeros(self.cluster.queue_sums.allocated.shape, dtype=np.int64)
        for account in self.accounts.values():
            due[account.queue.row] = account.deserved
        return due

    def problem(self, queue: Queue) -> str | None:
        """Say why a queue takes no jobs, whatever their size."""
        account = self.accounts.get(queue.name)
        if account is None:
            why = self.tree.problems.get(queue.name) if self.tree is not None else None
            return why or f"queue {queue.name} is invalid"
        if not account.is_leaf:
            children = sorted(child.queue.name for child in account.children)
            more = f" and {len(children) - 3} more" if len(children) > 3 else ""
            return f"it has children ({', '.join(children[:3])}{more}); only queues without children take jobs"
        return None

    def out_of_place(self, job: Job) -> Invalid | None:
        """Let jobs wait whose queue takes none."""
        queue = self.session.queue_of(job)
        problem = self.problem(queue) if queue is not None else None
        if problem is None:
            return None
        text = f"queue {job.queue}: {problem}"
        # Conditions of the group and its pods name the reason too.
        self.session.findings.note_fit(job.pending.values(), FitSummary(0, (), text))
        return Invalid(NO_PLACE, text)

    # -- order -------------------------------------------------------------------------------------------------

    def order(self, queue: Queue) -> tuple[int, float, bool]:
        """Put higher priority first, then the smaller share of what is due, then queues that are due something."""
        account = self.accounts.get(queue.name)
        return (
            (-queue.priority, 1.0, True) if account is None else (-queue.priority, account.share, account.best_effort)
        )

    # -- limits ------------------------------------------------------------------------------------------------

    def refuse(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse tasks that would take the queue, or one above it, beyond its limit or into what others are guaranteed."""
        beyond = self.beyond_limit(queue, demand)
        if beyond is not None or self.rooms is None:
            return beyond
        return self.rooms.refused(queue, demand, self.cluster.vocabulary.names)

    def beyond_limit(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse tasks that would take the queue, or one above it, beyond its limit."""
        closed = self.problem(queue) or queue.closed
        if closed is not None:
            return closed
        account = self.accounts[queue.name]
        evicting = self.cluster.queue_sums.evicting
        # Above a queue there may be a thousand others, which are not added up for every pod while none of them has anybody evicted.
        goes = not demand.waits and np.count_nonzero(evicting) > 0
        for each in (account, *account.above):
            held = each.held
            if self.session.gates.enabled:
                leaves = [leaf.queue.name for leaf in each.leaves()]
                reserved = self.session.gates.reserved(leaves, demand.tasks)
                held = held if reserved is None else held + reserved
            if goes:
                held = held + evicting[list(self._rows(each))].sum(axis=0)
            beyond = queue_limits.exceeded(demand.amounts, held + demand.amounts, each.limit)
            if beyond:
                numbers = queue_limits.told(self.cluster.vocabulary.names, beyond, held, demand, limit=each.limit)
                whose = "" if each is account else f" of queue {each.queue.name} above it"
                return f"beyond the limit{whose}: {numbers}"
        return None

    def may_not_reclaim(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse to reclaim for tasks that go beyond the queue's limit, or find it at its due in all they ask for."""
        closed = self.problem(queue) or queue.closed
        if closed is not None:
            return closed
        account = self.accounts[queue.name]
        held = account.held
        beyond = queue_limits.exceeded(demand.amounts, held + demand.amounts, account.limit)
        if beyond:
            numbers = queue_limits.told(self.cluster.vocabulary.names, beyond, held, demand, limit=account.limit)
            return f"beyond the limit: {numbers}"
        candidates = [account, *(each for each in account.above[: self.level] if each.above)]
        if any(_is_below(each, demand) for each in candidates):
            return None
        asked = [int(column) for column in np.flatnonzero(demand.amounts) if column != PODS]
        numbers = queue_limits.told(self.cluster.vocabulary.names, asked, held, demand, deserved=account.deserved)
        return f"beyond its due in all that is asked for: {numbers}" if asked else "nothing but pods is asked for"

    def evictable(self, context: EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        """Leave gangpreempt to others; let gangreclaim take what queues hold above their due."""
        return self.victims.above_due(context.job, candidates) if context.kind == "gangreclaim" else list(candidates)

    def account(self, queue: Queue) -> QueueAccount | None:
        """Show how a queue stands, to whoever explains; None if it takes no part."""
        account = self.accounts.get(queue.name)
        if account is None:
            return None
        above = tuple(self._shown(each, ()) for each in account.above)
        return self._shown(account, above)

    def _shown(self, account: Account, above: tuple[QueueAccount, ...]) -> QueueAccount:
        return QueueAccount(
            plugin=self.name,
            queue=account.queue,
            held=account.held.copy(),
            let_in=self.admitted.inqueue[account.queue.row],
            due=account.deserved,
            ceiling=account.limit,
            guarantee=account.guarantee,
            room=self.rooms.room(account.queue) if self.rooms is not None else None,
            share=account.share,
            above=above,
        )

    # -- letting jobs in ---------------------------------------------------------------------------------------

    def vote(self, job: Job) -> Vote:
        """Vote whether a job's minimum fits into its queue and the queues above it."""
        queue = self.cluster.queues[job.queue]
        closed = self.problem(queue) or queue.closed
        if closed is not None:
            return reject(f"queue {queue.name}: {closed}")
        if job.min_resources is None:
            return PERMIT
        return admission.admission(self.session, job, self._bounds(queue), self.admitted)

    def _bounds(self, queue: Queue) -> Iterator[admission.Bound]:
        account = self.accounts[queue.name]
        for each in (account, *account.above):
            yield admission.Bound(each.queue, each.held, each.limit, self._rows(each))

    def _rows(self, account: Account) -> Sequence[int]:
        return (account.queue.row,) if self.tree is None else self.tree.rows_below(account)

    def let_in(self, job: Job) -> None:
        """Count a job that was let in for its queue and the queues above it."""
        if self.problem(self.cluster.queues[job.queue]) is None:
            self.admitted.enter(job)


def _is_below(account: Account, demand: Demand) -> bool:
    """Tell whether a queue would not be beyond its due in at least one resource that is asked for."""
    below = (demand.amounts > 0) & (account.held + demand.amounts <= account.deserved)
    below[PODS] = False
    return bool(below.any())
