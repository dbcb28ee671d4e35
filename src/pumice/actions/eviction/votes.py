"""What plugins say about victims: the only place where they are asked.

Which tier decides about a node, or in gang forms about a domain, follows from all its candidates asked together, before the first of them goes. Sets are then asked of that
tier alone: what it refuses falls through to none behind it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pumice.actions.eviction import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.units import Unit
    from pumice.model.hypernodes import HyperNode
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task

DOMAIN = -1  # stands for all nodes that a plan of a gang form takes from
TRIED = 32  # candidates of a domain of whom each is asked about alone before all of them are together


def ask(rules: Rules, claimant: Task, candidates: Sequence[Task], domain: HyperNode | None = None) -> list[Task]:
    """Ask which candidates may go, for a plan in one hyper-node or anywhere; the first tier that gives anybody decides."""
    return _decided(rules, claimant, candidates, domain)[1]


def _decided(
    rules: Rules, claimant: Task, candidates: Sequence[Task], domain: HyperNode | None
) -> tuple[int, list[Task]]:
    about = rules.asking(claimant, domain)
    return (-1, []) if about is None else rules.extension().decided(about, candidates)


def offered(rules: Rules, claimant: Task, record: NodeRecord, domain: HyperNode | None = None) -> list[Task]:
    """Return the victims that the plugins offer on a node, the first to go first."""
    candidates = [task for task in record.tasks.values() if rules.may_go(claimant, task)]
    if not candidates:
        return []
    ordered = rules.in_order(claimant, candidates)
    allowed = ask(rules, claimant, ordered, domain)
    return ordered if len(allowed) == len(ordered) else rules.in_order(claimant, allowed)


def first_tier(rules: Rules) -> int | None:
    """Return the first of several tiers that vote, if it judges each candidate by itself."""
    return rules.facts.first_tier_of_several if rules.session.shortcuts.deciding_tiers else None


class Votes:
    """Which tier decides about each node for one plan, and what it says of sets."""

    def __init__(self, rules: Rules, domain: HyperNode | None) -> None:
        self._rules = rules
        self._domain = domain
        self._tiers: dict[int, tuple[int, int]] = {}  # by node, with when that was found
        voting = [number for number, tier in enumerate(rules.extension().tiers) if tier]
        self._only = voting[0] if not rules.node_by_node and len(voting) == 1 else None
        self.first = first_tier(rules)

    def tier(self, member: Task, row: int, candidates: Sequence[Task], *, begun: bool) -> int:
        """Return which tier decides about the candidates of a node; once somebody goes there (`begun`) that stays so."""
        if self._only is not None:
            return self._only
        place = row if self._rules.node_by_node else DOMAIN
        known, changed = self._tiers.get(place), self._rules.session.cluster.changed
        if known is not None and (known[1] == changed or begun):
            return known[0]
        self._tiers[place] = (self._deciding(member, candidates, whole=place == DOMAIN), changed)
        return self._tiers[place][0]

    def _deciding(self, member: Task, candidates: Sequence[Task], *, whole: bool) -> int:
        rules = self._rules
        if whole:
            if self.first is not None and self.gives_somebody(self.first, member):
                return self.first
            candidates = rules.in_order(member, rules.candidates(member, self._domain))
        return _decided(rules, member, candidates, self._domain)[0]

    def gives_somebody(self, tier: int, member: Task) -> bool:
        """Tell whether a tier that judges each by itself gives one of the first candidates of a domain."""
        rules, domain = self._rules, self._domain
        rows = None if domain is None else frozenset(domain.rows.tolist())
        placed = (task for job in rules.sources(member) for task in job.tasks.values() if task.node is not None)
        inside = (task for task in placed if rows is None or (task.node is not None and task.node.row in rows))
        found = itertools.islice((task for task in inside if rules.may_go(member, task)), TRIED)
        return any(self.ask_tier(tier, member, [task]) for task in found)

    def ask_tier(self, tier: int, member: Task, candidates: Sequence[Task]) -> list[Task]:
        """Ask the plugins of one tier which candidates may go."""
        about = self._rules.asking(member, self._domain)
        return [] if about is None else self._rules.extension().of_tier(tier, about, candidates)

    def give(self, tier: int, member: Task, asked: Sequence[Task], going: Sequence[Unit]) -> bool:
        """Ask a tier about units of which some tasks are here: all of these must be given, of a job that goes whole so many that it would not keep its minimum: then the rest goes with them."""
        given = {task.uid for task in self.ask_tier(tier, member, asked)}
        if len(given) == len(asked) and not any(unit.whole and len(unit.tasks) > 1 for unit in going):
            return True
        for unit in going:
            part = [task for task in unit.tasks if task.uid in given]
            job = unit.tasks[0].job
            if len(part) == len(unit.tasks):
                continue
            if not part or not unit.whole or job is None or units.keeps_its_minimum(job, part):
                return False
        return True
