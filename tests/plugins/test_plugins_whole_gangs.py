"""A gang that goes whole is judged once, before it goes: by capacity and by proportion, as an offer and as a protection."""

import pytest

from builders import Desk, group, node, pod, queue
from pumice.framework.subject import EvictionContext

TEXT = """
actions: "enqueue, allocate, reclaim"
%stiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, %s]
"""
CAPACITY, PROPORTION = "{name: capacity}", "{name: proportion}"
TREE = "{name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}"


def lender(minimum, count, *, cpu="2", guarantee=None, **spec):
    """A queue that is due 2 cores, with one job of running pods, and a queue with a claimant."""
    stated = {"guarantee": {"resource": {"cpu": guarantee}}} if guarantee else {}
    pods = [pod(f"l-{i}", "l", cpu=cpu, node=f"m{i % 2}") for i in range(count)]
    owned = [
        queue("lender", deserved={"cpu": "2"}, **stated, **spec),
        group("l", minimum, queue="lender", phase="Running"),
    ]
    claim = [queue("claimer", deserved={"cpu": "6"}), group("c", 1, queue="claimer", phase="Inqueue")]
    return [*owned, *pods, *claim, pod("c-0", "c", cpu="4")]


def opened(plugin, *manifests, compatibility=""):
    text = TEXT % (compatibility, plugin)
    made = Desk(text).feed(node("m0", "4", "64Gi", "100"), node("m1", "4", "64Gi", "100"), *manifests)
    return made, made.session()


def offered(made, session, *names):
    """What the sharing plugin alone offers of candidates in this order."""
    mine = next(r for r in session.reclaimable if r.plugin in ("capacity", "proportion"))
    return [task.name for task in mine.function(made.task("c-0"), [made.task(name) for name in names])]


@pytest.mark.parametrize("plugin", [CAPACITY, TREE])
@pytest.mark.parametrize(
    ("minimum", "count", "guarantee", "expected"),
    [
        (3, 3, None, ["l-2", "l-1", "l-0"]),  # 6 of 2 with all of it; pod by pod the last one would stay
        (1, 3, None, ["l-2", "l-1"]),  # surplus goes pod by pod down to the due
        (2, 3, None, ["l-2", "l-1", "l-0"]),  # one by itself, then the rest as a whole
        (3, 3, "1", []),  # the whole of it would break the guarantee
        (1, 3, "1", ["l-2", "l-1"]),
        (1, 1, None, []),  # a queue at its due gives nothing
    ],
)
def test_capacity_judges_a_gang_that_goes_whole_once(plugin, minimum, count, guarantee, expected):
    made, session = opened(plugin, *lender(minimum, count, guarantee=guarantee))
    names = [f"l-{i}" for i in reversed(range(count))]
    assert offered(made, session, *names) == expected
    mine = next(r for r in session.unified_evictable if r.plugin == "capacity")
    context = EvictionContext("gangreclaim", made.cluster.jobs["a/c"])
    assert [task.name for task in mine.function(context, [made.task(name) for name in names])] == expected


@pytest.mark.parametrize("plugin", [CAPACITY, TREE, PROPORTION])
@pytest.mark.parametrize(("guarantee", "protected"), [(None, False), ("1", True)])
def test_every_member_is_protected_or_free_as_the_gang_is(plugin, guarantee, protected):
    # With proportion the lender deserves half of 8 cores and holds 6.
    made, session = opened(plugin, *lender(3, 3, guarantee=guarantee))
    for action in ("reclaim", "gangreclaim"):
        said = [session.protection(made.task("c-0"), made.task(f"l-{i}"), action) for i in range(3)]
        assert [reason is not None for reason in said] == [protected] * 3
    if protected:
        assert "queue lender would hold less than is guaranteed to it" in said[0]


def test_members_on_other_nodes_go_with_an_offered_one():
    made, session = opened(CAPACITY, *lender(2, 2, guarantee="1"))
    assert offered(made, session, "l-0") == []  # alone it would leave 2 of 1, but l-1 on the other node goes too
    made, session = opened(CAPACITY, *lender(2, 2))
    assert offered(made, session, "l-0") == ["l-0"]


def test_proportion_judges_a_gang_that_goes_whole_once():
    for minimum, expected in ((3, ["l-2", "l-1", "l-0"]), (1, ["l-2"])):
        made, session = opened(PROPORTION, *lender(minimum, 3))
        assert offered(made, session, "l-2", "l-1", "l-0") == expected


def test_by_volcanos_rules_pods_are_judged_one_by_one():
    made, session = opened(CAPACITY, *lender(3, 3), compatibility="compatibility: volcano\n")
    assert offered(made, session, "l-2", "l-1", "l-0") == ["l-2", "l-1"]


def test_a_guarantee_of_an_ancestor_protects_unless_the_claimant_is_below_it():
    family = [
        queue("p", parent="root", guarantee={"resource": {"cpu": "5"}}),
        queue("lender", parent="p"),
        queue("near", parent="p", deserved={"cpu": "4"}),
        queue("far", deserved={"cpu": "4"}),
        group("l", 0, queue="lender", phase="Running"),
        *(pod(f"l-{i}", "l", cpu="2", node=f"m{i % 2}") for i in range(3)),
    ]
    claims = [m for q in ("near", "far") for m in (group(q, 1, queue=q, phase="Inqueue"), pod(f"{q}-0", q, cpu="2"))]
    made, session = opened("{name: capacity, enableHierarchy: true}", *family, *claims)
    assert session.protection(made.task("near-0"), made.task("l-0"), "reclaim") is None
    assert session.protection(made.task("far-0"), made.task("l-0"), "reclaim") == (
        "queue p would hold less than is guaranteed to it: cpu 4 of 5"
    )


def test_roles_and_counts_say_whether_a_gang_breaks():
    made, session = opened(
        CAPACITY,
        queue("lender", deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "1"}}),
        queue("claimer", deserved={"cpu": "6"}),
        group("l", 2, queue="lender", phase="Running", minTaskMember={"driver": 1, "worker": 1}),
        pod("driver", "l", cpu="1", role="driver", node="m0"),
        *(pod(f"worker-{i}", "l", cpu="1", role="worker", node="m0") for i in range(2)),
        group("c", 1, queue="claimer", phase="Inqueue"),
        pod("c-0", "c", cpu="4"),
    )
    # A worker can be spared; without its driver nothing of the gang stays, and the guarantee would be broken.
    assert offered(made, session, "driver") == []
    assert offered(made, session, "worker-1") == ["worker-1"]
    assert offered(made, session, "worker-1", "worker-0") == ["worker-1"]
