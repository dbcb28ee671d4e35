"""Priority queues over a tree give the order of the flat keys, whatever changes in between."""

from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.framework import branching


class Node:
    def __init__(self, name):
        self.name = name
        self.entry = ()

    def __repr__(self):
        return self.name


class Item:
    def __init__(self, name, path):
        self.name = name
        self.path = path


def forest(shape):
    """Items on paths that share branches: each item names its branches by letters, the same prefix being the same branch."""
    branches = {}
    items = []
    for index, letters in enumerate(shape):
        path = [branches.setdefault(letters[:depth], Node(letters[:depth])) for depth in range(1, len(letters) + 1)]
        items.append(Item(f"{index:02}", tuple(path)))
    return branches, items


def flat(item):
    return branching.along(item.path), item.name


ENTRIES = st.one_of(st.just(()), st.tuples(st.booleans(), st.integers(0, 2)))
STEPS = st.tuples(st.sampled_from(["pop", "push", "change", "all"]), st.integers(0, 7), st.lists(ENTRIES, max_size=3))


def rewrite(item, entries):
    for branch, entry in zip(item.path, entries, strict=False):
        branch.entry = entry


def pop_and_check(queue, inside):
    popped = queue.pop()
    assert popped is min(inside, key=flat)
    inside.remove(popped)


@settings(max_examples=drawn(150), deadline=None)
@given(shape=st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=8), steps=st.lists(STEPS))
def test_a_tree_queue_gives_the_order_of_the_flat_keys(shape, steps):
    _, items = forest(shape)
    queue = branching.TreeQueue(lambda item: item.path, lambda item: (item.name,), items)
    inside = list(items)
    for step, number, entries in steps:
        item = items[number % len(items)]
        if step == "push":
            queue.push(item)
            inside = [each for each in inside if each is not item] + [item]
        elif step == "change":
            # What changes is one path, told by an item below it that may be in the queue or not.
            rewrite(item, entries)
            queue.touch(item)
        elif step == "all":
            for each in items:
                rewrite(each, entries)
            queue.touch_all()
        elif inside:
            pop_and_check(queue, inside)
        assert len(queue) == len(inside)
    while inside:
        pop_and_check(queue, inside)


def test_empty_entries_at_the_end_of_a_path_count_no_more_than_a_shorter_path():
    _, (long, short) = forest(["ab", "c"])
    assert branching.along(long.path) == branching.along(short.path) == ()
    long.path[1].entry = (False, 1)
    assert branching.along(short.path) < branching.along(long.path)


def test_items_of_one_branch_are_ordered_by_their_own_key():
    _, items = forest(["a", "a", "b"])
    queue = branching.TreeQueue(lambda item: item.path, lambda item: (-int(item.name),), items)
    assert [queue.pop().name for _ in range(3)] == ["02", "01", "00"]
