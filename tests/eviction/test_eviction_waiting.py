"""Who waits beside a claimant: which of equal jobs still do, which may come at all, and what becomes of holds that are taken off for a stronger claimant."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import Desk, group, node, pod, priority_class, queue
from pumice.actions.eviction import asking, equal_rivals, listed, rules, successors, takeover
from pumice.actions.eviction.plan import Plan
from pumice.actions.eviction.successors import EqualJobs, Successors
from pumice.framework import reservations
from pumice.model.statuses import Status

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}%s]
"""
PREEMPT = CONFIG % ("preempt", "")


# ---- equal jobs


def test_of_equal_jobs_those_are_given_that_wait_and_those_in_front_that_do_not_are_passed_over_until_one_waits_anew():
    cluster, jobs = SimpleNamespace(returned=0), EqualJobs()
    jobs.listed += [SimpleNamespace(name=name, pending=name in "bde") for name in "abcde"]

    def waiting():
        return "".join(job.name for job in jobs.waiting(cluster))

    assert [waiting(), waiting()] == ["bde", "bde"]
    first, second, *_ = jobs.listed
    second.pending = False
    assert waiting() == "de"
    first.pending = second.pending = True
    assert waiting() == "de"  # nobody says that somebody waits again
    cluster.returned += 1
    assert [waiting(), waiting()] == ["abde", "abde"]
    for job in jobs.listed:
        job.pending = False
    assert waiting() == ""
    assert list(EqualJobs().waiting(cluster)) == []


# ---- successors


class Search:
    """A search that says whom it would serve."""

    def __init__(self, made, *, serves=True):
        self.rules, self._serves, self.asked = made, serves, []

    def fresh(self):
        return self

    def could_serve(self, wanted, spared):
        assert {task.status for task in spared.victims} == {Status.PENDING}
        waiting = [member.name for member in spared.members if member.status is Status.PENDING]
        self.asked.append((wanted.job.name, [task.name for task in wanted.tasks], waiting, wanted.done()))
        return self._serves


def scene(*, form=rules.Preempt, text=PREEMPT, stronger="high", serves=True, **more):
    """Somebody goes for a claimant while another job waits, which is mostly more important."""
    desk = Desk(text).feed(*(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))))
    desk.feed(queue("q"), queue("o"), queue("p", reclaimable=False), node("m", "2"))
    least, rank = more.get("low", (0, "low"))
    desk.feed(group("low", least, queue=more.get("victims", "q"), phase="Running", priorityClassName=rank))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(2)))
    desk.feed(group("asks", 1, queue="q", phase="Inqueue", priorityClassName="mid"), pod("asks-0", "asks", cpu="1"))
    spec = {"priorityClassName": stronger, "phase": "Inqueue", "queue": "q", **more.get("other", {})}
    desk.feed(group("other", **{"minimum": 1, **spec}))
    desk.feed(*(pod(f"other-{i}", "other", cpu="1", **more.get("pods", {})) for i in range(more.get("count", 1))))
    session = desk.session()
    asked = form(session)
    members = [desk.task("asks-0")]
    wanted = asking.Wanted(session.queue_of(members[0].job), members[0].job, members, lambda: True)
    plan = Plan(session, asked, wanted)
    plan.evict_all([SimpleNamespace(tasks=(desk.task("low-0"),))])
    assert plan.settle(members[0], desk.node("m").row)
    search = Search(form(session), serves=serves)
    search.rules.look_ahead()
    return desk, plan, search


def successor(*args, **options):
    _, plan, search = scene(*args, **options)
    found = Successors(plan.session, lambda _: [search]).of(plan)
    assert plan.members[0].status is Status.PIPELINED  # everything is as it was
    return None if found is None else found.name, search.asked


OTHER = [("other", ["other-0"], ["asks-0"], False)]


