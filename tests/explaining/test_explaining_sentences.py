"""Sentences about why jobs and pods wait, held against the rules written down once more, for many small groups."""

from __future__ import annotations

import itertools

import pytest
from explaining_worlds import asked
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GANG, Desk, group, node, pod, priority_class, queue
from drawing import drawn
from pumice.framework import causes

GATED = {"schedulingGates": [{"name": "example.com/hold"}]}
NOWHERE = "no node has 33 cpu at all: the largest of 1, n, has 32"
PROPORTION = GANG.replace("{name: predicates}", "{name: predicates}, {name: proportion}")


# -- jobs that share a sentence ----------------------------------------------------------------------------------


@st.composite
def lonely(draw, name, second):
    """A job with a pod or two that find no room, and differ from others in one thing or another."""
    classes = draw(st.sampled_from([{}, {"priorityClassName": "high"}, {"priorityClassName": "hihg"}]))
    kept_out = draw(st.sampled_from([{}, {}, {"minResources": {"cpu": "90"}}, {"minResources": {"cpu": "80"}}]))
    where = draw(st.sampled_from(["default", "small", "closed", "nowhere"]))
    made = [group(name, draw(st.sampled_from([1, 1, 2])), queue=where, created=second, **classes, **kept_out)]
    for i in range(draw(st.sampled_from([1, 1, 1, 2]))):
        place = draw(st.sampled_from([{}, {}, {}, GATED, {"node": "n"}]))
        made.append(pod(f"{name}-{i}", name, cpu=draw(st.sampled_from(["33", "31"])), **place))
    return made


@settings(max_examples=drawn(80))
@given(st.data())
def test_what_equal_jobs_share_is_said_of_each_alone(data):
    made = Desk(PROPORTION).feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="4", node="n"))
    made.feed(queue("small", capability={"cpu": "2"}), queue("closed", state="Closed"), priority_class("high", 9))
    for i in range(data.draw(st.integers(2, 8))):
        made.feed(*data.draw(lonely(f"g{i}", i)))
    told = []

    def look(explainer):
        session = explainer.session
        together = {key: causes.of_job(session, job) for key, job in session.cluster.jobs.items()}
        for key, job in session.cluster.jobs.items():
            session.findings.causes.clear()
            told.append((key, together[key], causes.of_job(session, job)))

    made.scheduler.cycle(look)
    assert [(key, alone) for key, _, alone in told] == [(key, shared) for key, shared, _ in told]


# -- roles and sub-groups ----------------------------------------------------------------------------------------


def of_job(made, name="a/g"):
    return asked(made, ("job", name))[0].cause


@pytest.mark.parametrize("minimum", [1, 3, 4])
@pytest.mark.parametrize(("one", "two"), [*itertools.product((0, 1, 2, 3), repeat=2)])
def test_a_role_that_lacks_pods_is_named_where_roles_count(one, two, minimum):
    needed = {"one": 1, "two": 2}
    made = Desk().feed(node("n", cpu="32"), group("g", minimum, minTaskMember=needed))
    made.feed(*(pod(f"one-{i}", "g", cpu="33", role="one") for i in range(one)))
    made.feed(*(pod(f"two-{i}", "g", cpu="33", role="two") for i in range(two)))
    there = {"one": one, "two": two}
    short = [role for role in needed if there[role] < needed[role]] if minimum >= 3 else []
    if not one + two:
        assert of_job(made) == f"it has no pods yet, minMember is {minimum}"
    elif short:
        role = short[0]
        assert of_job(made) == f"role {role} has {there[role]} of the {needed[role]} pods that it needs"
    elif one + two < minimum:
        assert of_job(made) == f"only {one + two} of the {minimum} pods that minMember needs exist"
    else:
        assert of_job(made) == NOWHERE


@pytest.mark.parametrize("needed", [1, 2, 3])
@pytest.mark.parametrize("there", [1, 2, 3])
def test_a_policy_that_lacks_sub_groups_is_named(there, needed):
    policy = {"name": "ring", "matchLabelKeys": ["rank"], "subGroupSize": 1, "minSubGroups": needed}
    made = Desk().feed(node("n", cpu="32"), group("g", 1, subGroupPolicy=[policy]))
    made.feed(*(pod(f"g-{i}", "g", cpu="33", labels={"rank": str(i)}) for i in range(there)))
    few = f"policy ring has {there} of the {needed} sub-groups that it needs"
    assert of_job(made) == (few if there < needed else NOWHERE)


@pytest.mark.parametrize("minimum", [1, 3, 4])
@pytest.mark.parametrize(("small", "large"), [*itertools.product((1, 2, 3), (0, 1, 2, 3))])
def test_pods_that_fit_nowhere_are_named_if_the_gang_needs_one_of_them(small, large, minimum):
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="32", node="n"))
    made.feed(group("g", minimum, minTaskMember={"s": 1, "m": 1, "z": 1}))
    made.feed(*(pod(f"s-{i}", "g", cpu="1", role="s") for i in range(small)), pod("m-0", "g", cpu="1", role="m"))
    made.feed(*(pod(f"z-{i}", "g", cpu="33", role="z") for i in range(large)), pod("z-9", "g", cpu="1", role="z"))
    exist = small + large + 2
    if exist < minimum:
        assert of_job(made) == f"only {exist} of the {minimum} pods that minMember needs exist"
    elif exist - large < minimum:
        assert of_job(made) == f"its pod z-0 has no node to go to: {NOWHERE}"
    else:
        assert of_job(made).startswith("no node has 1 cpu free")


