"""Why no hyper-node holds a job or one of its sub-groups, in numbers and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import subject
from pumice.framework.reasons import FitSummary
from pumice.model.native_groups import LabelTopology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.placing.domain_capacity import DomainCapacity
    from pumice.actions.placing.domain_goal import Goal
    from pumice.actions.placing.turns import Turn
    from pumice.model.hypernodes import HyperNode

NAMED = 3


def why_not(turn: Turn, goal: Goal, capacity: DomainCapacity) -> FitSummary:
    """Say why no domain was even tried."""
    errors = turn.session.findings.errors(turn.job)
    if goal.tasks[0].uid in errors:
        return errors[goal.tasks[0].uid]
    tree, limit = turn.session.topology.tree_of(turn.job), goal.limit
    tier = limit.tier if limit is not None else tree.root.tier
    offered = [domain for group in goal.groups for domain in group]
    near = offered or _unoffered(turn, goal, tier)
    text = _why_none(turn, goal, tier)
    if near:
        counts = capacity.counts(released=True)
        best = max(near, key=lambda each: (int(counts[each.index]), -each.index))
        most = int(counts[best.index])
        if offered or most < goal.need:
            text = f"0/{len(near)} {_called(turn, tier)} can hold the {goal.need} members that are needed"
            text += f": {best.name} can hold the most, {most}" if most else f". {_why_not_even_one(turn, goal, near)}"
    troubles = [f"HyperNode {name}: {problem}" for name, problem in list(tree.problems.items())[:NAMED]]
    return FitSummary(tree.root.rows.size, (), "; ".join([text.rstrip("."), *troubles]))


def _why_not_even_one(turn: Turn, goal: Goal, offered: Sequence[HyperNode]) -> FitSummary:
    """Say what the nodes of the domains say against the first task."""
    evaluation = turn.session.evaluate(subject.Subject(goal.tasks[0], turn.queue))
    if len(offered) == 1:
        return turn.inside(offered[0]).scope.failure(evaluation)
    return evaluation.failure(within=np.unique(np.concatenate([domain.rows for domain in offered])))


def _unoffered(turn: Turn, goal: Goal, tier: int) -> list[HyperNode]:
    """Return the domains that would be allowed if they had enough free in sum; none if it is running members that rule them out."""
    topology = turn.session.topology
    if goal.rows(turn):
        return []
    return [
        each
        for each in (turn.scope.domain or topology.tree_of(turn.job).root).below()
        if each.tier <= tier and each.rows.size
    ]


def _why_none(turn: Turn, goal: Goal, tier: int) -> str:
    """Say why no domain is offered at all."""
    topology = turn.session.topology
    rows = goal.rows(turn)
    if rows:
        nodes = [turn.session.cluster.nodes.records[row].name for row in rows]
        more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
        return f"no {_called(turn, tier, many=False)} holds all {len(nodes)} nodes that its members run on: {', '.join(nodes[:NAMED])}{more}"
    tree = topology.tree_of(turn.job)
    existing = int((tree.tiers <= tier).sum())
    if not existing and isinstance(turn.job.topology, LabelTopology):
        return f"no node has the label {turn.job.topology.label} that spec.schedulingConstraints names"
    if not existing:
        return f"there is no hyper-node of tier <= {tier}; the lowest is of tier {int(tree.tiers.min())}"
    return f"none of the {existing} {_called(turn, tier)} has the minResources of the group free"


def _called(turn: Turn, tier: int, *, many: bool = True) -> str:
    """Name the domains that a job may be in."""
    wish, plural = turn.job.topology, "s" if many else ""
    if isinstance(wish, LabelTopology):
        return f"value{plural} of node label {wish.label}"
    return f"hyper-node{plural} of tier <= {tier}"
