"""Units that the first tier of plugins keeps while it gives somebody else away: which are noted, and for how long that counts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.actions.eviction import units
from pumice.actions.eviction.kept_gangs import KeptGangs
from pumice.actions.eviction.units import Unit

# ---- what is kept


def rules(*, first=0, node_by_node=True, keeps=True, stays=True):
    made = SimpleNamespace(
        facts=SimpleNamespace(first_tier_of_several=first, protections_go_by_pod_or_queue=stays),
        session=SimpleNamespace(shortcuts=SimpleNamespace(deciding_tiers=True)),
        node_by_node=node_by_node,
        keeps_gangs=keeps,
        out_of_reach=[],
        protected=[],
        asked=[],
    )
    made.reaches = lambda _, task: task.uid not in made.out_of_reach
    made.protection = lambda _, task: made.asked.append(task.uid) or ("kept" if task.uid in made.protected else None)
    return made


def task(uid, row=1):
    node = None if row is None else SimpleNamespace(row=row)
    return SimpleNamespace(uid=uid, node=node)


def member(queue="q", job=5, own=1):
    return SimpleNamespace(job=None if queue is None else SimpleNamespace(queue=queue, priority=job), priority=own)


class Scene:
    """A gang of two on a node and one elsewhere, another one and a pod beside it; the pod is given away, the first gang is refused."""

    def __init__(self, made=None, *, tier=0, given=("pod",)):
        self.rules = made or rules()
        self.kept = KeptGangs(self.rules)
        self.gang = [task("a"), task("b"), task("far", row=2), task("lost", row=None)]
        self.other, self.pod = task("c"), task("pod")
        items = [[task("x", row=0)], self.gang[:2], [self.other], [self.pod], None]
        items = [None if tasks is None else SimpleNamespace(tasks=tuple(tasks)) for tasks in items]
        self.columns = SimpleNamespace(
            starts=[0, 1], ends=[1, 5], items=items, protections=SimpleNamespace(likeness=lambda task: task.uid)
        )
        votes = SimpleNamespace(ask_tier=lambda _tier, _member, ordered: [t for t in ordered if t.uid in given])
        self.plan = SimpleNamespace(tier=lambda *_: tier, votes=votes, excluded={})

    def note(self, who=None, refused=True):
        units_refused = [Unit(tuple(self.gang), whole=True)] if refused else []
        ordered = [*self.gang[:2], self.other, self.pod]
        self.kept.note(self.plan, who or member(), self.columns, 1, refused=units_refused, ordered=ordered)

    def places(self, who=None):
        return self.kept.places(self.plan, who or member(), self.columns)


def test_a_gang_that_is_refused_where_somebody_else_is_given_is_kept_from_claimants_of_its_kind():
    scene = Scene()
    scene.note()
    assert scene.places() == scene.places() == [1]
    for other in (member(queue="p"), member(job=6), member(own=2), member(queue=None)):
        assert scene.places(other) == []


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (rules(first=None), {}),
        (rules(node_by_node=False), {}),
        (rules(keeps=False), {}),
        (rules(stays=False), {}),
        (rules(first=None, node_by_node=False, keeps=False, stays=False), {}),
        (rules(), {"tier": 1}),  # another tier decides there
        (rules(first=1), {}),
        (rules(), {"given": ()}),  # nobody else is given
    ],
)
def test_nothing_is_noted_where_the_first_tier_does_not_decide_or_more_is_asked_of_others(made, options):
    scene = Scene(made, **options)
    scene.note()
    assert scene.places() == []


def test_where_nobody_was_refused_nothing_is_noted():
    scene = Scene()
    scene.note(refused=False)
    assert scene.places() == []


def test_claimants_of_no_job_are_told_apart_by_their_priority():
    scene = Scene()
    scene.note(member(queue=None))
    assert scene.places(member(queue=None)) == [1]
    assert scene.places(member(queue=None, own=2)) == scene.places(member()) == []


@pytest.mark.parametrize("change", ["laid out anew", "fewer"])
def test_what_is_known_of_a_unit_is_forgotten_when_its_node_is_laid_out_anew(change):
    scene = Scene()
    scene.note()
    items = scene.columns.items
    scene.columns.items = items[:1] if change == "fewer" else [items[0], SimpleNamespace(tasks=items[1].tasks)]
    assert scene.places() == []
    scene.columns.items = items
    assert scene.places() == []


@pytest.mark.parametrize("why", ["excluded", "out of reach", "protected"])
def test_a_gang_counts_again_while_whoever_is_given_in_its_place_cannot_go(why):
    scene = Scene()
    scene.note()
    where = {
        "excluded": scene.plan.excluded,
        "out of reach": scene.rules.out_of_reach,
        "protected": scene.rules.protected,
    }[why]
    if isinstance(where, dict):
        where["pod"] = None
    else:
        where.append("pod")
    assert scene.places() == []
    where.clear()
    assert scene.places() == [1]


def test_of_those_whom_queues_protect_alike_one_is_asked_about():
    scene = Scene()
    scene.note()
    scene.other.uid = "c"
    scene.kept.note(
        scene.plan,
        member(),
        scene.columns,
        1,
        refused=[Unit((scene.other,), whole=True)],
        ordered=[scene.pod, scene.other],
    )
    scene.rules.asked.clear()
    assert scene.places() == [1, 2]
    assert scene.rules.asked == ["pod"]


# ---- going together


class Statement:
    """Takes down who has gone; a trial takes it back."""

    def __init__(self):
        self.gone = []

    def trial(self):
        return self

    def __enter__(self):
        self.before = list(self.gone)

    def __exit__(self, *_):
        self.gone = self.before

    def evict(self, tasks, by):
        assert by == "preempt"
        self.gone += [task.uid for task in tasks]


def together(uids, *, spare=0, keeps=True, protects=(), counts=(), jobless=False, monkeypatch):
    """Ask whether tasks may go together; `protects` and `counts` are by whom and with how many gone before a protection, and a budget, speaks against it."""
    statement, asked = Statement(), []
    monkeypatch.setattr(
        units, "keeps_its_minimum", lambda job, _: len([u for u in statement.gone if u[0] == job.key]) < spare
    )

    def protection(_, task):
        asked.append(f"{task.uid}{len(statement.gone)}")
        return "no" if (task.uid, len(statement.gone)) in protects else None

    def budget(_, task):
        asked.append(f"{task.uid}{len(statement.gone)} budget")
        return "no" if (task.uid, len(statement.gone)) in counts else None

    made = SimpleNamespace(protection=protection, budget=budget, keeps_gangs=keeps, name="preempt")
    tasks = [
        SimpleNamespace(
            uid=uid, job=None if jobless else SimpleNamespace(key=uid[0]), job_key="" if jobless else uid[0]
        )
        for uid in uids
    ]
    found = units.may_all_go(made, statement, "claimant", tasks)
    assert statement.gone == []
    return found, asked


def test_each_is_asked_about_and_then_each_with_those_before_it_gone(monkeypatch):
    first = ["a10", "a20", "b10"]
    found = together(["a1", "a2", "b1"], spare=9, monkeypatch=monkeypatch)
    assert found == (True, [*first, "a10", "a21", "b12"])


def test_a_gang_is_judged_once_when_it_cannot_stay_and_then_budgets_alone_count(monkeypatch):
    first = ["a10", "a20", "b10", "a30"]
    found = together(["a1", "a2", "b1", "a3"], spare=1, monkeypatch=monkeypatch)
    assert found == (True, [*first, "a10", "a21", "b12", "a33 budget"])
    found = together(["a1", "a2"], spare=0, monkeypatch=monkeypatch)
    assert found == (True, ["a10", "a20", "a10", "a21 budget"])


@pytest.mark.parametrize("options", [{"keeps": False}, {"jobless": True}])
def test_where_gangs_are_not_kept_each_is_judged(options, monkeypatch):
    found = together(["a1", "a2"], monkeypatch=monkeypatch, **options)
    assert found == (True, ["a10", "a20", "a10", "a21"])


@pytest.mark.parametrize(
    ("uids", "spare", "protects", "counts", "may"),
    [
        (["a1"], 0, [], [], True),
        (["a1"], 0, [("a1", 0)], [], False),
        (["a1"], 0, [], [("a1", 0)], True),  # whoever is alone is asked about once
        (["a1", "a2"], 9, [("a2", 0)], [], False),
        (["a1", "a2"], 9, [("a2", 1)], [], False),
        (["a1", "a2"], 0, [("a2", 1)], [], True),  # it is judged with the first of its gang
        (["a1", "a2"], 0, [], [("a2", 1)], False),
        (["a1", "a2"], 9, [], [("a2", 1)], True),
    ],
)
def test_nobody_goes_if_anybody_is_protected_by_then(uids, spare, protects, counts, may):
    with pytest.MonkeyPatch.context() as patched:
        assert together(uids, spare=spare, protects=protects, counts=counts, monkeypatch=patched)[0] is may


@pytest.mark.parametrize(
    ("whole", "pods", "alone"), [(True, 1, True), (False, 1, False), (True, 2, False), (True, None, False)]
)
def test_a_job_of_one_pod_leaves_nothing_behind(whole, pods, alone):
    job = None if pods is None else SimpleNamespace(tasks=dict.fromkeys(range(pods)))
    assert Unit((SimpleNamespace(job=job),), whole=whole).is_job_of_one is alone


def test_the_priority_of_a_unit_is_the_highest_of_a_job_and_then_of_a_pod():
    jobs = [SimpleNamespace(priority=value) for value in (3, 1)]
    tasks = [
        SimpleNamespace(job=job, priority=own) for job, own in ((jobs[1], 9), (jobs[0], 2), (jobs[0], 4), (None, 99))
    ]
    assert Unit(tuple(tasks), whole=False).priority == (3, 4)
    assert Unit((tasks[3],), whole=False).priority == (0, 99)
