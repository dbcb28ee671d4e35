"""The queue's gate: whose is taken off, when, how often, and what is reserved meanwhile."""

import pytest

from builders import Desk, group, node, pod, queue
from pumice.api import names
from pumice.cache.effects import Patch
from pumice.cache.options import Options
from pumice.framework import subject

ON = Options(feature_gates=("SchedulingGatesQueueAdmission=true",))
TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity%s}]
"""
FLAT, TREE = TEXT % "", TEXT % ", enableHierarchy: true"
GATE = {"name": names.QUEUE_GATE}


def gated(name, job, cpu="1", *, gates=(GATE,), asks=True, **spec):
    annotations = {names.QUEUE_GATE: "true"} if asks else {}
    return pod(name, job, cpu=cpu, annotations=annotations, schedulingGates=list(gates), **spec)


def desk(*manifests, text=FLAT, options=ON, cpu="8"):
    return Desk(text, options=options).feed(node("m", cpu, "64Gi", "100"), *manifests)


def opened(made):
    """The pods whose gates were asked to go, in order."""
    return [effect.name for effect in made.world.of(Patch) if "spec" in effect.body]


@pytest.mark.parametrize(
    ("pods", "options", "expected"),
    [
        ([gated("p", "g")], ON, ["p"]),
        ([gated("p", "g")], None, []),
        ([gated("p", "g")], Options(feature_gates=("SchedulingGatesQueueAdmission=false",)), []),
        ([gated("p", "g", asks=False)], ON, []),
        ([gated("p", "g", gates=[GATE, {"name": "mine"}])], ON, []),
        ([gated("p", "g", gates=[{"name": "mine"}])], ON, []),
        ([gated("p", "g", cpu=None)], ON, []),  # pods without requests wait for no queue
        ([gated(f"p-x-{i}", "g") for i in range(4)], ON, ["p-x-0", "p-x-1", "p-x-2"]),
    ],
)
def test_gates_go_only_where_the_feature_the_pod_and_the_queue_say_so(pods, options, expected):
    made = desk(queue("q", capability={"cpu": "3"}), group("g", 1, queue="q"), *pods, options=options)
    made.cycle()
    assert opened(made) == expected
    assert not made.world.binds


def test_a_gate_is_asked_to_go_once_until_that_has_failed():
    made = desk(group("g", 1), gated("p", "g"))
    for _ in range(3):
        made.cycle()
    assert opened(made) == ["p"]
    (effect,) = (e for e in made.world.of(Patch) if "spec" in e.body)
    assert (effect.body, effect.subresource) == ({"spec": {"schedulingGates": None}}, "")
    made.settle(effect, "unavailable")
    for _ in range(30):
        made.cycle()
    assert opened(made) == ["p", "p"]


def test_a_pod_whose_gate_is_gone_is_bound_and_what_it_reserved_goes_with_it():
    made = desk(
        queue("q", capability={"cpu": "2"}), group("g", 0, queue="q"), gated("p-x-0", "g", "2"), gated("p-x-1", "g")
    )
    made.cycle()
    assert opened(made) == ["p-x-0"]
    made.modify(gated("p-x-0", "g", "2", gates=()))
    made.cycle()
    assert made.world.binds == {"p-x-0": "m"}
    assert opened(made) == ["p-x-0"]  # it holds what it had reserved, and the other still has no room
    made.delete(gated("p-x-0", "g", "2", gates=()))
    made.cycle()
    assert opened(made) == ["p-x-0", "p-x-1"]


@pytest.mark.parametrize("text", [FLAT, TREE])
def test_what_is_reserved_counts_for_others_and_not_for_its_owner(text):
    owner = gated("a-x-0", "a", "2", gates=(), nodeSelector={"no": "where"})
    made = desk(
        queue("q", capability={"cpu": "2"}),
        group("a", 0, queue="q"),
        owner,
        group("b", 0, queue="q"),
        pod("b-x-0", "b", cpu="1"),
        text=text,
    )
    session = made.session()
    own, other = made.task("a-x-0"), made.task("b-x-0")
    target = made.cluster.queues["q"]

    def allowed(task):
        return session.allocatable(target, subject.equal_tasks([task])) is None

    assert (allowed(own), allowed(other)) == (True, False)
    statement = session.statement()
    statement.allocate([own], [made.node("m")])
    assert not allowed(other)  # now it holds the same amount
    statement.discard()
    assert (allowed(own), allowed(other)) == (True, False)


def test_among_many_small_jobs_a_gated_pod_is_not_bound_before_its_gate_is_gone():
    made = desk(queue("q"), options=ON, cpu="64")
    for i in range(20):
        name = f"j{i:02}"
        made.feed(group(name, 1, queue="q", created=i), gated("g", name) if i == 3 else pod(f"{name}-0", name, cpu="1"))
    made.cycle()
    assert opened(made) == ["g"]
    assert sorted(made.world.binds) == [f"j{i:02}-0" for i in range(20) if i != 3]


def test_beyond_the_minimum_no_pod_is_given_ahead_before_its_gate_is_gone():
    made = desk(queue("q"), group("g", 1, queue="q"), options=ON, cpu="64")
    made.feed(*(gated(f"g-x-{i}", "g", created=1) for i in range(4)))
    made.feed(*(pod(f"g-y-{i}", "g", cpu="1", created=5) for i in range(6))).cycle()
    assert opened(made) == [f"g-x-{i}" for i in range(4)]
    assert sorted(made.world.binds) == [f"g-y-{i}" for i in range(6)]
