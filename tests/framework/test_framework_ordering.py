"""Orders: keys by tier, total by construction, and always those of now."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GANG, Desk, group, node, pod
from drawing import drawn
from pumice.cache.effects import Bind
from pumice.framework.breakdowns import WrongAnswerError
from pumice.framework.configuration import SWITCHES, PluginSetting
from pumice.framework.ordering import Ordering
from pumice.framework.plugin import Plugin
from pumice.framework.points import EVERYTHING, Point
from pumice.framework.registration import Roster, Slot


class Item:
    def __init__(self, name, key=0):
        self.name = name
        self.key = key

    def __repr__(self):
        return f"{self.name}:{self.key}"


def ordering(*tiers):
    """An order of items by functions, one list of functions a tier, and then by name."""
    roster = Roster(len(tiers))
    made = Point("Order", Ordering[Item], "item", says="", fallback=("name",)).extension(roster)
    for tier, functions in enumerate(tiers):
        roster.slot = Slot(tier, "test", PluginSetting("test", dict(SWITCHES), {}, 0), EVERYTHING)
        for add in functions:
            add(made)
    return made


def keyed(function):
    return lambda made: made.add(function)


def compared(function):
    return lambda made: made.add_comparator(function)


def drain(queue):
    return [queue.pop() for _ in range(len(queue))]


def test_the_first_plugin_that_tells_two_items_apart_decides():
    items = [Item("b", (1, 2)), Item("a", (1, 3)), Item("c", (0, 9)), Item("d", (1, 2))]
    made = ordering([keyed(lambda i: i.key[0])], [keyed(lambda i: -i.key[1])])
    assert [item.name for item in made.sort(items)] == ["c", "a", "b", "d"]
    assert [item.name for item in drain(made.queue(items))] == ["c", "a", "b", "d"]


def test_a_comparator_is_a_key_among_others():
    items = [Item("b", 10), Item("a", 21), Item("c", 11), Item("d", 20)]
    last_digit = compared(lambda left, right: right.key % 10 - left.key % 10)
    made = ordering([last_digit, keyed(lambda i: i.key)])
    assert [item.name for item in made.sort(items)] == ["c", "a", "b", "d"]
    assert [item.name for item in drain(made.queue(items))] == ["c", "a", "b", "d"]


def test_a_comparator_that_ties_leaves_the_order_total():
    items = [Item(name) for name in "cab"]
    assert [item.name for item in ordering([compared(lambda *_: 0)]).sort(items)] == ["a", "b", "c"]


def test_two_items_compare_as_they_are_sorted():
    first, second = Item("a", 1), Item("b", 0)
    made = ordering([keyed(lambda i: i.key)])
    assert [made.compare(*pair) for pair in ((first, second), (second, first), (first, first))] == [1, -1, 0]


def test_what_is_left_is_ordered_by_one_attribute_whatever_that_is():
    assert [item.name for item in drain(ordering([]).queue([Item(10), Item(9)]))] == [9, 10]


@pytest.mark.parametrize("given", [float("nan"), (1, float("nan")), "raises"])
def test_a_part_that_breaks_down_about_one_that_comes_later_is_left_out_and_all_who_wait_are_ordered_anew(given):
    def part(item):
        if item.key == "raises":
            raise ValueError("not this one")
        return item.key

    made = ordering([keyed(lambda _: 0), keyed(part)], [keyed(lambda item: item.name)])
    waiting = made.queue([Item("a", 2), Item("b", 1)])
    waiting.push(Item("c", given))
    assert [item.name for item in drain(waiting)] == ["a", "b", "c"]
    assert [item.name for item in made.sort([Item("b", 1), Item("a", 2)])] == ["a", "b"]
    assert len(made.functions()) == 2


def test_of_several_comparators_the_one_is_left_out_that_breaks_down():
    def broken(_left, _right):
        raise ValueError("no idea")

    made = ordering([compared(lambda left, right: left.key - right.key), compared(broken)])
    assert [item.name for item in made.sort([Item("b", 1), Item("c", 0), Item("a", 1)])] == ["c", "a", "b"]
    assert len(made.functions()) == 1


class Branch:
    def __init__(self, *entry):
        self.entry = entry


@pytest.mark.parametrize("when", ["at first", "once", "when it is pushed", "when it is touched"])
def test_an_order_along_a_tree_that_breaks_down_is_left_out_everywhere_and_nobody_is_lost(when):
    branches, breaks = {"a": Branch(1), "b": Branch(0)}, iter([when == "once"])

    def path(item):
        if item.name == "z" and next(breaks, False):
            raise ValueError("not now")
        return [branches[item.key]]

    made = ordering([lambda made: made.add_tree(path)], [keyed(lambda item: item.name)])
    items = [Item("x", "a"), Item("y", "b"), Item("z", "a")]
    if when == "at first":
        branches["b"].entry = ("text",)
    queue = made.queue(items[:2] if when == "when it is pushed" else items)
    if when == "when it is pushed":
        items[2].key = "unknown"
        queue.push(items[2])
    elif when == "when it is touched":
        branches["b"].entry = ("text",)
        made.touch(items[1])
    assert [item.name for item in drain(queue)] == ["x", "y", "z"]
    assert len(made.functions()) == 1
    assert [item.name for item in made.sort(items)] == ["x", "y", "z"]


def test_a_touched_item_moves_in_every_queue_that_holds_it():
    items = [Item("a", 1), Item("b", 2), Item("c", 3)]
    made = ordering([keyed(lambda i: i.key)])
    first, second = made.queue(items), made.queue(items[1:])
    items[2].key = 0
    made.touch(items[2])
    assert (first.pop().name, second.pop().name) == ("c", "c")
    items[2].key = 9
    made.touch(items[2])
    assert [item.name for item in drain(first)] == ["a", "b"]


def test_an_item_is_in_a_queue_once_however_often_it_is_pushed():
    made = ordering([keyed(lambda i: i.key)])
    item, other = Item("a", 1), Item("b", 2)
    waiting = made.queue([item, other])
    item.key = 3
    waiting.push(item)
    waiting.push(item)
    assert len(waiting) == 2
    assert drain(waiting) == [other, item]


operations = st.lists(
    st.tuples(st.sampled_from(["push", "pop", "change", "change all"]), st.integers(0, 5), st.integers(0, 3)),
    max_size=40,
)


@settings(max_examples=drawn(150), deadline=None)
@given(operations=operations)
def test_the_first_out_is_always_the_first_of_now(operations):
    items = [Item(str(i), i % 3) for i in range(6)]
    made = ordering([keyed(lambda i: i.key)])
    waiting, inside = made.queue(items[:3]), set(items[:3])
    for operation, which, key in operations:
        if operation == "push":
            waiting.push(items[which])
            inside.add(items[which])
        elif operation == "change":
            items[which].key = key
            made.touch(items[which])
        elif operation == "change all":
            for item in items:
                item.key = (item.key + key) % 4
            made.touch_all()
        elif inside:
            first = waiting.pop()
            assert first is min(inside, key=lambda i: (i.key, i.name))
            inside.remove(first)
        assert len(waiting) == len(inside)


rounds = st.lists(
    st.tuples(
        st.sampled_from(["push", "pop", "change", "lead", "lead", "lead"]),
        st.integers(0, 11),
        st.integers(0, 3),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=drawn(200), deadline=None)
@given(rounds=rounds)
def test_items_that_lead_leave_together_as_they_would_one_by_one(rounds):
    items = [Item(f"{i:02}", i % 3) for i in range(12)]
    made = ordering([keyed(lambda i: i.key)])
    waiting, inside = made.queue(items[:8]), set(items[:8])

    def first(count):
        return sorted(inside, key=lambda i: (i.key, i.name))[:count]

    for operation, which, key, count, pushed in rounds:
        if operation == "push" and items[which] not in inside:
            waiting.push(items[which])
            inside.add(items[which])
        elif operation == "change":
            items[which].key = key
            made.touch(items[which])
        elif operation == "pop" and inside:
            inside.remove(waiting.pop())
        elif operation == "lead":
            entries = waiting.lead(which)
            assert [item for _, _, item in entries] == first(which)
            came = items[which] if pushed and items[which] not in inside else None
            if came is not None:  # between the two, as whoever has another turn to come
                waiting.push(came)
                inside.add(came)
            left = waiting.leave_together(entries[:count])
            alone = 0
            while alone < min(count, len(entries)) and first(1) == [entries[alone][2]]:
                inside.remove(entries[alone][2])
                alone += 1
            assert left == alone
            if key == 3:
                waiting.take_back(entries[:left])
                inside.update(item for _, _, item in entries[:left])
                waiting.put_back(entries)
            else:
                waiting.put_back(entries[left:])
        assert len(waiting) == len(inside)
    assert drain(waiting) == first(len(inside))


# ---- task order


NAMED = [
    ("by number, not by text", {"mpi-w-10": 0, "mpi-w-2": 0}, ["mpi-w-2", "mpi-w-10"]),
    ("numbers before creation", {"mpi-w-1": 0, "mpi-w-0": 5}, ["mpi-w-0", "mpi-w-1"]),
    ("equal numbers by creation", {"a-x-0": 3, "b-x-0": 1}, ["b-x-0", "a-x-0"]),
    ("then by uid", {"b-x-0": 1, "a-x-0": 1}, ["a-x-0", "b-x-0"]),
    ("two parts have no number", {"solo-0": 2, "solo-1": 1}, ["solo-1", "solo-0"]),
    ("one without a number: nobody's counts", {"x-w-0": 9, "x-w-1": 1, "lead": 5}, ["x-w-1", "lead", "x-w-0"]),
]


@pytest.mark.parametrize(("case", "created", "expected"), NAMED, ids=[case for case, *_ in NAMED])
def test_the_number_in_the_name_counts_only_if_every_task_has_one(case, created, expected):
    desk = Desk().feed(group("g", 9), *(pod(name, "g", cpu="1", created=at) for name, at in created.items()))
    session = desk.session()
    assert [task.name for task in session.task_order.sort(desk.cluster.jobs["a/g"].tasks.values())] == expected


def test_priority_comes_before_the_number_in_the_name():
    desk = Desk().feed(group("g", 9), pod("x-w-0", "g", cpu="1"), pod("x-w-1", "g", cpu="1", priority=9))
    session = desk.session()
    assert [t.name for t in session.task_order.sort(desk.cluster.jobs["a/g"].tasks.values())] == ["x-w-1", "x-w-0"]


def test_jobs_without_an_order_plugin_go_by_creation_and_then_by_name():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: predicates}]\n')
    desk.feed(group("b"), group("a"), group("c", created=0), group("old", created=0, namespace="0"))
    desk.modify(group("late", created=9, namespace="0"))
    session = desk.session()
    keys = [job.key for job in session.job_order.sort(desk.cluster.jobs.values())]
    assert keys == ["0/old", "a/a", "a/b", "a/c", "0/late"]


class Shares(Plugin):
    """Orders queues by what was placed for them in this cycle, as its handler counts it."""

    name = "shares"
    points = frozenset({"QueueOrder"})

    def open(self, session):
        self.placed = {}
        session.queue_order.add(lambda queue: self.placed.get(queue.name, 0))
        session.add_handler(self.follow)

    def follow(self, run, sign):
        name = run.tasks[0].job.queue
        self.placed[name] = self.placed.get(name, 0) + sign * len(run.tasks)


def test_queues_take_turns_by_shares_that_a_handler_keeps():
    """Shares are live (ours 13): what a handler has just counted orders the queues before the next one is served."""
    from builders import node, queue

    config = GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: shares}")
    desk = Desk(config, Shares).feed(node("n1", cpu="6"), *(queue(name) for name in ("red", "green", "blue")))
    for name in ("red", "green", "blue"):
        desk.feed(group(name, 1, queue=name), *(pod(f"{name}-w-{i}", name, cpu="1") for i in range(4)))
    desk.cycle()
    placed = [name.split("-")[0] for name in desk.world.binds]
    assert {name: placed.count(name) for name in set(placed)} == {"red": 2, "green": 2, "blue": 2}


class OddFirst(Plugin):
    """Orders tasks by their priority, and breaks down about one name."""

    name = "odd"
    points = frozenset({"TaskOrder"})

    def open(self, session):
        session.task_order.add(self.key)

    def key(self, task):
        if task.name == "broken":
            raise ValueError("this one")
        return -task.priority % 2, float("nan") if task.name == "odd" else task.priority


NAMED = st.lists(
    st.tuples(st.sampled_from(["w-", "v-", "w"]), st.integers(0, 12), st.integers(0, 3), st.integers(0, 2)),
    unique_by=lambda each: each[:2],
    max_size=12,
)


@settings(max_examples=drawn(60), deadline=None)
@given(groups=st.lists(NAMED, max_size=4), broken=st.sampled_from(["", "broken", "odd"]))
def test_tasks_of_many_jobs_are_put_in_order_at_once_as_those_of_each_job(groups, broken):
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: odd}]\n', OddFirst)
    for number, named in enumerate(groups):
        desk.feed(group(f"g{number}"))
        for head, index, priority, created in named:
            name = f"{head}{index}"
            desk.feed(pod(f"g{number}.{name}", f"g{number}", priority=priority, created=created, cpu="1"))
    if broken:
        desk.feed(group("g9"), pod(broken, "g9", cpu="1"))
    desk.apply()
    session = desk.session()
    listed = [list(job.tasks.values()) for job in desk.cluster.jobs.values()]
    before = [list(tasks) for tasks in listed]
    with pytest.raises((ValueError, WrongAnswerError), match=r"this one|NaN") if broken else contextlib.nullcontext():
        session.task_order.sort_each(listed)
    expected = before if broken else [session.task_order.sort(tasks) for tasks in before]
    assert listed == expected
    assert not session.breakdowns.found


def test_tasks_of_one_job_go_by_their_numbers_though_one_of_another_has_none():
    desk = Desk(GANG).feed(group("g"), group("h"), pod("a-w-10", "g"), pod("a-w-2", "g", created=1))
    desk.feed(pod("other", "h"))
    session = desk.session()
    listed = [list(desk.cluster.jobs[key].tasks.values()) for key in ("a/g", "a/h")]
    session.task_order.sort_each(listed)
    assert [[task.name for task in tasks] for tasks in listed] == [["a-w-2", "a-w-10"], ["other"]]


def test_a_job_whose_tasks_cannot_be_ordered_is_not_served_and_others_are():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: odd}]\n', OddFirst)
    for name in ("g1", "g2", "g3"):
        desk.feed(group(name, 2, phase="Inqueue"))
    desk.feed(*(pod(name, "g1", cpu="1") for name in ("b-1", "b-0")), pod("broken", "g2", cpu="1"))
    desk.feed(pod("c-0", "g2", cpu="1"), *(pod(name, "g3", cpu="1") for name in ("d-1", "d-0")), node("n"))
    desk.cycle()
    assert [effect.name for effect in desk.world.effects if isinstance(effect, Bind)] == ["b-0", "b-1", "d-0", "d-1"]
    assert "this one" in desk.cache.record.explain("a/g2")


@pytest.mark.parametrize("answer", [float("nan"), None, "first"])
def test_a_comparator_that_gives_no_number_is_left_out(answer):
    made = ordering([compared(lambda *_: answer)])
    assert [item.name for item in made.sort([Item("b"), Item("a")])] == ["a", "b"]
    assert made.functions() == []


# ---- along a tree


def treed(path):
    return lambda made: made.add_tree(path)


def hanging():
    """Two branches, the first of which holds two items."""
    left, right = Branch(1), Branch(2)
    places = {"a": left, "b": left, "c": right}
    return left, right, [Item(name) for name in places], lambda item: (places[item.name],)


def broken_down(_item):
    raise ValueError("no idea")


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("breaks", [True, False])
def test_whoever_changes_a_branch_touches_one_item_below_it_and_the_others_follow(leads, breaks):
    """Also where another part comes before the tree, and where one has broken down."""
    left, _, items, path = hanging()
    parts = [treed(path)] if leads else [keyed(lambda _: 0), treed(path)]
    made = ordering([*parts, *([keyed(broken_down)] if breaks else [])])
    assert [item.name for item in made.sort(items[::-1])] == ["a", "b", "c"]
    waiting = made.queue(items)
    assert getattr(waiting, "has_branches", False) is leads
    assert waiting.waiting() == items
    left.entry = (3,)
    made.touch(items[0])
    assert [item.name for item in made.sort(items)] == ["c", "a", "b"]
    assert [item.name for item in drain(waiting)] == ["c", "a", "b"]


def test_items_of_one_branch_are_ordered_by_the_parts_after_the_tree():
    _, _, items, path = hanging()
    items[0].key = 1
    waiting = ordering([treed(path)], [keyed(lambda item: item.key)]).queue(items)
    assert [item.name for item in drain(waiting)] == ["b", "a", "c"]


@pytest.mark.parametrize("place", ["before", "after", "another tree"])
def test_branches_are_kept_apart_where_one_tree_comes_before_every_other_part(place):
    _, _, items, path = hanging()
    by_name = keyed(lambda item: item.name)
    tiers = {"before": [by_name, treed(path)], "after": [treed(path), by_name], "another tree": [treed(path)] * 2}
    waiting = ordering(tiers[place]).queue(items)
    assert getattr(waiting, "has_branches", False) is (place == "after")
    assert [item.name for item in drain(waiting)] == ["a", "b", "c"]


def test_whatever_has_changed_branches_and_what_is_below_them_are_ordered_anew_where_everything_is():
    left, _, items, path = hanging()
    made = ordering([treed(path)], [keyed(lambda item: item.key)])
    waiting = made.queue(items)
    assert waiting.has_branches
    left.entry, items[0].key = (3,), 1
    made.touch_all()
    assert [item.name for item in drain(waiting)] == ["c", "b", "a"]


def test_where_a_part_is_left_out_whoever_waits_is_ordered_by_those_that_are_left():
    """Whoever it was about which it broke down."""
    made = ordering([keyed(lambda item: -item.key)], [keyed(lambda item: item.name)])
    waiting = made.queue([Item("a", 1), Item("b", 2), Item("c", 3)])
    assert waiting.pop().name == "c"
    assert [item.name for item in made.sort([Item("z", "none"), Item("y", 1)])] == ["y", "z"]
    assert [item.name for item in drain(waiting)] == ["a", "b"]
