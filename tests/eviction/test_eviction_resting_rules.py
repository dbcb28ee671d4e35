"""Who rests while it waits for its victims and who does not, and what wakes it: by table, one rule at a time."""

from __future__ import annotations

import numpy as np
import pytest

import recount
from builders import SECOND, Desk, group, node, pod, priority_class, queue
from pumice.framework import reservations, resting
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS, Reads
from pumice.model.resources import CPU, MEMORY, PODS

SHARED = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]
"""
WITH = SHARED.replace("{name: priority}", "{name: priority}, {name: knowing}")


def waiting(count=1, text=SHARED, *classes, wish=(), terms=(), others=(), shared=False):
    """So many nodes that are held for pods whose victims do not go."""
    made = Desk(text, *classes).feed(priority_class("low", 1), priority_class("high", 100), *others)
    for i in range(count):
        made.feed(node(f"n{i}", "4"), group(f"old{i}", 0, phase="Running", priorityClassName="low"))
        made.feed(pod(f"old{i}-0", "old0" if shared else f"old{i}", cpu="3", node=f"n{i}"))
    for i in range(count):
        made.feed(group(f"g{i}", **{"minimum": 1, "phase": "Inqueue", "priorityClassName": "high", **dict(terms)}))
        made.feed(pod(f"g{i}-0", f"g{i}", **{"cpu": "3", **dict(wish)}))
    for i in range(3):
        # Somebody for whom there is no room comes in every cycle, so that none is skipped.
        made.feed(group(f"late{i}", 1, phase="Inqueue", priorityClassName="low"))
        made.feed(pod(f"late{i}-0", f"late{i}", cpu="3")).cycle()
    return made


def opened(made, **how):
    """Open a session with the room held that is held."""
    made.apply()
    engine = made.scheduler.engine
    return engine.open(
        made.cache.record, made.cache, number=9, now=made.now, reserved=made.scheduler.reservations, **how
    )


def left_out(made, **how):
    """Name the pods that would be left out of a cycle that began now."""
    session = opened(made, **how)
    found = {uid.removeprefix("a.") for _, uids in resting.of(session).left_out(session) for uid in uids}
    session.rollback()
    return found


# ---- what wakes them

ALL = {"g0-0", "g1-0", "g2-0"}
WAKES = [
    ("nothing", [], ALL),
    ("its pod is another", [pod("g1-0", "g1", cpu="3", labels={"a": "b"})], {"g0-0", "g2-0"}),
    ("its group says something else", [group("g1", 1, priorityClassName="high", minResources={"cpu": "1"})], {"g0-0", "g2-0"}),
    ("its victim begins to go", [pod("old1-0", "old1", cpu="3", node="n1", deleting=2)], {"g0-0", "g2-0"}),
    ("the group of its victim says something else", [group("old1", 0, minResources={"cpu": "1"})], {"g0-0", "g2-0"}),
    ("its node offers more", [node("n1", "5")], set()),
    ("a node comes", [node("n9", "1")], set()),
    ("its node holds less of others", [pod("else", cpu="1", node="n1", scheduler="x", phase="Succeeded")], ALL),
    ("its queue has another weight", [queue("default", weight=2)], set()),
    ("another queue comes", [queue("other")], set()),
    ("its queue is closed", [queue("default", state="Closed")], set()),
    ("its queue cannot be used", [queue("default", weight=0)], set()),
    ("its queue cannot be read", [{**queue("default"), "spec": {"weight": "heavy"}}], set()),
    ("a priority class comes", [priority_class("other", 5)], set()),
    ("a pod of others comes to its node", [pod("else", cpu="1", node="n1", scheduler="x")], {"g0-0", "g2-0"}),
    ("a pod of others takes room that is held", [pod("else", cpu="2", node="n1", scheduler="x")], set()),
    ("somebody waits who finds no room", [group("new", 1), pod("new-0", "new", cpu="3")], ALL),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rest"), [row[1:] for row in WAKES], ids=[row[0] for row in WAKES])
def test_who_rests_is_woken_by_what_concerns_it(changes, rest):
    assert left_out(waiting(3).modify(*changes)) == rest


@pytest.mark.parametrize("later", [0, 1])
def test_who_rests_is_woken_when_its_hold_may_end(later):
    made = waiting(3)
    (until,) = {hold.unchanged_until for hold in made.scheduler.reservations.holds.values()}
    assert made.now < until < made.now + 60 * SECOND
    made.now = until + later
    assert left_out(made) == (set() if later else ALL)


def test_who_is_gone_is_forgotten_and_the_others_rest_on():
    made = waiting(3)
    made.delete(pod("g1-0", "g1", cpu="3"), group("g1"))
    assert left_out(made) == {"g0-0", "g2-0"}


def test_all_are_looked_at_where_somebody_asks_why():
    made = waiting(3)
    assert left_out(made, is_asked=True) == set()


def test_all_are_looked_at_where_their_queue_was_made_anew():
    made = waiting(3)
    made.delete(queue("default")).apply()
    assert left_out(made.feed(queue("default"))) == set()


def test_where_not_all_can_wait_those_do_whose_nodes_have_room_still():
    made = waiting(3)
    session = opened(made.feed(pod("else", cpu="2", node="n1", scheduler="else")))
    assert {task.name: task.node.name for task in session.reserved.values()} == {"g0-0": "n0", "g2-0": "n2"}
    table = made.cluster.nodes
    assert (table.future_idle_at(slice(table.count)) >= 0).all()
    recount.check(made.cluster)


def reason(made, name):
    """What a pod was told last."""
    told = [patch.body["status"]["conditions"] for patch in made.world.patches("Pod") if patch.name == name]
    return told[-1][0]["message"]


@pytest.mark.parametrize("who", [0, 1])
def test_who_leaves_leaves_its_room_to_others(who):
    made = waiting(2)
    made.feed(group("more", 1, priorityClassName="low"), pod("more-0", "more", cpu="3")).cycle()
    assert reason(made, "late0-0").startswith("no node has 3 cpu free")
    made.delete(pod(f"g{who}-0", f"g{who}", cpu="3"), group(f"g{who}")).cycle()
    assert reason(made, "late0-0").startswith("waits for room that is being released; ")


def test_who_was_lifted_from_its_node_is_looked_at():
    session = opened(made := waiting(3))
    reservations.lift(session, made.cluster.jobs["a/g1"])
    found = [uid for _, uids in resting.of(session).left_out(session) for uid in uids]
    assert found == ["a.g0-0", "a.g2-0"]


@pytest.mark.parametrize("moves", [False, True])
def test_who_gave_its_place_to_its_like_is_looked_at_wherever_it_waits_now(moves):
    """Its node has all the amounts that it had."""
    full = [node("full", "3"), pod("else", cpu="3", node="full", scheduler="else")]
    session = opened(made := waiting(3, others=full))
    statement, lifted = session.statement(), reservations.lift(session, made.cluster.jobs["a/g1"])
    statement.pipeline([made.task("late0-0")], [made.node("n1")])
    if moves:
        statement.pipeline(lifted, [made.node("full")])
        session.reserved.update({task.uid: task for task in lifted})
    found = [uid for _, uids in resting.of(session).left_out(session) for uid in uids]
    assert found == ["a.g0-0", "a.g2-0"]


def test_of_those_who_are_left_out_whoever_is_lifted_counts_no_more():
    session = opened(waiting(3))
    known = resting.of(session)
    uids = [uid for _, found in known.left_out(session) for uid in found]
    for count in range(len(uids) + 1):
        session.resting_holders = dict.fromkeys(uids[:count])
        assert [list(kind) for kind in known.kinds(session)] == ([uids[:count]] if count else [])


def test_who_waits_for_pods_of_one_job_is_woken_by_that_though_another_was_woken_before():
    made = waiting(2, shared=True)
    for i, changed in enumerate(([], [pod("g0-0", "g0", cpu="3", labels={"a": "b"})])):
        made.modify(*changed).feed(group(f"more{i}", 1), pod(f"more{i}-0", f"more{i}", cpu="3")).cycle()
    made.modify(pod("old0-0", "old0", cpu="3", node="n0", deleting=3), pod("g0-0", "g0", cpu="3", labels={"a": "c"}))
    assert left_out(made) == set()


def test_after_a_restart_nobody_rests_of_whose_victims_nothing_is_known():
    waits = pod("g-0", "g", cpu="3")
    waits["status"]["nominatedNodeName"] = "n"
    made = Desk(SHARED).feed(node("n", "4"), group("g", 1, phase="Inqueue"), waits)
    made.feed(group("old", 0, phase="Running"), pod("old-0", "old", cpu="3", node="n", deleting=30))
    for i in range(3):
        made.feed(group(f"late{i}", 1, phase="Inqueue"), pod(f"late{i}-0", f"late{i}", cpu="3")).cycle()
    session = opened(made)
    assert [task.name for task in session.reserved.values()] == ["g-0"]
    assert not resting.of(session).left_out(session)


# ---- who rests

WHO = [
    ("one pod that asks for amounts", {}, {}, True),
    ("it takes all that its node has", {}, {"cpu": "4"}, True),
    ("it takes ports", {}, {"ports": [{"containerPort": 80, "hostPort": 80}]}, False),
    ("it minds others", {}, {"labels": {"a": "b"}, "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"c": "d"}}}]}}}, False),
    ("roles count", {"minTaskMember": {"r": 1}}, {"role": "r"}, False),
    ("sub-groups count", {"subGroupPolicy": [{"name": "s", "matchLabelKeys": ["rank"], "subGroupSize": 1, "minSubGroups": 1}]}, {"labels": {"rank": "0"}}, False),
]  # fmt: skip


@pytest.mark.parametrize(("terms", "wish", "rests"), [row[1:] for row in WHO], ids=[row[0] for row in WHO])
def test_who_rests_waits_with_its_only_pod_for_amounts_alone(terms, wish, rests):
    made = waiting(1, terms=terms, wish=wish)
    assert made.world.evictions == ["old0-0"]
    assert left_out(made) == ({"g0-0"} if rests else set())


def test_whose_job_has_another_pod_does_not_rest():
    made = waiting(1, others=[pod("g0-1", "g0", cpu="3")])
    assert made.world.evictions == ["old0-0"]
    assert left_out(made) == set()


def allocated(session, job):
    """Let a pod have the room that is held for it."""
    lifted = reservations.lift(session, job)
    session.statement().allocate(lifted, [session.cluster.nodes.records[0]])
    session.reserved.update({task.uid: task for task in lifted})


ELSEWHERE = [
    ("it waits where room is held for it", {}, lambda session, job: None, "n0"),
    ("it is placed", {}, allocated, None),
    ("it waits for a node that it found by itself", {}, lambda session, job: session.reserved.clear(), None),
    ("nobody was evicted for it", {}, lambda session, job: session.statements.evicted_for.clear(), None),
    ("nothing is held for it", {}, lambda session, job: session.reservations.holds.clear(), None),
    ("another node is held for it", {}, lambda session, job: session.reservations.holds.update({"a.g0-0": reservations.Hold("n1")}), None),
    ("it takes ports", {"ports": [{"containerPort": 80, "hostPort": 80}]}, lambda session, job: None, None),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "change", "place"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE])
def test_the_place_of_a_holder_is_the_node_on_which_it_waits_for_its_victims(wish, change, place):
    session = opened(made := waiting(2, wish=wish))
    job = made.cluster.jobs["a/g0"]
    change(session, job)
    found = resting.place_of(session, job)
    assert (None if found is None else found.name) == place


class Knowing(Plugin):
    """Lets everybody go on, by what it knows of each."""

    name = "knowing"
    points = frozenset(
        {"PrePredicate", "Predicate", "JobValid", "JobPipelined", "Allocatable", "JobDelay", "JobBlocked"}
    )
    asked, known = "", Reads(0)

    def open(self, session):
        points = {
            "a pod": session.pre_predicate,
            "a job": session.job_valid,
            "who waits": session.job_pipelined,
            "a queue": session.allocatable,
        }
        if self.asked == "a placement":
            session.add_handler(lambda run, sign: None, may_refuse=True)
        elif self.asked == "who delays":
            session.job_delay.add(lambda job: None)
        elif self.asked == "who is blocked":
            session.job_blocked.add(lambda job: None)
        elif self.asked == "a node":
            session.predicate.add(lambda _, nodes: np.zeros(len(nodes), dtype=np.int16), reads=self.known)
        elif self.asked:
            points[self.asked].add(lambda *_: None, reads=self.known)


KNOWN = [
    ("", Reads(0), True),
    ("a pod", Reads.NODE, True),
    ("a pod", Reads.JOB, False),
    ("a node", Reads.OTHER_NODES, False),
    ("a node", Reads.JOB, False),
    ("a job", Reads.QUEUE, True),
    ("a job", Reads.TIME, False),
    ("a queue", Reads.QUEUE, True),
    ("a queue", Reads.JOB, False),
    ("a placement", Reads(0), False),
    ("who delays", Reads(0), False),
    ("who is blocked", Reads(0), False),
]


@pytest.mark.parametrize(("asked", "known", "rests"), KNOWN)
def test_nobody_rests_where_it_takes_more_than_amounts_queues_and_nodes_to_say_what_becomes_of_it(asked, known, rests):
    how = type("Knowing", (Knowing,), {"asked": asked, "known": known})
    made = waiting(2, WITH, how)
    assert left_out(made) == ({"g0-0", "g1-0"} if rests else set())


class Speaking(Plugin):
    """Looks at the pods of nodes, and has something to say of them only from some time on, counting pods that leave or without them."""

    name = "knowing"
    points = frozenset({"Predicate"})
    reads = NODE_TASKS
    views = ()

    def open(self, session):
        session.predicate.add(self._says)

    def _says(self, _subject, nodes):
        return np.zeros(len(nodes), dtype=np.int16) if nodes.released in self.views else None


@pytest.mark.parametrize("views", [(), (False,), (True,)])
def test_nobody_rests_any_more_once_more_than_amounts_decides_which_nodes_take_it(views):
    how = type("Speaking", (Speaking,), {})
    made = waiting(2, WITH, how, others=[node("full", "3"), pod("else", cpu="3", node="full", scheduler="else")])
    how.views = views
    made.feed(pod("more", node="full", scheduler="else"))
    assert left_out(made) == (set() if views else {"g0-0", "g1-0"})


def test_nobody_rests_where_others_mind_who_is_on_nodes():
    spread = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"c": "d"}}}
    minds = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [spread]}}
    made = waiting(2, others=[pod("minds", "m", cpu="1", affinity=minds), group("m", 1)])
    assert left_out(made) == set()


# ---- what its queue says, and whoever is asked before nodes are


class Limit(Plugin):
    """Lets pods of any queue ask for so much cpu at once, and may have nothing to give at all."""

    name = "limit"
    points = frozenset({"Allocatable", "Overused", "PrePredicate"})
    most, column, spent, barred = 10**9, CPU, False, False

    def open(self, session):
        session.allocatable.add(self._over, reads=Reads.QUEUE)
        session.overused.add(lambda queue: "enough" if self.spent else None)
        session.pre_predicate.add(lambda subject: "not now" if self.barred else None, reads=Reads(0))

    def _over(self, queue, demand):
        return f"queue {queue.name} gives no more" if int(demand.amounts[self.column]) > self.most else None


def limited(**others):
    how = type("Limit", (Limit,), {})
    return waiting(2, SHARED.replace("{name: priority}", "{name: priority}, {name: limit}"), how, **others), how


LIMITS = [
    ("it gives what is asked for", 3000, [], 2),
    ("it gives no more, and whoever else waits finds room", 2999, [{"cpu": "1"}], 0),
    ("whoever else waits finds no room", 3000, [{"cpu": "3"}], 2),
    ("whoever else waits finds room, and may leave too little", 3000, [{"cpu": "1"}], 0),
    ("whoever else waits finds room, and leaves enough", 30000, [{"cpu": "1"}], 2),
    ("it gives no more", 2999, [], 0),
]


@pytest.mark.parametrize(("most", "comes", "rest"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_who_rests_would_be_told_the_same_by_its_queue_whatever_others_come_to_hold(most, comes, rest):
    made, how = limited()
    how.most = most
    made.feed(group("new", 1, phase="Inqueue"), *(pod(f"new-{i}", "new", **wish) for i, wish in enumerate(comes)))
    assert len(left_out(made)) == rest


@pytest.mark.parametrize(
    ("column", "most", "comes", "rest"),
    [
        (PODS, 1, [], 2),
        (PODS, 1, [{"cpu": "1"}], 0),
        (MEMORY, 0, [{"cpu": "1", "memory": "1Gi"}], 2),  # who rests asks for none
    ],
)
def test_of_what_others_come_to_hold_that_counts_which_is_asked_for(column, most, comes, rest):
    made, how = limited()
    how.column, how.most = column, most
    made.feed(group("new", 1, phase="Inqueue"), *(pod(f"new-{i}", "new", **wish) for i, wish in enumerate(comes)))
    assert len(left_out(made)) == rest


@pytest.mark.parametrize(("finds", "rest"), [(False, 2), (True, 0)])
def test_who_rests_would_be_told_the_same_where_one_who_rests_no_more_finds_room(finds, rest):
    small = [node("n9", "2"), group("x", 0, phase="Running", priorityClassName="low")]
    small += [pod("x-0", "x", cpu="2", node="n9"), node("n8", "2"), pod("else", cpu="2", node="n8", scheduler="else")]
    small += [group("s", 1, phase="Inqueue", priorityClassName="high"), pod("s-0", "s", cpu="2")]
    made, how = limited(others=small)
    how.most = 3000
    made.modify(pod("s-0", "s", cpu="2", labels={"a": "b"}))
    if finds:
        made.delete(small[4])
    assert len(left_out(made) & {"g0-0", "g1-0"}) == rest


@pytest.mark.parametrize(("comes", "rest"), [([], 2), ([{"cpu": "1"}], 0)])
def test_who_was_refused_by_its_queue_rests_as_long_as_that_says_the_same(comes, rest):
    made, how = limited()
    how.most = 2000
    for i in range(2):
        made.feed(group(f"more{i}", 1, phase="Inqueue"), pod(f"more{i}-0", f"more{i}", cpu="3")).cycle()
    made.feed(group("new", 1, phase="Inqueue"), *(pod(f"new-{i}", "new", **wish) for i, wish in enumerate(comes)))
    session = opened(made)
    found = [(str(refusal), len(uids)) for refusal, uids in resting.of(session).left_out(session)]
    assert sum(count for _, count in found) == rest
    assert all("queue default gives no more" in refusal for refusal, _ in found)


@pytest.mark.parametrize("changed", [{"spent": True}, {"barred": True}, {"spent": True, "barred": True}])
def test_who_rests_is_looked_at_where_somebody_refuses_it_before_nodes_are_asked(changed):
    made, how = limited()
    for name, value in changed.items():
        setattr(how, name, value)
    assert left_out(made) == set()


@pytest.mark.parametrize(("room", "rest"), [("3", 0), ("2900m", 2)])
def test_who_rests_is_looked_at_where_another_node_comes_to_have_room_for_it(room, rest):
    else_ = pod("else", cpu=room, node="n9", scheduler="else")
    made = waiting(2, others=[node("n9", room), else_])
    assert len(left_out(made.delete(else_))) == rest