@pytest.mark.parametrize("large", sorted(set(itertools.permutations(("33", "1", "1", "1")))))
@pytest.mark.parametrize("free", [0, 1, 2])
def test_a_pod_that_fits_nowhere_is_not_what_keeps_a_gang_that_can_do_without_it_wherever_it_comes(free, large):
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu=str(32 - free), node="n"), group("g", 3))
    made.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(large)))
    told = of_job(made)
    assert told.startswith(
        f"room for {free} of the 3 pods it needs, then no node has 1 cpu free" if free else "no node has 1 cpu free"
    )


@pytest.mark.parametrize("enforced", [True, False])
@pytest.mark.parametrize(("spare", "needed"), [*itertools.product((0, 1, 2), (0, 1, 2))])
def test_pods_that_fit_nowhere_are_named_if_their_role_needs_one_of_them(spare, needed, enforced):
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="32", node="n"))
    made.feed(group("g", 1 + needed if enforced else needed, minTaskMember={"s": 1, "z": needed}))
    made.feed(*(pod(f"s-{i}", "g", cpu="1", role="s") for i in range(4)), pod("z-0", "g", cpu="33", role="z"))
    made.feed(*(pod(f"z-{1 + i}", "g", cpu="1", role="z") for i in range(spare)))
    if enforced and 1 + spare < needed:
        assert of_job(made) == f"role z has {1 + spare} of the {needed} pods that it needs"
    elif enforced and spare < needed:
        assert of_job(made) == f"its pod z-0 has no node to go to: {NOWHERE}"
    else:
        assert of_job(made).startswith("no node has 1 cpu free")


def test_members_that_have_started_are_not_among_those_still_needed():
    made = Desk().feed(node("n", cpu="64"), pod("web", scheduler="else", cpu="32", node="n"), group("g", 5))
    made.feed(*(pod(f"r-{i}", "g", cpu="10", node="n") for i in range(2)))
    made.feed(*(pod(f"w-{i}", "g", cpu="10") for i in range(3)))
    assert of_job(made).startswith("room for 1 of the 3 pods it still needs, then no node has 10 cpu free")


# -- objects that are missing ------------------------------------------------------------------------------------

ENDS = [{"node": "n", "phase": "Succeeded"}, {"node": "n", "phase": "Failed"}, {"node": "n"}, {}]


@pytest.mark.parametrize("pods", [*itertools.product(range(4), repeat=2)])
def test_a_missing_group_is_told_until_all_pods_have_ended(pods):
    made = Desk().feed(node("n"), *(pod(f"p{i}", "g", **ENDS[kind]) for i, kind in enumerate(pods)))
    assert of_job(made) == ("" if max(pods) < 2 else "its PodGroup a/g does not exist")


@pytest.mark.parametrize("named", ["", "high", "hihg"])
@pytest.mark.parametrize("known", [(), ("high",)])
def test_a_class_that_is_missing_is_told_where_classes_are_known(known, named):
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="32", node="n"))
    made.feed(*(priority_class(each, 9) for each in known))
    made.feed(group("g", 1, priorityClassName=named), pod("g-0", "g", cpu="1"))
    missing = "priority class hihg does not exist, so it has priority 0, and "
    assert of_job(made).startswith((missing if known and named == "hihg" else "") + "no node has 1 cpu free")


# -- pods of one gang --------------------------------------------------------------------------------------------


def of_pods(made, *names):
    return [each.cause for each in asked(made, *(("pod", f"a/{name}") for name in names))]


def test_each_pod_of_a_gang_says_what_keeps_it_and_the_others_what_keeps_the_gang():
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="28", node="n"), group("g", 3))
    made.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(("2", "8", "33", "2"))))
    made.feed(pod("g-4", "g", cpu="33", **GATED), pod("g-5", "g", cpu="1", node="n"))
    whole = of_job(made)
    placed, crowded, never, other, gated, runs = of_pods(made, *(f"g-{i}" for i in range(6)))
    assert (placed, crowded, gated, runs) == (whole, whole, whole, "")
    assert "then no node has 8 cpu free: " in whole
    assert other == "no node has 2 cpu free"  # the first of the two would take it
    assert never == NOWHERE


@pytest.mark.parametrize("spoilt", [{"queue": "nowhere"}, {"minTaskMember": {"x": 3}, "minimum": 3}])
def test_what_keeps_a_gang_until_somebody_changes_an_object_is_said_of_each_pod_that_could_have_a_node(spoilt):
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="31", node="n"))
    made.feed(group("g", **{"minimum": 2, **spoilt}), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="8"))
    whole = of_job(made)
    assert whole.startswith(("queue nowhere does not exist", "role x has 0 of the 3"))
    assert of_pods(made, "g-0", "g-1") == [whole, whole]
