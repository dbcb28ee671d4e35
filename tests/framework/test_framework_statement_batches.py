"""Tasks of any jobs move in one batch, and come to the same as one after the other: in the model, in plugins that follow, and where somebody refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import GANG, Desk, group, node, pod, queue
from drawing import drawn
from pumice.framework.plugin import Plugin
from pumice.model.statuses import Status

CONFIG = GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: ear}")


class Ear(Plugin):
    """Hears of placements: in lists, of one run at a time, or, looking around, of each before the next."""

    name = "ear"
    how = "lists"
    against = ""

    def open(self, session):
        self.heard, self.calls = {}, []
        if self.how == "lists":
            session.follow(self.hear_all, one_job=True)
        else:
            session.add_handler(self.hear, one_job=self.how == "runs", may_refuse=self.how == "asked")

    def hear_all(self, runs, sign):
        self.calls.append(sum(len(run.tasks) for run in runs))
        return next((answer for answer in [self.note(run, sign) for run in runs] if answer), None)

    def hear(self, run, sign):
        self.calls.append(len(run.tasks))
        return self.note(run, sign)

    def note(self, run, sign):
        for task in run.tasks:
            self.heard[task.name] = self.heard.get(task.name, 0) + sign
        return "not this one" if sign > 0 and any(task.name == self.against for task in run.tasks) else None


def desk(how, against=""):
    """Two queues, nine jobs of one pod and one of several shapes, and pods that run."""
    made = Desk(CONFIG, type("Ear", (Ear,), {"how": how, "against": against}))
    made.feed(queue("other"), *(node(f"n{i}", cpu="64", pods="500") for i in range(3)))
    made.feed(*(group(f"one{i}", 1, queue="other" if i % 2 else "") for i in range(9)), group("many", 2))
    made.feed(*(pod(f"one{i}-0", f"one{i}", cpu=str(1 + i % 2)) for i in range(9)))
    made.feed(*(pod(f"many-{i}", "many", cpu=str(1 + i // 2)) for i in range(6)))
    made.feed(*(pod(f"old-{i}", f"one{i}", cpu="1", node=f"n{i % 3}") for i in range(9)))
    session = made.session()
    return made, session, made.scheduler.engine.plugins[1][-1]


def some(made, names):
    by_name = {task.name: task for task in made.cluster.tasks.values()}
    return [by_name[name] for name in names]


WAITING = [*(f"one{i}-0" for i in range(9)), *(f"many-{i}" for i in range(6))]
RUNNING = [f"old-{i}" for i in range(9)]


@settings(max_examples=drawn(40), deadline=None)
@given(
    placed=st.permutations(WAITING).flatmap(lambda names: st.integers(0, len(names)).map(lambda n: names[:n])),
    evicted=st.lists(st.sampled_from(RUNNING), unique=True),
    back=st.integers(0, 20),
    how=st.sampled_from(["lists", "runs", "around", "asked"]),
)
def test_a_batch_comes_to_what_its_tasks_come_to_one_by_one(placed, evicted, back, how):
    seen = []
    for single in (False, True):
        made, session, ear = desk(how)
        statement, records = session.statement(), made.cluster.nodes.records
        where = {name: records[number % 3] for number, name in enumerate(placed)}
        for step, names in ((statement.allocate, placed[:8]), (statement.pipeline, placed[8:])):
            for names_at_once in ([name] for name in names) if single else [names]:
                step(some(made, names_at_once), [where[name] for name in names_at_once])
        for names_at_once in ([name] for name in evicted) if single else [evicted]:
            statement.evict(some(made, names_at_once), "test")
        statement.rollback(min(back, statement.checkpoint()))
        recount.check(made.cluster)
        seen.append((recount.fingerprint(made.cluster), {name: sign for name, sign in ear.heard.items() if sign}))
        before = {task.name: task.status for task in made.cluster.tasks.values()}
        statement.discard()
        recount.check(made.cluster)
        assert {name for name, sign in ear.heard.items() if sign} == set()
        assert all(before[name] in (Status.PENDING, Status.ALLOCATED, Status.PIPELINED) for name in placed)
    for part in seen[0][0]:
        if part != "nodes":
            assert seen[0][0][part] == seen[1][0][part], part
    assert seen[0][1] == seen[1][1]


@pytest.mark.parametrize(("how", "calls"), [("lists", [3]), ("runs", [1, 1, 1]), ("around", [1, 1, 1])])
def test_who_takes_lists_is_told_once_of_a_batch_and_others_of_each_run(how, calls):
    made, session, ear = desk(how)
    session.statement().allocate(some(made, WAITING[:3]), made.cluster.nodes.records[:3])
    assert ear.calls == calls


@pytest.mark.parametrize("how", ["lists", "runs", "around", "asked"])
@pytest.mark.parametrize("at", range(3))
def test_those_before_a_refused_task_are_placed_and_nobody_after_it(how, at):
    made, session, ear = desk(how, against=WAITING[at])
    statement = session.statement()
    assert statement.allocate(some(made, WAITING[:3]), made.cluster.nodes.records[:3]) == at
    assert [task.name for run in statement.runs for task in run.tasks] == WAITING[:at]
    assert {name: sign for name, sign in ear.heard.items() if sign} == dict.fromkeys(WAITING[:at], 1)
    assert session.handlers.may_refuse
    recount.check(made.cluster)
