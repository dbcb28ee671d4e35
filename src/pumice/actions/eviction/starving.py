"""Which jobs starve and may ask for room, and of whom it is known that nobody at all may go for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import asking, telling
from pumice.api import names
from pumice.framework import independence, refusals

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


class Starving:
    """The claimants of one action in one cycle."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._session = session
        self._rules = rules
        self._by_job = rules.facts.votes_know_jobs or rules.within or not session.shortcuts.equal_claimants
        self._by_amounts = rules.facts.votes_know_amounts
        self._anybody: dict[object, str | None] = {}
        # Of whom it is known, from earlier cycles too, that nobody may go for them: the job that asked, until another has asked about its pods, and what was said; and what was told of those who were considered.
        self._refused: dict[Hashable, tuple[str, str]] = {}
        self._considered: dict[object, str] = {}
        self._held = (b"", b"")  # what queues held when these were looked up
        settings = session.configuration
        # kube-batch knew no admission: without enqueue its actions look at every group.
        self._has_no_admission = settings.rules == "kube-batch" and "enqueue" not in settings.action_names

    def kind_of_job(self, job: Job) -> Hashable:
        """Return what the candidates for a job depend on: who it is, or its numbers, as far as those who decide read them."""
        if self._by_job:
            return job.key
        if not self._by_amounts:
            return job.queue, job.priority
        asked = frozenset([(task.priority, *task.likeness) for task in job.pending.values()])
        return job.queue, job.priority, self._session.cluster.job_sums.held(job.row).tobytes(), asked

    def jobs(self) -> dict[str, list[Job]]:
        """Return the jobs that may ask for room, by queue: let in, somebody to take from, valid, starving."""
        session = self._session
        # Queues protect nobody from claimants of their own.
        protections = [p for p in session.protection if not (self._rules.own_queue and independence.goes_by_queue(p))]
        # Who may take from its own job alone is refused by other rules than whoever may not.
        about = f"{self._rules.name}, {self._rules.within}"
        self._refused = refusals.remembered(session, about, [*self._rules.functions(), *protections])
        self._held = self._what_queues_hold()
        found: dict[str, list[Job]] = {}
        for job in list(session.cluster.pending_jobs.values()):
            if self._rules.within and len(job.pending) == len(job.tasks):
                continue
            if not session.usable(job) or (
                session.findings.phase(job) == names.PHASE_PENDING and not self._has_no_admission
            ):
                continue
            if (closed := session.closed(job)) is not None:
                session.record.judge(job.key, self._rules.name, closed)
                continue
            if (nobody := self._nobody(job)) is not None:
                if not self._rules.within:
                    session.record.judge(job.key, self._rules.name, nobody)
            elif session.job_valid(job) is None and session.job_starving(job):
                found.setdefault(job.queue, []).append(job)
        return found

    def _nobody(self, job: Job) -> str | None:
        """Say that the rules let nobody at all go for a job, and what refused those who were considered, found once for all jobs that nothing can tell apart; None if somebody may go."""
        if self._session.reserved:
            # Room that is held for somebody weaker can be taken over without evicting anybody.
            return None
        claimant = _first_to_ask(job)
        if claimant is None:
            return telling.NOBODY
        # Where a plan stays inside a hyper-node the plugins are asked with it.
        ask = self._session.topology.limit(job) is None
        key = (self.kind_of_job(job), claimant.best_effort, ask)
        if key not in self._anybody or self._is_first_to_meet(job, key):
            self._anybody[key] = self._refusal(job, claimant, key)
        return self._anybody[key]

    def _is_first_to_meet(self, job: Job, key: Hashable) -> bool:
        """Tell whether nobody of a kind was asked yet about the pods of the first that asked, who did not look at its own."""
        return key in self._refused and self._refused[key][0] not in ("", job.key)

    def _refusal(self, job: Job, claimant: Task, key: tuple[Hashable, bool, bool]) -> str | None:
        """Ask whether anybody may go for claimants of a kind, unless it is known that nobody may."""
        first, text = self._refused.get(key, ("", ""))
        if key not in self._refused:
            first, sources = job.key, self._rules.sources(claimant)
        elif first not in ("", job.key):
            first, sources = "", [self._session.cluster.jobs[first]] if first in self._session.cluster.jobs else []
        else:
            sources = []
        if sources and asking.is_anybody_offered(self._rules, claimant, sources, ask=key[2]):
            self._refused.pop(key, None)
            return None
        text = self.with_those_considered(job, telling.NOBODY, text)
        if self._rules.has_spared or self._session.breakdowns.found:
            self._refused.pop(key, None)
        else:
            self._refused[key] = (first, text)
        return text

    def with_those_considered(self, job: Job, refused: str, known: str = "") -> str:
        """Add to a refusal who was considered and what keeps them, told once for all jobs that nothing can tell apart."""
        claimant = _first_to_ask(job)
        if claimant is None:
            return refused
        key = (refused, self.kind_of_job(job), claimant.best_effort)
        # Of whoever has pods of its own there, these were not considered.
        is_kept = len(job.pending) == len(job.tasks) and not known and self._held == self._what_queues_hold()
        if is_kept and key not in self._considered and ("told", key) in self._refused:
            self._considered[key] = self._refused["told", key][1]
        if key not in self._considered:
            # Where hardly two jobs are alike, looking at many pods for each of them would cost more than the search.
            is_told = len(self._considered) < telling.MOST_KINDS
            told = telling.considered(self._rules, claimant) if is_told and not known else ""
            self._considered[key] = known if is_told and known else f"{refused}: {told}" if told else refused
            if is_kept and told and not self._rules.has_spared and not self._session.breakdowns.found:
                self._refused["told", key] = ("", self._considered[key])
        return self._considered[key]

    def _what_queues_hold(self) -> tuple[bytes, bytes]:
        """Return what tells whether anybody has come or gone since refusals were looked up."""
        sums = self._session.cluster.queue_sums
        return sums.allocated.tobytes(), sums.pipelined.tobytes()


def _first_to_ask(job: Job) -> Task | None:
    """Return the member that stands for the others: one with requests, if there is one."""
    first: Task | None = None
    for task in job.pending.values():
        if not task.best_effort:
            return task
        first = first or task
    return first
