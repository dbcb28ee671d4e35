"""Whom the gang forms may take, found with each job and queue asked about once: just those of whom the rules say so when each pod is asked about by itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from builders import SECOND, Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.eviction import gang_rules, units
from pumice.actions.eviction.settings import Asked
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads

CONFIG = """
actions: "gangpreempt, gangreclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}%s]
- plugins: [{name: predicates}]
"""
FORMS = {"gangpreempt": gang_rules.GangPreempt, "gangreclaim": gang_rules.GangReclaim}
PLUGINS = {
    "none": "",
    "budgets": ", {name: pdb}",
    "proportion": ", {name: proportion}",
    "capacity": ", {name: capacity}",
    "cooldowns": ", {name: cdp}",
    "careful": ", {name: careful}",
}
NO = {"volcano.sh/preemptable": "false"}


def budget(allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata("b", "a"), "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": allowed},
    }


class Careful(Plugin):
    """Keeps for their queue those whom their job cannot spare."""

    name = "careful"
    points = frozenset({"Protection"})

    def open(self, session):
        def keeps(_claimant, task, _action):
            return None if units.keeps_its_minimum(task.job, (task,)) else "it would take others along"

        session.protection.add(keeps, reads=Reads.QUEUE)


JOBS = {  # group: its minimum, its priority, more of it, and its pods
    "loose": (0, "low", {}, [{}, {"cpu": "2"}, {}, {"labels": {"app": "kept"}}]),
    "gang": (2, "low", {}, [{}, {"cpu": "2"}]),
    "spare": (1, "low", {}, [{}, {}, {"cpu": "2"}]),
    "broken": (3, "low", {}, [{}, {}]),
    "roles": (2, "low", {"minTaskMember": {"m": 1, "w": 1}}, [{"role": "m"}, {"role": "w"}, {"role": "w"}]),
    "equal": (0, "mid", {}, [{}]),
    "high": (0, "high", {}, [{}]),
    "marked": (0, "low", {"annotations": NO}, [{}, {"annotations": {"volcano.sh/preemptable": "true"}}]),
    "mixed": (0, "low", {}, [{"annotations": NO}, {"priorityClassName": "system-node-critical"}, {}, {}]),
    "modest": (0, "low", {}, [{"cpu": None}, {"cpu": None}]),
}


def scene(plugins="", *, compatible=False, guarantee=None, deserved=None):
    """The same jobs in the queue of the claimant and in three others, of which one gives nothing back and one has a guarantee."""
    text = CONFIG % plugins
    desk = Desk(
        f"compatibility: volcano\n{text}" if compatible else text,
        Careful,
        queues=("root", "default", "q", "closed", "p"),
    )
    desk.feed(
        *(
            priority_class(name, value)
            for name, value in (("low", 1), ("mid", 5), ("high", 9), ("system-node-critical", 3))
        )
    )
    desk.modify(
        queue("closed", reclaimable=False),
        queue(
            "p",
            **({"guarantee": {"resource": guarantee}} if guarantee else {}),
            **({"deserved": deserved} if deserved else {}),
        ),
    )
    desk.feed(node("m", "64", "64Gi"), node("n", "64", "64Gi"), budget(0))
    for place, owner in enumerate(("default", "q", "closed", "p")):
        for name, (least, rank, more, pods) in JOBS.items():
            title = f"{name}-{owner}"
            desk.feed(group(title, least, queue=owner, phase="Running", priorityClassName=rank, created=place, **more))
            for i, spec in enumerate(pods):
                desk.feed(pod(f"{title}-{i}", title, node="mn"[i % 2], **{"cpu": "1", **spec}))
    desk.feed(
        pod("loose-q-waits", "loose-q", cpu="1"),
        pod("loose-default-leaves", "loose-default", cpu="1", node="m", deleting=1),
    )
    desk.feed(pod("loose-q-bound", "loose-q", cpu="1", node="m", phase="Pending"))
    desk.feed(
        group("asks", 1, phase="Inqueue", priorityClassName="mid"),
        pod("asks-0", "asks", cpu="1"),
        pod("asks-1", "asks"),
    )
    return desk


def one_by_one(desk, made, claimant, rows=None, priority=None):
    tasks = [task for task in desk.cluster.tasks.values() if task.job is not None and task.job.group is not None]
    return sorted(
        task.name
        for task in tasks
        if made.may_go(claimant, task)
        and (rows is None or task.node.row in rows)
        and (priority is None or task.job.priority == priority)
    )


def names(tasks):
    return sorted(task.name for task in tasks)


CASES = [
    *((plugins, {}) for plugins in PLUGINS),
    ("none", {"compatible": True}),
    ("none", {"guarantee": {"cpu": "24"}}),
    ("capacity", {"guarantee": {"cpu": "23"}}),
    ("capacity", {"guarantee": {"cpu": "24"}}),
    ("capacity", {"guarantee": {"cpu": "23"}, "compatible": True}),
    ("proportion", {"guarantee": {"cpu": "23"}}),
    ("budgets", {"guarantee": {"cpu": "25"}}),
    ("capacity", {"deserved": {"cpu": "24"}}),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("plugins", "more"), CASES)
def test_candidates_are_those_who_may_go_if_each_is_asked_about(form, plugins, more):
    desk = scene(PLUGINS[plugins], **more)
    session = desk.session()
    made = FORMS[form](session, Asked(spare_for=10 * SECOND))
    desk.task("loose-default-0").eviction_refused = session.started
    desk.task("loose-q-0").eviction_refused = session.started - 10 * SECOND
    for ahead in (False, True):
        if ahead:
            made.look_ahead()
        for name in ("asks-0", "asks-1"):
            claimant = desk.task(name)
            expected = one_by_one(desk, made, claimant)
            for _ in range(2):  # what was found out is kept
                assert names(made.candidates(claimant)) == names(made.leaving(claimant)) == expected
            for node_name in "mn":
                row = desk.node(node_name).row
                domain = SimpleNamespace(rows=np.array([row]))
                assert names(made.candidates(claimant, domain)) == one_by_one(desk, made, claimant, [row])
            for priority in (1, 5):
                assert names(made.candidates(claimant, priority=priority)) == one_by_one(
                    desk, made, claimant, priority=priority
                )


def test_whoever_may_go_is_found_anew_when_a_job_or_a_pod_of_it_changes():
    desk = scene()
    made = gang_rules.GangReclaim(desk.session())
    claimant = desk.task("asks-0")
    before = names(made.candidates(claimant))
    desk.modify(pod("loose-q-1", "loose-q", cpu="2", node="n", annotations=NO))
    desk.apply()
    assert names(made.candidates(claimant)) == [name for name in before if name != "loose-q-1"]
    desk.delete(pod("gang-q-0", "gang-q"))
    desk.feed(pod("new", "gang-q", cpu="1", node="m"))
    desk.apply()
    assert names(made.candidates(claimant)) == one_by_one(desk, made, claimant)


def test_nobody_may_go_for_whoever_is_of_no_job():
    desk = scene()
    made = gang_rules.GangReclaim(desk.session())
    assert made.candidates(SimpleNamespace(job=None)) == []
    assert made.asking(SimpleNamespace(job=None)) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("marked-q-0", "PodGroup a/marked-q is marked as not preemptable"),
        ("marked-q-1", "PodGroup a/marked-q is marked as not preemptable"),
        ("mixed-q-0", "a/mixed-q-0 is marked as not preemptable"),
        ("loose-closed-0", "queue closed is not reclaimable"),
        ("loose-q-1", None),
    ],
)
def test_the_mark_of_a_group_keeps_all_its_pods(name, reason):
    desk = scene()
    made = gang_rules.GangReclaim(desk.session())
    assert made.protection(desk.task("asks-0"), desk.task(name)) == reason


def test_gang_forms_take_from_lower_priorities_of_the_queue_or_from_other_queues():
    desk = scene()
    session = desk.session()
    own = desk.task("asks-0").job
    found = {
        name: sorted(job.name for job in session.cluster.jobs.values() if form(session).concerns_job(own, job))
        for name, form in FORMS.items()
    }
    assert found["gangpreempt"] == sorted(f"{name}-default" for name in JOBS if name not in {"equal", "high"})
    assert found["gangreclaim"] == sorted(f"{name}-{owner}" for name in JOBS for owner in ("q", "closed", "p"))
    assert gang_rules.GangPreempt(session).highest_taken(own) == own.priority - 1 == 4
