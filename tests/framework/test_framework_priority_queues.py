"""Queues by keys of now, held against lists that are sorted anew for every question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_framework_ordering import Item, drain, keyed, ordering

from drawing import drawn

NAMES = "abcdefgh"
KEYS = st.integers(0, 5)


def place(item):
    return (item.key, item.name)


class Both:
    """A queue, and what should be in it."""

    def __init__(self, made, items):
        self.queue, self.inside = made.queue(items), list(items)

    def expected(self):
        return sorted(self.inside, key=place)

    def push(self, item):
        self.queue.push(item)
        if item not in self.inside:
            self.inside.append(item)

    def pop(self):
        if self.inside:
            first = self.expected()[0]
            assert self.queue.pop() is first
            self.inside.remove(first)

    def ask(self, items):
        """Everything follows an item outside if its key comes before theirs."""
        for item in (each for each in items if each not in self.inside):
            assert self.queue.all_follow(item) == all(place(item) < place(other) for other in self.inside)

    def take_turns(self, draw, made, others):
        """Let the first leave together while others come in or change, and let some of them not have left."""
        entries = self.queue.lead(draw(st.integers(1, len(NAMES))))
        led = [entry[2] for entry in entries]
        assert led == self.expected()[: len(led)]
        assert self.queue.unmoved
        come, moved = [], False
        for item in draw(st.lists(st.sampled_from(others), max_size=2)) if others else ():
            if item in self.inside and item not in led and draw(st.booleans()):
                item.key = draw(KEYS)
                made.touch(item)
                moved = True
            elif item not in self.inside:
                item.key = draw(KEYS)
                self.push(item)
                come.append(item)
        assert self.queue.unmoved == (not moved)
        are_next = [not moved and all(place(item) < place(other) for other in come) for item in led]
        assert [self.queue.is_next(entry) for entry in entries] == are_next
        left = self.queue.leave_together(entries)
        assert left == (are_next.index(False) if False in are_next else len(led))
        assert len(self.queue) == len(self.inside) - left
        kept = draw(st.integers(0, left))
        self.queue.take_back(entries[kept:left])
        self.queue.put_back(entries[kept:])
        self.inside = [item for item in self.inside if item not in led[:kept]]


STEPS = st.sampled_from(["push", "push", "change", "everything", "pop", "pop", "ask", "ask", "turns"])


class Pair:
    """Two queues in which the same items may wait."""

    def __init__(self, draw):
        self.draw, self.made = draw, ordering([keyed(lambda item: item.key)])
        self.items = [Item(name, draw(KEYS)) for name in NAMES]
        some = st.lists(st.sampled_from(self.items), unique=True)
        self.queues = [Both(self.made, draw(some)), Both(self.made, draw(some))]

    def step(self, what):
        both, item = self.draw(st.sampled_from(self.queues)), self.draw(st.sampled_from(self.items))
        if what in ("push", "change"):
            item.key = self.draw(KEYS)
            self.made.touch(item)
        if what == "push":
            both.push(item)
        elif what == "everything":
            for each in self.items:
                each.key = self.draw(KEYS)
            self.made.touch_all()
        elif what == "pop":
            both.pop()
        elif what == "ask":
            both.ask(self.items)
        elif what == "turns":
            other = self.queues[both is self.queues[0]]
            both.take_turns(self.draw, self.made, [each for each in self.items if each not in other.inside])


@settings(max_examples=drawn(400))
@given(st.data(), st.lists(STEPS, max_size=14))
def test_whatever_happens_the_first_by_the_keys_of_now_leaves_first(data, steps):
    pair = Pair(data.draw)
    for what in steps:
        pair.step(what)
        assert [len(each.queue) for each in pair.queues] == [len(each.inside) for each in pair.queues]
    for each in pair.queues:
        assert drain(each.queue) == each.expected()


@pytest.mark.parametrize("way", ["begin", "push", "push all", "touch", "lead"])
@given(st.lists(st.sampled_from(NAMES), min_size=1, unique=True), st.integers(0, 7))
def test_whoever_gives_keys_that_cannot_be_compared_has_no_say_any_more_and_nobody_is_lost(way, names, at):
    made = ordering([keyed(lambda item: item.key)])
    items = [Item(name, number % 3) for number, name in enumerate(names)]
    odd = items[at % len(items)]
    if way == "begin":
        odd.key = "odd"
        queue = made.queue(items)
    elif way == "push":
        queue = made.queue([item for item in items if item is not odd])
        odd.key = "odd"
        queue.push(odd)
    elif way == "push all":
        queue = made.queue()
        odd.key = "odd"
        for item in items:
            queue.push(item)
    else:
        queue = made.queue(items)
        odd.key = "odd"
        made.touch(odd)
    if way == "lead":
        queue.put_back(queue.lead(len(items)))
    expected = items if len(items) == 1 else sorted(items, key=lambda item: item.name)
    assert drain(queue) == expected


@given(st.lists(st.tuples(st.sampled_from(NAMES), KEYS), unique_by=lambda each: each[0]), st.integers(0, 8))
def test_what_waits_is_given_as_it_stood_at_first_then_what_came_later(given_items, begun):
    made = ordering([keyed(lambda item: item.key)])
    items = [Item(*each) for each in given_items]
    queue = made.queue(items[:begun])
    for item in items[begun:]:
        queue.push(item)
    first = sorted(items[:begun], key=place)
    found = queue.waiting()
    assert found[: len(first)] == first
    assert sorted(found[len(first) :], key=place) == sorted(items[begun:], key=place)


def test_something_has_to_be_moved_from_when_it_is_touched_until_the_next_one_leaves():
    made = ordering([keyed(lambda item: item.key)])
    items = [Item(name) for name in NAMES]
    queue = made.queue(items)
    for touch in (lambda: made.touch(items[-1]), made.touch_all):
        assert queue.unmoved
        (first,) = queue.lead(1)
        assert queue.is_next(first)
        touch()
        assert not queue.unmoved
        assert not queue.is_next(first)
        assert queue.leave_together([first]) == 0
        queue.put_back([first])
        assert queue.pop() is first[2]


def test_what_cannot_be_compared_with_what_waits_is_not_known_to_come_before_it():
    made = ordering([keyed(lambda item: item.key)])
    queue = made.queue([Item("b", 1), Item("c", 2)])
    assert queue.all_follow(Item("a", 1))
    assert not queue.all_follow(Item("a", "odd"))
    assert ordering([keyed(lambda item: item.key)]).queue().all_follow(Item("a", "odd"))
