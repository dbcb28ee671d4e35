"""The simulation points, for plugins that keep a state of their own about who is on which node.

Built-in plugins need none: their filters are asked inside the plan. In topology-aware mode a plugin that registers here is told who leaves and comes back
while a plan is tried out, and is asked about the claimant on its node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework import subject
from pumice.framework.runs import Step

if TYPE_CHECKING:
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Simulation:
    """Passes what a plan does on to the plugins that simulate."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._against: dict[str, None] = {}  # whose going, by uid, a plugin spoke against
        session.add_handler(self.follow)

    def follow(self, run: Run, direction: int) -> None:
        """Tell of tasks that are taken out of the way, or put back."""
        if run.step is not Step.EVICT or run.claimant is None:
            return
        session = self._session
        told = session.simulate_add_task if direction > 0 else session.simulate_remove_task
        for task, record in zip(run.tasks, run.sources, strict=True):
            if record is None:
                continue
            reason = told(run.claimant, task, record)
            if direction > 0:
                self._against.pop(task.uid, None)
            elif reason is not None:
                self._against[task.uid] = None

    def refuses(self, queue: Queue, member: Task, record: NodeRecord) -> bool:
        """Ask whether anything speaks against a member on a node."""
        session = self._session
        if self._against:
            return True
        if session.simulate_allocatable(queue, subject.equal_tasks([member], waits=True)) is not None:
            return True
        return session.simulate_predicate(member, record) is not None


def of(session: Session) -> Simulation:
    """Return the simulation of a session; there is one, or plugins would be told everything twice."""
    known = session.scratch.get("simulation")
    if not isinstance(known, Simulation):
        known = session.scratch["simulation"] = Simulation(session)
    return known


def wanted(session: Session) -> bool:
    """Tell whether any plugin simulates."""
    points = (
        session.simulate_add_task,
        session.simulate_remove_task,
        session.simulate_predicate,
        session.simulate_allocatable,
    )
    return any(point.active for point in points)
