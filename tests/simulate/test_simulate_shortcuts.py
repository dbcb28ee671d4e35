"""What the simulator and planned starts spare themselves changes nothing: random traces with and without it."""

from __future__ import annotations

import random

import pytest
from msgspec import convert, structs
from simulating import EVICTING, GREEDY, SECOND, simulated

from drawing import drawn
from pumice.actions.placing.searching import Searching
from pumice.api import names
from pumice.api.affinity import Affinity
from pumice.framework.engine import Engine
from pumice.plugins.timeline import forecasts
from pumice.plugins.timeline.plugin import Timeline
from pumice.simulate import swf
from pumice.simulate.trace import Members, Trace, TraceJob, ordered, pod_spec

PLANNED = """
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: timeline
    arguments: {{timeline.policy: {policy}, timeline.depth: {depth}, timeline.window: 0}}
"""
SHARED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
POLICIES = {
    "greedy": GREEDY,
    "easy": PLANNED.format(policy="easy", depth=1),
    "deep": PLANNED.format(policy="easy", depth=3),
    "conservative": PLANNED.format(policy="conservative", depth=1),
}


def random_trace(seed, queues=("default",)):
    """Make gangs for nodes of three sizes: some with unequal members, some that may grow, some that say nothing of how long they run, some larger than all nodes."""
    chance = random.Random(seed)  # noqa: S311
    made, now = [], 0
    for number in range(1, 31):
        now += chance.choice((0, 0, 5, 20, 40))
        run = chance.randrange(5, 120)
        sizes = [chance.randrange(1, 5)] if chance.random() < 0.7 else [chance.randrange(1, 5), chance.randrange(1, 5)]
        members = tuple(
            Members(
                count=chance.randrange(1, 5),
                spec=pod_spec({"cpu": str(size)}, scheduler=names.SCHEDULER),
                run_time=run * SECOND,
            )
            for size in sizes
        )
        count = sum(each.count for each in members)
        estimate = chance.choice((run, run, run + 30, max(1, run - 20), None))
        job = TraceJob(
            number=number,
            name=f"job-{number}",
            submit=now * SECOND,
            members=members,
            min_member=count if chance.random() < 0.8 else max(1, count - 1),
            run_time=run * SECOND,
            estimate=None if estimate is None else estimate * SECOND,
            queue=queues[number % len(queues)],
            line=number,
        )
        made.append(job)
    return Trace(source="made", jobs=ordered(made), cluster=_machine(chance))


def _machine(chance):
    """Make a few nodes of different sizes."""
    found = swf.machine(6, "gang")
    return [
        (kind, structs.replace(each, status=structs.replace(each.status, allocatable=_offered(each, chance))))
        for kind, each in found
    ]


def _offered(node, chance):
    return {**node.status.allocatable, "cpu": str(chance.choice((2, 4, 8)))}


def decided(result, *, told=True):
    """Return all that was decided: what was written of the moment in passing is left out."""
    return [(each.start, each.end, each.runs, each.forecasts if told else ()) for each in result.jobs]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(drawn(12, 1)))
def test_cycles_that_could_only_confirm_are_not_missed(name, seed, monkeypatch):
    spared = simulated(random_trace(seed), POLICIES[name])
    monkeypatch.setattr(Engine, "is_settled", lambda _self, _session: False)
    confirmed = simulated(random_trace(seed), POLICIES[name])
    assert decided(spared) == decided(confirmed)
    assert spared.cycles < confirmed.cycles + (name != "greedy")


@pytest.mark.parametrize("seed", range(drawn(4, 2)))
def test_evictions_are_always_followed_by_a_cycle(seed, monkeypatch):
    spared = simulated(random_trace(seed), EVICTING)
    monkeypatch.setattr(Engine, "is_settled", lambda _self, _session: False)
    confirmed = simulated(random_trace(seed), EVICTING)
    assert (decided(spared), spared.cycles) == (decided(confirmed), confirmed.cycles)


