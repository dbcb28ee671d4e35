"""Pods beyond the minimum of their jobs: what is given ahead of turns is what the turns would have given."""

from __future__ import annotations

import re
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue, said_of
from drawing import drawn
from pumice.actions.placing import rounds, surplus, task_runs
from pumice.framework.plugin import Action

ANYTHING = st.randoms(use_true_random=True)
PLACED = re.compile(r"(allocate: \S+): (\d+) pods placed, (\d+) left")
GPU = "nvidia.com/gpu"


def configuration(pick):
    """Any plugins that order or share, with some that choose nodes."""
    first = ["{name: priority}", "{name: gang}"]
    second = [
        pick.choice(["{name: proportion}", "{name: capacity}", "{name: drf}", "{name: drf}, {name: proportion}", ""]),
        "{name: predicates}",
        pick.choice(["{name: nodeorder}", "{name: binpack}", "{name: nodeorder}, {name: binpack}"]),
        pick.choice(["", "", "", "{name: task-topology}", "{name: resourcequota}"]),
    ]
    actions = pick.choice(["allocate", "enqueue, allocate, backfill", "allocate, preempt", "allocate, reclaim"])
    tiers = "".join(f"- plugins: [{', '.join(filter(None, each))}]\n" for each in (first, second))
    return f'actions: "{actions}"\ntiers:\n{tiers}'


