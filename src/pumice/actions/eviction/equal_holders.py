"""Jobs with held room that are alike: whether a claimant could evict them if they ran is found out for one of each kind, and holds for all.

That needs functions which know of a job nothing but its numbers (`Rules.is_blind`), and of which none can be outvoted: then who else is on a node does not count. `bench.eviction.many_holders` takes half as long again without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import equal_rivals
from pumice.framework import independence

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task

    Question = Callable[[Session, Rules, Task, Sequence[Task]], bool]


class EqualHolders:
    """What is known of the holders of each kind for one claimant: `ask` finds out about one, `of_kind` whether that need be asked of any of its kind."""

    def __init__(self, session: Session, rules: Rules, claimant: Task, ask: Question, of_kind: Question) -> None:
        self._session = session
        self._rules = rules
        self._claimant = claimant
        self._ask = ask
        self._of_kind = of_kind
        self._usual = rules.is_blind and rules.facts.nobody_is_outvoted
        self._by_itself = [each for each in session.protection if independence.looks_at_pods(each)]
        self._known: dict[Hashable, bool] = {}

    def could_be_evicted(self, tasks: Sequence[Task]) -> bool:
        """Tell whether the claimant could evict the tasks of one job if they ran."""
        known = self._could_any_of_the_kind(tasks)
        if known is False:
            return False
        is_found_out = known is True and self._of_kind is self._ask
        return is_found_out or self._ask(self._session, self._rules, self._claimant, tasks)

    def are_safe(self, tasks: Sequence[Task]) -> bool:
        """Tell at once that the claimant could evict none of equal holders of one pod each if they ran; False if each has to be asked about."""
        if not self._usual or self._is_any_spared(tasks):
            return False
        # Whoever is protected is safe, and one that is not speaks for all others that are not.
        first = next((task for task in tasks if not self._is_protected(task)), None)
        return first is None or (self._could_any_of_the_kind([first]) is False and not self._is_unsure([first]))

    def _could_any_of_the_kind(self, tasks: Sequence[Task]) -> bool | None:
        """Tell whether the claimant could evict any job like that of some tasks, as far as it is asked of the kind; None if it has to be asked of each."""
        kind = self._kind(tasks) if self._usual else None
        if kind is None:
            return None
        known = self._known.get(kind)
        if known is None:
            known = self._of_kind(self._session, self._rules, self._claimant, tasks)
            if not self._is_unsure(tasks):
                self._known[kind] = known
        return known

    def _is_any_spared(self, tasks: Sequence[Task]) -> bool:
        """Tell whether somebody beside one of some holders is spared for a while: whoever looks at one asks to be woken when that is over."""
        if not self._session.cluster.evictions_refused:
            return False
        records = [task.node for task in tasks if task.node is not None]
        return any(each.eviction_refused is not None for node in records for each in node.tasks.values())

    def _kind(self, tasks: Sequence[Task]) -> Hashable | None:
        """Return what rules see of a holder, None if it has to be asked about by itself."""
        task, job = tasks[0], tasks[0].job
        if job is None or len(job.tasks) != 1 or not equal_rivals.is_plain(job) or task.node is None:
            return None
        if self._is_any_spared(tasks):
            return None
        return self._seen_of(job, task)

    def _seen_of(self, job: Job, task: Task) -> Hashable:
        """Return what rules see of a job and its only pod."""
        numbers = (job.queue, job.priority, job.min_member, job.preemptable, job.preemptable_set, task.preemptable)
        return *equal_rivals.kind(task), *numbers, self._is_protected(task)

    def _is_protected(self, task: Task) -> bool:
        """Tell whether anything about a pod itself protects it."""
        protection, name = self._session.protection, self._rules.name
        return any(protection.ask(each, self._claimant, task, name) is not None for each in self._by_itself)

    def _is_unsure(self, tasks: Sequence[Task]) -> bool:
        """Tell whether a plugin broke down about one of the two: that says nothing about equals."""
        jobs = (self._claimant.job, tasks[0].job)
        return any(job is not None and self._session.breakdowns.has(job) for job in jobs)
