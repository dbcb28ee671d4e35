"""Which of several sets of victims is taken: how plans, offers of nodes and sets on one node are ranked, exactly.

The lowest highest priority comes first, then a set that breaks no gang, then the fewest victims, then the fewest jobs that end, being left without their minimum, then the
smallest loss. A victim's loss is its largest share of the cluster's total in any resource but pods. Losses are whole numbers over one denominator, the least that all totals
divide, so sums are exact and ties are ties; a job that ends is more than any loss, so that both are one number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.actions.eviction.units import Unit
    from pumice.framework.session import Session
    from pumice.model.shape import Shape
    from pumice.model.task import Task

# Highest priority among the victims (of the job, of the pod), whether a gang is broken, how many victims, the jobs that end with their loss.
Rank = tuple[tuple[int, int], bool, int, int]

# Pods of one plan, and jobs that end with it, are fewer than two to the power of this.
PODS_BITS = 20


class Losses:
    """What each pod's going costs, for the nodes of one cycle."""

    def __init__(self, session: Session) -> None:
        table = session.cluster.nodes
        totals: list[int] = table.allocatable[: table.count].sum(axis=0).tolist()
        self.totals = {column: total for column, total in enumerate(totals) if total > 0 and column != PODS}
        self.denominator = math.lcm(*self.totals.values())
        # More than so many pods lose together.
        self.end_of_a_job = self.denominator << PODS_BITS
        self._known: dict[int, int] = {}

    def of(self, shape: Shape) -> int:
        """Return the loss of one pod of a shape, in parts of the denominator."""
        loss = self._known.get(shape.serial)
        if loss is None:
            amounts = shape.request.vector.tolist()
            loss = self._known[shape.serial] = max([self.share(c, amounts[c]) for c in self.totals], default=0)
        return loss

    def share(self, column: int, amount: int) -> int:
        """Return which part of a resource's total an amount is, in parts of the denominator; of pods, and of what nobody offers, none."""
        total = self.totals.get(column)
        return amount * (self.denominator // total) if total else 0

    def sum(self, tasks: Iterable[Task], *, ends: bool = False) -> int:
        """Return the loss of several pods, with which a job may end."""
        return sum(self.of(task.shape) for task in tasks) + (self.end_of_a_job if ends else 0)


def losses(session: Session) -> Losses:
    """Return the losses of a cycle, worked out once."""
    kept = session.scratch.get("losses")
    if not isinstance(kept, Losses):
        kept = session.scratch["losses"] = Losses(session)
    return kept


def rank(session: Session, taken: Sequence[Unit]) -> Rank:
    """Rank the victims of a plan or of an offer."""
    tasks = [task for unit in taken for task in unit.tasks]
    breaks, known = any(unit.breaks for unit in taken), losses(session)
    return (
        max(unit.priority for unit in taken),
        breaks,
        len(tasks),
        sum(known.sum(unit.tasks, ends=unit.ends) for unit in taken),
    )