@pytest.mark.parametrize(
    ("options", "found", "asked"),
    [
        ({}, "other", OTHER),
        ({"serves": False}, None, OTHER),
        ({"stronger": "mid"}, None, []),  # it could not evict the claimant
        ({"stronger": "low"}, None, []),
        ({"other": {"phase": "Pending"}}, None, []),  # not let in
        ({"other": {"queue": "o"}}, None, []),  # its action looks at its own queue
        ({"other": {"minimum": 0}}, None, []),  # it has its minimum
        ({"other": {"minimum": 2}}, None, []),  # it has too few pods to be valid
        ({"pods": {"preemptionPolicy": "Never"}}, None, []),
    ],
)
def test_a_waiting_job_takes_over_if_it_could_evict_the_claimant_and_would_be_served(options, found, asked):
    assert successor(**options) == (found, asked)


def test_a_gang_takes_over_with_all_whom_it_lacks():
    found, asked = successor(other={"minimum": 2}, count=2)
    assert found == "other"
    assert asked == [("other", ["other-0", "other-1"], ["asks-0"], False)]


@pytest.mark.parametrize("question", ["usable", "job_starving"])
def test_a_job_that_is_not_served_takes_nothing_over(question, monkeypatch):
    _, plan, search = scene()
    monkeypatch.setattr(plan.session, question, lambda job: job.name != "other")
    assert Successors(plan.session, lambda _: [search]).of(plan) is None
    assert search.asked == []


def test_a_job_that_loses_pods_to_the_claimant_takes_nothing_over():
    """Whether it comes back is asked elsewhere."""
    desk, plan, search = scene(other={"phase": "Pending"}, low=(2, "high"))
    desk.feed(pod("low-2", "low", cpu="1"))
    desk.apply()
    assert Successors(plan.session, lambda _: [search]).of(plan) is None
    assert search.asked == []


RECLAIM = """
actions: "reclaim"
tiers:
- plugins: [{name: conformance}]
- plugins: [{name: gang}, {name: predicates}]
"""


@pytest.mark.parametrize(("owner", "found"), [("p", "other"), ("o", None), ("q", None)])
def test_where_an_action_looks_at_other_queues_jobs_of_those_take_over_that_nobody_can_take_from_in_turn(owner, found):
    """Nothing may be reclaimed from p."""
    assert successor(form=rules.Reclaim, text=RECLAIM, victims="o", other={"queue": owner})[0] == found


def test_no_more_kinds_of_waiting_jobs_are_looked_at_than_may_be_and_that_is_told(monkeypatch):
    monkeypatch.setattr(successors, "LOOKS", 1)
    for more in (0, 1):
        desk, plan, search = scene(stronger="mid")
        for i in range(more):
            desk.feed(
                group(f"j{i}", 1, queue="q", phase="Inqueue", priorityClassName="high"), pod(f"j{i}", f"j{i}", cpu="2")
            )
        desk.apply()
        Successors(plan.session, lambda _, search=search: [search]).of(plan)
        assert (successors.MORE in plan.bounds) is bool(more)


@pytest.mark.parametrize("kinds", [successors.KINDS, successors.KINDS + 1])
def test_of_the_kinds_of_a_queue_the_smallest_are_looked_at(kinds):
    """The claimant's own is one of them, the weakest."""
    desk, plan, search = scene(other={"phase": "Pending"}, serves=False)
    for i in range(kinds):
        desk.feed(group(f"j{i}", 1, queue="q", phase="Inqueue", priorityClassName="high"))
        desk.feed(pod(f"j{i}", f"j{i}", cpu=str(20 - i)))
    desk.apply()
    assert Successors(plan.session, lambda _: [search]).of(plan) is None
    sizes = [int(name[1:]) for name, *_ in search.asked]
    assert sizes == sorted(range(kinds), reverse=True)[: successors.KINDS - 2]


# ---- who is a rival like the claimant


