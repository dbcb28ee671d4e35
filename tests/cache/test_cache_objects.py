"""Events to model, one rule at a time: pods whose group is missing, bad objects, foreign pods, nodes, classes, queues, writes."""

from __future__ import annotations

import pytest

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.cache.effects import Bind, Create, Evict, Read
from pumice.model.statuses import Status
from pumice.scheduler import Options

MISSING = "its PodGroup a/g does not exist; create it or correct the annotation scheduling.k8s.io/group-name"


# ---- pods whose group is missing (ours 9)


def told(made):
    return [message for name, reason, message in made.world.notes if (name, reason) == ("p", "FailedScheduling")]


def test_a_pod_whose_group_is_missing_is_told_once_after_ten_seconds():
    made = Desk().feed(node("n1"), pod("p", "g", cpu="1"))
    for _ in range(10):
        made.cycle()
        assert told(made) == []
    made.cycle()
    assert told(made) == [MISSING]
    made.modify(pod("p", "g", cpu="1", labels={"any": "change"}))
    for _ in range(15):
        made.cycle()
    assert told(made) == [MISSING]
    assert made.cache.record.explain("a/g") == f"a/g: {MISSING}"


def test_the_scheduler_asks_to_be_woken_when_the_ten_seconds_are_over():
    made = Desk().feed(pod("p", "g", cpu="1")).apply()
    assert made.cache.next_wake() == made.now + 10_000_000


def test_a_pod_whose_group_comes_in_time_is_placed_and_told_nothing():
    made = Desk().feed(node("n1"), pod("p", "g", cpu="1"))
    made.cycle(9)
    made.feed(group("g"))
    made.cycle(9)
    assert made.world.binds == {"p": "n1"}
    assert told(made) == []


def test_a_group_in_another_namespace_is_another_group():
    made = Desk().feed(node("n1"), group("g", namespace="b"), pod("p", "g", cpu="1"))
    made.cycle(11)
    made.cycle()
    assert made.world.binds == {}
    assert told(made) == [MISSING]


def test_a_pod_whose_group_is_deleted_while_it_waits_is_told_too():
    made = Desk().feed(group("g"), pod("p", "g", cpu="1"))
    made.cycle()
    made.delete(group("g"))
    made.cycle(9)
    assert MISSING not in told(made)
    made.cycle(1)
    made.cycle()
    assert told(made).count(MISSING) == 1


def allocated(made):
    """The cpu that was last written as allocated to each queue; never written reads as 0."""
    written = {patch.name: patch.body["status"]["allocated"]["cpu"] for patch in made.world.patches("Queue")}
    return {"root": "0", "default": "0", **written}


def test_pods_without_a_group_count_for_no_queue():
    made = Desk().feed(node("n1"), pod("p", "g", cpu="3", node="n1"))
    made.cycle()
    assert allocated(made) == {"root": "0", "default": "0"}
    made.feed(group("g"))
    made.cycle()
    assert allocated(made) == {"root": "3", "default": "3"}
    made.delete(group("g"))
    made.cycle()
    assert allocated(made) == {"root": "0", "default": "0"}


# ---- bad objects (ours 7)


