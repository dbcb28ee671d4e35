"""Every way to place some members without new victims, where these and the nodes are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from pumice.actions.placing import likeness
from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.task import Task

MOST = 4000
REACHED = f"no more than {MOST} steps were taken to place its members in some way"


class Arranged(Protocol):
    """A plan, as far as members are added to it and taken back (`plan.Plan`)."""

    session: Session
    queue: Queue
    statement: Statement
    members: list[Task]
    bounds: dict[str, None]

    def evaluation(self, member: Task) -> Evaluation:
        """Return the verdicts of all nodes for a member."""

    def rows(self, member: Task) -> Rows | None:
        """Return the nodes that a member may go to as things stand, None for all of them."""

    def is_allowed(self, member: Task) -> bool:
        """Ask whether the queue may take the member on."""

    def settle(self, member: Task, row: int) -> bool:
        """Let a member wait on a node."""

    def back_to(self, mark: int, members: int) -> None:
        """Undo everything after a mark, before which there were that many members."""


class Ways:
    """Adds members to a plan in every order and on every node, and looks once at each state that this leads to: members that nothing can tell apart are the same in it."""

    def __init__(
        self, plan: Arranged, least: int, done: Callable[[], bool], suits: Callable[[], bool] = lambda: True
    ) -> None:
        self.plan = plan
        self._least = least  # members without whom it is never enough
        self.done = done
        self.suits = suits
        self._left = MOST
        self._kinds: dict[Hashable, int] = {}
        self._known: dict[str, int] = {}
        self._seen: set[tuple[tuple[int, int], ...]] = set()

    def finds(self, members: Sequence[Task], placed: tuple[tuple[int, int], ...] = ()) -> bool:
        """Tell whether enough of some members can be added in a way that suits; if so, they stay."""
        plan = self.plan
        mark, count = plan.statement.checkpoint(), len(plan.members)
        for kind, member, rows in self._steps(members, len(placed)):
            for row in rows:
                state = tuple(sorted((*placed, (kind, row))))
                if state in self._seen:
                    continue
                self._left -= 1
                if self._left < 0:
                    plan.bounds[REACHED] = None
                    return False
                if plan.settle(member, row):
                    self._seen.add(state)
                    rest = [task for task in members if task is not member]
                    if self.suits() if self.done() else self.finds(rest, state):
                        return True
                plan.back_to(mark, count)
        return False

    def _steps(self, members: Sequence[Task], placed: int) -> list[tuple[int, Task, list[int]]]:
        """Return the first member of each kind with the nodes that it may be added on; nobody if those who may come to have a node are too few."""
        kinds = [self._kind(member) for member in members]
        firsts = {kind: members[kinds.index(kind)] for kind in dict.fromkeys(kinds)}
        hopeful = {kind: member for kind, member in firsts.items() if self._is_hopeful(member)}
        if placed + sum(kind in hopeful for kind in kinds) < self._least:
            return []
        steps = [(kind, member, self.rows(member)) for kind, member in hopeful.items()]
        # If nobody can be left out it does not matter who is first, unless somebody waits for another.
        alone = all(member.likeness[1] is None for member in members)
        return steps[:1] if alone and placed + len(members) <= self._least else steps

    def _kind(self, member: Task) -> int:
        """Return the number of what tells a member apart."""
        known = self._known.get(member.uid)
        if known is None:
            kind = kind_of(self.plan.session, member)
            known = self._known[member.uid] = self._kinds.setdefault(kind, len(self._kinds))
        return known

    def _is_hopeful(self, member: Task) -> bool:
        """Tell whether a node may come to take a member once others are placed."""
        return bool(self.plan.evaluation(member).possible(released=True).any())

    def rows(self, member: Task) -> list[int]:
        """Return the nodes on which a member passes everything as things stand."""
        plan = self.plan
        asked = subject.Subject(member, plan.queue)
        if not plan.is_allowed(member) or plan.session.pre_predicate(asked) is not None:
            return []
        within, mask = plan.rows(member), plan.evaluation(member).mask(released=True)
        found: list[int] = (np.flatnonzero(mask) if within is None else within[mask[within]]).tolist()
        return found


def is_only_one(session: Session, job: Job, members: Sequence[Task]) -> bool:
    """Tell whether all ways to place some members are alike: as many of them fit on a node as did before, wherever the others are."""
    if len({kind_of(session, member) for member in members}) != 1 or job.topology is not None or job.policies:
        return False
    return members[0].likeness[1] is None and not members[0].shape.constraint_class.constraints.has_volumes


def kind_of(session: Session, member: Task) -> Hashable:
    """Return what tells members of a job apart: what filters and scores see of them, and what minima count."""
    sub_job = None if member.sub_job is None else member.sub_job.key
    return member.priority, member.role, sub_job, likeness.of_member(session, member)
