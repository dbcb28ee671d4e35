"""Whether anybody has room is known without looking at all nodes after each placement, and is what looking at all of them gives."""

import random

import pytest

import builders
from pumice.framework.no_room import NoRoom

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


@pytest.mark.parametrize(("count", "is_short"), [(1, False), (2, False), (3, False), (4, True)])
@pytest.mark.parametrize("rooms", [("3", "5"), ("1", "6"), ("1", "1", "7", "0")])
def test_nodes_are_short_of_room_for_more_than_they_hold_one_by_one(rooms, count, is_short):
    desk = builders.Desk(POLICY).feed(*(builders.node(f"n{i}", cpu=cpu) for i, cpu in enumerate(rooms)))
    desk.feed(builders.node("over", cpu="1"), builders.group("old", 1), builders.group("g", 1))
    desk.feed(builders.pod("old", "old", cpu="9", node="over"), builders.pod("g", "g", cpu="2"))
    known = NoRoom(desk.session())
    assert known.is_short(desk.task("g"), count) is is_short


def test_for_what_no_node_has_room_there_is_too_little_for_any_number():
    desk = builders.Desk(POLICY).feed(builders.node("n", cpu="4"), builders.group("g", 1))
    desk.feed(builders.pod("large", "g", cpu="5"), builders.pod("nothing", "g"))
    known = NoRoom(desk.session())
    assert [known.is_short(desk.task("large"), count) for count in (1, 2)] == [True, True]
    assert [known.is_short(desk.task("nothing"), count) for count in (1, 100)] == [False, False]
