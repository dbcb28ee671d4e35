"""Whether anybody has room is known without looking at all nodes after each placement, and is what looking at all of them gives."""

import random

import pytest

import builders
from pumice.framework import shortcuts
from pumice.framework.no_room import NoRoom
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads
from pumice.framework.subject import Subject

POLICY = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def is_too_large(cluster, task):
    """Look at every node: too large is who asks for more of something than any of them will have free."""
    rooms = [cluster.nodes.future_idle_at(record.row).tolist() for record in cluster.nodes.by_name.values()]
    asked = enumerate(task.shape.request.vector.tolist())
    return any(needed > max(room[column] for room in rooms) for column, needed in asked)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_remembered_of_nodes_is_what_they_have(seed):
    chance = random.Random(seed)  # noqa: S311  drawn the same each time
    desk = builders.Desk(POLICY)
    nodes = [
        builders.node(f"n{each}", cpu=str(chance.randint(1, 6)), memory=f"{chance.randint(1, 6)}Gi")
        for each in range(4)
    ]
    desk.feed(*nodes)
    for each in range(12):
        asked = {"cpu": str(chance.randint(1, 4)), "memory": f"{chance.randint(1, 4)}Gi"}
        desk.feed(builders.group(f"g{each}", 1), builders.pod(f"p{each}", f"g{each}", **asked))
    session = desk.session()
    known, waiting, statement = NoRoom(session), list(desk.cluster.tasks.values()), session.statement()
    answers = set()
    for _ in range(60):
        asking = chance.choice(waiting)
        answers.add(known.is_too_large(asking))
        assert known.is_too_large(asking) == is_too_large(desk.cluster, asking)
        placed = [task for task in waiting if task.node is not None]
        if placed and chance.random() < 0.3:
            statement.discard()
            statement = session.statement()
        elif asking.node is None and not is_too_large(desk.cluster, asking):
            fitting = [
                record
                for record in desk.cluster.nodes.by_name.values()
                if (desk.cluster.nodes.idle_at(record.row) >= asking.shape.request.vector).all()
            ]
            if fitting:
                statement.allocate([asking], [chance.choice(fitting)])
    assert seed > 0 or answers == {True, False}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("rooms", [("3",), ("1", "3"), ("3", "5"), ("1", "6"), ("1", "1", "7", "0")])
@pytest.mark.parametrize("leaves", [0, 2])
def test_nodes_are_short_of_room_for_more_than_they_will_hold_one_by_one(rooms, count, leaves):
    desk = builders.Desk(POLICY).feed(*(builders.node(f"n{i}", cpu=cpu) for i, cpu in enumerate(rooms)))
    desk.feed(builders.node("over", cpu="1"), builders.group("old", 1), builders.group("g", 1))
    desk.feed(builders.pod("old", "old", cpu="9", node="over"), builders.pod("g", "g", cpu="2"))
    desk.feed(builders.pod("leaves", "old", cpu=str(leaves), node="n0", deleting=9))
    known = NoRoom(desk.session())
    assert known.is_short(desk.task("g"), count) is (count > sum(int(cpu) // 2 for cpu in rooms))


def test_for_what_no_node_has_room_there_is_too_little_for_any_number():
    desk = builders.Desk(POLICY).feed(builders.node("n", cpu="4"), builders.group("g", 1))
    desk.feed(builders.pod("large", "g", cpu="5"), builders.pod("nothing", "g"))
    known = NoRoom(desk.session())
    assert [known.is_short(desk.task("large"), count) for count in (1, 2)] == [True, True]
    assert [known.is_short(desk.task("nothing"), count) for count in (1, 100)] == [False, False]


# ---- why equal pods find no node


class Choosy(Plugin):
    """Refuses pods of role `odd` before nodes are looked at, a queue its pods of role `beyond`, and asks of nodes what each pod is called if it is told to."""

    name = "choosy"
    limits = nodes = False

    def open(self, session):
        if self.limits:
            session.pre_predicate.add(lambda subject: "odd" if subject.task.role == "odd" else None, reads=Reads(0))
            session.allocatable.add(lambda _, demand: "beyond" if demand.tasks[0].role == "beyond" else None)
        if self.nodes:
            session.predicate.add(lambda _, nodes: None, reads=Reads.TASK)


PLUGINS = {
    "nobody": Choosy,
    "queues": type("Limiting", (Choosy,), {"limits": True}),
    "each pod": type("Naming", (Choosy,), {"nodes": True}),
}


def offers(chance):
    """What a node offers, often none of it."""
    return {"cpu": str(chance.randint(1, 4)), "memory": f"{chance.randint(1, 4)}Gi", "pods": str(chance.randint(1, 2))}


@pytest.mark.parametrize("taken", [shortcuts.ALL, shortcuts.NONE], ids=["", "plain"])
@pytest.mark.parametrize("asks", PLUGINS)
@pytest.mark.parametrize("seed", range(30))
def test_who_asks_for_more_than_any_node_has_is_told_what_looking_at_each_would_have_told(seed, asks, taken):
    chance = random.Random(seed)  # noqa: S311  drawn the same each time
    policy = POLICY.replace("- name: gang", "- name: gang\n  - name: choosy")
    desk = builders.Desk(policy, PLUGINS[asks], taken=taken).feed(builders.group("old", 1))
    for i in range(chance.randint(0, 4)):
        desk.feed(builders.node(f"n{i}", **offers(chance), cordoned=chance.random() < 0.2))
        for kind in ("stays", "goes"):
            if chance.random() < 0.4:
                desk.feed(builders.pod(f"{kind}-{i}", "old", cpu="1", node=f"n{i}", deleting=9 * (kind == "goes")))
    for i in range(6):
        wish = {"cpu": str(chance.randint(0, 6)), "memory": f"{chance.randint(0, 6)}Gi"}
        role = chance.choice(["", "", "odd", "beyond"])
        desk.feed(builders.group(f"g{i}", 1), builders.pod(f"g{i}", f"g{i}", role=role, **wish))
    session = desk.session()
    known, queue = NoRoom(session), desk.cluster.queues["default"]
    for i in range(6):
        task = desk.task(f"g{i}")
        told = known.failure(queue, task.job, [task])
        refused = asks == "queues" and task.role in ("odd", "beyond")
        if (
            refused
            or asks == "each pod"
            or taken is shortcuts.NONE
            or not (desk.cluster.nodes.by_name and is_too_large(desk.cluster, task))
        ):
            assert told is None
        else:
            assert told == session.evaluate(Subject(task, queue)).failure(released=True)
