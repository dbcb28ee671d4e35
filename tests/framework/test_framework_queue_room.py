"""Why a queue has no room for a job: which limit counts, at which queue, and how that is put."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework import queue_room
from pumice.framework.queue_room import Lack

SENTENCES = [
    ({}, "queue q holds 3 of its 4 cpu, the job asks for 2 more"),
    ({"kind": "due"}, "queue q holds 3 of the 4 cpu that are its share, the job asks for 2 more"),
    ({"kind": "room"}, "queue q holds 3 of the 4 cpu that others leave it, the job asks for 2 more"),
    ({"whole": True}, "queue q holds 3 of all 4 cpu that there are, the job asks for 2 more"),
    ({"let_in": 1}, "queue q holds 4 of its 4 cpu (1 of it let in and not placed yet), the job asks for 2 more"),
    (
        {"let_in": 0.001},
        "queue q holds 3001m of its 4 cpu (1m of it let in and not placed yet), the job asks for 2 more",
    ),
    ({"asked": 4}, "queue q holds 3 of its 4 cpu, the job asks for 4 more"),
    ({"asked": 4, "whole": True}, "queue q holds 3 of all 4 cpu that there are, the job asks for 4 more"),
    ({"asked": 5}, "queue q may hold 4 cpu at the most, the job asks for 5"),
    ({"asked": 5, "whole": True}, "all nodes together have 4 cpu, the job asks for 5"),
    ({"asked": 5, "kind": "due"}, "queue q holds 3 of the 4 cpu that are its share, the job asks for 5 more"),
    ({"held": -1}, "queue q holds 0 of its 4 cpu, the job asks for 2 more"),
    (
        {"limit": 0, "asked": 0, "kind": "room"},
        "queue q holds 3 of the 0 cpu that others leave it, the job asks for 0 more",
    ),
]


@pytest.mark.parametrize(("given", "told"), SENTENCES, ids=[str(row[0]) for row in SENTENCES])
def test_a_lack_is_told_with_its_limit_and_what_is_held(given, told):
    amounts = {"held": 3, "limit": 4, "asked": 2, "let_in": 0} | given
    cores = {name: int(amounts.pop(name) * 1000) for name in ("held", "limit", "asked", "let_in")}
    assert str(Lack("q", "cpu", **cores, **amounts)) == told


AMOUNT = st.integers(0, 6)
COLUMNS = ("cpu", "memory", "pods", "cards")


@st.composite
def accounts(draw):
    vector = st.lists(AMOUNT, min_size=4, max_size=4).map(np.array)
    return SimpleNamespace(
        held=draw(vector),
        ceiling=draw(vector) + 3,
        due=draw(vector) + 3,
        due_limits=draw(st.booleans()),
        room=draw(st.none() | vector.map(lambda room: room + 3)),
        above=(),
    )


def limits(account, column):
    """What an account may hold, by what says so."""
    found = {"ceiling": account.ceiling[column]}
    found |= {"due": account.due[column]} if account.due_limits else {}
    return found | ({"room": account.room[column]} if account.room is not None else {})


@given(
    st.lists(accounts(), min_size=1, max_size=3),
    st.lists(AMOUNT, min_size=4, max_size=4),
    st.lists(st.integers(-2, 0), min_size=12, max_size=12),
    st.lists(st.integers(0, 12), min_size=4, max_size=4),
)
def test_the_first_queue_upwards_that_has_too_little_is_named_with_its_tightest_limit(line, asked, evicting, total):
    """Who is being evicted is not held any more; places for pods are no amount of a queue."""
    queues = [SimpleNamespace(name=f"q{i}", row=i, bad="") for i in range(len(line))]
    for account, each in zip(line, queues, strict=True):
        account.queue = each
    line[0].above = tuple(line[1:])
    gone = np.array(evicting).reshape(3, 4)
    session = SimpleNamespace(
        cluster=SimpleNamespace(
            vocabulary=SimpleNamespace(names=COLUMNS),
            queue_sums=SimpleNamespace(evicting=gone),
            nodes=SimpleNamespace(total=lambda what: np.array(total) if what == "left by foreigners" else None),
        ),
        announced=SimpleNamespace(queue_accounts=lambda each: line[0] if each is queues[0] else None),
        scratch={},
    )
    expected = next(
        (
            (account.queue.name, name, held, limit, asked[column], limit >= total[column], 0)
            for account in line
            for column, name in enumerate(COLUMNS)
            if asked[column] and name != "pods"
            for held in [account.held[column] + gone[account.queue.row][column]]
            for limit in [min(limits(account, column).values())]
            if held + asked[column] > limit
        ),
        None,
    )
    for _ in range(2):
        found = queue_room.lack(session, queues[0], np.array(asked))
        told = found and (found.queue, found.name, found.held, found.limit, found.asked, found.whole, found.let_in)
        assert told == expected
    if found is not None:
        account = next(each for each in line if each.queue.name == found.queue)
        assert limits(account, COLUMNS.index(found.name))[found.kind] == found.limit
    assert queue_room.lack(session, SimpleNamespace(name="other", bad=""), np.array(asked)) is None
    queues[0].bad = "spec.weight"
    assert queue_room.lack(session, queues[0], np.array(asked)) is None
    session.announced.queue_accounts = None
    assert queue_room.lack(session, SimpleNamespace(name="q0", bad=""), np.array(asked)) is None