def test_a_bad_pod_is_told_once_counts_for_nothing_and_comes_back_when_it_is_mended():
    bad = pod("p", "g", cpu="-1")
    made = Desk().feed(node("n1"), group("g"), bad)
    for _ in range(3):
        made.modify(bad)
        made.cycle()
    notes = [note for note in made.world.notes if note[1] == "InvalidObject"]
    assert len(notes) == 1
    assert "Pod a/p: spec.containers[0].resources.requests.cpu: -1 is negative" in notes[0][2]
    assert made.cluster.tasks == {}
    assert "-1 is negative" in made.cache.record.explain("a/g")
    made.modify(pod("p", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
    assert "negative" not in made.cache.record.explain("a/g")
    made.modify(bad)
    made.cycle()
    assert len([note for note in made.world.notes if note[1] == "InvalidObject"]) == 2


def test_a_running_pod_that_turns_bad_gives_its_room_back():
    made = Desk().feed(node("n1", cpu="2"), group("g", 0), pod("p", "g", cpu="2", node="n1")).apply()
    assert made.cluster.nodes.used[0].tolist()[0] == 2000
    made.modify(pod("p", "g", cpu="abc", node="n1")).apply()
    assert made.cluster.nodes.used[0].tolist() == [0, 0, 0]


BAD_NODES = [
    ("negative", {"cpu": "-1"}, "status.allocatable.cpu: -1 is negative"),
    ("unreadable", {"memory": "8 Gi"}, "status.allocatable.memory"),
    ("oversubscription", {"annotations": {"volcano.sh/oversubscription-cpu": "x"}}, "oversubscription-cpu"),
]


@pytest.mark.parametrize(("case", "change", "text"), BAD_NODES, ids=[row[0] for row in BAD_NODES])
def test_a_bad_node_leaves_the_model_and_comes_back_when_it_is_mended(case, change, text):
    made = Desk().feed(node("n1", **change), node("n2")).apply()
    assert [record.name for record in made.cluster.nodes.records[: made.cluster.nodes.count]] == ["n2"]
    assert [message for name, _, message in made.world.notes if name == "n1" and text in message]
    made.modify(node("n1")).apply()
    assert made.cluster.nodes.count == 2


# ---- pods of others (cache 3, ours 33)

FOREIGN = [
    ("with a node", {"node": "n1"}, True),
    ("without a node", {}, False),
    ("finished", {"node": "n1", "phase": "Succeeded"}, False),
    ("leaving", {"node": "n1", "deleting": True}, True),
]


@pytest.mark.parametrize(("case", "fields", "taken"), FOREIGN, ids=[row[0] for row in FOREIGN])
def test_pods_of_other_schedulers_count_only_while_they_hold_room(case, fields, taken):
    made = Desk().feed(node("n1"), pod("alien", scheduler="else", cpu="1", **fields)).apply()
    assert bool(made.cluster.tasks) == taken
    assert made.cluster.nodes.used[0].tolist()[0] == (1000 if taken else 0)


def test_own_pods_are_followed_in_every_phase():
    made = Desk(options=Options(scheduler_name=("volcano", "second")))
    for i, phase in enumerate(("Pending", "Running", "Succeeded", "Failed", "Unknown")):
        made.feed(pod(f"p-{i}", "g", phase=phase, scheduler=("volcano", "second")[i % 2]))
    made.apply()
    assert len(made.cluster.tasks) == 5


def test_a_foreign_pod_that_finishes_gives_its_room_back():
    made = Desk().feed(node("n1"), pod("alien", scheduler="else", cpu="1", node="n1")).apply()
    made.modify(pod("alien", scheduler="else", cpu="1", node="n1", phase="Failed")).apply()
    assert made.cluster.nodes.used[0].tolist() == [0, 0, 0]


# ---- nodes


def test_only_nodes_with_one_of_the_selected_labels_are_served():
    made = Desk(options=Options(node_selector=("pool:batch", "pool:gpu")))
    made.feed(*(node(f"n-{pool}", labels={"pool": pool}) for pool in ("batch", "gpu", "web")), node("n-none")).apply()
    assert [record.name for record in made.cluster.nodes.records] == ["n-batch", "n-gpu"]
    made.modify(node("n-gpu", labels={"pool": "web"})).apply()
    assert [record.name for record in made.cluster.nodes.records] == ["n-batch"]


def test_a_node_that_is_gone_keeps_its_pods_under_its_name_until_it_is_back():
    made = Desk().feed(node("n1", cpu="4"), pod("p", "g", cpu="3", node="n1")).apply()
    made.delete(node("n1")).apply()
    assert made.cluster.nodes.count == 0
    made.feed(node("n1", cpu="4"), group("g", 0), pod("q", "g", cpu="2"))
    made.cycle()
    assert made.world.binds == {}
    assert made.cluster.nodes.used[0].tolist()[0] == 3000


def test_a_name_that_a_node_offers_later_counts_for_pods_that_asked_before():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", requests={"example.com/chip": "1"}))
    made.feed(pod("old", "g", node="n1", requests={"example.com/chip": "1"}))
    made.cycle()
    assert "Insufficient example.com/chip" in made.cache.record.explain("a/g")
    made.modify(node("n1", **{"example.com__chip": "2"}))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
    column = made.cluster.vocabulary.columns["example.com/chip"]
    assert made.cluster.nodes.used[0].tolist()[column] == 2000


NODES = ("n1", "n2", "n3")
KEPT = {
    "NUMA of a node": ({"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "name": "n2"}, ["n2"]),
    "NUMA of no node": ({"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "name": "n9"}, []),
    "cards": ({"apiVersion": "pumice.dev/v1alpha1", "kind": "CardGeometries", "name": "n2"}, [*NODES]),
    "anything else": ({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "name": "n2"}, []),
}


@pytest.mark.parametrize(("said", "touched"), KEPT.values(), ids=KEPT.keys())
def test_the_nodes_about_which_an_object_says_something_are_looked_at_anew(said, touched):
    made = Desk().feed(*(node(name) for name in NODES)).apply()
    before = made.cluster.nodes.position
    manifest = {**{key: said[key] for key in ("apiVersion", "kind")}, "metadata": metadata(said["name"])}
    made.feed(manifest).apply()
    assert [made.cluster.nodes.records[row].name for row in made.cluster.nodes.rows_since(before)] == touched


# ---- priority classes


def priorities(made):
    return {key: job.priority for key, job in made.cluster.jobs.items()}


def test_priority_is_that_of_the_class_else_of_the_default_else_zero():
    made = Desk().feed(group("g", priorityClassName="gold"), group("h"), priority_class("gold", 100)).apply()
    assert priorities(made) == {"a/g": 100, "a/h": 0}
    made.feed(priority_class("base", 5, default=True)).apply()
    assert priorities(made) == {"a/g": 100, "a/h": 5}
    made.delete(priority_class("gold", 100)).apply()
    assert priorities(made) == {"a/g": 5, "a/h": 5}
    made.delete(priority_class("base", 5, default=True)).apply()
    assert priorities(made) == {"a/g": 0, "a/h": 0}


def test_priority_classes_can_be_left_out():
    made = Desk(options=Options(priority_class=False))
    made.feed(group("g", priorityClassName="gold"), priority_class("gold", 100)).apply()
    assert priorities(made) == {"a/g": 0}


# ---- queues


def test_jobs_of_a_queue_that_is_missing_wait_until_it_is_there():
    made = Desk().feed(node("n1"), group("g", queue="q"), pod("p", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {}
    assert made.world.patches("PodGroup") == []
    made.feed(queue("q"))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
    made.delete(queue("q")).feed(pod("p2", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
    made.feed(queue("q"))
    made.cycle()
    assert made.world.binds == {"p": "n1", "p2": "n1"}


def test_a_group_without_a_queue_is_in_the_default_queue():
    made = Desk(options=Options(default_queue="shared"), queues=("shared",)).feed(group("g")).apply()
    assert made.cluster.jobs["a/g"].queue == "shared"


def test_the_queues_that_must_exist_are_created_if_the_cluster_lacks_them():
    made = Desk(queues=("default",)).apply()
    assert made.world.created == ["root"]
    (effect,) = made.world.of(Create)
    assert effect.manifest["spec"] == {"weight": 1, "reclaimable": False}


def test_queues_that_are_all_gone_with_their_kind_are_created_again():
    made = Desk(queues=("default", "root")).apply()
    made.delete(queue("default")).apply()
    assert made.world.created == []
    made.delete(queue("root")).apply().apply()
    assert made.world.created == ["root", "default"]
    made.settle(made.world.of(Create)[0], "notfound")
    made.apply()
    assert made.world.created == ["root", "default", "root"]


# ---- writes that fail


def test_a_status_that_could_not_be_written_is_written_in_the_next_cycle():
    made = Desk().feed(node("n1", cpu="1"), group("g"), pod("p", "g", cpu="2"))
    made.cycle()
    written = {kind: made.world.patches(kind)[-1] for kind in ("PodGroup", "Pod", "Queue")}
    for effect in written.values():
        made.settle(effect, "conflict")
    made.world.effects.clear()
    made.cycle()
    for kind, effect in written.items():
        again = [patch for patch in made.world.patches(kind) if patch.name == effect.name]
        assert len(again) == 1, kind
        assert set(again[0].body["status"]) == set(effect.body["status"])


def test_an_older_status_that_arrives_while_ours_is_on_its_way_does_not_undo_it():
    made = Desk().feed(node("n1", cpu="1"), group("g"), pod("p", "g", cpu="2"))
    made.cycle()
    assert made.cluster.jobs["a/g"].phase == "Inqueue"
    made.modify(group("g", annotations={"any": "change"}))
    made.cycle()
    assert made.cluster.jobs["a/g"].phase == "Inqueue"


# ---- binds and evictions that were sent


def test_an_assumed_bind_survives_any_other_change_of_the_pod():
    made = Desk().feed(node("n1", cpu="2"), group("g"), pod("p", "g", cpu="2"))
    made.cycle()
    made.modify(pod("p", "g", cpu="2", labels={"any": "change"}))
    made.feed(group("h"), pod("q", "h", cpu="1"))
    made.cycle()
    assert made.task("p").status == Status.BINDING
    assert [effect.name for effect in made.world.of(Bind)] == ["p"]
    made.modify(pod("p", "g", cpu="2", node="n1", phase="Pending")).apply()
    assert made.task("p").status == Status.BOUND


def test_a_pod_that_is_deleted_while_its_bind_is_under_way_leaves_nothing():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="2"))
    made.cycle()
    made.delete(pod("p", "g")).settle(made.world.of(Bind)[0], "notfound").apply()
    assert made.cluster.nodes.used[0].tolist() == [0, 0, 0]
    assert made.cache.next_wake() is None


def evicted(made):
    session = made.session()
    statement = session.statement()
    statement.evict([made.task("p")], "test")
    statement.commit()
    session.rollback()


def test_an_eviction_is_repeated_with_growing_delays_until_the_pod_is_going():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="2", node="n1"))
    evicted(made)
    for tries, delay in ((1, 5_000), (2, 10_000), (3, 20_000)):
        made.settle(made.world.of(Evict)[-1], ("unavailable", "unknown", "conflict")[tries - 1]).apply()
        made.now += delay - 1
        made.apply()
        assert len(made.world.of(Evict)) == tries
        assert made.cache.next_wake() == made.now + 1
        made.now += 1
        made.apply()
        assert len(made.world.of(Evict)) == tries + 1
    made.modify(pod("p", "g", cpu="2", node="n1", deleting=True)).apply()
    made.settle(made.world.of(Evict)[-1], "unknown").apply()
    made.now += 60_000_000
    made.apply()
    assert len(made.world.of(Evict)) == 4


def test_an_evicted_pod_counts_as_leaving_though_its_object_does_not_say_so_yet():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="2", node="n1"))
    evicted(made)
    made.modify(pod("p", "g", cpu="2", node="n1", labels={"any": "change"})).apply()
    assert made.task("p").status == Status.EVICTING
    assert made.cluster.nodes.releasing[0].tolist()[0] == 2000


def test_an_object_that_breaks_the_machinery_costs_nobody_else_a_cycle(monkeypatch):
    desk = Desk()
    add_task = desk.cluster.add_task

    def broken(task, node):
        add_task(task, node)
        if task.name == "bad":
            raise RuntimeError("no such luck")

    monkeypatch.setattr(desk.cluster, "add_task", broken)
    desk.feed(node("n1"), group("g"), pod("bad", node="n1", cpu="2"))
    desk.feed(pod("good", "g", cpu="6"))
    record = desk.cycle()
    assert desk.world.binds == {"good": "n1"}
    assert "Pod a/bad could not be taken in: RuntimeError: no such luck" in "\n".join(record.trace())
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]


def test_an_answer_that_breaks_the_machinery_costs_no_other_answer(monkeypatch):
    desk = Desk().feed(node("n1"), group("g", 2), pod("a", "g", cpu="1"), pod("b", "g", cpu="1"))
    desk.cycle()
    settle_bind = desk.cache.assumptions.settle_bind

    def broken(effect, outcome, now):
        if effect.name == "a":
            raise RuntimeError("no such luck")
        settle_bind(effect, outcome, now)

    monkeypatch.setattr(desk.cache.assumptions, "settle_bind", broken)
    for bind in desk.world.of(Bind):
        desk.settle(bind)
    record = desk.cycle()
    assert [name for name, reason, _ in desk.world.notes if reason == "Scheduled"] == ["b"]
    assert "the answer to Bind a/a could not be taken in: RuntimeError: no such luck" in "\n".join(record.trace())
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]


@pytest.mark.parametrize("part", ["assumptions", "publisher", "pods", "unserved"])
def test_a_part_that_breaks_down_in_its_review_costs_no_other_its_own(monkeypatch, part):
    desk = Desk().feed(node("n1"))
    desk.cycle()
    looked = []

    def look(name):
        def review(_now):
            looked.append(name)
            if name == part:
                raise RuntimeError("no such luck")

        return review

    parts = ("assumptions", "publisher", "pods", "unserved")
    for name in parts:
        monkeypatch.setattr(getattr(desk.cache, name), "review", look(name))
    desk.feed(group("g"), pod("p", "g", cpu="1"))
    desk.cycle()
    assert looked == list(parts)
    assert desk.world.binds == {"p": "n1"}
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]


def test_a_bind_that_breaks_us_when_it_is_looked_after_costs_the_next_nothing(monkeypatch):
    desk = Desk().feed(node("n1"), group("g", 2), pod("a", "g", cpu="1"), pod("b", "g", cpu="1"))
    desk.cycle(31)
    send = desk.world.send

    def broken(effect):
        if isinstance(effect, Read) and effect.name == "a":
            raise RuntimeError("no such luck")
        send(effect)

    monkeypatch.setattr(desk.world, "send", broken)
    desk.cycle()
    assert desk.world.reads == ["b"]
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]
