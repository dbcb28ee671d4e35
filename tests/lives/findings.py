"""What the oracle says: one finding is one broken rule at one moment of a life."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PLAN = re.compile(r"^(\w+): (\S+/\S+): (\d+) pods are evicted for (\d+) members(?: in \S+)?: (.*)$")


@dataclass(frozen=True)
class Finding:
    """A broken rule: the check that says so, the cycle, and the numbers."""

    check: str
    cycle: int
    text: str

    def __str__(self):
        return f"cycle {self.cycle}: {self.check}: {self.text}"


@dataclass
class Plan:
    """One plan, as the scheduler's own record tells it, and what came of it."""

    action: str
    claimant: str
    count: int
    victims: list  # pods as they were before the cycle
    members: list = field(default_factory=list)  # pods that were nominated by it
    cycle: int = 0
    complete: bool = True  # whether every victim was evicted in that very cycle


def plans(cycle, before, after):
    """Read the plans of a cycle off its trace, as far as every victim is named."""
    found = []
    for line in cycle.trace:
        match = PLAN.match(line)
        if not match:
            continue
        action, claimant, number, members, listed = match.groups()
        listed = listed.partition("; plan ")[0]
        names = [name for name in listed.split(" and ")[0].split(", ") if name]
        victims = [before.pods[name] for name in names if name in before.pods]
        if " and " in listed:  # only the first ones are named
            named = {pod.uid for pod in victims}
            victims += [before.by_uid[uid] for uid in cycle.evicted if uid in before.by_uid and uid not in named]
        plan = Plan(action, claimant, int(members), victims, cycle=cycle.number)
        plan.complete = len(victims) == int(number) and all(pod.uid in cycle.evicted for pod in victims)
        plan.members = [pod for pod in after.members.get(claimant, []) if pod.nominated and pod.state == "pending"]
        found.append(plan)
    return found
