"""The cheapest offer, found by bounds, is the one that asking every node gives."""

from __future__ import annotations

import numpy as np
import pytest
from eviction_crowds import PLUGINS, crowd
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from drawing import drawn, seeds
from pumice.actions.eviction import node_bounds, offers, victim_sets
from pumice.framework import foresight

pytestmark = pytest.mark.usefixtures("node_by_node")
EXAMPLES = drawn(40, 3)


def plain(known, plan, member):
    """Ask every node."""
    evaluation = plan.evaluation(member)
    evaluation.mask(released=True)
    evaluation.refresh_scores()
    tasks = [task for job in plan.rules.sources(member) for task in job.tasks.values() if task.node is not None]
    rows = np.array(sorted({task.node.row for task in tasks}), dtype=np.int64)
    rows = rows[evaluation.curable(own_queue=plan.rules.own_queue)[rows]]
    within = plan.rows(member)
    rows = rows if within is None else np.intersect1d(rows, within)
    scores = foresight.rounded(evaluation.plain[rows] + evaluation.normalised(rows)).tolist() if len(rows) else []
    sets = victim_sets.VictimSets(plan, member, None, {})
    best = None
    for row, score in zip(rows.tolist(), scores, strict=True):
        found = sets.cheapest(row)
        if found is not None and (best is None or (found[0], -score, row) < best.rank):
            best = offers.Offer(row, found[1], (found[0], -score, row))
    return best


def compared(desk):
    """Run one cycle in which every answer of the known is held against the plain one; return how many were."""
    answers = []
    found = offers.Offers.cheapest

    def both(self, plan, member):
        if member.shape.request.unoffered:
            return found(self, plan, member)
        slow = plain(self, plan, member)
        fast = found(self, plan, member)
        assert fast == slow, f"{member.key}: {shown(fast)}, asking every node gives {shown(slow)}"
        answers.append(fast)
        return fast

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(offers.Offers, "cheapest", both)
        desk.cycle()
    assert not desk.scheduler.failures, desk.scheduler.failures
    return answers


def shown(offer):
    if offer is None:
        return "nothing"
    return f"{[[task.name for task in unit.tasks] for unit in offer.units]} on row {offer.row}, rank {offer.rank}"


@pytest.mark.parametrize("name", PLUGINS)
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_the_cheapest_offer_is_the_one_that_asking_every_node_gives(name, seed):
    compared(crowd(seed, name))


@pytest.mark.parametrize("name", ["preempt, no vote of gang", "reclaim, capacity"])
def test_it_is_found_with_the_tighter_bounds_left_out_too(name):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(node_bounds, "TWOS", 0)
        patched.setattr(node_bounds, "THREES", 0)
        asked = [answer for seed in seeds(30, 12, 15, 18, 27) for answer in compared(crowd(seed, name))]
    assert any(answer is not None for answer in asked)


def test_offers_of_every_kind_are_compared():
    """A comparison that never sees an offer proves nothing."""
    sizes = []
    for name in PLUGINS:
        asked = [answer for seed in seeds(16, 2, 11, 12, 14, 15) for answer in compared(crowd(seed, name))]
        made = [answer for answer in asked if answer is not None]
        assert len(made) >= 3, f"{name}: {len(made)} offers"
        sizes += [sum(len(unit.tasks) for unit in answer.units) for answer in made]
    assert sum(size > 1 for size in sizes) >= 20, sorted(sizes)
