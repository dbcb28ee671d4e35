"""Sentences about why jobs and pods wait, held against the rules written down once more, for many small groups."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from explaining_worlds import asked
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GANG, Desk, group, node, pod, priority_class, queue
from drawing import drawn
from pumice.api import kinds
from pumice.framework import causes
from pumice.framework.extensions import ABSTAIN, reject
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import Invalid
from pumice.model import native_groups

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


class Choosy(Plugin):
    """Says of some jobs that they are not valid, of each in its own words, and lets some in later."""

    name = "choosy"
    points = frozenset({"JobValid", "JobEnqueueable"})

    def open(self, session):
        session.job_valid.add(lambda job: Invalid("No", f"{job.name} is odd") if job.name.startswith("odd") else None)
        session.job_enqueueable.add(lambda job: reject("not yet") if job.name.startswith("late") else ABSTAIN)


LONELY = {
    "one": {},
    "like-one": {},
    "larger": {"cpu": "33"},
    "other-class": {"priorityClassName": "high"},
    "no-class": {"priorityClassName": "hihg"},
    "small-queue": {"queue": "small"},
    "closed-queue": {"queue": "closed"},
    "no-queue": {"queue": "nowhere"},
    "gated": {"pods": [GATED]},
    "kept-out": {"minResources": {"cpu": "90"}},
    "kept-out-too": {"minResources": {"cpu": "80"}},
    "needs-two": {"minimum": 2},
    "has-two": {"pods": [{}, {}]},
    "needs-both": {"minimum": 2, "pods": [{}, {}]},
    "runs-and-waits": {"pods": [{"node": "n"}, {}]},
    "waits-for-release": {"pods": [{"cpu": "3"}, {}]},
    "odd-one": {"cpu": "1"},
    "odd-two": {"cpu": "1"},
    "late": {"pods": [{"cpu": "34"}], "minResources": {"cpu": "1"}},
    "late-gated": {"pods": [{"cpu": "34", **GATED}], "minResources": {"cpu": "1"}},
    "late-of-two": {"minimum": 2, "minResources": {"cpu": "1"}},
    "late-of-two-large": {"minimum": 2, "minResources": {"cpu": "90"}},
}


@pytest.mark.parametrize("turned", [False, True])
def test_whatever_others_were_told_before_each_job_is_told_what_it_would_be_told_alone(turned):
    made = Desk(PROPORTION.replace("{name: gang}", "{name: gang}, {name: choosy}"), Choosy)
    made.feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="20", node="n"), priority_class("high", 9))
    made.feed(node("m", cpu="3"), pod("leaves", scheduler="else", cpu="3", node="m", deleting=9))
    made.feed(queue("small", capability={"cpu": "2"}), queue("closed", state="Closed"))
    for second, (name, how) in enumerate(LONELY.items()):
        fields = {"minimum": 1, **{field: value for field, value in how.items() if field not in ("pods", "cpu")}}
        made.feed(group(name, created=second, **fields))
        for i, wish in enumerate(how.get("pods", [{}])):
            made.feed(pod(f"{name}-{i}", name, **{"cpu": how.get("cpu", "31"), **wish}))
    found = []

    def look(explainer):
        session = explainer.session
        jobs = sorted(session.cluster.jobs.items(), reverse=turned)
        session.findings.causes.clear()
        together = {key: causes.of_job(session, job) for key, job in jobs}
        for key, job in jobs:
            session.findings.causes.clear()
            found.append((key, together[key], causes.of_job(session, job)))

    made.scheduler.cycle(look)
    assert [(key, alone) for key, _, alone in found] == [(key, told) for key, told, _ in found]
    assert len({told for _, told, _ in found}) > 16


def test_of_two_pods_each_is_told_what_keeps_it():
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="28", node="n"), group("g", 1))
    made.feed(pod("g-0", "g", cpu="8"), pod("g-1", "g", cpu="33"))
    crowded, never = of_pods(made, "g-0", "g-1")
    assert (crowded.startswith("no node has 8 cpu free"), never) == (True, NOWHERE)


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


def test_a_pod_of_a_role_that_needs_none_is_not_what_keeps_a_gang():
    made = Desk().feed(node("n", cpu="32"), pod("web", scheduler="else", cpu="32", node="n"))
    made.feed(group("g", 3, minTaskMember={"s": 1, "m": 1}), pod("z", "g", cpu="33", role="z"))
    made.feed(*(pod(f"{role}-{i}", "g", cpu="1", role=role) for role in "sm" for i in range(2)))
    assert of_job(made).startswith("no node has 1 cpu free")


VOLUME = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(("cpu", "told"), [("1", "claim data does not exist"), ("33", NOWHERE)])
def test_what_keeps_a_pod_with_volumes_for_ever_is_told_of_the_gang_that_needs_it(cpu, told):
    made = Desk().feed(node("n", cpu="32"), group("g", 2), pod("g-0", "g", cpu=cpu, **VOLUME), pod("g-1", "g", cpu="1"))
    assert of_job(made) == f"its pod g-0 has no node to go to: {told}"


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


def test_of_a_job_whose_queue_does_not_exist_each_pod_is_told_that_also_if_no_node_could_ever_take_it():
    made = Desk().feed(node("n", cpu="32"), group("g", 1, queue="nowhere"))
    made.feed(pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="33"))
    assert of_pods(made, "g-0", "g-1") == ["queue nowhere does not exist"] * 2


def test_by_the_rules_of_volcano_it_is_no_cause_that_the_queue_of_a_job_that_was_let_in_is_closed():
    made = Desk(f"compatibility: volcano{GANG}").feed(node("n", cpu="32"), queue("q", state="Closed"))
    made.feed(group("g", 1, queue="q", phase="Inqueue"), pod("g-0", "g", cpu="33"))
    assert of_job(made) == NOWHERE


# -- why no node takes a pod -------------------------------------------------------------------------------------

PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}
TAKEN = [
    ("a port everywhere", [{"cpu": "1", **PORT}] * 2, "all 2 nodes didn't have free ports for the requested pod ports"),
    ("a port here and room there", [{"cpu": "32"}, {"cpu": "1", **PORT}], "all 2 nodes refuse it: 1 didn't have free ports for the requested pod ports, 1 have too little cpu free"),
]  # fmt: skip


@pytest.mark.parametrize(("others", "told"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_nodes_that_refuse_a_pod_are_counted_where_it_is_not_for_room_alone(others, told):
    made = Desk().feed(node("n0", cpu="32"), node("n1", cpu="32"), group("g", 1), pod("g-0", "g", cpu="1", **PORT))
    made.feed(*(pod(f"web{i}", scheduler="else", node=f"n{i}", **wish) for i, wish in enumerate(others)))
    assert of_job(made) == told


class Picky(Plugin):
    """Refuses every pod before nodes are looked at."""

    name = "picky"
    points = frozenset({"PrePredicate"})

    def open(self, session):
        session.pre_predicate.add(lambda _: "not today")


def test_who_is_refused_before_nodes_are_looked_at_is_told_that_reason_alone():
    config = GANG.replace("{name: gang}", "{name: gang}, {name: picky}")
    made = Desk(config, Picky).feed(node("n0"), node("n1"), group("g", 1), pod("g-0", "g", cpu="1"))
    assert of_job(made) == "not today"


@pytest.mark.parametrize(("full", "asked", "has"), [("1", "1001m", "1 cpu"), ("2", "1m", "0 cpu")])
def test_the_freest_node_is_named_though_it_lacks_the_least_that_there_is(full, asked, has):
    made = Desk().feed(node("n", cpu="2"), pod("web", scheduler="else", cpu=full, node="n"), group("g", 1))
    made.feed(pod("g-0", "g", cpu=asked))
    assert of_job(made) == f"no node has {asked} cpu free: the freest of 1, n, has {has}"


def test_the_freest_node_lacks_the_smallest_part_of_what_is_asked_for_also_of_very_little():
    made = Desk().feed(node("n1", "2", "16Gi"), node("n2", "2", "16Gi"), group("g", 1))
    made.feed(
        pod("web1", scheduler="else", cpu="2", node="n1"), pod("web2", scheduler="else", memory="13Gi", node="n2")
    )
    made.feed(pod("g-0", "g", cpu="1m", memory="10Gi"))
    assert of_job(made) == "no node has 1m cpu and 10Gi memory free: the freest of 2, n2, has 2 cpu and 3Gi memory"


SIZE = {"cpu": 4, "memory": 4}


@settings(max_examples=drawn(120))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_what_no_node_has_free_is_told_with_the_node_that_lacks_the_smallest_part_of_it(taken, cpu, memory):
    """Nodes that are cordoned have no say in it; where each node has enough of one of two things nobody is the freest."""
    made = Desk().feed(group("g", 1), pod("p", "g", cpu=str(cpu), memory=f"{memory}Gi"), node("large", "4", "4Gi"))
    nodes = [("large", {"cpu": 0, "memory": 0}, True)]
    for i, (cores, bytes_, is_open) in enumerate(taken):
        made.feed(node(f"n{i}", "4", "4Gi", cordoned=not is_open))
        nodes.append((f"n{i}", {"cpu": 4 - cores, "memory": 4 - bytes_}, is_open))
        made.feed(pod(f"x{i}", cpu=str(cores), memory=f"{bytes_}Gi", node=f"n{i}", scheduler="else"))
    made.feed(pod("x", cpu="4", memory="4Gi", node="large", scheduler="else"))
    want = {"cpu": cpu, "memory": memory}
    able = sorted(((name, free) for name, free, is_open in nodes if is_open), key=lambda each: each[0])
    if any(all(free[name] >= want[name] for name in want) for _, free in able):
        return
    (found,) = asked(made, ("job", "a/g"))
    assert found.cause == nobody_has(want, nodes, able)


def nobody_has(want, nodes, able):
    """Say what no node has free: of each node counts what it lacks first."""
    firsts = {next((name for name in want if free[name] < want[name]), "") for _, free, _ in nodes}
    short = [name for name in want if name in firsts]
    who = "no node" if len(able) == len(nodes) else "no node that it may use"
    told = f"{who} has {' and '.join(shown(name, want[name]) for name in short if want[name])} free"
    parts = [max(max(0, want[name] - free[name]) / max(want[name], 1) for name in short) for _, free in able]
    if not all(parts):
        return told
    best, free = able[parts.index(min(parts))]
    return f"{told}: the freest of {len(able)}, {best}, has {' and '.join(shown(name, free[name]) for name in short)}"


def shown(name, units):
    return f"{units}{'Gi' if name == 'memory' and units else ''} {name}"


@pytest.mark.parametrize(
    ("key", "served", "told"),
    [
        ("a/g", {}, "its PodGroup a/g does not exist"),
        (f"a/g{native_groups.MARK}", {}, "its PodGroup a/g of scheduling.k8s.io does not exist"),
        (
            f"a/g{native_groups.MARK}",
            {kinds.UNSERVED_KIND.name: {native_groups.KIND: {}}},
            f"{native_groups.NOT_SERVED}, so its PodGroup a/g cannot exist",
        ),
        (
            f"a/g{native_groups.OLDER_MARK}",
            {},
            "it names its group by spec.workloadRef (a/g), which Kubernetes 1.36 replaced by spec.schedulingGroup; only that is served",
        ),
    ],
)
def test_a_group_that_is_missing_is_named_as_its_pods_name_it(key, served, told):
    assert causes.missing_group(SimpleNamespace(objects=served), key) == told


@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        ("volcano", "it belongs to no group; the controllers make one for each such pod of scheduler volcano: do they run?"),
        ("mine", "it belongs to no group; it names scheduler mine, and Pumice serves volcano unless told otherwise"),
    ],
)  # fmt: skip
def test_a_pod_without_a_group_is_told_who_would_make_one(scheduler, told):
    assert causes.without_group(SimpleNamespace(spec=SimpleNamespace(scheduler_name=scheduler))) == told
