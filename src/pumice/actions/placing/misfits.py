"""What a task that found no node means for the rest of its job: who need not be tried any more, and whether anybody need be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from pumice.actions.placing import likeness, minimum
from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.framework.reasons import FitSummary
    from pumice.model.job import Job, SubJob
    from pumice.model.task import Task


class Misfits(Protocol):
    """The tasks of one turn that found no node."""

    def add(self, task: Task) -> None:
        """Remember that no node takes a task."""

    def reason(self, task: Task) -> FitSummary | None:
        """Return why a task need not be tried, None if it has to be."""

    def leave_hope(self, sub_job: SubJob | None, rest: Sequence[Task]) -> bool:
        """Tell whether the remaining tasks are worth trying."""


def begin(turn: Turn) -> Misfits:
    """Begin to remember the misfits of a turn."""
    return MisfitKinds(turn) if minimum.comes_first(turn.session) else MisfitRoles(turn)


class MisfitRoles:
    """Volcano's rule: after one task of a role, no other of that role is tried; pinned by scenarios/gangs/minimum-first.yaml."""

    __slots__ = ("_first", "_job", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._job = turn.job
        self._first: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        """Remember that no node takes a task."""
        self._first.setdefault(task.role, task)

    def reason(self, task: Task) -> FitSummary | None:
        """Return why the first of its role found no node."""
        if not task.role or task.role not in self._first:
            return None
        return self._turn.session.findings.errors(self._job).get(self._first[task.role].uid)

    def leave_hope(self, sub_job: SubJob | None, rest: Sequence[Task]) -> bool:  # noqa: ARG002  roles decide, whoever is left of them
        """Tell whether roles without a misfit can still make the minimum, and none with one is short of its own."""
        job = self._job
        if _needs_everybody(job, sub_job):
            return False
        if job.policies:
            return True
        if job.min_member < job.min_task_total:
            others = sum(1 for task in job.pending.values() if task.role not in self._first)
            return job.tally.ready + others >= job.min_member
        for role in self._first:
            least = job.min_task_member.get(role, 0)
            tally = job.roles.get(role)
            if least > 0 and (tally is None or not tally.is_ready(least)):
                return False
        return True


class MisfitKinds:
    """Our rule: a task that found no node says something of its equals only."""

    __slots__ = ("_job", "_known", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._job = turn.job
        self._known: dict[Hashable, tuple[Task, int | None]] = {}

    def _kind(self, task: Task) -> Hashable:
        """Return what nodes, plugins and the job can tell tasks apart by."""
        return task.role, id(task.sub_job), likeness.of_member(self._turn.session, task)

    def add(self, task: Task) -> None:
        """Remember that no node takes a task, and whether that stays so when others are placed."""
        session = self._turn.session
        if not session.independence.siblings_share_answers:
            return
        evaluation = session.evaluate(subject.Subject(task, self._turn.queue))
        opens = evaluation.minds_others(released=True)
        self._known[self._kind(task)] = (task, session.cluster.nodes.position if opens else None)

    def reason(self, task: Task) -> FitSummary | None:
        """Return why an equal task found no node, if that is still true."""
        known = self._known.get(self._kind(task)) if self._known else None
        if known is None or known[1] not in (None, self._turn.session.cluster.nodes.position):
            return None
        return self._turn.session.findings.errors(self._job).get(known[0].uid)

    def leave_hope(self, sub_job: SubJob | None, rest: Sequence[Task]) -> bool:
        """Tell whether those that are left can still make the minimums."""
        job = self._job
        if _needs_everybody(job, sub_job):
            return False
        if job.policies or not job.min_task_member:
            return True
        hopeful = Counter(task.role for task in rest if not task.gated and self.reason(task) is None)
        if not job.roles_enforced:
            return hopeful.total() >= minimum.lacking(job.tally, job.min_member)
        return all(hopeful[role] >= count for role, count in minimum.lacking_of_roles(job).items())


def _needs_everybody(job: Job, sub_job: SubJob | None) -> bool:
    return job.min_member == len(job.tasks) or (sub_job is not None and sub_job.minimum >= len(sub_job.tasks))
