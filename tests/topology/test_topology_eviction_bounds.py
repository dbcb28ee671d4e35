"""What a plan costs in a hyper-node at the least, and where none can stand: held against every set of victims that leaves gangs whole or takes them entirely."""

from __future__ import annotations

import itertools
import random

import pytest
from topology_world import hyper_node

from builders import Desk, group, node, pod, priority_class
from drawing import seeds
from pumice.actions.eviction import asking, gang_rules, ranking, units
from pumice.actions.eviction.domain_bounds import DomainBounds
from pumice.model.statuses import ALLOCATED_LIKE

CONFIG = """
actions: "gangpreempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"""
SEEDS = seeds(200, *range(12))
RACKS = {"rack-0": ["n0", "n1"], "rack-1": ["n2", "n3"]}


class World:
    """Racks full of pods of small jobs, and a gang that asks for a rack."""

    def __init__(self, seed, *, alike=False, kept=True):
        pick = random.Random(seed)  # noqa: S311  a world, not a secret
        self.kept = kept
        desk = self.desk = Desk(CONFIG if kept else f"compatibility: volcano\n{CONFIG}").feed(
            *(priority_class(f"p{value}", value) for value in (1, 5, 50))
        )
        for name, members in RACKS.items():
            desk.feed(hyper_node(name, 1, members))
        used = dict.fromkeys(["n0", "n1", "n2", "n3", "absent"], 0)
        for index in range(4 if alike else pick.randint(2, 4)):
            size = 2 if alike else pick.randint(1, 3)
            least = size if alike else pick.choice([0, 1, size])
            rank = "p1" if alike else pick.choice(["p1", "p5"])
            desk.feed(group(f"j{index}", least, phase="Running", priorityClassName=rank, created=index))
            for i in range(size):
                cpu = 1 if alike else pick.randint(1, 3)
                where = f"n{index}" if alike else pick.choice(list(used))
                used[where] += cpu
                memory = "1Gi" if alike else pick.choice(["1Gi", "2Gi"])
                desk.feed(pod(f"j{index}-{i}", f"j{index}", cpu=str(cpu), memory=memory, node=where))
        for name in ("n0", "n1", "n2", "n3"):
            desk.feed(node(name, str(used[name] + (0 if alike else pick.choice([0, 0, 1]))), "16Gi"))
        size = 2 if alike else pick.randint(1, 3)
        least, policy = size if alike else pick.randint(1, size), {"mode": "hard", "highestTierAllowed": 1}
        desk.feed(group("asks", least, phase="Inqueue", priorityClassName="p50", networkTopology=policy))
        cpu = 1 if alike else pick.randint(1, 4)
        desk.feed(*(pod(f"asks-{i}", "asks", cpu=str(cpu), memory="1Gi") for i in range(size)))
        self.session = desk.session()
        self.rules = gang_rules.GangPreempt(self.session)
        self.members = [desk.task(f"asks-{i}") for i in range(size)]
        self.job = self.members[0].job
        self.bounds = DomainBounds(self.session, self.rules, self.job, self.members)
        tree = self.session.topology.tree_of(self.job)
        self.domains = [domain for domain in tree.domains if domain.name in RACKS]
        self.number = asking.number_lacking(self.job)

    def lacks(self, domain):
        """Give by how much the free room of a rack falls short of the members, resource by resource."""
        need = sum(task.shape.request.vector for task in self.members[: self.number])
        free = self.session.cluster.nodes.future_idle_at(domain.rows).clip(min=0).sum(axis=0)
        return need - free

    def sets(self, domain):
        """Give every set of jobs' pods that gives room enough in a rack, each job losing no more than it can spare or all it has."""
        own = [job for job in self.session.cluster.jobs.values() if job is not self.job]
        lacks, rows = self.lacks(domain), domain.rows.tolist()
        for parts in itertools.product(*(list(self._parts(job)) for job in own)):
            gone = [task for part in parts for task in part]
            here = [task.shape.request.vector for task in gone if task.node.row in rows]
            if here and (sum(here) >= lacks).all():
                yield gone

    def _parts(self, job):
        placed = [task for task in job.tasks.values() if task.status in ALLOCATED_LIKE]
        for size in range(len(placed) + 1):
            if size == len(placed) or not self.kept or units.keeps_its_minimum(job, placed[:size]):
                yield from itertools.combinations(placed, size)

    def rank(self, gone):
        """Rank victims as plans are ranked, a job that loses everything as one."""
        made = []
        for job in {task.job.key: task.job for task in gone}.values():
            lost = tuple(task for task in gone if task.job is job)
            whole = self.kept and not units.keeps_its_minimum(job, lost)
            made += [units.whole_job(job, lost)] if whole else [units.Unit((task,), whole=False) for task in lost]
        return ranking.rank(self.session, made)

    def cheapest(self, domain):
        """Give what the cheapest set costs that gives back all that a rack lacks in sum; None if there is none."""
        return min(map(self.rank, self.sets(domain)), default=None)


