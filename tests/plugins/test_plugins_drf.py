"""drf: the dominant share of jobs, the order it gives, and whom it lets be preempted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.plugins.drf.plugin import Drf, Shares

CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang, enableJobOrder: false}, {name: drf}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
KUBE_BATCH = CONFIGURATION.replace("actions:", "compatibility: kube-batch\nactions:")


def desk(*manifests, text=CONFIGURATION):
    """A cluster of 20 cores, 40Gi and 220 pods."""
    made = Desk(text).feed(node("m1", "10", "20Gi", "110"), node("m2", "10", "20Gi", "110"))
    return made.feed(*manifests)


def running(name, count, cpu, memory, *, queue="default", wanted=0):
    """A running job of equal pods, with some more that wait."""
    pods = [pod(f"{name}-{i}", name, cpu=cpu, memory=memory, node="m1") for i in range(count)]
    pods += [pod(f"{name}-w{i}", name, cpu=cpu, memory=memory) for i in range(wanted)]
    return [group(name, queue=queue, phase="Running"), *pods]


def opened(made):
    session = made.session()
    plugin = next(p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, Drf))
    return session, plugin


def shares(made):
    _, plugin = opened(made)
    return {job.name: plugin.share(job) for job in made.cluster.jobs.values()}


# ---- the share


def test_dr1_the_dominant_share_orders_jobs():
    made = desk(*running("p", 2, "2", "2Gi"), *running("q", 1, "1", "10Gi"))
    assert shares(made) == {"p": 0.2, "q": 0.25}
    session, _ = opened(made)
    assert [job.name for job in session.job_order.sort(made.cluster.jobs.values())] == ["p", "q"]


def test_dr3_many_tiny_pods_are_dominated_by_pods():
    made = desk(*running("tiny", 10, "50m", "64Mi"))
    assert shares(made) == {"tiny": 10 / 220}


def test_under_kube_batch_pods_are_no_resource():
    made = desk(*running("tiny", 10, "50m", "64Mi"), text=KUBE_BATCH)
    assert shares(made) == {"tiny": 0.025}


def test_a_resource_that_no_node_offers_any_more_is_not_counted():
    made = Desk(CONFIGURATION).feed(node("m1"), node("gone", nvidia__gpu="4"))
    made.feed(group("g", phase="Running"), pod("g-0", "g", cpu="1", requests={"nvidia/gpu": "1"}, node="gone")).apply()
    assert shares(made)["g"] == 0.25
    made.delete(node("gone"))
    assert shares(made)["g"] == 0.125


def test_a_job_that_holds_nothing_has_share_zero_even_without_nodes():
    made = Desk(CONFIGURATION).feed(group("g"), pod("g-0", "g", cpu="1"))
    assert shares(made) == {"g": 0.0}


def test_terminating_pods_no_longer_count():
    made = desk(group("g", phase="Running"), pod("g-0", "g", cpu="2", node="m1", deleting=True))
    assert shares(made) == {"g": 0.0}


AMOUNTS = st.integers(0, 2**53)


@settings(max_examples=drawn(100), deadline=None)
@given(
    total=st.lists(AMOUNTS, min_size=4, max_size=4),
    held=st.lists(st.lists(AMOUNTS, min_size=4, max_size=4), min_size=1),
)
def test_shares_at_once_equal_shares_one_by_one(total, held):
    plain = [max([row[i] / total[i] for i in range(4) if total[i]], default=0.0) for row in held]
    counted = Shares(np.array(total, dtype=np.int64))
    matrix = np.array(held, dtype=np.int64)
    assert counted.of_each(matrix).tolist() == plain
    assert [counted.of(row) for row in matrix] == plain


@settings(max_examples=30, deadline=None)
@given(pick=st.randoms(use_true_random=True))
def test_shares_at_once_are_exact_beyond_what_a_float_holds(pick):
    total = [pick.randrange(2**53, 2**60) for _ in range(4)]
    held = [[pick.randrange(2**60) for _ in range(4)] for _ in range(9)]
    counted = Shares(np.array(total, dtype=np.int64)).of_each(np.array(held, dtype=np.int64))
    assert counted.tolist() == [max(row[i] / total[i] for i in range(4)) for row in held]


@settings(max_examples=drawn(100), deadline=None)
@given(total=st.integers(1, 2**40), held=st.integers(0, 2**40), factor=st.integers(1, 1000))
def test_scaling_a_resource_everywhere_changes_no_share(total, held, factor):
    plain = Shares(np.array([total, 0, 7], dtype=np.int64)).of(np.array([held, 3, 1], dtype=np.int64))
    scaled = Shares(np.array([total * factor, 0, 7], dtype=np.int64)).of(
        np.array([held * factor, 3, 1], dtype=np.int64)
    )
    assert plain == scaled


# ---- the order is live


def test_equal_jobs_take_turns_and_end_equal():
    made = desk(*(m for name in "abc" for m in running(name, 0, "1", "1Gi", wanted=12)))
    made.modify(node("m1", "12", "64Gi"), node("m2", "0", "0"))
    made.cycle()
    bound = [name.split("-")[0] for name in made.world.binds]
    assert {name: bound.count(name) for name in "abc"} == {"a": 4, "b": 4, "c": 4}


def test_a_share_follows_every_step_and_its_undoing():
    made = desk(*running("g", 1, "2", "1Gi", wanted=2))
    session, plugin = opened(made)
    job = made.cluster.jobs["a/g"]
    waiting = [made.task(f"g-w{i}") for i in range(2)]
    statement = session.statement()
    assert plugin.share(job) == 0.1
    statement.allocate(waiting[:1], [made.node("m1")])
    assert plugin.share(job) == 0.2
    statement.pipeline(waiting[1:], [made.node("m2")])
    assert plugin.share(job) == 0.3
    statement.evict([made.task("g-0")], "preempt")
    assert plugin.share(job) == 0.2
    statement.discard()
    assert plugin.share(job) == 0.1


# ---- victims


def accepted(made, claimant, *candidates):
    session, _ = opened(made)
    found = session.preemptable(made.task(claimant), [made.task(name) for name in candidates])
    return [task.name for task in found]


VICTIMS = """
actions: "allocate"
tiers:
- plugins: [{name: drf}, {name: predicates}]
"""


def test_dr2_a_tie_is_accepted_and_what_is_poorer_is_not():
    made = desk(*running("p", 2, "2", "2Gi", wanted=1), *running("r", 3, "3", "3Gi"), text=VICTIMS)
    assert accepted(made, "p-w0", "r-0", "r-1") == ["r-0"]


def test_a_tie_within_a_millionth_is_accepted():
    # One millicore more than the victim's job keeps: of 20 cores that is too much, of 2,020 it is half a millionth.
    made = desk(*running("p", 0, "2001m", None, wanted=1), *running("r", 2, "2", None), text=VICTIMS)
    assert accepted(made, "p-w0", "r-0") == []
    made.feed(node("m3", "2000", "0", "5000"))
    assert accepted(made, "p-w0", "r-0") == ["r-0"]


def test_a_refused_candidate_is_taken_off_too():
    # Without r-big the job is too poor; r-small is judged with r-big already gone.
    made = desk(*running("p", 0, "4", "1Gi", wanted=1), group("r", phase="Running"), text=VICTIMS)
    made.feed(
        pod("r-big", "r", cpu="5", node="m1"),
        pod("r-small", "r", cpu="1", node="m1"),
        pod("r-rest", "r", cpu="2", node="m1"),
    )
    assert accepted(made, "p-w0", "r-big", "r-small") == []
    assert accepted(made, "p-w0", "r-small", "r-big") == ["r-small"]


@pytest.mark.parametrize("order", [("a-0", "b-0"), ("b-0", "a-0")])
def test_each_victims_job_is_counted_by_itself(order):
    made = desk(
        *running("p", 0, "1", "1Gi", wanted=1), *running("a", 2, "2", "1Gi"), *running("b", 1, "1", "1Gi"), text=VICTIMS
    )
    assert accepted(made, "p-w0", *order) == ["a-0"]


def test_queues_are_not_ordered_without_hierarchy():
    made = desk(queue("one", created=9), queue("two"))
    session, _ = opened(made)
    assert not session.queue_order.active
    assert "drf" not in [registered.plugin for registered in session.reclaimable]
