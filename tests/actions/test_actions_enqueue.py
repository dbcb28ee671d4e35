"""enqueue: groups that are let in together are those that would have been let in one by one, in the same words and with the same sums."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, played, pod, priority_class, queue
from pumice.actions.enqueue import Enqueue
from pumice.framework.extensions import PERMIT, reject
from pumice.framework.letting_in import AdmissionVotes
from pumice.framework.plugin import Plugin

ANYTHING = st.randoms(use_true_random=True)
VOTERS = (
    "{name: overcommit}, {name: proportion}",
    "{name: overcommit}]\n- plugins: [{name: proportion}",
    "{name: overcommit}, {name: capacity}",
    "{name: capacity, enableHierarchy: true}, {name: overcommit}",
    "{name: proportion}, {name: sla}",
    "{name: proportion}, {name: resourcequota}",
    "{name: proportion}",
    "{name: drf}",
)


def tiers(pick):
    actions = pick.choice(["enqueue, allocate", "enqueue, allocate, backfill", "enqueue, allocate, preempt, reclaim"])
    first = pick.choice(["{name: priority}, {name: gang}", "{name: gang}", "{name: priority}"])
    return f'actions: "{actions}"\ntiers:\n- plugins: [{first}]\n- plugins: [{pick.choice(VOTERS)}, {{name: predicates}}]\n'


def minimum(pick):
    """What a group says it needs, now and then what no node offers."""
    if pick.random() < 0.1:
        return {}
    names = {"cpu": pick.choice(["1", "250m", "2", "7"])}
    if pick.random() < 0.5:
        names["memory"] = pick.choice(["1Gi", "100Mi"])
    if pick.random() < 0.05:
        names["example.com/none"] = pick.choice(["0", "1"])
    if pick.random() < 0.1:
        names["pods"] = "500"
    return {"minResources": names}


def waiting(pick, queues, wave):
    """Groups that wait, with pods or without, some gated, some with members that run."""
    for number in range(pick.choice([1, 3, 20, 60])):
        name, count = f"g{wave}-{number}", pick.choice([0, 1, 1, 2, 3])
        yield group(
            name,
            pick.choice([0, 1, count]),
            queue=pick.choice(queues),
            phase=pick.choice(["Pending", "Pending", "Pending", "", "Inqueue"]),
            created=pick.randint(0, 3),
            priorityClassName=pick.choice(["", "", "high"]),
            **minimum(pick),
        )
        for i in range(count):
            where = {"node": "n0"} if pick.random() < 0.1 else {}
            gates = {"schedulingGates": [{"name": "example.com/wait"}]} if not where and pick.random() < 0.1 else {}
            yield pod(f"{name}-{i}", name, cpu=pick.choice(["250m", "1"]), **where, **gates)


def world(pick):
    """The objects of each cycle."""
    queues = pick.choice([["default"], ["default"], ["default", "other"], ["leaf", "other"]])
    limits = {"capability": {"cpu": str(pick.randint(1, 30))}} if pick.random() < 0.4 else {}
    closed = {"state": "Closed"} if pick.random() < 0.1 else {}
    first = [priority_class("high", 10), queue("branch", capability={"cpu": "20"}), queue("leaf", parent="branch")]
    first += [queue("default", **limits, **closed), queue("other", weight=2)]
    first += [node(f"n{i}", cpu=str(pick.randint(2, 30)), memory="16Gi") for i in range(pick.randint(1, 3))]
    return [[*first, *waiting(pick, queues, 0)], *([*waiting(pick, queues, wave)] for wave in range(1, 3))]


def decide(text, waves, *classes):
    """Play the waves; give what was sent and what was said."""
    return played(Desk(text, *classes), waves)


def assert_as_one_by_one(text, waves, *classes):
    together = decide(text, waves, *classes)
    with mock.patch.object(Enqueue, "_let_in_together", return_value=False):
        assert together == decide(text, waves, *classes)


@settings(max_examples=80, deadline=None)
@given(pick=ANYTHING)
def test_groups_are_let_in_together_as_one_by_one(pick):
    assert_as_one_by_one(tiers(pick), world(pick))


def full(count=40):
    """More groups than overcommit lets in: 24 cores may be promised."""
    yield from (node("n0", cpu="20"), queue("default"))
    for number in range(count):
        yield group(f"g{number:02}", 1, minResources={"cpu": "1"})


TOGETHER = 'actions: "enqueue"\ntiers:\n- plugins: [{name: overcommit}, {name: proportion}]\n'


def test_groups_that_fit_are_let_in_together_up_to_the_first_that_does_not():
    permitted = AdmissionVotes.permitted
    counts = []

    def counted(votes, jobs):
        counts.append((len(jobs), found := permitted(votes, jobs)))
        return found

    desk = Desk(TOGETHER).feed(*full())
    with mock.patch.object(AdmissionVotes, "permitted", counted):
        record = desk.cycle()
    assert counts[:2] == [(16, 16), (24, 4)]
    assert [line for line in record.trace() if "let in" in line and "not" not in line] == [
        f"enqueue: a/g{number:02}: let in" for number in range(20)
    ]


class Picky(Plugin):
    """Votes on one job at a time."""

    name = "picky"
    points = frozenset({"JobEnqueueable", "JobEnqueued"})

    def open(self, session):
        session.job_enqueueable.add(lambda job: reject("no") if job.name == "g03" else PERMIT)
        session.job_enqueued.add(lambda job: session.record.say("picky", "heard", job.key))


def test_who_votes_on_single_jobs_is_asked_about_each():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: overcommit}, {name: picky}]\n'
    record = Desk(text, Picky).feed(*full(6)).cycle()
    heard = [line for line in record.trace() if line.startswith("picky")]
    assert heard == [f"picky: a/g0{number}: heard" for number in (0, 1, 2, 4, 5)]
    assert "enqueue: a/g03: not let in: picky: no" in record.trace()


class Fragile(Plugin):
    """Breaks down when it is asked about many, and about one."""

    name = "fragile"
    points = frozenset({"JobEnqueueable"})

    def open(self, session):
        session.job_enqueueable.add(self.vote, many=self.many)

    def vote(self, job):
        if job.name == "g03":
            raise ValueError("this one")
        return PERMIT

    def many(self, jobs):
        raise ValueError(len(jobs))


def test_a_breakdown_about_many_is_put_on_the_one_it_is_about():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: fragile}]\n'
    desk = Desk(text, Fragile).feed(*full(6))
    for _ in range(2):  # in the second cycle the vote rests about that job
        record = desk.cycle()
        phases = [desk.cluster.jobs[f"a/g{number:02}"].phase for number in range(6)]
        assert phases == ["Inqueue"] * 3 + ["Pending"] + ["Inqueue"] * 2
        assert "this one" in record.explain("a/g03")
    assert_as_one_by_one(text, [[*full(6)], [], []], Fragile)


class Deaf(Plugin):
    """Breaks down when it is told of a job, or of many of which that is the first."""

    name = "deaf"
    points = frozenset({"JobEnqueued"})

    def open(self, session):
        session.job_enqueued.add(lambda job: self.hear([job]), many=self.hear)

    def hear(self, jobs):
        if jobs[0].name == "g00":
            raise ValueError("cannot hear")


def test_a_listener_that_breaks_down_about_many_costs_the_first_of_them_its_turn():
    text = 'actions: "enqueue"\ntiers:\n- plugins: [{name: deaf}]\n'
    desk = Desk(text, Deaf).feed(*full(6))
    record = desk.cycle()
    assert [desk.cluster.jobs[f"a/g{number:02}"].phase for number in range(6)] == ["Pending"] + ["Inqueue"] * 5
    assert "cannot hear" in record.explain("a/g00")
    assert_as_one_by_one(text, [[*full(6)], [], []], Deaf)