@pytest.mark.parametrize("kept", [True, False])
def test_no_set_of_victims_that_gives_room_enough_costs_less_than_the_bound(kept):
    compared = 0
    for seed in SEEDS:
        world = World(seed, kept=kept)
        for domain in world.domains:
            if world.bounds.is_hopeless(domain):
                continue
            bound, best = world.bounds.least_cost(domain), world.cheapest(domain)
            assert (bound is None) == (world.lacks(domain) <= 0).all(), seed
            if bound is not None and best is not None:
                assert bound[:4] <= best, seed
                assert bound[0] == best[0] or best[0] > bound[0], seed
                compared += 1
    assert compared > len(SEEDS) // 3


def test_a_rack_is_hopeless_only_if_nothing_that_goes_there_gives_room_enough():
    said = []
    for seed in SEEDS:
        world = World(seed)
        for domain in world.domains:
            hopeless = world.bounds.is_hopeless(domain)
            assert not (hopeless and world.number == 1 and fits_one(world, domain, world.sets(domain))), seed
            said.append(hopeless)
    assert True in said
    assert False in said


def fits_one(world, domain, ways):
    """Tell whether one member fits on some node of a rack once one of some sets has gone."""
    request = world.members[0].shape.request
    for gone in ways:
        for row in domain.rows.tolist():
            freed = sum(task.shape.request.vector for task in gone if task.node.row == row)
            room = world.session.cluster.nodes.future_idle_at(row) + freed
            if (room[request.asked] >= request.needed).all():
                return True
    return False


def test_a_rack_is_worthwhile_if_it_would_have_enough_in_sum_with_everybody_gone():
    for seed in SEEDS:
        world = World(seed)
        marked = dict(
            zip(world.session.topology.tree_of(world.job).domains, world.bounds.worthwhile().tolist(), strict=True)
        )
        for domain in world.domains:
            everybody = [task for task in world.desk.cluster.tasks.values() if task.node and task.job is not world.job]
            here = [task for task in everybody if task.node.row in domain.rows.tolist()]
            freed = sum((task.shape.request.vector for task in here), start=0 * world.lacks(domain))
            free = world.session.cluster.nodes.future_idle_at(domain.rows).clip(min=0).sum(axis=0)
            assert marked[domain] == (free + freed >= asking.least_need(world.job, world.members)).all(), seed


@pytest.mark.parametrize("seed", [0, 1])
def test_where_gangs_are_alike_the_bound_is_what_the_cheapest_costs_but_for_the_loss(seed):
    world = World(seed, alike=True)
    for domain in world.domains:
        bound, best = world.bounds.least_cost(domain), world.cheapest(domain)
        assert bound[:3] == best[:3]
        assert best[1:3] == (True, 2)
        assert 0 < bound[3] < best[3]
        assert bound[4:] == (domain.tier, domain.index)
