"""Claimants that are like the one before them: what is known ahead is what looking at every node for each of them would give."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from eviction_crowds import PLUGINS, crowd, throng
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import played
from drawing import drawn
from pumice.actions.eviction import equal_claimants, exhaustive, offers, search, successors, trimming
from pumice.actions.eviction.equal_claimants import EqualClaimants, NodeOrder

SEEDS = drawn(12, 4)
PREEMPT = [name for name in PLUGINS if name.startswith("preempt")]


def told(name):
    """Give everything that is sent and said in some throngs."""
    found = []
    for seed in range(SEEDS):
        desk, waves = throng(seed, name)
        found.append(played(desk, waves, told=lambda lines: [str(line) for line in lines]))
        assert not desk.scheduler.failures, desk.scheduler.failures
    return found


class Watched:
    """Some throngs under one policy, with an eye on every claimant that was served like the one before it."""

    def __init__(self, name):
        self.taken, self.back, self.wrong = 0, 0, []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(EqualClaimants, "place", self._checked(EqualClaimants.place))
            patched.setattr(NodeOrder, "put_back", self._counted(NodeOrder.put_back))
            self.told = told(name)

    def _checked(self, place):
        def checked(equals, plan, tasks, done):
            free = plan.place_freely(tasks[0])
            if free:
                plan.start_again()
            wanted = offers.Offers(plan.session, plan.rules).cheapest(plan, tasks[0])
            placed = place(equals, plan, tasks, done)
            if placed:
                self.taken += 1
                same = wanted is not None and (wanted.row, wanted.units) == (tasks[0].node.row, tuple(plan.units))
                plan.is_trimmed = False
                trimming.trim(plan)
                plan.is_trimmed = True
                if free or not same or tuple(plan.units) != wanted.units:
                    self.wrong.append((tasks[0].key, wanted, plan.units))
            return placed

        return checked

    def _counted(self, put_back):
        def counted(order, outlook, row):
            before = len(order.back)
            put_back(order, outlook, row)
            self.back += len(order.back) > before

        return counted


watched = functools.cache(Watched)  # several tests ask for the same


@pytest.mark.parametrize("name", PREEMPT)
def test_who_is_served_like_the_one_before_goes_where_it_would_go_anyway(name):
    assert watched(name).wrong == []


@pytest.mark.parametrize("name", PREEMPT)
def test_serving_claimants_like_the_one_before_decides_and_says_nothing_else(name, monkeypatch):
    quick = told(name)
    monkeypatch.setattr(EqualClaimants, "place", lambda *_: False)
    assert told(name) == quick


def test_claimants_are_served_like_the_one_before_on_fresh_nodes_and_on_such_as_were_taken():
    """A comparison that is never made proves nothing."""
    assert sum(watched(name).taken for name in PREEMPT) > 10 * SEEDS
    assert sum(watched(name).back for name in PREEMPT) > 5 * SEEDS // 3


def test_what_comes_in_vain_is_not_tried_forever(monkeypatch):
    tries = []
    up_to_date = EqualClaimants._up_to_date  # noqa: SLF001  how often it is tried shows nowhere else
    monkeypatch.setattr(EqualClaimants, "_up_to_date", lambda *args: tries.append(1) or up_to_date(*args))
    monkeypatch.setattr(EqualClaimants, "_is_full", lambda *_: False)
    desk, waves = throng(0, "preempt")
    played(desk, waves[:1])
    assert 0 < len(tries) <= equal_claimants.IN_VAIN


def test_nodes_come_in_the_order_in_which_they_would_be_found_one_by_one(monkeypatch):
    compared = []
    first = offers.Offers._first  # noqa: SLF001  compared wherever it is used

    def checked(market, *about):
        kind, plan, member, left, scores = about
        kind.refresh(plan, member)
        bounds, among, found = kind.bounds, left.copy(), []
        while (place := bounds.lowest(among, scores)) is not None:
            found.append(place)
            if not bounds.settled[place]:
                break
            among[place] = False
        compared.append(len(found))
        assert bounds.in_order(left, scores) == found
        return first(market, *about)

    monkeypatch.setattr(offers.Offers, "_first", checked)
    monkeypatch.setattr(exhaustive, "MOST", 0)
    for seed in range(SEEDS):
        crowd(seed, "preempt, no vote of gang").cycle()
    assert sum(count > 1 for count in compared) > 20


@pytest.mark.parametrize("raises", [False, True])
def test_a_search_that_broke_down_remembers_no_claimant(raises, monkeypatch):
    broken = []

    def noted(self, *args):
        broken.append(self._proposers.equals)
        if raises:
            raise ValueError
        return seek(self, *args)

    seek = search.Search._seek  # noqa: SLF001  whom a search knows shows nowhere else
    monkeypatch.setattr(search.Search, "_seek", noted)
    desk, waves = throng(0, "preempt")
    monkeypatch.setattr(type(desk.session().breakdowns), "has", lambda *_: True)
    played(desk, waves[:1])
    assert len({id(equals) for equals in broken}) == len(broken) > 1


@settings(max_examples=drawn(200), deadline=None)
@given(turns=st.lists(st.integers(0, 5), max_size=12))
def test_equal_jobs_give_those_that_wait_as_going_through_all_would(turns):
    cluster, alike = SimpleNamespace(returned=0), successors.EqualJobs()
    alike.listed += [SimpleNamespace(number=number, pending={"a": 1}) for number in range(6)]
    for number in turns:
        job = alike.listed[number]
        cluster.returned += not job.pending
        job.pending = {} if job.pending else {"a": 1}
        assert list(alike.waiting(cluster)) == [each for each in alike.listed if each.pending]


def test_the_cluster_counts_every_job_that_comes_to_wait_again():
    desk, waves = throng(0, "preempt")
    desk.feed(*waves[0])
    session = desk.session()
    job = next(iter(desk.cluster.pending_jobs.values()))
    task, record = next(iter(job.pending.values())), desk.cluster.nodes.records[0]
    before, statement = desk.cluster.returned, session.statement()
    statement.pipeline([task], [record])
    assert (job.pending, desk.cluster.returned) == ({}, before)
    statement.discard()
    assert (list(job.pending.values()), desk.cluster.returned) == ([task], before + 1)


class Costs:
    """What nodes cost and score, as an order of nodes asks for it."""

    def __init__(self, ranks, scores):
        self.ranks, self.scores = list(ranks), np.array(scores)
        self.settled = self.possible = self.left = np.ones(len(ranks), dtype=bool)
        self.kind, self.bounds, self.evaluation = self, self, None

    def key(self, row):
        return self.ranks[row], -int(self.scores[row]), row

    def in_order(self, left, _scores):
        return sorted(np.flatnonzero(left).tolist(), key=self.key)

    def rank(self, row):
        return self.ranks[row]


TAKEN = st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 2))
"""Whether a node that was taken may help again, and what it costs and scores then."""


@settings(max_examples=drawn(300, 60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5), st.lists(TAKEN, max_size=9))
def test_the_next_node_is_the_cheapest_of_those_left_and_those_that_may_help_again(nodes, turns):
    costs = Costs([rank for rank, _ in nodes], [score for _, score in nodes])
    order, left = NodeOrder(costs), list(range(len(nodes)))
    for again, rank, score in turns:
        first = order.first()
        assert first == min(map(costs.key, left), default=None)
        if first is None:
            break
        row = first[2]
        order.remove(first)
        left.remove(row)
        costs.ranks[row], costs.scores[row] = rank, score
        if again:
            order.put_back(costs, row)
            left.append(row)
