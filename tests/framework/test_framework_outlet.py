"""What is known of decisions once they are sent: who is bound or leaves, whose bind was refused, and that the cycle got somewhere."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import Desk, group, node, pod, queue
from pumice.framework import observing
from pumice.framework.findings import LastTransaction
from pumice.framework.outlet import Sender
from pumice.model.statuses import Status


@pytest.mark.parametrize("refused", [(), (1,), (0, 1)])
def test_binds_that_are_refused_are_told_and_the_others_are_under_way(refused):
    made = Desk().feed(node("n1"), group("g", 2), *(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    session = made.session()
    tasks = [made.task(f"g-{i}") for i in range(2)]
    for task in tasks:
        session.findings.remember(task, LastTransaction(Status.ALLOCATED, "n1", evicted=False))
    session.statement().allocate(tasks, [made.node("n1")] * 2)
    late = {tasks[i].uid: "too late" for i in refused}
    sender = Sender(session, SimpleNamespace(bind=lambda _: late))
    assert sender.send_binds(tasks) == late
    sent = [i for i in range(2) if i not in refused]
    statuses = [Status.BINDING if i in sent else Status.ALLOCATED for i in range(2)]
    assert [task.status for task in tasks] == statuses
    assert (session.progressed, session.record.binds) == (bool(sent), len(sent))
    assert set(session.findings.last_transactions) == set(late)
    assert session.record.trace() == [f"commit: a/g-{i}: not bound: too late" for i in refused]


@pytest.mark.parametrize("claimed", [False, True])
def test_whoever_leaves_is_counted_for_whom_and_why_and_counts_in_its_queue_until_it_goes(claimed, monkeypatch):
    told = []
    monkeypatch.setattr(observing.Observer, "took", lambda _, *how: told.append(how))
    made = Desk().feed(node("n1"), queue("lent"), queue("own"), group("g", 1, queue="own"), pod("g-0", "g", cpu="1"))
    made.feed(group("old", 1, queue="lent"), *(pod(f"old-{i}", "old", cpu="1", node="n1") for i in range(2)))
    session = made.session()
    victims = [made.task(f"old-{i}") for i in range(2)]
    statement = session.statement(made.task("g-0") if claimed else None)
    statement.evict(victims, "reclaim")
    sent = []
    sender = Sender(session, SimpleNamespace(evict=lambda task, reason: sent.append((task.name, reason))))
    sender.send_evictions([])
    assert (session.progressed, session.record.evictions) == (False, 0)
    sender.send_evictions(statement.runs)
    assert sorted(sent) == [("old-0", "reclaim"), ("old-1", "reclaim")]
    assert told == [("reclaim", "lent", "own" if claimed else "")] * 2
    assert [task.status for task in victims] == [Status.EVICTING] * 2
    assert (session.progressed, session.record.evictions) == (True, 2)
