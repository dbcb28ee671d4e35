"""From a starving job to a committed plan: first without victims, then with the cheapest, spared as far as possible, never in a circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actions.eviction import asking, judge, ping_pong, ranking, takeover, telling
from pumice.actions.eviction.asking import Wanted
from pumice.actions.eviction.domain_bounds import Cost, DomainBounds
from pumice.actions.eviction.plan import Plan
from pumice.actions.eviction.proposals import Proposers
from pumice.actions.eviction.starving import Starving
from pumice.actions.placing import likeness
from pumice.framework import subject
from pumice.framework.job_domains import Purpose
from pumice.framework.reasons import BeyondDue
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.successors import Successors
    from pumice.actions.eviction.units import Unit
    from pumice.framework.session import Session
    from pumice.framework.statement import Saved
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

ROUNDS = 8
LEVELS = 2
DEEPER = 32
LONG = f"no more than {DEEPER} later plans were searched for whether they lead back to this one"
NO_DOMAIN = "no hyper-node that its network topology allows holds the members that run and has room enough, even with everybody gone who may go"


class Found(msgspec.Struct, frozen=True):
    """A plan that was made and undone, with what it takes to make it again."""

    cost: Cost
    domain: HyperNode
    saved: Saved
    units: tuple[Unit, ...]
    members: tuple[Task, ...]


def _cost(plan: Plan) -> Cost:
    """Rank a plan by its victims, then by how near its members are."""
    place = plan.domain or plan.session.topology.tree.root
    return *ranking.rank(plan.session, plan.units), place.tier, place.index


class Search:
    """Finds plans by the rules of one action."""

    def __init__(self, session: Session, rules: Rules, successors: Successors | None = None) -> None:
        self.session = session
        self.rules = rules
        self._successors = successors
        # Whoever would undo a plan makes one himself, which must last too: how far that is looked at in any case, and how many plans that follow from it.
        self.levels = LEVELS
        self.deeper = [DEEPER]
        self._proposers = Proposers(session, rules)
        self.starving = Starving(session, rules)
        # The kinds of claimants for which nobody helped since a plan was carried out last, and what was said; and to which of them none of those who hold room was offered.
        self._hopeless: dict[Hashable, str] = {}
        self._unoffered: dict[Hashable, None] = {}

    def serve(self, queue: Queue, job: Job) -> None:
        """Make plans for a job: one for the members its minimum needs, then one for each further member, while it starves."""
        session = self.session
        tasks = asking.claimants(session, job)
        if not session.is_pipelined(job):
            # Members without requests count as placed; the minimum lacks others.
            needed = [task for task in tasks if not task.best_effort] or tasks
            if needed:
                self.seek(queue, job, needed, lambda: asking.is_enough(session, job))
            return
        self._serve_one_by_one(queue, job, asking.wishes(session, job, tasks))

    def serve_each(self, queue: Queue, job: Job) -> None:
        """Make plans for a job one member at a time, each of which leaves it its minimum, until there is none."""
        session = self.session
        wishes = [([task], lambda: session.is_pipelined(job)) for task in asking.claimants(session, job)]
        self._serve_one_by_one(queue, job, wishes)

    def _serve_one_by_one(
        self, queue: Queue, job: Job, wishes: Iterable[tuple[list[Task], Callable[[], bool]]]
    ) -> None:
        """Make a plan for each wish of a job while it starves; one like another for which there is none is passed over."""
        hopeless: dict[Hashable, None] = {}
        for members, done in wishes:
            if not self.session.job_starving(job):
                return
            kind = self._kind_of_members(members)
            if kind not in hopeless and not self.seek(queue, job, members, done):
                hopeless[kind] = None

    def _kind_of_members(self, members: Sequence[Task]) -> Hashable:
        """Return what members share with others of their job for whom a plan is looked for alike."""
        return tuple([(member.priority, likeness.of_member(self.session, member)) for member in members])

    def domain_bounds(self, job: Job) -> DomainBounds | None:
        """Return what evictions could do for a job in each hyper-node; None if it may be anywhere, or nobody asks."""
        if self.session.topology.heeded(job) is None:
            return None
        tasks = asking.claimants(self.session, job)
        return DomainBounds(self.session, self.rules, job, tasks) if tasks else None

    def domains(self, job: Job, bounds: DomainBounds | None) -> list[HyperNode]:
        """Return where a plan for a job may be made: anywhere, which is the root, or in one of the domains that the plugins offer to evict in."""
        topology = self.session.topology
        if topology.heeded(job) is None:
            return [topology.tree.root]
        purpose = Purpose(evicts=True, worthwhile=None if bounds is None else bounds.worthwhile())
        return [domain for group in topology.job_domains(job, purpose) for domain in group]

    def _first_domains(self, job: Job) -> list[HyperNode]:
        return self.domains(job, self.domain_bounds(job))[: self.rules.most_domains]

    def seek(self, queue: Queue, job: Job, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Try to make one plan, if need be on room that is held for somebody weaker; tells whether room was made or found."""
        sound = False
        try:
            found = self._seek(queue, job, tasks, done)
            sound = not self.session.breakdowns.has(job)
        finally:
            if not sound:
                # What was offered while a plugin broke down about one claimant says nothing about its equals.
                self._proposers = Proposers(self.session, self.rules)
                self._forget_hopeless()
        return found

    def _forget_hopeless(self) -> None:
        self._hopeless.clear()
        self._unoffered.clear()

    def _seek(self, queue: Queue, job: Job, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        self.session.findings.attempt(job)
        self.session.observer.sought(self.rules.name)
        kind = self._kind(queue, job, tasks)
        refused = self._hopeless.get(kind) if kind is not None else None
        # Who takes held room over must not be taken from in turn: there it is a candidate itself, of whom plugins may know more. Who is offered none is no candidate.
        knows_all = kind in self._unoffered or not self.rules.facts.candidates_are_looked_at
        if refused is None or (self.session.reserved and not knows_all):
            with self.session.lending.planning(queue, self.session.cluster.queue_sums.held(queue.row)):
                refused = self._sought(Wanted(queue, job, tasks, done), kind, refused)
        if refused is None:
            self._forget_hopeless()
            return True
        if not self.rules.within:
            # What was found between jobs says more than that the job's own pods do not help.
            if refused.startswith(telling.NOTHING_HELPS):
                refused = self.starving.with_those_considered(job, refused)
            self.session.record.judge(job.key, self.rules.name, refused)
        return False

    def _sought(self, wanted: Wanted, kind: Hashable, known: str | None) -> str | None:
        """Look for a plan, if need be on room that is held for somebody weaker; returns why there is none, which may be known of other room."""
        refused = self._settle(wanted) if known is None else known
        if refused is None:
            return None
        weaker = takeover.holders(self.session, self.rules, wanted.claimant)
        if weaker.jobs:
            with takeover.lifted(self.session, weaker.jobs) as lifted, self.session.attempt(wanted.job, passing=True):
                if self._settle(wanted) is None:
                    lifted.keep()
                    return None
        elif kind is not None and refused.startswith(telling.NOTHING_HELPS):
            self._hopeless[kind] = refused
            if not weaker.is_any_offered:
                self._unoffered[kind] = None
        return refused

    def _kind(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> Hashable:
        """Return what a claimant that has nothing yet shares with its equals, for whom nobody helps either as long as nothing has moved; None if it stands for itself."""
        session = self.session
        if self.rules.within or not session.shortcuts.equal_claimants or session.evaluator.sampler is not None:
            return None
        if len(job.pending) < len(job.tasks) or job.min_task_member or job.policies or job.topology is not None:
            return None
        facts = session.independence
        if not (facts.limits_go_by_queues and facts.refusals_go_by_shape):
            return None
        if any(task.nominated or task.shape.constraint_class.constraints.has_volumes for task in tasks):
            return None
        # Who minds other pods may mind those of its own job.
        if any(task.likeness[1] is not None for task in tasks):
            return None
        seen = [likeness.of_task(session, queue, task) for task in tasks]
        asked = tuple([(task.priority, task.preemptable, kind) for task, kind in zip(tasks, seen, strict=True)])
        return self.starving.kind_of_job(job), job.min_member, len(job.pending), asked

    def _settle(self, wanted: Wanted) -> str | None:
        """Look for a plan that its victims would not undo, in the domain where it costs least, and commit it; returns why there is none."""
        if self._finds_idle_room(wanted):
            return None
        bounds = self.domain_bounds(wanted.job)
        found = self.domains(wanted.job, bounds)
        domains = found[: self.rules.most_domains]
        if domains != [self.session.topology.tree.root]:
            spared = Plan(self.session, self.rules, wanted)
            if spared.arrange_anywhere(wanted.tasks):
                self._keep_room(spared)
                return None
        refused = self._cheapest(wanted, domains, bounds)
        if refused is None or len(found) == len(domains):
            return refused
        return f"{refused}, in the first {len(domains)} of {len(found)} hyper-nodes (maxDomains)"

    def _finds_idle_room(self, wanted: Wanted) -> bool:
        """Tell whether nothing but the due of their queue keeps members from room for which nobody has to go: allocate gives it to them unless somebody else can use it."""
        session, needed = self.session, wanted.tasks[: asking.number_lacking(wanted.job)]
        refusal = session.allocatable(wanted.queue, subject.demand(needed)) if session.lending.enabled else None
        if not isinstance(refusal, BeyondDue):
            return False
        plan = Plan(session, self.rules, wanted)
        with session.lending.beyond_dues():
            steered = session.topology.heeded(wanted.job) is not None
            found = plan.arrange_anywhere(needed) if steered else plan.arrange_enough(wanted.tasks, wanted.done)
        plan.give_up()
        return found

    def _cheapest(self, wanted: Wanted, domains: Sequence[HyperNode], bounds: DomainBounds | None) -> str | None:
        """Carry the cheapest plan out; where a plan cannot be cheaper than the best so far, none is made."""
        ranked = self._ranked(domains, bounds)
        best: Found | None = None
        why = dict.fromkeys([domain.index for domain in domains], telling.NOTHING_HELPS)
        for turn, (bound, domain) in enumerate(ranked):
            if best is not None and bound is not None and bound > best.cost:
                break
            plan = self._plan(wanted, domain)
            if not plan.members:
                why[domain.index] = plan.with_bounds(self._why_not(plan))
                continue
            if not plan.units:
                self._carry_out(plan)
                return None
            cost = _cost(plan)
            if best is None or cost < best.cost:
                if all(other is not None and other > cost for other, _ in ranked[turn + 1 :]):
                    self._carry_out(plan)
                    return None
                best = Found(cost, domain, plan.statement.save(), tuple(plan.units), tuple(plan.members))
            plan.start_again()
        if best is None:
            return why[domains[-1].index] if domains else NO_DOMAIN
        self._carry_out(self._made_again(wanted, best))
        return None

    def _ranked(self, domains: Sequence[HyperNode], bounds: DomainBounds | None) -> list[tuple[Cost | None, HyperNode]]:
        """Return the domains where a plan may stand, each with what it costs at the least: those first that may need no victim, then the cheapest."""
        # Where nodes are sampled, every look at them changes what the next one sees.
        sampled, shortcuts = self.session.evaluator.sampler is not None, self.session.shortcuts
        if bounds is None or self.rules.node_by_node or sampled or not shortcuts.domain_sums:
            return [(None, domain) for domain in domains]
        hopeful = [(bounds.least_cost(domain), domain) for domain in domains if not bounds.is_hopeless(domain)]
        free = [(bound, domain) for bound, domain in hopeful if bound is None]
        dear = sorted([(bound, domain) for bound, domain in hopeful if bound is not None], key=lambda entry: entry[0])
        return [*free, *dear]

    def _made_again(self, wanted: Wanted, best: Found) -> Plan:
        """Return a plan that was made before, with all that it did."""
        plan = self._blank(wanted, best.domain)
        if not plan.statement.recover(best.saved):
            return self._plan(wanted, best.domain)
        plan.units, plan.members = list(best.units), list(best.members)
        return plan

    def _blank(self, wanted: Wanted, domain: HyperNode) -> Plan:
        """Return a plan for a domain, of which nothing is made yet; the root stands for anywhere."""
        anywhere = domain is self.session.topology.tree.root
        return Plan(self.session, self.rules, wanted, None if anywhere else domain)

    def _plan(self, wanted: Wanted, domain: HyperNode) -> Plan:
        """Make a plan in a domain that its victims would not undo; one without members if there is none."""
        plan = self._blank(wanted, domain)
        for _ in range(ROUNDS):
            self.deeper = [DEEPER]
            if not self._is_made(plan, wanted):
                break
            returning = self._those_who_would_undo_it(plan) if plan.units else []
            if not returning:
                return plan
            plan.exclude(returning)
            plan.start_again()
        else:
            plan.bounds[f"no more than {ROUNDS} plans were tried"] = None
        return plan

    def _those_who_would_undo_it(self, plan: Plan) -> list[Task]:
        """Return the victims that a plan must do without, since it would not last: their job would come back, or another take the room over."""
        returning = ping_pong.those_who_would_return(plan, self._takes_from)
        if returning or self._successors is None:
            return returning
        plan.successor = self._successors.of(plan)
        return [] if plan.successor is None else plan.victims

    def could_serve(self, wanted: Wanted, spared: Plan) -> bool:
        """Tell whether a plan for somebody could be made as things stand, without evicting members of another plan."""
        for domain in self._first_domains(wanted.job):
            rival = self._blank(wanted, domain)
            rival.excluded.update(dict.fromkeys(member.uid for member in spared.members))
            found = self._is_made(rival, wanted)
            rival.start_again()
            if found:
                return True
        return False

    def _is_made(self, plan: Plan, wanted: Wanted) -> bool:
        """Ask proposers until a plan passes the judge; if none does, nothing stays."""
        return any(judge.passes(plan, wanted.done) for _ in self._proposers.proposals(plan, wanted))

    def _carry_out(self, plan: Plan) -> None:
        if plan.units:
            self._commit(plan)
        elif all(member.best_effort for member in plan.members):
            # Pods without requests take no room that would have to be kept; backfill finds them a node.
            plan.give_up()
        else:
            self._keep_room(plan)

    def fresh(self) -> Search:
        """Return a search by the same rules that remembers nothing."""
        return type(self)(self.session, self.rules)

    def _takes_from(self, job: Job, plan: Plan) -> bool:
        """Tell whether the same search, as things stand, would take pods of a plan's claimant for a job."""
        session = self.session
        queue, tasks = session.queue_of(job), asking.claimants(session, job)
        if queue is None or not tasks:
            return False
        wanted: dict[Hashable, Wanted] = {}
        if session.is_pipelined(job):
            # A job that has its minimum asks for one member after the other, of which any may find what the first does not.
            for members, done in asking.wishes(session, job, tasks):
                wanted.setdefault(self._kind_of_members(members), Wanted(queue, job, members, done))
        else:
            wanted[None] = Wanted(queue, job, tasks, lambda: session.is_pipelined(job))
        domains = self._first_domains(job)
        return any(self._takes_in(each, domain, plan) for each in wanted.values() for domain in domains)

    def _takes_in(self, wanted: Wanted, domain: HyperNode, plan: Plan) -> bool:
        """Tell whether a plan for somebody who comes back takes pods of a plan's claimant; one that takes others, and that these would undo, is not made."""
        rival, search = self._blank(wanted, domain), self.fresh()
        search.levels, search.deeper = self.levels - 1, self.deeper
        members = {member.uid for member in plan.members}
        for _ in range(ROUNDS):
            if not search._is_made(rival, wanted):  # noqa: SLF001  a search like this one
                return False
            taken = rival.victims
            if any(task.uid in members or (task.job is plan.job and task.job is not wanted.job) for task in taken):
                rival.start_again()
                return True
            lasts = bool(taken) and (search.levels > 0 or self._goes_on(plan))
            returning = search._those_who_would_undo_it(rival) if lasts else []  # noqa: SLF001  likewise
            leads_back = bool(taken) and not returning and self._goes_on(plan) and search._leads_back(rival, plan)  # noqa: SLF001  likewise
            rival.exclude(returning)
            rival.start_again()
            if not returning:
                return leads_back
        return False

    def _goes_on(self, plan: Plan) -> bool:
        """Tell whether one plan more is looked at that follows from others."""
        self.deeper[0] -= 1
        if self.deeper[0] < 0:
            plan.bounds[LONG] = None
        return self.deeper[0] >= 0

    def _leads_back(self, rival: Plan, plan: Plan) -> bool:
        """Tell whether those who go for a rival would in their turn take pods of a plan's claimant: a ring of three or more never ends either."""
        victims = rival.victims
        with rival.statement.trial():
            rival.statement.suppose(victims, [None] * len(victims), Status.PENDING)
            rival.statement.suppose(rival.members, [member.node for member in rival.members], Status.RUNNING)
            jobs = {task.job.key: task.job for task in victims if task.job is not None}
            return any(
                ping_pong.reaches(plan, job) and self.session.job_starving(job) and self._takes_from(job, plan)
                for job in jobs.values()
            )

    def _keep_room(self, plan: Plan) -> None:
        """Nobody needs to go: the members keep the places that were found for them, and allocate follows."""
        self.session.record.say(
            self.rules.name, f"there is room for {len(plan.members)} members without evicting anybody", plan.job.key
        )
        self.session.reserve(plan.members, [], self.rules.hold_for)
        # Where allocate comes later in the list, it places them in this very cycle.
        self.session.reserved.update({member.uid: member for member in plan.members})
        plan.statement.keep()

    def _commit(self, plan: Plan) -> None:
        victims = plan.victims
        self.session.record.judge(plan.job.key, self.rules.name, telling.number(plan))
        self.session.reserve(plan.members, victims, self.rules.hold_for)
        plan.statement.commit()
        self._proposers.equals.made(plan)
        self.session.observer.evicted(self.rules.name, len(victims))

    def _why_not(self, plan: Plan) -> str:
        if plan.refusal:
            return plan.refusal
        if plan.successor is not None:
            return f"{plan.number_excluded} pods could be evicted, but {plan.successor.title} of queue {plan.successor.queue} would take the room over in the next cycle"
        if plan.number_excluded:
            return f"{plan.number_excluded} pods could be evicted, but would take the room back in the next cycle by the same rules"
        return telling.NOTHING_HELPS