@pytest.mark.parametrize(
    ("options", "one"),
    [
        ({"stronger": "mid"}, True),
        ({"stronger": "high"}, False),
        ({"stronger": "mid", "other": {"queue": "o"}}, False),
        ({"stronger": "mid", "other": {"minimum": 0}}, False),
        ({"stronger": "mid", "count": 2}, True),
        ({"stronger": "mid", "other": {"minTaskMember": {"m": 1}}, "pods": {"role": "m"}}, False),
        ({"stronger": "mid", "other": {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}, False),
        ({"stronger": "mid", "pods": {"priority": 7}}, False),
        ({"stronger": "mid", "pods": {"memory": "1Gi"}}, False),
        ({"stronger": "mid", "pods": {"preemptionPolicy": "Never"}}, False),
        ({"stronger": "mid", "pods": {"annotations": {"volcano.sh/preemptable": "false"}}}, False),
    ],
)
def test_a_waiting_job_is_like_the_claimant_s_if_nothing_that_rules_read_tells_them_apart(options, one):
    desk, plan, search = scene(**options)
    assert equal_rivals.is_one(search.rules, plan, desk.task("other-0").job) is one


@pytest.mark.parametrize(
    ("own", "other", "second", "one"),
    [
        ((2, 0, 2), (2, 0, 2), {}, True),
        ((2, 0, 2), (2, 0, 2), {"memory": "1Gi"}, False),
        ((2, 1, 1), (2, 1, 1), {}, True),
        ((2, 1, 1), (2, 0, 2), {}, False),  # of the other none runs yet
        ((2, 0, 2), (2, 1, 1), {}, False),
    ],
)
def test_gangs_are_alike_if_as_many_run_as_many_are_lacking_and_each_member_is_like_the_others(own, other, second, one):
    """Of each: its minimum, how many run, and how many wait; the second of the claimant's that wait may be another."""
    desk = Desk(PREEMPT).feed(priority_class("mid", 5), node("m", "9"))
    for name, (least, running, waiting) in (("asks", own), ("other", other)):
        desk.feed(group(name, least, phase="Inqueue", priorityClassName="mid"))
        desk.feed(*(pod(f"{name}-runs-{i}", name, cpu="1", node="m") for i in range(running)))
        desk.feed(
            *(pod(f"{name}-{i}", name, cpu="1", **(second if i and name == "asks" else {})) for i in range(waiting))
        )
    session = desk.session()
    asked = rules.Preempt(session)
    members = [desk.task(f"asks-{i}") for i in range(own[2])]
    plan = Plan(session, asked, asking.Wanted(session.queue_of(members[0].job), members[0].job, members, lambda: True))
    assert all(plan.settle(member, desk.node("m").row) for member in members)
    assert equal_rivals.is_one(asked, plan, desk.task("other-0").job) is one


# ---- holds


def test_holds_that_were_taken_off_come_back_unless_their_room_was_taken(monkeypatch):
    said = []
    monkeypatch.setattr(reservations, "lift", lambda _, job: list(job.tasks.values())[:1])
    monkeypatch.setattr(reservations, "put_back", lambda _session, _kept, tasks: said.append(("back", tasks)))
    session, job = (
        SimpleNamespace(reservations=None),
        SimpleNamespace(tasks={uid: SimpleNamespace(uid=uid) for uid in "abc"}),
    )
    with takeover.lifted(session, [job]) as off:
        assert [task.uid for task in off.tasks] == ["a"]
    assert said == [("back", off.tasks)]


def holding(text, rank):
    """Two jobs hold room, one of them with two members, for a claimant of some importance; another has a pod that runs."""
    desk = Desk(text).feed(*(priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))))
    desk.feed(node("m", "9"), group("pair", 2, priorityClassName="mid"), group("one", 1, priorityClassName="mid"))
    desk.feed(*(pod(f"pair-{i}", "pair", cpu="1") for i in range(2)), pod("one-0", "one", cpu="1"))
    desk.feed(group("runs", 1, priorityClassName="mid"), pod("runs-0", "runs", cpu="1", node="m"))
    desk.feed(group("asks", 2, priorityClassName=rank), pod("asks-0", "asks", cpu="1"), pod("asks-1", "asks", cpu="1"))
    session, m = desk.session(), desk.node("m")
    holders = [desk.task(name) for name in ("pair-0", "pair-1", "one-0", "asks-1")]
    session.statement().pipeline(holders, [m] * len(holders))
    session.reserved.update({task.uid: task for task in [*holders, desk.task("runs-0")]})
    session.reserved["lost"] = SimpleNamespace(uid="lost", job=None, status=Status.PIPELINED)
    return desk, session


