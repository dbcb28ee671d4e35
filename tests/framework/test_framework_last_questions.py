"""Points that are asked late or seldom: before a bind is sent, and about sub-jobs."""

from __future__ import annotations

from builders import Desk, group, node, pod
from pumice.framework.plugin import Plugin

CONFIG = """
actions: "allocate"
tiers:
- plugins: [{name: gang, enabledSubJobReady: true}, {name: wary}, {name: predicates}, {name: nodeorder}]
"""


class Wary(Plugin):
    """Lets no bind of the pod g-1 go out."""

    name = "wary"
    points = frozenset({"PreBind"})

    def open(self, session):
        session.pre_bind.add(lambda task, record: f"not to {record.name}" if task.name == "g-1" else None)


def test_a_plugin_can_object_to_a_bind_before_it_is_sent():
    desk = Desk(CONFIG, Wary).feed(node("n"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    record = desk.cycle()
    assert desk.world.binds == {"g-0": "n", "g-2": "n"}
    assert any("g-1: not bound: not to n" in line for line in record.trace())
    assert desk.task("g-1").node is None


def test_a_job_without_policies_answers_for_its_only_sub_job():
    desk = Desk(CONFIG, Wary).feed(node("n"), group("g", 2), *(pod(f"g-{i}", "g", cpu="1", node="n") for i in range(2)))
    session = desk.session()
    job = desk.cluster.jobs["a/g"]
    sub_job = next(iter(job.sub_jobs.values()))
    assert session.is_sub_job_ready(job, sub_job)
    assert session.is_sub_job_pipelined(job, sub_job)
    session.job_ready.tiers[0].clear()
    assert session.is_sub_job_ready(job, sub_job)


def test_a_job_with_policies_asks_about_each_sub_job():
    policy = {"name": "ring", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["rank"]}
    desk = Desk(CONFIG, Wary).feed(
        node("n"),
        group("g", 1, subGroupPolicy=[policy]),
        *(pod(f"g-{i}", "g", cpu="1", node="n", labels={"rank": "0"}) for i in range(2)),
        pod("g-2", "g", cpu="1", node="n", labels={"rank": "1"}),
    )
    session = desk.session()
    job = desk.cluster.jobs["a/g"]
    ready = {key: session.is_sub_job_ready(job, sub_job) for key, sub_job in job.sub_jobs.items()}
    assert ready == {"a/g/ring-0": True, "a/g/ring-1": False}
