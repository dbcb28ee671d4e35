"""timeline: random worlds against the textbook, promises kept, and nothing changed by a policy that is off."""

from __future__ import annotations

import copy
import os
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from timeline_player import Job, Player, after, beyond, conservative, earliest, easy, expected, policy

import builders
from pumice.plugins.timeline import forecasts
from tests.lives import decisions, judge, scripts, stories, variants
from tests.lives.player import Player as Life

MORE = 20 if os.environ.get("PUMICE_FUZZ") else 1
PROCESSORS = 10


@st.composite
def worlds(draw, exact=True, known=True, pods=1):
    """Jobs that come one after the other."""
    now, jobs = 0, []
    for _ in range(draw(st.integers(2, 12))):
        now += draw(st.sampled_from([0, 0, 5, 10, 30]))
        run = 5 * draw(st.integers(1, 20))
        more = 0 if exact else draw(st.sampled_from([0, 0, 10, 50, 100]))
        said = None if not known and draw(st.booleans()) else run + more
        count = draw(st.integers(1, pods))
        jobs.append(Job(draw(st.integers(1, PROCESSORS if pods == 1 else 4)), run, now, said, count))
    return jobs


@settings(max_examples=12 * MORE, deadline=None)
@given(st.one_of(worlds(), worlds(exact=False), worlds(exact=False, known=False)))
def test_easy_on_one_node_is_the_easy_of_the_textbook(jobs):
    assert Player(jobs, policy()).play() == easy(jobs, PROCESSORS)


@settings(max_examples=12 * MORE, deadline=None)
@given(worlds())
def test_conservative_on_one_node_is_that_of_the_textbook(jobs):
    assert Player(jobs, policy("conservative")).play() == conservative(jobs, PROCESSORS)


@settings(max_examples=20 * MORE, deadline=None)
@given(
    st.lists(
        st.builds(Job, st.integers(1, 3), st.integers(1, 9), pods=st.integers(4, 6), beyond=st.integers(0, 3)),
        min_size=1,
        max_size=4,
    )
)
def test_members_beyond_the_minimum_are_planned_one_by_one_after_all_others(jobs):
    player = Player(
        [replace(job, run=10 * job.run, estimate=10 * job.run) for job in jobs], policy("conservative"), (20,)
    )
    player.start()
    assert _told_of_more(player) == _in_short(beyond(player.jobs, 20))


def _told_of_more(player):
    """Read what jobs are told of members beyond their minimum: when how many of them start, and when the last."""
    found = {}
    for number, message in player.messages.items():
        if told := re.search(r"; (\d+) of (\d+) members beyond its minimum(?:, all of them by ([\d:]+))?", message):
            last = expected(f"expected at {told[3]} on n0") if told[3] else None
            found[number] = (expected(message), int(told[1]), int(told[2]), last)
    return found


def _in_short(planned):
    return {
        number: (times[0], times.count(times[0]), len(times), times[-1] if times[-1] > times[0] else None)
        for number, times in planned.items()
    }


ELASTIC = st.lists(
    st.builds(
        Job, st.integers(1, 3), st.sampled_from([10, 20, 50, 80]), pods=st.integers(2, 5), beyond=st.integers(1, 4)
    ),
    min_size=1,
    max_size=4,
).map(lambda jobs: [replace(job, beyond=min(job.beyond, job.pods - 1)) for job in jobs])


@settings(max_examples=20 * MORE, deadline=None)
@given(ELASTIC, st.integers(6, 16))
def test_members_beyond_the_minimum_wait_for_the_limit_of_their_queue(jobs, limit):
    assume(sum((job.pods - job.beyond) * job.size for job in jobs) <= limit)
    text = policy("conservative").replace("- plugins:\n", "- plugins:\n  - {name: capacity}\n")
    queue = builders.queue("q", capability={"cpu": str(limit)})
    player = Player(jobs, text, (30,), [queue], queue="q")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecasts, "MOST", 1000)  # in one cycle, so that all are planned at the same time
        player.start()
    assert _told_of_more(player) == _in_short(after(jobs, player.nodes, limit))


