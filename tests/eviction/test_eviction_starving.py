"""Which jobs may ask for room, for how long it is known that nobody may go for them, and for whom it is told again who was considered."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pumice.actions.eviction import asking, starving, telling
from pumice.framework import refusals
from pumice.framework.reads import Reads


class Scene:
    """Jobs of one queue that ask, all alike; `gives` are the names of jobs whose pods may go for others."""

    def __init__(
        self,
        monkeypatch,
        names="",
        *,
        rules=None,
        kept=None,
        configured="volcano",
        actions=("enqueue", "preempt"),
        gives="",
    ):
        self.gives, self.asked, self.judged, self.told, self.remembering = gives, [], [], [], []
        self.jobs = {name: job(name) for name in names}
        sums = SimpleNamespace(allocated=np.array([1]), pipelined=np.array([0]))
        self.cluster = SimpleNamespace(
            pending_jobs=self.jobs,
            jobs=dict(self.jobs),
            queue_sums=sums,
            job_sums=SimpleNamespace(held=lambda row: np.array([row])),
        )
        self.session = SimpleNamespace(
            cluster=self.cluster,
            shortcuts=SimpleNamespace(equal_claimants=True),
            configuration=SimpleNamespace(rules=configured, action_names=list(actions)),
            usable=lambda job: job.usable,
            findings=SimpleNamespace(phase=lambda job: job.phase),
            closed=lambda job: job.closed,
            record=SimpleNamespace(judge=lambda key, action, text: self.judged.append((key, action, text))),
            job_valid=lambda job: job.invalid,
            job_starving=lambda job: job.starves,
            reserved={},
            topology=SimpleNamespace(limit=lambda job: job.topology),
            protection=[SimpleNamespace(reads=Reads.QUEUE), SimpleNamespace(reads=Reads.TASK)],
            breakdowns=SimpleNamespace(found=False),
        )
        self.rules = rules or voters()
        self.rules.sources = lambda _: list(self.cluster.jobs.values())
        self.kept = {} if kept is None else kept

        def remembered(_, about, functions):
            self.remembering.append((about, [getattr(each, "reads", each) for each in functions]))
            return self.kept

        def offered(_, claimant, sources, *, ask):
            names = "".join(each.key for each in sources)
            self.asked.append((claimant.job, names, ask))
            return any(each in self.gives for each in names if each != claimant.job)

        monkeypatch.setattr(refusals, "remembered", remembered)
        monkeypatch.setattr(asking, "is_anybody_offered", offered)
        monkeypatch.setattr(telling, "considered", self._considered)
        self.starving = starving.Starving(self.session, self.rules)

    def _considered(self, _, claimant):
        self.told.append(claimant.name)
        return f"looked at for {claimant.job}"

    def served(self):
        """Say who may ask."""
        return {name: "".join(job.key for job in jobs) for name, jobs in self.starving.jobs().items()}

    def again(self, monkeypatch, names=None, **options):
        """Begin a new cycle with what was remembered."""
        return Scene(monkeypatch, "".join(self.jobs) if names is None else names, kept=self.kept, **options)


def voters(*, name="preempt", within=False, own_queue=False, know_jobs=False, know_amounts=False):
    facts = SimpleNamespace(votes_know_jobs=know_jobs, votes_know_amounts=know_amounts)
    return SimpleNamespace(
        name=name, within=within, own_queue=own_queue, facts=facts, has_spared=False, functions=lambda: ["voter"]
    )


def member(job, *, best_effort=False, name="", likeness=("shape", None)):
    return SimpleNamespace(job=job, best_effort=best_effort, name=name or f"{job}-0", priority=1, likeness=likeness)


def job(name, **change):
    usual = {
        "key": name,
        "queue": "q",
        "priority": 1,
        "row": 7,
        "pending": {"0": member(name)},
        "tasks": {"0": None},
        "usable": True,
        "phase": "Inqueue",
        "closed": None,
        "invalid": None,
        "starves": True,
        "topology": None,
    }
    return SimpleNamespace(**{**usual, **change})


# ---- who may ask


@pytest.mark.parametrize(
    ("change", "served", "judged"),
    [
        ({}, True, None),
        ({"usable": False}, False, None),
        ({"usable": False, "phase": "Pending"}, False, None),
        ({"phase": "Pending"}, False, None),
        ({"closed": "its queue is closed"}, False, "its queue is closed"),
        ({"invalid": "too few"}, False, None),
        ({"starves": False}, False, None),
        ({"invalid": "too few", "starves": False}, False, None),
        ({"pending": {}}, False, telling.NOBODY),
    ],
)
def test_jobs_may_ask_that_were_let_in_are_valid_and_starve(change, served, judged, monkeypatch):
    scene = Scene(monkeypatch, "a", gives="x")
    scene.jobs["a"] = job("a", **change)
    scene.cluster.jobs["x"] = job("x")
    assert scene.served() == ({"q": "a"} if served else {})
    assert scene.judged == ([] if judged is None else [("a", "preempt", judged)])


@pytest.mark.parametrize("configured", ["volcano", "kube-batch"])
@pytest.mark.parametrize("actions", [("preempt",), ("enqueue", "preempt")])
def test_groups_that_were_not_let_in_ask_only_where_nobody_lets_them_in(configured, actions, monkeypatch):
    scene = Scene(monkeypatch, "a", gives="x", configured=configured, actions=actions)
    scene.cluster.jobs["x"] = job("x")
    scene.jobs["a"].phase = "Pending"
    assert bool(scene.served()) is (configured == "kube-batch" and "enqueue" not in actions)


@pytest.mark.parametrize(("tasks", "served"), [(1, False), (2, True)])
def test_a_job_takes_from_itself_only_if_it_has_pods_that_do_not_wait_and_nothing_is_said_otherwise(
    tasks, served, monkeypatch
):
    scene = Scene(monkeypatch, "a", rules=voters(within=True), gives="x")
    scene.cluster.jobs["x"] = job("x")
    scene.jobs["a"].tasks = dict.fromkeys(range(tasks))
    assert bool(scene.served()) is served
    nobody = Scene(monkeypatch, "a", rules=voters(within=True))
    nobody.jobs["a"].tasks = dict.fromkeys(range(tasks))
    assert nobody.served() == {}
    assert nobody.judged == []


@pytest.mark.parametrize(
    ("own_queue", "reads"), [(True, ["voter", Reads.TASK]), (False, ["voter", Reads.QUEUE, Reads.TASK])]
)
def test_what_is_remembered_rests_on_who_votes_and_protects_queues_only_where_others_are_taken_from(
    own_queue, reads, monkeypatch
):
    scene = Scene(monkeypatch, rules=voters(own_queue=own_queue))
    scene.served()
    assert scene.remembering == [("preempt, False", reads)]


def test_whoever_could_take_held_room_over_asks_though_nobody_may_go(monkeypatch):
    scene = Scene(monkeypatch, "a")
    scene.session.reserved["u"] = "task"
    assert scene.served() == {"q": "a"}
    assert scene.asked == []


# ---- of whom one speaks for others


@pytest.mark.parametrize(
    ("rules", "equal", "alike"),
    [
        (voters(), True, True),
        (voters(know_jobs=True), True, False),
        (voters(within=True), True, False),
        (voters(), False, False),
        (voters(know_amounts=True), True, True),
    ],
)
def test_jobs_are_of_one_kind_by_their_numbers_unless_somebody_knows_who_they_are(rules, equal, alike, monkeypatch):
    scene = Scene(monkeypatch, rules=rules)
    scene.session.shortcuts.equal_claimants = equal
    known = starving.Starving(scene.session, rules)
    assert (known.kind_of_job(job("a")) == known.kind_of_job(job("b"))) is alike
    for change in ({"queue": "p"}, {"priority": 2}):
        assert known.kind_of_job(job("a")) != known.kind_of_job(job("b", **change))
    asks, holds = {"pending": {"0": member("b", likeness=("large", None))}}, {"row": 8}
    for change in (asks, holds):
        same = known.kind_of_job(job("a")) == known.kind_of_job(job("b", **change))
        assert same is (alike and not rules.facts.votes_know_amounts)


def test_of_jobs_that_are_alike_one_is_asked_for_and_the_next_about_the_pods_of_that_one(monkeypatch):
    """Nobody looks at its own pods, so that these have to be asked about once more."""
    scene = Scene(monkeypatch, "abc")
    assert scene.served() == {}
    assert scene.asked == [("a", "abc", True), ("b", "a", True)]
    assert [key for key, *_ in scene.judged] == ["a", "b", "c"]
    assert {text for *_, text in scene.judged} == {f"{telling.NOBODY}: looked at for a"}
    later = scene.again(monkeypatch)
    assert later.served() == {}
    assert later.asked == []
    assert len({text for *_, text in later.judged}) == 1


def test_whoever_may_take_the_pods_of_the_first_that_asked_asks_and_so_do_those_after_it(monkeypatch):
    scene = Scene(monkeypatch, "abc", gives="a")
    assert scene.served() == {"q": "bc"}
    assert [names for _, names, _ in scene.asked] == ["abc", "a"]
    assert scene.kept == {key: found for key, found in scene.kept.items() if key[0] == "told"}
    later = scene.again(monkeypatch, gives="a")
    assert later.served() == {"q": "bc"}
    assert [names for _, names, _ in later.asked] == ["abc", "a"]


def test_the_same_job_is_not_asked_for_again_and_one_that_came_later_about_the_first(monkeypatch):
    scene = Scene(monkeypatch, "a")
    assert scene.served() == {}
    alone = scene.again(monkeypatch)
    assert alone.served() == {}
    assert alone.asked == []
    joined = alone.again(monkeypatch, "ba")
    assert joined.served() == {}
    assert [(who, names) for who, names, _ in joined.asked] == [("b", "a")]
    gone = Scene(monkeypatch, "a")
    gone.served()
    after = gone.again(monkeypatch, "c")
    assert after.served() == {}
    assert after.asked == []  # the first is gone with its pods


def test_members_without_requests_and_jobs_with_a_topology_are_asked_for_by_themselves(monkeypatch):
    scene = Scene(monkeypatch, "abc")
    scene.jobs["b"].pending = {"0": member("b", best_effort=True)}
    scene.jobs["c"].topology = "hard"
    assert scene.served() == {}
    assert [(who, ask) for who, _, ask in scene.asked] == [("a", True), ("b", True), ("c", False)]


def test_the_first_member_with_requests_stands_for_a_job(monkeypatch):
    scene = Scene(monkeypatch, "ab")
    scene.jobs["a"].pending = {
        i: member("a", name=name, best_effort=modest)
        for i, (name, modest) in enumerate((("x", True), ("y", False), ("z", False)))
    }
    scene.jobs["b"].pending = {i: member("b", name=name, best_effort=True) for i, name in enumerate("vw")}
    scene.served()
    assert scene.told == ["y", "v"]


@pytest.mark.parametrize("why", ["spared", "broken"])
def test_what_was_found_while_somebody_was_spared_or_a_plugin_broke_down_is_not_remembered(why, monkeypatch):
    scene = Scene(monkeypatch, "a")
    scene.rules.has_spared, scene.session.breakdowns.found = why == "spared", why == "broken"
    assert scene.served() == {}
    assert scene.kept == {}
    later = scene.again(monkeypatch)
    later.served()
    assert [names for _, names, _ in later.asked] == ["a"]
    # What was known is forgotten, too.
    broken = later.again(monkeypatch, "ab")
    broken.rules.has_spared, broken.session.breakdowns.found = why == "spared", why == "broken"
    broken.served()
    assert not [key for key in broken.kept if key[0] != "told"]


# ---- what is told of those who were considered


def test_who_was_considered_is_told_again_only_if_somebody_has_come_or_gone(monkeypatch):
    scene = Scene(monkeypatch, "a")
    scene.starving.jobs()
    first = scene.starving.with_those_considered(scene.jobs["a"], "no")
    assert first == "no: looked at for a"
    later = scene.again(monkeypatch)
    later.starving.jobs()
    assert later.starving.with_those_considered(later.jobs["a"], "no") == first
    assert later.told == []
    later.cluster.queue_sums.allocated = np.array([2])
    assert later.starving.with_those_considered(later.jobs["a"], "never") == "never: looked at for a"
    moved = later.again(monkeypatch)
    moved.starving.jobs()
    moved.cluster.queue_sums.pipelined = np.array([1])
    moved.starving.with_those_considered(moved.jobs["a"], "no")
    assert moved.told == ["a-0"]


@pytest.mark.parametrize("why", ["its own", "spared", "broken"])
def test_who_was_considered_is_told_anew_of_jobs_with_pods_of_their_own_and_after_faults(why, monkeypatch):
    scene = Scene(monkeypatch)
    scene.starving.jobs()
    scene.rules.has_spared, scene.session.breakdowns.found = why == "spared", why == "broken"
    asks = job("a", tasks=dict.fromkeys("01")) if why == "its own" else job("a")
    assert scene.starving.with_those_considered(asks, "no") == "no: looked at for a"
    later = scene.again(monkeypatch)
    later.starving.jobs()
    later.starving.with_those_considered(asks, "no")
    assert later.told == ["a-0"]


def test_of_more_than_so_many_kinds_it_is_not_told_who_was_considered(monkeypatch):
    monkeypatch.setattr(telling, "MOST_KINDS", 2)
    scene = Scene(monkeypatch)
    scene.starving.jobs()
    said = [scene.starving.with_those_considered(job("a", priority=value), "no") for value in (1, 2, 3, 2)]
    assert said == ["no: looked at for a"] * 2 + ["no", "no: looked at for a"]
    assert scene.starving.with_those_considered(job("a", pending={}), "no") == "no"
    other = Scene(monkeypatch)
    other.starving.jobs()
    assert other.starving.with_those_considered(job("a"), "no", "known") == "known"
    assert other.told == []
