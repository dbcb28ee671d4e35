"""How the answers of plugins combine: the worked cases 1 to 7 and 10 of framework.md, with plugins that say what the case says."""

from __future__ import annotations

import json

import pytest

from builders import Desk, group, node, pod, settings
from pumice.framework.extensions import ABSTAIN, PERMIT, reject
from pumice.framework.plugin import Plugin

VOTES = {"Permit": PERMIT, "Abstain": ABSTAIN, "Reject": reject("as the case says")}


def speaker(name, point, answer, asked):
    """A plugin that gives one answer at one point and notes that it was asked."""

    class Speaker(Plugin):
        def open(self, session):
            def say(*given):
                asked.append(self.name)
                said = answer(session)
                # Whoever is asked about candidates names some of these.
                return [task for task in said if task in given[-1]] if isinstance(said, list) else said

            getattr(session, point).add(say)

    Speaker.name = name
    return Speaker


def ask(point, tiers, *arguments):
    """Give what a point answers when plugins in these tiers answer so, and who was asked; a tier is (name, answer) pairs."""
    asked = []
    classes = [speaker(name, point, answer, asked) for tier in tiers for name, answer in tier]
    listed = [{"plugins": [{"name": name} for name, _ in tier]} for tier in tiers]
    desk = Desk(json.dumps({"actions": "allocate", "tiers": listed}), *classes)
    desk.feed(node("n"), group("g"), *(pod(f"t{i}", "g", cpu="100m", node="n") for i in range(1, 10)))
    session = desk.session()
    subjects = [given(session) if callable(given) else given for given in arguments] or [session.cluster.jobs["a/g"]]
    return getattr(session, point)(*subjects), asked


def victims(*names):
    return lambda session: [task for task in session.cluster.tasks.values() if task.name in names]


def everybody(session):
    return list(session.cluster.tasks.values())


def abstain(_session):
    return None


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
@pytest.mark.parametrize(
    ("case", "tiers", "expected", "unasked"),
    [
        (
            "1: answers of a tier are intersected, the first tier with a result decides",
            [[("A", victims("t1", "t2")), ("B", victims("t2", "t3"))], [("C", victims("t1"))]],
            ["t2"],
            "C",
        ),
        (
            "2: an empty answer ends its tier and the next one is asked",
            [[("A", victims()), ("B", victims("t1"))], [("C", victims("t9"))]],
            ["t9"],
            "B",
        ),
        (
            "3: after an empty intersection the next plugin of the tier starts afresh",
            [[("A", victims("t1")), ("B", victims("t2")), ("C", victims("t3"))]],
            ["t3"],
            "",
        ),
        (
            "3, ours: one who would let everybody go does not settle a quarrel; the next tier is asked",
            [[("A", victims("t1")), ("B", victims("t2")), ("C", everybody)], [("D", victims("t5"))]],
            ["t5"],
            "",
        ),
        ("4: who abstains does not count", [[("A", abstain), ("B", victims("t4"))]], ["t4"], ""),
        ("4: if all abstain nobody is given", [[("A", abstain)], [("B", abstain)]], [], ""),
    ],
)
def test_victims_are_intersected_within_a_tier_and_the_first_tier_left_with_any_decides(
    point, case, tiers, expected, unasked
):
    found, asked = ask(point, tiers, None, everybody)
    assert [task.name for task in found] == expected, case
    assert not unasked or unasked not in asked, case


def says(vote):
    return lambda _session: VOTES[vote]


@pytest.mark.parametrize("point", ["job_pipelined", "job_enqueueable"])
@pytest.mark.parametrize(
    ("case", "tiers", "expected", "unasked"),
    [
        ("5: abstain, then reject", [[("X", says("Abstain"))], [("Y", says("Reject"))]], False, ""),
        ("5: permit in an earlier tier", [[("X", says("Permit"))], [("Y", says("Reject"))]], True, "Y"),
        ("5: permit and reject in one tier", [[("X", says("Permit")), ("Z", says("Reject"))]], False, ""),
        ("5: nobody votes", [[("X", says("Abstain"))]], True, ""),
        (
            "7: sla permits in tier 1",
            [[("sla-like", says("Permit"))], [("full-like", says("Reject"))]],
            True,
            "full-like",
        ),
    ],
)
def test_a_rejection_ends_the_vote_and_a_permit_decides_at_the_end_of_its_tier(point, case, tiers, expected, unasked):
    vote, asked = ask(point, tiers)
    assert (vote.value > 0) is expected, case
    assert not unasked or unasked not in asked, case


@pytest.mark.parametrize(
    ("case", "tiers", "expected"),
    [
        ("6: both in tier 1", [[("priority-like", lambda _: True), ("gang-like", lambda _: False)]], False),
        ("6: one tier each", [[("priority-like", lambda _: True)], [("gang-like", lambda _: False)]], True),
        ("9.3: nobody registered", [[]], False),
    ],
)
def test_the_first_tier_that_answers_decides_who_starves(case, tiers, expected):
    starving, _ = ask("job_starving", tiers)
    assert starving is expected, case


def test_a_rejection_names_the_plugin_and_its_reason():
    vote, _ = ask("job_enqueueable", [[("strict", says("Reject"))]])
    assert vote.reason == "strict: as the case says"


def test_a_switch_turns_off_one_point_of_one_plugin_and_hierarchy_is_off_by_itself():
    loaded, _ = settings('actions: "allocate"\ntiers:\n- plugins: [{name: gang, enablePreemptable: false}]\n')
    switches = loaded.plugin("gang").switches
    off = sorted(name for name, on in switches.items() if not on)
    assert off == ["enableHierarchy", "enablePreemptable", "enabledClusterOrder"]
