"""Small parts of eviction on their own: who is served in which order, whose return is feared, what plugins that simulate are told, what losses weigh, and who proposes."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from pumice.actions.eviction import asking, gangs, ping_pong, proposals, ranking, simulation, votes
from pumice.framework import subject
from pumice.framework.runs import Step
from pumice.model.resources import PODS
from pumice.model.statuses import Status

# ---- the gang forms


class Served:
    """Queues with jobs that starve; `full` queues hold more than their due, `keen` jobs may reclaim."""

    def __init__(self, monkeypatch, *, full=(), refused=(), fed=(), idle=()):
        self.served, self.judged = [], []
        queues = {name: SimpleNamespace(name=name) for name in "pq"}
        jobs = {name: [SimpleNamespace(key=f"{name}{i}") for i in (2, 1)] for name in "qp"}
        order = SimpleNamespace(
            sort=lambda items: sorted(items, key=lambda item: getattr(item, "name", "") or item.key)
        )
        self.session = SimpleNamespace(
            queue_order=order,
            job_order=order,
            cluster=SimpleNamespace(queues=queues),
            overused=lambda queue: "too much" if queue.name in full else None,
            attempt=lambda _: contextlib.nullcontext(),
            job_starving=lambda job: job.key not in fed,
            preemptive=lambda _, demand: "not its turn" if demand[0] in refused else None,
            record=SimpleNamespace(judge=lambda *said: self.judged.append(said)),
        )
        search = SimpleNamespace(
            starving=SimpleNamespace(jobs=lambda: jobs),
            serve=lambda queue, job: self.served.append((queue.name, job.key)),
        )
        monkeypatch.setattr(gangs, "Search", lambda *_: search)
        monkeypatch.setattr(asking, "claimants", lambda _, job: [] if job.key in idle else [job.key])
        monkeypatch.setattr(asking, "members_lacking", lambda _, tasks: tasks)
        monkeypatch.setattr(subject, "demand", list)

    def serve(self, *, reclaims):
        gangs.serve(self.session, SimpleNamespace(name="gangreclaim"), reclaims=reclaims)
        return [key for _, key in self.served]


@pytest.mark.parametrize(
    ("options", "reclaims", "served"),
    [
        ({}, True, ["p1", "p2", "q1", "q2"]),
        ({}, False, ["p1", "p2", "q1", "q2"]),
        ({"full": "p"}, True, ["q1", "q2"]),
        ({"full": "p"}, False, ["p1", "p2", "q1", "q2"]),
        ({"fed": ["p2"]}, True, ["p1", "q1", "q2"]),
        ({"fed": ["p2"]}, False, ["p1", "q1", "q2"]),
        ({"refused": ["q1"]}, True, ["p1", "p2", "q2"]),
        ({"refused": ["q1"]}, False, ["p1", "p2", "q1", "q2"]),
        ({"idle": ["q1"]}, True, ["p1", "p2", "q2"]),
        ({"idle": ["q1"]}, False, ["p1", "p2", "q1", "q2"]),
    ],
)
def test_starving_jobs_are_served_queue_by_queue_and_who_reclaims_only_where_its_queue_may(
    options, reclaims, served, monkeypatch
):
    scene = Served(monkeypatch, **options)
    assert scene.serve(reclaims=reclaims) == served
    told = "refused" in options and reclaims
    assert scene.judged == ([("q1", "gangreclaim", "queue q may not reclaim: not its turn")] if told else [])


# ---- who would return


@pytest.mark.parametrize(
    ("protects", "priority", "reached"), [(True, 4, False), (True, 5, True), (True, 6, True), (False, 4, True)]
)
def test_whoever_is_less_important_reaches_nobody_where_that_protects(protects, priority, reached):
    plan = SimpleNamespace(rules=SimpleNamespace(protects_important=protects), job=SimpleNamespace(priority=5))
    assert ping_pong.reaches(plan, SimpleNamespace(priority=priority)) is reached


class Return:
    """A plan for a member on each of two nodes, for which pods of jobs a, b and c go; whoever asks is offered a member if its job is in `offered`."""

    def __init__(self, monkeypatch, *, starving="abc", concerned="abc", offered="abc", refused=""):
        self.asked, self.supposed = [], []
        jobs = {name: SimpleNamespace(key=name, priority=5, pending={}) for name in "abcz"}
        self.job = jobs["z"]
        self.priority = 5
        nodes = [SimpleNamespace(name="m"), SimpleNamespace(name="n"), None]
        self.members = [SimpleNamespace(name=f"z{i}", job=jobs["z"], node=where) for i, where in enumerate(nodes)]
        self.victims = [SimpleNamespace(name=f"{job}{i}", job=jobs[job], shape=job) for job in "abc" for i in range(2)]
        for victim in self.victims:
            victim.job.pending[victim.name] = victim
        self.victims.append(SimpleNamespace(name="lost", job=None))
        self.rules = SimpleNamespace(
            concerns=lambda victim, member: victim.job.key in concerned and member is self.members[0],
            protects_important=False,
            may_go=lambda victim, member: victim.job.key in offered,
            in_order=lambda _, tasks: tasks,
        )
        self.session = SimpleNamespace(job_starving=lambda job: job.key in starving)
        self.bounds, self.domain = {}, None
        statement = SimpleNamespace(trial=contextlib.nullcontext)
        statement.suppose = lambda tasks, where, status: self.supposed.append(
            ([t.name for t in tasks], [w and w.name for w in where], status)
        )
        self.statement = statement

        def offering(_, victim, node, _domain):
            self.asked.append((victim.name, node.name))
            return [self.members[1]] if victim.job.key in offered and node.name == "n" else [self.victims[0]]

        monkeypatch.setattr(votes, "offered", offering)
        monkeypatch.setattr(
            votes,
            "ask",
            lambda _, victim, some, __: [t for t in some if t is self.members[0] and victim.job.key != refused],
        )

    def returning(self, takes="abc"):
        return [
            task.name
            for task in ping_pong.those_who_would_return(self, lambda job, plan: plan is self and job.key in takes)
        ]


def test_those_return_whose_job_is_concerned_starves_is_offered_a_member_and_would_take_it(monkeypatch):
    plan = Return(monkeypatch)
    assert plan.returning() == ["a0", "a1", "b0", "b1", "c0", "c1"]
    victims = ["a0", "a1", "b0", "b1", "c0", "c1", "lost"]
    assert plan.supposed == [
        (victims, [None] * 7, Status.PENDING),
        (["z0", "z1", "z2"], ["m", "n", None], Status.RUNNING),
    ]
    assert plan.asked == [(f"{job}1", node) for job in "abc" for node in "mn"]  # victims of one shape ask alike
    assert plan.returning("b") == ["b0", "b1"]


@pytest.mark.parametrize("question", ["starving", "concerned", "offered"])
def test_who_is_not_concerned_does_not_starve_or_is_offered_nobody_does_not_return(question, monkeypatch):
    assert Return(monkeypatch, **{question: "ac"}).returning() == ["a0", "a1", "c0", "c1"]
    nobody = Return(monkeypatch, **{question: ""})
    assert nobody.returning() == []
    assert bool(nobody.supposed) is (question != "concerned")


@pytest.mark.parametrize(("searches", "searched"), [(3, True), (2, False)])
def test_of_more_jobs_than_are_searched_for_none_is_trusted_and_that_is_told(searches, searched, monkeypatch):
    monkeypatch.setattr(ping_pong, "SEARCHES", searches)
    plan = Return(monkeypatch)
    assert plan.returning("") == ([] if searched else ["a0", "a1", "b0", "b1", "c0", "c1"])
    assert bool(plan.bounds) is not searched


@pytest.mark.parametrize(("looks", "asked"), [(2, 6), (1, 0)])
def test_of_many_pods_all_members_are_asked_about_at_once(looks, asked, monkeypatch):
    monkeypatch.setattr(ping_pong, "LOOKS", looks)
    plan = Return(monkeypatch, offered="ab")
    assert plan.returning() == ["a0", "a1", "b0", "b1"]
    assert len(plan.asked) == asked
    if not asked:
        assert Return(monkeypatch, refused="b").returning() == ["a0", "a1", "c0", "c1"]


# ---- losses


def test_a_loss_is_the_largest_share_of_any_total_but_that_of_pods():
    allocatable = np.zeros((3, 5), dtype=np.int64)
    allocatable[:2, 0], allocatable[:2, 1], allocatable[:2, PODS], allocatable[:, 3] = 3, 2, 5, [0, 1, 9]
    session = SimpleNamespace(
        cluster=SimpleNamespace(nodes=SimpleNamespace(allocatable=allocatable, count=2)), scratch={}
    )
    losses = ranking.losses(session)
    assert ranking.losses(session) is losses
    assert losses.totals == {0: 6, 1: 4, 3: 1}
    assert losses.denominator == 12
    assert [losses.share(column, 1) for column in (0, 1, PODS, 3, 4)] == [2, 3, 0, 12, 0]

    def shape(serial, *amounts):
        return SimpleNamespace(
            serial=serial, request=SimpleNamespace(vector=np.array([*amounts, *[0] * (5 - len(amounts))]))
        )

    one, two = shape(1, 1, 1, 9), shape(2, 3, 1)
    assert [losses.of(each) for each in (one, two, one, shape(3))] == [3, 6, 3, 0]
    tasks = [SimpleNamespace(shape=each) for each in (one, two)]
    assert losses.sum(tasks) == 9
    assert losses.sum(tasks, ends=True) == 9 + losses.end_of_a_job
    assert losses.end_of_a_job == 12 << ranking.PODS_BITS
    units = [
        SimpleNamespace(tasks=tasks, ends=ends, breaks=False, priority=(value, 0))
        for value, ends in ((1, False), (3, True))
    ]
    assert ranking.rank(session, units) == ((3, 0), False, 4, 18 + losses.end_of_a_job)
    units[0].breaks = True
    assert ranking.rank(session, units)[1] is True


def test_where_nothing_is_offered_nothing_is_lost():
    table = SimpleNamespace(allocatable=np.zeros((1, 2), dtype=np.int64), count=1)
    losses = ranking.Losses(SimpleNamespace(cluster=SimpleNamespace(nodes=table)))
    assert losses.of(SimpleNamespace(serial=1, request=SimpleNamespace(vector=np.array([1, 1])))) == 0


# ---- plugins that simulate


class Simulated:
    def __init__(self, *, against=(), allocatable=None, predicate=None):
        self.told = []
        self.scratch, self.handlers = {}, []
        self.add_handler = self.handlers.append
        self.simulate_remove_task = lambda *about: self._tell("goes", about, against)
        self.simulate_add_task = lambda *about: self._tell("returns", about, against)
        self.simulate_allocatable = lambda queue, demand: allocatable if demand == (["member"], True) else "for nobody"
        self.simulate_predicate = lambda member, record: predicate

    def _tell(self, what, about, against):
        claimant, task, record = about
        self.told.append((what, claimant, task.uid, record))
        return "no" if task.uid in against else None


@pytest.fixture
def _demand(monkeypatch):
    monkeypatch.setattr(subject, "equal_tasks", lambda tasks, *, waits: (tasks, waits))


def run(*uids, step=Step.EVICT, claimant="claimant", sources=None):
    tasks = [SimpleNamespace(uid=uid) for uid in uids]
    return SimpleNamespace(step=step, claimant=claimant, tasks=tasks, sources=sources or ["node"] * len(uids))


@pytest.mark.usefixtures("_demand")
def test_plugins_are_told_who_goes_for_a_claimant_and_who_returns_and_one_may_speak_against_it():
    session = Simulated(against=["b"])
    made = simulation.of(session)
    assert simulation.of(session) is made
    assert session.handlers == [made.follow]
    for other in (run("x", step=Step.PIPELINE), run("x", claimant=None), run("x", sources=[None])):
        for direction in (1, -1, 0):
            made.follow(other, direction)
    assert session.told == []
    made.follow(run("a"), 0)
    assert not made.refuses("queue", "member", "node")
    made.follow(run("b", "c"), -1)
    assert made.refuses("queue", "member", "node")
    made.follow(run("c"), 1)
    assert made.refuses("queue", "member", "node")
    made.follow(run("b"), 1)
    assert not made.refuses("queue", "member", "node")
    told = [("goes", "a"), ("goes", "b"), ("goes", "c"), ("returns", "c"), ("returns", "b")]
    assert session.told == [(what, "claimant", uid, "node") for what, uid in told]


@pytest.mark.usefixtures("_demand")
@pytest.mark.parametrize(
    ("allocatable", "predicate", "refused"), [(None, None, False), ("no", None, True), (None, "no", True)]
)
def test_plugins_may_refuse_a_member_for_its_queue_or_its_node(allocatable, predicate, refused):
    made = simulation.Simulation(Simulated(allocatable=allocatable, predicate=predicate))
    assert made.refuses("queue", "member", "node") is refused


@pytest.mark.parametrize("active", ["add_task", "remove_task", "predicate", "allocatable", ""])
def test_a_simulation_is_wanted_if_any_plugin_has_a_part_in_it(active):
    points = ("add_task", "remove_task", "predicate", "allocatable")
    session = SimpleNamespace(**{f"simulate_{name}": SimpleNamespace(active=name == active) for name in points})
    assert simulation.wanted(session) is bool(active)


# ---- who proposes


class Proposer:
    def __init__(self, plan, *names):
        self._plan, self._names = plan, names

    def proposals(self, plan, _wanted):
        assert plan is self._plan
        for name in self._names:
            assert not plan.done
            plan.done.append(name)
            yield
        assert not plan.done
        plan.done.append("a last try")


class Plan:
    def __init__(self):
        self.done, self.session = [], None

    def start_again(self):
        self.done.clear()


@pytest.mark.parametrize("node_by_node", [True, False])
def test_one_proposer_is_asked_after_the_other_and_each_begins_with_nothing_done(node_by_node, monkeypatch):
    plan = Plan()
    monkeypatch.setattr(proposals, "Offers", lambda *_: None)
    made = {"EqualClaimants": ("alike",), "Room": ("free",), "CheapestNodes": ("node", "other"), "Bundles": ("bundle",)}
    for name, told in made.items():
        monkeypatch.setattr(proposals, name, lambda *_, told=told: Proposer(plan, *told))
    monkeypatch.setattr(proposals.exhaustive, "EverySet", lambda _: Proposer(plan, "set"))
    found = proposals.Proposers(None, SimpleNamespace(node_by_node=node_by_node)).proposals(plan, "wanted")
    said = [plan.done[0] for _ in found]
    assert said == (
        ["alike", "free", "set", "node", "other"] if node_by_node else ["free", "set", "node", "other", "bundle"]
    )
    assert not plan.done


@pytest.mark.parametrize(
    ("node_by_node", "whole", "asked"),
    [(True, True, "all"), (True, False, "all"), (False, True, "some"), (False, False, None)],
)
def test_members_go_where_they_cost_least_in_gang_forms_only_if_jobs_may_go_whole(
    node_by_node, whole, asked, monkeypatch
):
    monkeypatch.setattr(proposals, "orders", lambda _, tasks: [list(tasks), list(tasks)[::-1]])
    monkeypatch.setattr(proposals.likeness, "of_member", lambda _, member: member[0])
    plan, tried = Plan(), []

    def place(_, member):
        tried.append(member)
        plan.done.append(member)
        return member[0] != "x"

    rules = SimpleNamespace(node_by_node=node_by_node, allows_whole=whole)
    wanted = SimpleNamespace(
        tasks=["x1", "x2", "a1", "b1"], with_requests=["a1", "b1"], done=lambda: "b1" in tried and tried[-1] != "x1"
    )
    made = proposals.CheapestNodes(rules, SimpleNamespace(place=place))
    seen = [list(plan.done) for _ in made.proposals(plan, wanted)]
    if asked is None:
        assert (seen, tried) == ([], [])
    elif asked == "all":
        assert seen == [["x1", "a1", "b1"], ["b1"]]  # of those that are alike one is tried
    else:
        assert seen == [["a1", "b1"], ["b1"]]
    assert not plan.done
