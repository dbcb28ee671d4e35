"""shuffle: what plugins name is evicted, unless it is protected, and the plugin is named."""

from __future__ import annotations

from builders import Desk, group, node, pod
from pumice.cache.effects import Evict
from pumice.framework.plugin import Plugin

POLICY = """
actions: "shuffle"
tiers:
- plugins: [{name: mover}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: second}]
"""
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "a", "uid": "web", "resourceVersion": "1"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 1},
}


class Mover(Plugin):
    """Names every running pod whose name starts with m."""

    name = "mover"
    points = frozenset({"VictimTasks"})
    prefix = "m"

    def open(self, session):
        session.victim_tasks.add(lambda running: [task for task in running if task.name.startswith(self.prefix)])


class Second(Mover):
    """Names others, and is asked only where the first names nobody."""

    name = "second"
    prefix = "s"


def evicted(*pods):
    desk = Desk(POLICY, Mover, Second)
    desk.feed(node("n1"), group("g", 1), BUDGET, *pods)
    desk.cycle()
    return {effect.name: effect.reason for effect in desk.world.of(Evict)}


def test_whoever_a_plugin_names_is_evicted_in_its_name():
    assert evicted(pod("m1", "g", node="n1"), pod("s1", "g", node="n1")) == {"m1": "shuffle (mover)"}


def test_the_next_tier_is_asked_where_the_first_names_nobody():
    assert evicted(pod("x1", "g", node="n1"), pod("s1", "g", node="n1")) == {"s1": "shuffle (second)"}


def test_protected_pods_stay():
    marked = pod("m1", "g", node="n1", annotations={"volcano.sh/preemptable": "false"})
    critical = pod("m2", "g", node="n1", priorityClassName="system-node-critical")
    assert evicted(marked, critical, pod("m3", "g", node="n1")) == {"m3": "shuffle (mover)"}


def test_budgets_count_every_eviction():
    pods = [pod(f"m{i}", "g", node="n1", labels={"app": "web"}) for i in range(3)]
    assert len(evicted(*pods)) == 1


def test_pods_that_do_not_run_are_not_named():
    assert evicted(pod("m1", "g", node="n1", phase="Pending"), pod("m2", "g")) == {}


def test_plugins_are_asked_about_running_pods_of_jobs_alone():
    waits, alien = pod("m1", "g"), pod("m2", node="n1", scheduler="other")
    ended = pod("m3", "g", node="n1", phase="Succeeded")
    assert evicted(waits, alien, ended, pod("m4", "g", node="n1")) == {"m4": "shuffle (mover)"}


def test_who_goes_and_who_stays_is_said_with_the_plugin_that_asked():
    marked = pod("m1", "g", node="n1", annotations={"volcano.sh/preemptable": "false"})
    desk = Desk(POLICY, Mover, Second).feed(node("n1"), group("g", 1), marked, pod("m2", "g", node="n1"))
    said = [line for line in desk.cycle().trace() if line.startswith("shuffle: ")]
    assert said[0].startswith("shuffle: a/m1 stays, though mover asks for its eviction: ")
    assert said[1:] == ["shuffle: a/m2 is evicted because mover asks for it"]
