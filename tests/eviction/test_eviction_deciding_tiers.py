"""Where several tiers of plugins have a say about victims: what the first was found to keep is not asked about again, and nobody can tell."""

from __future__ import annotations

import random

import msgspec
import pytest
from eviction_crowds import configuration

from builders import Desk, group, node, played, pod, priority_class, queue
from drawing import seeds
from pumice.actions.eviction import votes
from pumice.actions.eviction.kept_gangs import KeptGangs
from pumice.framework import shortcuts

LONG_WAY = msgspec.structs.replace(shortcuts.ALL, deciding_tiers=False)
POLICIES = {
    "reclaim": configuration("reclaim, capacity").replace(", {name: pdb}", ""),
    "reclaim with budgets": configuration("reclaim, capacity"),
    "reclaim in a tree": configuration("reclaim, tree"),
    "reclaim by proportion": configuration("reclaim, proportion"),
    "preempt": configuration("preempt, gang falls through"),
    "gangreclaim": configuration("reclaim, capacity").replace("allocate, reclaim", "allocate, gangreclaim"),
    "gangpreempt": configuration("preempt, gang falls through").replace("allocate, preempt", "allocate, gangpreempt"),
}


def estate(seed, policy, taken):
    """Return nodes full of gangs that can spare few or nobody, in queues about their dues, and waves of unequal gangs that ask."""
    pick = random.Random(seed)  # noqa: S311  a world, not a secret
    desk = Desk(POLICIES[policy], queues=("root",), taken=taken)
    desk.feed(*(priority_class(f"p{value}", value) for value in (5, 10, 100)))
    own = "asking" if "reclaim" in policy else "q0"
    nodes = pick.randint(3, 8)
    for name in dict.fromkeys(("q0", "q1", own)):
        desk.feed(queue(name, weight=1, deserved={"cpu": str(pick.randint(2, 4 * nodes))}))
    places = [at for at in range(nodes) for _ in range(pick.randint(5, 8))]
    pick.shuffle(places)
    desk.feed(*(node(f"n{at}", "8", "40Gi", "30") for at in range(nodes)))
    while places:
        key, size = f"old{len(places):02}", pick.randint(1, 6)
        here, places = places[:size], places[size:]
        spec = {"priorityClassName": pick.choice(["p5", "p5", "p10"]), "queue": pick.choice(["q0", "q1"])}
        minimum = pick.choice([1, len(here), len(here), max(1, len(here) - 1)])
        desk.feed(group(key, minimum, phase="Running", **spec))
        critical = {"priorityClassName": "system-node-critical"} if pick.random() < 0.1 else {}
        desk.feed(*(pod(f"{key}-{i}", key, cpu="1", node=f"n{at}", **critical) for i, at in enumerate(here)))
    return desk, [_claimants(pick, wave, own) for wave in range(2)]


def _claimants(pick, wave, own):
    found = []
    for index in range(pick.randint(2, 5)):
        key, size = f"new{wave}-{index}", pick.randint(1, 3)
        found.append(group(key, size, phase="Inqueue", priorityClassName="p100", queue=own))
        found += [pod(f"{key}-{i}", key, cpu=f"{pick.randint(5, 30)}00m", memory="1Gi") for i in range(size)]
    return found


def lived(seed, policy, taken):
    desk, waves = estate(seed, policy, taken)
    return played(desk, waves)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("node_by_node")
def test_nobody_can_tell_that_what_a_tier_keeps_is_not_asked_about_again(policy, monkeypatch):
    known, told, places, gives = [], [], KeptGangs.places, votes.Votes.gives_somebody
    monkeypatch.setattr(KeptGangs, "places", lambda *given: known.append(places(*given)) or known[-1])
    monkeypatch.setattr(votes.Votes, "gives_somebody", lambda *given: told.append(gives(*given)) or told[-1])
    evicted = 0
    for seed in seeds(12, 0, 2, 5, 6):
        fast, slow = (lived(seed, policy, taken) for taken in (shortcuts.ALL, LONG_WAY))
        assert fast == slow, seed
        evicted += str(fast[0]).count("Evict(")
    assert evicted >= 10
    if policy == "reclaim with budgets":
        assert not any(known), "what budgets allow changes with every victim"
    elif policy.startswith("gang"):
        assert sum(told) >= 5
    else:
        assert sum(map(bool, known)) >= 5
