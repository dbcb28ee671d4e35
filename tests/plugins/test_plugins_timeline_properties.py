"""timeline: random worlds against the textbook, promises kept, and nothing changed by a policy that is off."""

from __future__ import annotations

import copy
import os
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_player import Job, Player, beyond, conservative, easy, expected, policy

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
    found = {}
    for number, message in player.messages.items():
        if told := re.search(r"; (\d+) of (\d+) members beyond its minimum(?:, all of them by ([\d:]+))?", message):
            last = expected(f"expected at {told[3]} on n0") if told[3] else None
            found[number] = (expected(message), int(told[1]), int(told[2]), last)
    wanted = {
        number: (times[0], times.count(times[0]), len(times), times[-1] if times[-1] > times[0] else None)
        for number, times in beyond(player.jobs, 20).items()
    }
    assert found == wanted


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