def asked(pick):
    """What a pod asks for; now and then with what makes it mind other pods."""
    more = {"ports": [{"hostPort": 80}]} if pick.random() < 0.05 else {}
    if pick.random() < 0.1:
        more["nodeSelector"] = {"zone": "a"}
    if pick.random() < 0.2:
        rule = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": pick.choice("xy")}}}
        kind = pick.choice(["podAffinity", "podAntiAffinity"])
        more["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    if pick.random() < 0.1:
        more["topologySpreadConstraints"] = [
            {
                "maxSkew": pick.randint(1, 2),
                "topologyKey": "zone",
                "whenUnsatisfiable": pick.choice(["DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    if pick.random() < 0.05:
        more["schedulingGates"] = [{"name": "elsewhere"}]
    requests = {GPU: "1"} if pick.random() < 0.1 else {}
    cpu, memory = pick.choice(["100m", "250m", "500m", "1"]), pick.choice([None, "100Mi", "300Mi"])
    return {"cpu": cpu, "memory": memory, "requests": requests, "labels": {"app": pick.choice("xy")}, **more}


def arrivals(pick, wave):
    """Jobs with more pods than they need, most of them equal."""
    for job in range(pick.choice([1, 1, 2, 3, 5])):
        name, count = f"j{wave}-{job}", pick.choice([1, 3, 8, 20, 40])
        yield group(
            name,
            pick.choice([0, 1, 1, 2, count]),
            queue=pick.choice(["default", "default", "other"]),
            created=job,
            priorityClassName=pick.choice(["", "", "high"]),
        )
        kinds = [asked(pick) for _ in range(pick.choice([1, 1, 2]))]
        for i in range(count):
            yield pod(f"{name}-w-{i}", name, **kinds[i * len(kinds) // count])


def world(pick):
    """The objects of each cycle."""
    limits = {"capability": {"cpu": str(pick.randint(1, 6))}} if pick.random() < 0.3 else {}
    first = [queue("other", weight=pick.randint(1, 3), **limits), priority_class("high", 10), group("old", 1)]
    count = pick.randint(1, 6)
    for i in range(count):
        more = {"nvidia.com__gpu": "4"} if pick.random() < 0.3 else {}
        cpu, pods = str(pick.randint(1, 8)), str(pick.choice([3, 110]))
        first.append(node(f"n{i}", cpu=cpu, memory="4Gi", pods=pods, labels={"zone": pick.choice("ab")}, **more))
    for i in range(pick.randint(0, 6)):
        where, labels = f"n{pick.randrange(count)}", {"app": pick.choice("xy")}
        first.append(pod(f"old-w-{i}", "old", cpu="500m", node=where, labels=labels, deleting=pick.random() < 0.4))
    return [[*first, *arrivals(pick, 0)], *([*arrivals(pick, wave)] for wave in range(1, pick.randint(1, 3)))]


def merged(trace):
    """Add up what was placed in turns of a job that follow each other."""
    lines = []
    for line in trace:
        found = PLACED.fullmatch(line)
        if found and lines and isinstance(lines[-1], list) and lines[-1][0] == found[1]:
            lines[-1][1:] = [lines[-1][1] + int(found[2]), int(found[3])]
        else:
            lines.append([found[1], int(found[2]), int(found[3])] if found else line)
    return lines


def decide(text, waves):
    """Play the waves, a cycle each; give what was sent and what was said."""
    desk = Desk(text)
    said = []
    for wave in waves:
        desk.feed(*wave)
        record = desk.cycle()
        said.append([*merged(record.trace()), *(said_of(record, key) for key in sorted(desk.cluster.jobs))])
    return [repr(effect) for effect in desk.world.effects], said


@settings(max_examples=drawn(150), deadline=None)
@given(pick=ANYTHING)
def test_pods_given_ahead_go_where_they_would_have_gone_one_a_turn(pick):
    text, waves = configuration(pick), world(pick)
    ahead = decide(text, waves)
    with mock.patch.object(surplus.Surplus, "place_ahead", return_value=0):
        assert ahead == decide(text, waves)


def given_ahead(desk):
    """How many pods were given ahead in each turn of one cycle, no turns being taken together."""
    counts = []
    place = task_runs.place_equal_ahead

    def counted(*args):
        counts.append(place(*args))
        return counts[-1]

    alone = mock.patch.object(rounds.Rounds, "play", return_value=None)
    with alone, mock.patch.object(task_runs, "place_equal_ahead", counted):
        desk.cycle()
    return counts


def test_a_job_that_nobody_comes_before_is_given_twice_as_much_each_time():
    desk = Desk().feed(node("n1", cpu="64"), group("big", 1), *(pod(f"big-{i}", "big", cpu="1") for i in range(40)))
    assert given_ahead(desk) == [1, 3, 7, 15, 8]
    assert len(desk.world.binds) == 40


def test_jobs_that_take_turns_are_given_nothing_ahead():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: drf}, {name: predicates}]\n'
    desk = Desk(text).feed(node("n1", cpu="64"))
    for name in ("one", "two"):
        desk.feed(group(name, 1), *(pod(f"{name}-{i}", name, cpu="1") for i in range(10)))
    assert given_ahead(desk) == []
    assert len(desk.world.binds) == 20


def test_a_job_is_given_ahead_no_more_than_until_another_comes_first():
    """`near` holds 5 cores, `far` none: the first turns are all `far`'s, then both take turns."""
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: drf}, {name: predicates}]\n'
    desk = Desk(text).feed(node("n1", cpu="64"), group("near", 1), group("far", 1))
    desk.feed(*(pod(f"near-old-{i}", "near", cpu="1", node="n1") for i in range(5)))
    for name in ("near", "far"):
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1") for i in range(10)))
    assert given_ahead(desk)[:3] == [1, 1, 0]
    assert [name.split("-")[0] for name in desk.world.binds][:9] == [*["far"] * 6, "near", "far", "near"]


def test_of_pods_given_ahead_only_those_stay_whose_ground_has_shifted():
    waiting = [node("n2", cpu="20", cordoned=True)]

    class Interruption(Action):
        """Feeds what a watch would deliver in the middle of a cycle."""

        name = "interruption"

        def execute(self, _session):
            desk.modify(*waiting)

    text = (
        'actions: "interruption, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]\n'
    )
    desk = Desk(text, Interruption).feed(node("n1", cpu="20"), node("n2", cpu="20"))
    desk.feed(group("big", 1), *(pod(f"big-{i}", "big", cpu="1") for i in range(16)))
    assert given_ahead(desk)[:3] == [1, 3, 7]
    assert set(desk.world.binds.values()) == {"n1"}
    assert 5 <= len(desk.world.binds) < 16
    assert desk.cluster.nodes.used[:, 0].tolist()[:2] == [1000 * len(desk.world.binds), 0]
