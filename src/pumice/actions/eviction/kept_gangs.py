"""Units that the first tier of plugins does not give away on nodes where it gives somebody else: as a rule gangs that it would have to break.

Where a second tier has a say, too, a gang may have to go on a node where the first gives nobody, so that it counts as one that could. Which nodes these are is found out by asking; without this it would be
found out anew for every member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actions.eviction import votes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pumice.actions.eviction.candidate_columns import Columns
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.unit_columns import Item
    from pumice.actions.eviction.units import Unit
    from pumice.model.task import Task


class Kept(msgspec.Struct, frozen=True):
    """A unit that is not given away, and somebody on its node who is: as long as there is one, the first tier decides there."""

    item: Item
    given: Task


class KeptGangs:
    """What the first tier was found to keep, in one action of one cycle: true until the node or a job on it changes, or until whoever is given in its place is protected."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._tier = votes.first_tier(rules)
        self._known: dict[Hashable, dict[int, Kept]] = {}
        self._is_active = (
            self._tier is not None
            and rules.node_by_node
            and rules.keeps_gangs
            and rules.facts.protections_go_by_pod_or_queue
        )

    def note(
        self, plan: Plan, member: Task, columns: Columns, row: int, *, refused: Iterable[Unit], ordered: Sequence[Task]
    ) -> None:
        """Take note of units that were refused for a member, each alone, on a node with these candidates."""
        if not self._is_active or self._tier is None or plan.tier(member, row, ordered) != self._tier:
            return
        here = {
            frozenset(task.uid for task in unit.tasks if task.node is not None and task.node.row == row)
            for unit in refused
        }
        given = plan.votes.ask_tier(self._tier, member, ordered) if here else []
        if not given:
            return
        known = self._known.setdefault(_kind(member), {})
        for place in range(int(columns.starts[row]), int(columns.ends[row])):
            item = columns.items[place]
            if item is not None and frozenset(task.uid for task in item.tasks) in here:
                known[place] = Kept(item, given[0])

    def places(self, plan: Plan, member: Task, columns: Columns) -> list[int]:
        """Return the places in the columns of the units that are known to be kept from a member."""
        known = self._known.get(_kind(member), {})
        told: dict[Hashable, bool] = {}
        found: list[int] = []
        for place, kept in list(known.items()):
            if place >= len(columns.items) or columns.items[place] is not kept.item:
                del known[place]
            elif self._is_given(plan, member, kept.given, told, columns):
                found.append(place)
        return found

    def _is_given(self, plan: Plan, member: Task, task: Task, told: dict[Hashable, bool], columns: Columns) -> bool:
        """Tell whether somebody can still go; of those whom queues protect alike one is asked about."""
        if task.uid in plan.excluded or not self._rules.reaches(member, task):
            return False
        group = columns.protections.likeness(task)
        if group not in told:
            told[group] = self._rules.protection(member, task) is None
        return told[group]


def _kind(member: Task) -> Hashable:
    """Return what functions that read nothing else know of a claimant."""
    job = member.job
    return ("", 0, member.priority) if job is None else (job.queue, job.priority, member.priority)
