"""A plugin or an action that breaks down is named, stops neither the cycle nor the others, and leaves nothing half done."""

from __future__ import annotations

import pytest

import recount
from builders import GANG, Desk, group, node, pod
from pumice.framework.plugin import Action, Plugin
from pumice.framework.points import POINTS
from pumice.framework.reasons import FitSummary

PLUGGED = GANG.replace("{name: priority}", "{name: fragile}, {name: priority}")
PLACES = (
    "open",
    "conclude",
    "close",
    "job_order",
    "queue_order",
    "task_order",
    "job_valid",
    "job_enqueueable",
    "job_enqueued",
    "job_ready",
    "job_ready late",
    "job_pipelined",
    "overused",
    "allocatable",
    "pre_predicate",
    "predicate",
    "score",
    "normalise",
    "best_node",
    "handler",
    "handler late",
    "handler undo",
)


class Fragile(Plugin):
    """Breaks down in one place, while it is told to."""

    name = "fragile"
    points = frozenset(point.name for point in POINTS)
    place = ""

    def open(self, session):
        self.placed = {}
        self.session = session
        if self.place == "open":
            self.fail()
        if self.place == "normalise":
            session.score.add(lambda _subject, nodes: nodes.used[:, 0] * 1.0, normalise=self.fail)
        elif self.place == "job_ready late":
            session.job_ready.add(lambda job: self.fail() if job.tally.ready == 2 else False)
        elif self.place in [point.attribute for point in POINTS]:
            getattr(session, self.place).add(self.fail)
        session.add_handler(self.follow)
        if self.place.startswith("handler"):
            session.add_handler(self.handle)
        session.add_handler(self.follow)

    def conclude(self, _session):
        if self.place == "conclude":
            self.fail()

    def close(self, _session):
        if self.place == "close":
            self.fail()

    def fail(self, *_):
        raise ZeroDivisionError(f"in {self.place}")

    def follow(self, run, sign):
        for task in run.tasks:
            self.placed[task.uid] = self.placed.get(task.uid, 0) + sign

    def handle(self, run, sign):
        if self.place == "handler" or (self.place == "handler late" and "g-w-1" in [task.name for task in run.tasks]):
            self.fail()
        if self.place == "handler undo" and sign < 0:
            self.fail()


def desk(place, config=PLUGGED, *classes):
    Fragile.place = place
    return Desk(config, Fragile, *classes).feed(
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        group("g", 3, minResources={"cpu": "1"}),
        *(pod(f"g-w-{i}", "g", cpu="1") for i in range(3)),
        group("big", 5, created=9),
        *(pod(f"big-w-{i}", "big", cpu="2") for i in range(5)),
    )


@pytest.mark.parametrize("place", PLACES)
def test_a_plugin_that_breaks_down_is_named_and_leaves_nothing_half_done(place):
    made = desk(place)
    record = made.cycle()
    assert {str(failure) for failure in made.scheduler.failures} == {f"in {place}"}
    assert f"ZeroDivisionError: in {place}" in "\n".join(record.trace())
    recount.check(made.cluster)
    assert {task.status.name for task in made.cluster.tasks.values()} <= {"PENDING", "BINDING"}
    assert {task.name for task in made.cluster.tasks.values() if task.status.name == "BINDING"} == set(made.world.binds)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize(
    ("place", "source"), [("predicate", "allocate"), *((place, place) for place in ("open", "conclude", "close"))]
)
def test_a_breakdown_is_told_once_by_the_action_that_ran_or_else_the_place_with_how_many_it_was_about(
    place, source, jobs
):
    Fragile.place = place
    made = Desk(PLUGGED, Fragile).feed(node("n1", cpu="4"))
    for i in range(jobs):
        made.feed(group(f"g{i}", 1), pod(f"g{i}-w", f"g{i}", cpu=f"{i + 1}"))
    (line,) = [each for each in made.cycle().trace() if each.partition(": ")[2].startswith("plugin fragile")]
    others = f" (about {jobs} jobs or queues)" if place == "predicate" and jobs > 1 else ""
    assert line.startswith(f"{source}: plugin fragile broke down at ")
    assert line.endswith(f"ZeroDivisionError: in {place}{others}")


@pytest.mark.parametrize("place", PLACES)
def test_what_broke_down_is_made_good_once_the_plugin_works_again(place):
    made = desk(place)
    made.cycle()
    Fragile.place = ""
    made.cycle()
    made.cycle()
    assert set(made.world.binds) == {"g-w-0", "g-w-1", "g-w-2"}
    recount.check(made.cluster)


@pytest.mark.parametrize("place", [place for place in PLACES if place != "open"])
def test_handlers_hear_of_every_placement_and_its_undoing_alike(place):
    made = desk(place)
    made.cycle()
    fragile = made.scheduler.engine.plugins[0][0]
    bound = {task.uid for task in made.cluster.tasks.values() if task.status.name == "BINDING"}
    assert {uid for uid, count in fragile.placed.items() if count} == bound
    assert {count for count in fragile.placed.values() if count} <= {2}


class Rash(Action):
    """Places half a gang and breaks down."""

    name = "rash"

    def execute(self, session):
        job = session.cluster.jobs["a/g"]
        statement = session.statement()
        statement.allocate(list(job.pending.values())[:2], [session.cluster.nodes.records[0]] * 2)
        other = session.statement()
        other.pipeline(list(session.cluster.jobs["a/big"].pending.values())[:1], [session.cluster.nodes.records[1]])
        raise LookupError("halfway")


def test_an_action_that_breaks_down_is_undone_and_the_next_cycle_is_none_the_worse():
    made = desk("", GANG.replace("enqueue, allocate", "enqueue, rash, allocate"), Rash)
    record = made.cycle()
    assert "rash: broke down: LookupError: halfway" in record.trace()
    assert [str(failure) for failure in made.scheduler.failures] == ["halfway"]
    assert [(each.action, str(each.error)) for each in made.scheduler.engine.breakdowns] == [("rash", "halfway")]
    recount.check(made.cluster)
    assert {task.status.name for task in made.cluster.tasks.values()} <= {"PENDING", "BINDING"}


def test_an_action_that_breaks_down_does_not_stop_the_next_action():
    made = desk(
        "",
        GANG.replace("enqueue, allocate", "early, enqueue, allocate"),
        type("Early", (Rash,), {"name": "early", "execute": lambda *_: 1 / 0}),
    )
    record = made.cycle()
    assert "early: broke down: ZeroDivisionError: division by zero" in record.trace()
    assert set(made.world.binds) == {"g-w-0", "g-w-1", "g-w-2"}


def test_a_cycle_with_a_breakdown_is_repeated_though_nothing_changed():
    made = desk("close")
    for _ in range(3):
        assert not made.cycle().skipped
    Fragile.place = ""
    made.cycle()
    assert made.cycle().skipped


def test_members_without_a_node_are_told_of_a_breakdown_where_nothing_better_is_known():
    made = desk("score")
    session = made.session()
    made.scheduler.engine.decide(session)
    (told,) = set(session.findings.errors(session.cluster.jobs["a/g"]).values())
    assert told == FitSummary(0, (), str(session.breakdowns.blamed["a/g"]))
    session.rollback()