@pytest.mark.parametrize(
    ("text", "rank", "jobs", "offered"),
    [(PREEMPT, "high", ["one", "pair"], True), (PREEMPT, "mid", [], False), (PREEMPT, "low", [], False)],
)
def test_room_may_be_taken_over_of_other_jobs_that_hold_some_and_could_be_evicted(text, rank, jobs, offered):
    desk, session = holding(text, rank)
    made = rules.Preempt(session)
    claimant = desk.task("asks-0")
    found = takeover.holders(session, made, claimant)
    assert (sorted(job.name for job in found.jobs), found.is_any_offered) == (jobs, offered)
    tasks = [desk.task("one-0")]
    assert takeover.is_offered(session, made, claimant, tasks) is offered
    assert takeover.could_evict(session, made, claimant, tasks) is offered
    assert tasks[0].status is Status.PIPELINED
    session.reserved.clear()
    assert takeover.holders(session, made, claimant) == ([], False)


def test_whoever_is_offered_and_could_take_its_room_back_keeps_it(monkeypatch):
    desk, session = holding(PREEMPT, "high")
    monkeypatch.setattr(takeover.votes, "offered", lambda _rules, _claimant, record: list(record.tasks.values()))
    assert takeover.holders(session, rules.Preempt(session), desk.task("asks-0")) == ([], True)


@pytest.mark.parametrize(("lacking", "alone"), [(1, True), (2, False)])
def test_whoever_asks_alone_asks_the_same_of_one_holder_as_of_its_kind(lacking, alone, monkeypatch):
    told = []

    class Holders:
        def __init__(self, _session, _rules, _claimant, ask, of_kind):
            told.append(ask == of_kind)

        def are_safe(self, tasks):
            return tasks == ["y"]

        def could_be_evicted(self, tasks):
            return [task.uid for task in tasks] != ["z"]

    monkeypatch.setattr(takeover, "EqualHolders", Holders)
    monkeypatch.setattr(takeover.resting, "of", lambda _: SimpleNamespace(kinds=lambda _: [{"x": "x"}, {"y": "y"}]))
    waiting = [SimpleNamespace(uid=str(i), status=Status.PENDING) for i in range(lacking)]
    monkeypatch.setattr(asking, "claimants", lambda *_: waiting)
    monkeypatch.setattr(asking, "members_lacking", lambda _, tasks: tasks)
    waiting[0].job = SimpleNamespace(key="own")
    jobs = {uid: SimpleNamespace(key=uid) for uid in "xyz"}
    reserved = {uid: SimpleNamespace(uid=uid, job=jobs[uid], status=Status.PIPELINED) for uid in "xyz"}
    session = SimpleNamespace(reserved=reserved, cluster=SimpleNamespace(jobs=jobs))
    assert takeover.holders(session, "rules", waiting[0]) == ([jobs["x"]], False)
    assert told == [alone]


def test_every_action_between_jobs_that_is_listed_has_a_search_that_looks_ahead():
    session = Desk(CONFIG % ("preempt, reclaim", "")).session()
    assert [Status.BINDING in search.rules.statuses for search in listed.searches(session)] == [True, True]