@settings(max_examples=20 * MORE, deadline=None)
@given(ELASTIC, st.lists(st.integers(4, 9), min_size=2, max_size=3))
def test_a_member_beyond_the_minimum_waits_for_the_hyper_node_of_the_others_as_long_as_they_run(jobs, nodes):
    jobs = [replace(job, beyond=1) for job in jobs]
    text = policy("conservative") + "  - {name: network-topology-aware}\n"
    racks = [_rack(f"r{i}", f"n{i}") for i in range(len(nodes))]
    player = Player(jobs, text, nodes, racks, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecasts, "MOST", 1000)  # as above
        player.start()
    assume(len(player.starts) == len(jobs))
    taken = [(0, jobs[n].run, jobs[n].size, node, n) for n, on in player.nodes.items() for node in on]
    for number, job in enumerate(jobs):
        if len(player.nodes[number]) == job.pods:
            continue
        message = player.messages[number]
        begin, on = expected(message), re.search(r" on (n\d) ", message)[1]

        def free(node, since, number=number, job=job):
            """Return from when on a node has room, and none of the others runs elsewhere."""
            here = [each[:3] for each in taken if each[3] == node]
            elsewhere = [stop for _, stop, _, there, whose in taken if whose == number and there != node]
            return earliest(here, job.size, job.run, nodes[int(node[1:])], max([since, *elsewhere]))

        own = player.nodes[number][0]
        assert free(on, begin) == begin, message
        assert min(free(f"n{i}", 0) for i in range(len(nodes))) <= begin <= free(own, 0), message
        taken.append((begin, begin + job.run, job.size, on, number))


def _rack(name, node):
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}}]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": builders.metadata(name),
        "spec": {"tier": 1, "members": members},
    }


@pytest.mark.parametrize("name", ["easy", "conservative"])
@settings(max_examples=8 * MORE, deadline=None)
@given(jobs=worlds(pods=4), nodes=st.lists(st.integers(4, 8), min_size=4, max_size=5))
def test_whoever_holds_room_starts_when_it_was_first_told_so_or_before(name, jobs, nodes):
    player = Player(jobs, policy(name), nodes)
    starts = player.play()
    assert None not in starts
    for number, told in player.forecasts.items():
        promised = [when for reason, when in told if reason == "Reserved"]
        assert not promised or starts[number] <= promised[0], (number, told, starts)


@pytest.mark.parametrize("name", ["none_plain", "tree_both", "prop_gang"])
def test_a_policy_that_is_off_changes_nothing(name):
    script = scripts.draw(3, name)
    with_plugin = _with_timeline(script, {"timeline.policy": "off"})
    assert decisions.lines(Life(with_plugin).play()) == decisions.lines(Life(script).play())


@pytest.mark.parametrize("name", ["none_plain", "tree_both", "prop_reclaim", "cap_gang"])
@pytest.mark.parametrize("kind", ["easy", "conservative"])
def test_no_rule_is_broken_where_starts_are_planned(name, kind):
    for seed in range(MORE):
        script = _with_timeline(scripts.draw(seed, name), {"timeline.policy": kind, "timeline.defaultEstimate": "90s"})
        life, findings = judge.judge(script)
        assert not findings, "\n".join([*stories.history(life), *map(str, findings)])


@pytest.mark.parametrize("name", ["none_preempt", "cap_reclaim"])
def test_shortcuts_change_no_decision_where_starts_are_planned(name):
    script = _with_timeline(scripts.draw(2, name), {"timeline.defaultEstimate": "90s"})
    assert not variants.plain(script)


def _with_timeline(script, arguments):
    """Return the same life under a policy that plans starts too."""
    told = ", ".join(f'{name}: "{value}"' for name, value in arguments.items())
    line = f"- plugins:\n  - {{name: timeline, arguments: {{{told}}}}}\n"
    policy = copy.copy(script.policy)
    policy.text += line  # behind all others, so that these stay in the lines that messages name
    return replace(script, policy=policy)