@pytest.mark.parametrize("name", ["easy", "deep", "conservative"])
@pytest.mark.parametrize("seed", range(drawn(12, 1)))
def test_starts_planned_by_amounts_are_those_that_a_search_finds(name, seed, monkeypatch):
    monkeypatch.setattr(forecasts, "MOST", 1 << 30)
    by_amounts = simulated(random_trace(seed), POLICIES[name])
    asked = []
    monkeypatch.setattr(Searching, "_amounts_decide", lambda _self, who: bool(asked.append(who)))
    searched = simulated(random_trace(seed), POLICIES[name])
    assert decided(by_amounts) == decided(searched)
    assert set(asked) == {"timeline"}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", ["easy", "conservative"])
@pytest.mark.parametrize("seed", range(drawn(12, 1)))
def test_starts_are_planned_the_same_if_only_pods_on_nodes_with_room_are_moved(name, apart, seed, monkeypatch):
    """Half of the worlds have jobs that want a zone for themselves: where they are, or will be, all nodes count."""
    monkeypatch.setattr(forecasts, "MOST", 1 << 30)
    config = POLICIES[name] + "- plugins: [{name: predicates}, {name: nodeorder}]\n"
    trace = random_trace(seed)
    jobs = [_apart(job) if apart and job.number % 4 == 0 else job for job in trace.jobs]
    trace = Trace(source="made", jobs=jobs, cluster=_zones(trace.cluster))
    rows, asked = Searching._rows, []  # noqa: SLF001  which jobs it is asked about shows nowhere else
    monkeypatch.setattr(Searching, "_rows", lambda *args: asked.append(rows(*args)) or asked[-1])
    some = simulated(trace, config)
    assert any(each is not None and not each.all() for each in asked)
    assert any(each is None for each in asked) == apart
    monkeypatch.setattr(Searching, "_rows", lambda *_: None)
    assert decided(some) == decided(simulated(trace, config))


def _zones(cluster):
    """Put nodes into zones of two."""
    return [
        (
            kind,
            structs.replace(
                node, metadata=structs.replace(node.metadata, labels={**node.metadata.labels, "zone": f"z{i // 2}"})
            ),
        )
        for i, (kind, node) in enumerate(cluster)
    ]


def _apart(job):
    """Return a job of one pod that shares its zone with nobody."""
    anybody = {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}
    rule = {"labelSelector": anybody, "topologyKey": "zone"}
    rules = convert({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}, Affinity)
    first = job.members[0]
    members = (structs.replace(first, count=1, spec=structs.replace(first.spec, affinity=rules)),)
    return structs.replace(job, members=members, min_member=1)


@pytest.mark.parametrize("name", ["easy", "deep", "conservative"])
@pytest.mark.parametrize("seed", range(drawn(6, 1)))
def test_who_is_not_looked_at_for_want_of_room_is_planned_and_told_the_same(name, seed, monkeypatch):
    rested, asked = [], Timeline.stands
    monkeypatch.setattr(
        Timeline, "stands", lambda self, dormant: asked(self, dormant) and not rested.append(len(dormant))
    )
    left_out = simulated(random_trace(seed), POLICIES[name])
    looked_at = simulated(random_trace(seed), POLICIES[name], plain=True)
    # Groups are written at a pace, so that who is looked at again at the same instant may be told sooner what is new.
    told = name == "conservative"
    assert decided(left_out, told=told) == decided(looked_at, told=told)
    assert sum(rested) > 0


EVERYBODY = {**POLICIES, "evicting": EVICTING, "shared": SHARED}


@pytest.mark.parametrize("name", ["greedy", "easy", "conservative", "evicting", "shared"])
@pytest.mark.parametrize("seed", range(drawn(12, 1)))
def test_no_shortcut_changes_what_is_decided_or_what_is_told_in_the_end(name, seed):
    """Gangs that are too large for all nodes together are left out of cycles here; who never starts is told why all the same."""
    planned = name in ("easy", "conservative")  # and told at a pace
    trace = random_trace(seed, ("default",) if planned else ("red", "blue", "default"))
    quick, plain = simulated(trace, EVERYBODY[name]), simulated(trace, EVERYBODY[name], plain=True)
    assert decided(quick, told=not planned) == decided(plain, told=not planned)
    left = [[(each.job, each.reason) for each in side.jobs if each.start is None] for side in (quick, plain)]
    assert left[0] == left[1]
