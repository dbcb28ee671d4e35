"""What is said of evictions: for whom, by which action and rule, under which number; and, where nobody may go, who was considered and what refused them."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from typing import TYPE_CHECKING

from pumice.actions.eviction import votes
from pumice.framework.reasons import OfQueue
from pumice.framework.runs import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.model.task import Task

NAMED = 10
GROUPS = 5
LOOKED_AT = 1_000  # pods, to say of one claimant who was considered
MOST_KINDS = 20  # of claimants of which that is said in one action
NOBODY = "no pod may be evicted for it"
NOTHING_HELPS = "no set of pods that may be evicted makes enough room"


def number(plan: Plan) -> str:
    """Give a plan its number, and every eviction of it the whole story; returns what the record says of the plan."""
    count = plan.session.record.next_plan()
    by = judges(plan.rules)
    for run in plan.statement.runs:
        if run.step is Step.EVICT:
            run.why = f"{run.reason} for pod {plan.claimant.key} of group {plan.job.key} in queue {plan.job.queue}{by}, plan {count}"
    victims = plan.victims
    listed = ", ".join(task.key for task in victims[:NAMED])
    more = f" and {len(victims) - NAMED} more" if len(victims) > NAMED else ""
    where = "" if plan.domain is None else f" in {plan.domain.name}"
    head = f"{len(victims)} pods are evicted for {len(plan.members)} members{where}: {listed}{more}"
    held = plan.rules.hold_for // 1_000_000
    told = f"{head}; plan {count}{by}, for {plan.claimant.key} first; the room is held for {held} s after they are gone"
    return plan.with_bounds(told)


def judges(rules: Rules) -> str:
    """Name the plugins whose rules say who may go."""
    return f" by the rules of {', '.join(rules.plugins)}" if rules.plugins else ""


def considered(rules: Rules, claimant: Task) -> str:
    """Say who was considered for a claimant and what refused them, the most frequent first."""
    refusals: Counter[str] = Counter()
    left: list[Task] = []
    looked_at = list(itertools.islice(_candidates(rules, claimant), LOOKED_AT + 1))
    for task in looked_at[:LOOKED_AT]:
        reason = _refusal(rules, claimant, task)
        if reason is None:
            left.append(task)
        else:
            refusals[reason if isinstance(reason, OfQueue) else reason.replace(task.key, "the pod")] += 1
    if left:
        allowed = len(votes.ask(rules, claimant, rules.in_order(claimant, left)))
        refusals[f"refused{judges(rules)}"] += len(left) - allowed
        refusals["offered, but of no help"] += allowed
    listed = [f"{count} {reason}" for reason, count in refusals.most_common() if count]
    if not listed:
        return "nobody runs whom it could ask for"
    more = [f"and {len(listed) - GROUPS} more reasons"] if len(listed) > GROUPS else []
    first = "the first " if len(looked_at) > LOOKED_AT else ""
    return f"of {first}{refusals.total()} pods considered: {'; '.join([*listed[:GROUPS], *more])}"


def _candidates(rules: Rules, claimant: Task) -> Iterator[Task]:
    """Give those that the action may look at, by name, so that the same pods are told of whatever the order of lists."""
    # Most jobs of a full cluster wait, and have nobody to be looked at.
    sources = [job for job in rules.sources(claimant) if len(job.pending) < len(job.tasks)]
    for job in sorted(sources, key=operator.attrgetter("key")):
        tasks = job.tasks.values()
        for task in tasks if len(tasks) == 1 else sorted(tasks, key=operator.attrgetter("name")):
            if task.status in rules.statuses and rules.concerns(claimant, task):
                yield task


def _refusal(rules: Rules, claimant: Task, candidate: Task) -> str | None:
    """Say why the action itself does not take a candidate; None if the plugins are to be asked."""
    if claimant.best_effort and not candidate.best_effort:
        return "with requests, for a pod without"
    return rules.protection(claimant, candidate)
