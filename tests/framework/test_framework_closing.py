"""How a cycle is summed up: phases, conditions, texts and events, by table."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, node, pod, priority_class, queue
from pumice.api import scheduling
from pumice.cache.effects import Bind, Note
from pumice.framework import closing, standings

# phase, has a node, is being deleted
RUNNING, BOUND, PENDING = ("Running", True, False), ("Pending", True, False), ("Pending", False, False)
DONE, FAILED = ("Succeeded", True, False), ("Failed", True, False)
LEAVING, LEAVING_UNBOUND = ("Running", True, True), ("Pending", False, True)
UNKNOWN = ("", True, False)


def desk(minimum, members, phase="", **spec):
    made = Desk().feed(node("n1", cpu="4"), group("g", minimum, phase=phase, **spec))
    for i, (pod_phase, bound, deleting) in enumerate(members):
        manifest = pod(f"g-w-{i}", "g", cpu="1", node="n1" if bound else "", deleting=deleting)
        manifest["status"]["phase"] = pod_phase
        made.feed(manifest)
    return made.apply()


PHASES = [
    ("a gang that runs", 2, [RUNNING, RUNNING], "Inqueue", False, "Running"),
    ("bound counts", 2, [RUNNING, BOUND], "Inqueue", False, "Running"),
    ("one that leaves its node counts until it is gone", 2, [RUNNING, LEAVING], "Running", False, "Running"),
    ("one that leaves alone is too few", 2, [LEAVING], "Running", False, "Pending"),
    ("one that leaves without a node does not count", 2, [RUNNING, LEAVING_UNBOUND], "Running", False, "Pending"),
    ("all done", 2, [DONE, DONE], "Running", False, "Completed"),
    ("done and failed", 2, [DONE, FAILED], "Running", False, "Completed"),
    ("more than the minimum is done but one still runs", 1, [DONE, RUNNING], "Running", False, "Running"),
    ("nothing asked, nothing there", 0, [], "Pending", False, "Completed"),
    ("nothing asked, one bound", 0, [BOUND], "Completed", False, "Running"),
    ("nothing asked, one waits", 0, [PENDING], "Inqueue", False, "Completed"),
    ("below the minimum it stays let in", 2, [RUNNING, PENDING], "Inqueue", False, "Inqueue"),
    ("or goes back to pending", 2, [RUNNING, PENDING], "Running", False, "Pending"),
    ("absent reads as pending", 1, [PENDING], "", False, "Pending"),
    ("some run and the rest cannot", 2, [RUNNING, PENDING], "Running", True, "Unknown"),
    ("unknown comes before running", 1, [RUNNING, PENDING], "Running", True, "Unknown"),
    ("nobody runs and the rest cannot", 2, [BOUND, PENDING], "Inqueue", True, "Inqueue"),
    ("a lost pod does not count", 2, [RUNNING, UNKNOWN], "Running", False, "Pending"),
]


@pytest.mark.parametrize(
    ("minimum", "members", "current", "unschedulable", "expected"),
    [row[1:] for row in PHASES],
    ids=[row[0] for row in PHASES],
)
def test_the_phase_follows_from_the_members_and_the_verdict(minimum, members, current, unschedulable, expected):
    job = desk(minimum, members).cluster.jobs["a/g"]
    assert closing.phase(job, current or "Pending", unschedulable=unschedulable) == expected


TEXTS = [
    ("ready", 1, [RUNNING], "pod group is ready, 1 Running, 1 minAvailable"),
    (
        "sorted as text",
        3,
        [RUNNING, PENDING, PENDING, PENDING],
        "pod group is not ready, 1 Running, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable",
    ),
    (
        "every status by its name",
        12,
        [BOUND, DONE, FAILED, LEAVING, UNKNOWN],
        "pod group is not ready, 1 Bound, 1 Failed, 1 Releasing, 1 Succeeded, 1 Unknown, 12 minAvailable",
    ),
]


@pytest.mark.parametrize(("case", "minimum", "members", "expected"), TEXTS, ids=[row[0] for row in TEXTS])
def test_a_job_is_summed_up_by_status(case, minimum, members, expected):
    made = desk(minimum, members)
    assert closing.job_text(made.session(), made.cluster.jobs["a/g"]) == expected


# ---- what a cycle writes


def conditions(made, name="g"):
    """The conditions of a group by type, as last written."""
    written = [patch.body["status"] for patch in made.world.patches("PodGroup") if patch.name == name]
    return {c["type"]: c for c in written[-1]["conditions"]}


def pod_conditions(made):
    """Reason and message of PodScheduled on each pod, as last written."""
    return {
        patch.name: (c["reason"], c["message"])
        for patch in made.world.patches("Pod")
        for c in patch.body["status"]["conditions"]
    }


def test_a_gang_that_does_not_fit_is_told_how_many_lack_and_why():
    """Case 1 of actions: the members that would go say so, the one that would not gives its reason."""
    made = Desk().feed(*(node(name, cpu="4") for name in ("a", "b")), group("g", 3))
    made.feed(*(pod(f"g-w-{i}", "g", cpu="3") for i in range(3)))
    made.cycle()
    verdict = conditions(made)["Unschedulable"]
    text = (
        "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is g-w-2: 0/2 nodes are unavailable: 2 Insufficient cpu."
    )
    assert (verdict["status"], verdict["reason"]) == ("True", "NotEnoughResources")
    cause = "even empty nodes hold 2 of the 3 pods that it needs beside static and daemon pods"
    placed = "Pod a/g-w-{} can possibly be assigned to {}, once minAvailable is satisfied"
    assert verdict["message"] == f"{cause}; 1/3 tasks in gang unschedulable: {text}"
    assert pod_conditions(made) == {
        "g-w-0": ("Schedulable", f"{cause}; {placed.format(0, 'a')}"),
        "g-w-1": ("Schedulable", f"{cause}; {placed.format(1, 'b')}"),
        "g-w-2": ("Unschedulable", f"{cause}; 0/2 nodes are unavailable: 2 Insufficient cpu."),
    }
    assert ("g", "Unschedulable", f"{cause}; 3/3 tasks in gang unschedulable: {text}") in made.world.notes


def test_a_task_that_waits_for_release_says_where_and_nominates_nothing():
    made = Desk().feed(node("n1", cpu="2"), group("g", 1), pod("g-w-0", "g", cpu="2"))
    made.feed(pod("old", scheduler="else", cpu="2", node="n1", deleting=True))
    made.cycle()
    assert pod_conditions(made) == {
        "g-w-0": (
            "Unschedulable",
            (
                "waits for room that is being released; "
                "Pod a/g-w-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied"
            ),
        )
    }
    assert all("nominatedNodeName" not in patch.body["status"] for patch in made.world.patches("Pod"))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("evicted", [False, True])
def test_a_member_that_waits_is_nominated_if_pods_were_evicted_for_it_and_its_room_is_held(evicted, held, kept):
    """That is so as well for one whose statement was discarded."""
    made = Desk().feed(node("n1"), group("g", 1), pod("g-w-0", "g", cpu="2"))
    session, task = made.session(), made.task("g-w-0")
    statement = session.statement()
    statement.pipeline([task], [made.node("n1")], evicted=evicted)
    if held:
        session.reserve([task], [], 60 * SECOND)
    (statement.keep if kept else statement.discard)()
    ((_, report),) = closing.report(session)
    assert [(each.reason, each.nominated) for each in report.tasks] == [
        ("Unschedulable", "n1" if evicted and held else "")
    ]


def test_a_repeated_verdict_writes_nothing_and_keeps_its_time():
    made = Desk().feed(node("n1", cpu="1"), group("g", 1), pod("g-w-0", "g", cpu="2"))
    made.cycle()
    first = conditions(made)["Unschedulable"]
    made.world.effects.clear()
    for name in ("red", "blue"):
        made.feed(group(name, 0))  # wakes the cycle; nothing about g has changed
        made.cycle()
    assert [patch for patch in made.world.patches("PodGroup") if patch.name == "g"] == []
    assert made.world.patches("Pod") == []
    assert [note for note in made.world.notes if note[0].startswith("g")] == []
    made.feed(node("n2", cpu="1"))
    made.cycle()
    assert [
        patch for patch in made.world.patches("PodGroup") if patch.name == "g"
    ] == []  # two nodes give the reason that one gave
    made.feed(node("n3", cordoned=True))
    made.cycle()
    second = conditions(made)["Unschedulable"]
    assert "2 Insufficient cpu" in second["message"]
    assert second["lastTransitionTime"] > first["lastTransitionTime"]
    assert second["transitionID"] != first["transitionID"]


def test_a_gang_that_got_its_room_is_no_longer_unschedulable_and_the_change_has_its_time():
    made = Desk().feed(node("n1", cpu="1"), group("g", 1), pod("g-w-0", "g", cpu="2"))
    made.cycle()
    before = conditions(made)["Unschedulable"]
    made.modify(node("n1", cpu="4"))
    made.cycle()
    written = conditions(made)
    assert {name: c["status"] for name, c in written.items()} == {"Unschedulable": "True", "Scheduled": "True"}
    made.modify(pod("g-w-0", "g", cpu="2", node="n1"))
    made.world.effects.clear()
    made.cycle()
    assert len(made.world.patches("PodGroup")) == 1  # with the phase
    written = conditions(made)
    assert {name: c["status"] for name, c in written.items()} == {"Unschedulable": "False", "Scheduled": "True"}
    assert written["Scheduled"]["reason"] == "tasks in gang are ready to be scheduled"
    over = written["Unschedulable"]
    assert (over["reason"], over["message"]) == ("", "the group is Running")
    assert over["lastTransitionTime"] > written["Scheduled"]["lastTransitionTime"] > before["lastTransitionTime"]


def test_a_bind_that_is_refused_again_and_again_writes_conditions_once():
    """The gang is ready whenever its bind is on its way, and not ready whenever it was refused."""
    made = Desk().feed(node("n1"), group("g", 1), pod("g-w-0", "g", cpu="1"))
    written = []
    for _ in range(6):
        made.cycle(60)
        made.settle(made.world.of(Bind)[-1], "refused")
        made.cycle(60)
        written.append(len(made.world.patches("PodGroup")))
    assert written[1:] == written[1:2] * 5
    assert conditions(made)["Unschedulable"]["status"] == "True"


def test_a_gang_that_lost_members_is_no_longer_scheduled():
    made = Desk().feed(
        node("n1", cpu="1"), group("g", 2), *(pod(f"g-w-{i}", "g", cpu="500m", node="n1") for i in range(2))
    )
    made.cycle()
    assert {name: c["status"] for name, c in conditions(made).items()} == {"Scheduled": "True"}
    made.delete(pod("g-w-1", "g", cpu="500m", node="n1"))
    made.feed(pod("g-w-2", "g", cpu="2"))
    made.cycle()
    written = conditions(made)
    assert {name: c["status"] for name, c in written.items()} == {"Scheduled": "False", "Unschedulable": "True"}
    assert written["Scheduled"]["message"] == "the group is Unschedulable"


def test_a_running_group_that_an_older_version_left_unschedulable_is_put_right_once():
    stale = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "1/1 tasks"}
    written = group("g", 1, phase="Running")
    written["status"] |= {"conditions": [stale], "running": 1}
    made = Desk(NO_GANG).feed(node("n1"), written, pod("g-w-0", "g", cpu="1", node="n1"))
    made.cycle()
    assert conditions(made)["Unschedulable"]["status"] == "False"
    made.world.effects.clear()
    made.feed(group("other", 0))
    made.cycle()
    assert [patch for patch in made.world.patches("PodGroup") if patch.name == "g"] == []


def test_a_group_is_running_one_cycle_after_its_binds_and_that_is_told_once():
    made = Desk().feed(node("n1"), group("g", 1), pod("g-w-0", "g", cpu="1"))
    made.cycle()
    assert made.world.patches("PodGroup")[-1].body["status"]["phase"] == "Inqueue"
    made.modify(pod("g-w-0", "g", cpu="1", node="n1"))
    made.cycle()
    status = made.world.patches("PodGroup")[-1].body["status"]
    assert (status["phase"], status["running"], status["succeeded"], status["failed"]) == ("Running", 1, 0, 0)
    made.modify(pod("g-w-0", "g", cpu="1", node="n1", labels={"any": "change"}))
    made.cycle()
    told = [message for name, reason, message in made.world.notes if (name, reason) == ("g", "Scheduled")]
    assert told == ["pod group is ready"]


GATES = [
    ("not gated", [], True),
    ("gated by somebody else", [{"name": "example.com/wait"}], False),
    ("gated by its queue", [{"name": "scheduling.volcano.sh/queue-allocation-gate"}], False),
]


@pytest.mark.parametrize(("case", "gates", "told"), GATES, ids=[row[0] for row in GATES])
def test_gated_pods_keep_the_condition_of_the_api_server(case, gates, told):
    made = Desk().feed(node("n1", cpu="1"), group("g", 1), pod("g-w-0", "g", cpu="2", schedulingGates=gates))
    made.cycle()
    assert bool(made.world.patches("Pod")) == told


def test_a_terminating_gang_is_not_called_unschedulable():
    made = desk(2, [LEAVING, LEAVING], phase="Running")
    made.cycle()
    assert all(not patch.body["status"]["conditions"] for patch in made.world.patches("PodGroup"))


def test_a_group_that_was_let_in_and_has_no_pods_gets_no_condition():
    made = desk(3, [])
    made.cycle()
    assert conditions(made) == {}
    assert made.world.patches("PodGroup")[-1].body["status"]["phase"] == "Inqueue"
    assert len(made.world.patches("PodGroup")) == 1


def test_a_group_that_needs_no_pods_waits_for_none():
    made = desk(0, [])
    made.cycle()
    assert conditions(made) == {}


LIMITED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
NO_GANG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: predicates}, {name: nodeorder}]
"""
NOT_LET_IN = (
    "Origin reason is enqueue: not let in: proportion: queue small: minResources exceed its room: "
    "cpu 4 + 0 held + 0 let in, limit 2"
)


@pytest.mark.parametrize("members", [0, 1, 3])
def test_a_group_that_was_not_let_in_says_why_and_so_does_each_of_its_pods(members):
    made = Desk(LIMITED).feed(node("n1"), queue("small", capability={"cpu": "2"}))
    made.feed(group("g", 2, queue="small", minResources={"cpu": "4"}))
    made.feed(*(pod(f"g-w-{i}", "g", cpu="2") for i in range(members)))
    made.cycle()
    verdict = conditions(made)["Unschedulable"]
    assert verdict["reason"] == "NotEnoughResources"
    assert verdict["message"].endswith(NOT_LET_IN)
    assert len(pod_conditions(made)) == members
    assert all(message.endswith(NOT_LET_IN) for _, message in pod_conditions(made).values())


def test_other_numbers_in_the_reason_why_a_group_was_not_let_in_are_not_written_again():
    made = Desk(LIMITED).feed(node("n1"), queue("small", capability={"cpu": "2"}))
    made.feed(group("g", 1, queue="small", minResources={"cpu": "4"}), pod("g-w-0", "g", cpu="2"))
    made.cycle()
    made.world.effects.clear()
    made.modify(queue("small", capability={"cpu": "3"}))
    made.cycle()
    assert [patch for patch in made.world.patches("PodGroup") if patch.name == "g"] == []
    assert made.world.patches("Pod") == []


HEADS = [
    ("as many as lack to the minimum", 3, ["2", "2", "9"], "1/3"),
    ("no more than there are pods", 14, ["1"], "1/1"),
    ("nor than there are pods in all", 14, ["run", "1"], "2/2"),
    ("members beyond the minimum are not counted as lacking", 2, ["9", "9", "9"], "2/3"),
]


@pytest.mark.parametrize(("case", "minimum", "members", "expected"), HEADS, ids=[row[0] for row in HEADS])
def test_the_counts_in_the_head_of_a_verdict_add_up(case, minimum, members, expected):
    made = Desk().feed(node("n1", cpu="4"), group("g", minimum))
    for i, cpu in enumerate(members):
        made.feed(pod(f"g-w-{i}", "g", cpu="0" if cpu == "run" else cpu, node="n1" if cpu == "run" else ""))
    made.cycle()
    assert (
        conditions(made)["Unschedulable"]["message"]
        .partition("; ")[2]
        .startswith(f"{expected} tasks in gang unschedulable: ")
    )


def test_after_a_restart_a_group_is_told_again_only_why_it_waits_if_that_is_not_what_its_condition_says():
    def warned(*conditions):
        stated = group("g", phase="Inqueue")
        stated["status"]["conditions"] = list(conditions)
        made = Desk().feed(node("n1", cpu="1"), stated, pod("p", "g", cpu="2"))
        made.cycle()
        return [note.message for note in made.world.of(Note) if (note.name, note.type) == ("g", "Warning")]

    (message,) = warned()
    other = {"type": "Scheduled", "status": "True", "message": message}
    said = {"type": "Unschedulable", "status": "True", "message": message}
    assert warned(other) == [message]
    assert warned({**other, "message": "ready"}, said) == []
    assert warned({**said, "message": "something else"}) == [message]


def test_a_job_whose_queue_is_missing_is_looked_at_again_when_the_queue_has_had_time_to_follow_it():
    made = Desk().feed(group("g", 1, queue="late", created=0), pod("p", "g", cpu="1"))
    made.now += 4 * SECOND
    made.cycle(seconds=0)
    assert made.scheduler.wake == made.now + 6 * SECOND
    assert made.world.patches("PodGroup") == []
    made.now = made.scheduler.wake
    made.cycle()
    (patch,) = made.world.patches("PodGroup")
    assert "queue late" in patch.body["status"]["conditions"][0]["message"]


def test_the_reason_why_a_job_waits_is_what_its_text_says_and_there_is_none_if_no_member_waits():
    made = Desk().feed(node("n1"), queue("bad", weight=0), group("waits", 1), pod("w", "waits", cpu="9"))
    made.feed(group("runs", 1), pod("r", "runs", cpu="1", node="n1"), group("empty", 2), group("lost", queue="bad"))
    made.feed(group("mixed", 1), pod("m-0", "mixed", cpu="1", node="n1"), pod("m-1", "mixed", cpu="1"))
    made.feed(pod("stray", "unknown", cpu="1"))
    session = made.session()

    def why(name):
        return closing.reason(session, session.cluster.jobs[f"a/{name}"])

    assert why("runs") == ""
    for name in ("waits", "empty", "mixed"):
        assert why(name) == closing.job_text(session, session.cluster.jobs[f"a/{name}"]) != ""
    assert why("lost").startswith("queue bad is invalid: ")
    assert why("unknown") == "its PodGroup a/unknown does not exist"


def test_a_group_without_pods_that_is_not_let_in_is_told_so_in_an_event():
    made = Desk(LIMITED).feed(node("n1"), queue("small", capability={"cpu": "2"}))
    made.feed(group("g", 2, queue="small", minResources={"cpu": "4"})).cycle()
    told = [message for name, reason, message in made.world.notes if (name, reason) == ("g", "Unschedulable")]
    assert conditions(made)["Unschedulable"]["message"] in told


@pytest.mark.parametrize("gates", [[], [{"name": "example.com/wait"}]], ids=["tried", "never tried"])
def test_that_a_queue_has_gone_on_to_close_is_news_to_who_waits_in_it(gates):
    made = Desk().feed(node("n1"), queue("q", state="Closing"), group("g", 1, queue="q", phase="Inqueue"))
    made.feed(pod("p", "g", cpu="1", schedulingGates=gates)).cycle()
    assert conditions(made)["Unschedulable"]["message"].startswith("queue q is Closing, ")
    made.modify(queue("q", state="Closed"))
    made.cycle()
    assert conditions(made)["Unschedulable"]["message"].startswith("queue q is Closed, ")


def test_of_whom_nothing_but_numbers_has_changed_is_noted_where_somebody_wants_to_know():
    made = Desk(LIMITED).feed(node("n1", "4"), group("g", 1), pod("p", "g", cpu="9"))
    made.cache.record.figures = {}
    found = []
    for taken in ((), (pod("foreign-0", cpu="1", node="n1", scheduler="x"),), (), (group("new"),)):
        session = made.feed(*taken).session()
        made.scheduler.engine.decide(session)
        standings.news(session)
        found.append([job.key for job in session.findings.figures])
        session.rollback()
    assert found == [[], ["a/g"], [], []]


def test_each_role_lacks_what_it_has_too_few_of_and_none_makes_up_for_another():
    made = Desk().feed(node("n1", cpu="4"), group("g", 3, minTaskMember={"a": 1, "b": 2}))
    made.feed(pod("g-a-0", "g", cpu="1", role="a", node="n1"))
    made.feed(*(pod(f"g-b-{i}", "g", cpu=cpu, role="b") for i, cpu in enumerate(["1", "9"])))
    made.cycle()
    assert "; 1/3 tasks in gang unschedulable: " in conditions(made)["Unschedulable"]["message"]


# ---- jobs that nobody serves


def stranded(*manifests):
    """A scheduler that has waited long enough for queues to follow their groups."""
    made = Desk().feed(node("n1", cpu="4"), *manifests)
    made.now += 20 * SECOND
    made.cycle()
    return made


def test_a_group_whose_queue_is_missing_says_so_by_condition_event_and_record_and_so_does_each_pod_that_waits():
    gated = {"schedulingGates": [{"name": "example.com/wait"}]}
    made = stranded(group("g", 1, queue="late"), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="1", **gated))
    text = "queue late does not exist; create it or name another in spec.queue"
    verdict = conditions(made)["Unschedulable"]
    assert verdict["reason"] == "QueueUnusable"
    assert verdict["message"] == f"queue late does not exist; 2/2 tasks in gang unschedulable: {text}"
    assert {name: message for name, (_, message) in pod_conditions(made).items()} == {"g-0": text}
    assert text in [message for name, _, message in made.world.notes if name == "g"]
    assert made.cache.record.explain("a/g").startswith(f"a/g: not looked at: {text}")


@pytest.mark.parametrize(
    ("pods", "told"),
    [([], True), ([{}], True), ([{"node": "n1"}], False), ([{"node": "n1"}, {}], True)],
)
def test_of_a_queue_that_is_missing_those_are_told_who_wait_or_have_no_pods_yet(pods, told):
    made = stranded(group("g", 1, queue="late"), *(pod(f"g-{i}", "g", cpu="1", **each) for i, each in enumerate(pods)))
    assert ("Unschedulable" in conditions(made)) is told


def test_of_a_group_that_is_bad_or_missing_its_queue_is_no_matter():
    made = stranded(group("g", -1, queue="late"), pod("g-0", "g", cpu="1"), pod("stray", "unknown", cpu="1"))
    made.feed(group("h", 1), pod("h-0", "h", cpu="1")).cycle()
    assert made.scheduler.failures == []
    assert not [message for _, _, message in made.world.notes if "queue late" in message]
    assert made.world.binds == {"h-0": "n1"}


@pytest.mark.parametrize(("named", "told"), [("", False), ("high", False), ("hihg", True)])
def test_a_priority_class_that_is_missing_is_told_in_an_event(named, told):
    made = stranded(priority_class("high", 9), group("g", 1, priorityClassName=named), pod("g-0", "g", cpu="1"))
    assert made.scheduler.failures == []
    (text,) = [message for name, _, message in made.world.notes if name == "g" and "hihg" in message] or [""]
    assert text.endswith("create it or name another in spec.priorityClassName") is told


STATES = [
    ("waits", 1, [{"cpu": "9"}], "Inqueue in queue default, 1 of 1 pods wait: pod group is not ready"),
    ("is bound now", 1, [{"cpu": "1"}], "Inqueue in queue default"),
    ("waits for another", 2, [{"cpu": "1"}, {"cpu": "9"}], "Inqueue in queue default, 2 of 2 pods wait: "),
    ("runs", 1, [{"cpu": "1", "node": "n1"}], "Running in queue default"),
    ("runs and waits", 1, [{"cpu": "1", "node": "n1"}, {"cpu": "9"}], "Running in queue default, 1 of 2 pods wait: "),
    ("has none", 1, [], "Inqueue in queue default"),
]


@pytest.mark.parametrize("asks", ["1", "4"], ids=["let in", "not let in"])
def test_that_a_priority_class_is_missing_is_said_once_to_each_pod(asks):
    made = Desk(LIMITED).feed(node("n1", cpu="4"), queue("small", capability={"cpu": "2"}), priority_class("high", 9))
    made.feed(group("g", 2, queue="small", priorityClassName="hihg", minResources={"cpu": asks}))
    made.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(["1", "9"]))).cycle()
    said = ". The priority class hihg does not exist, so it has priority 0"
    told = {name: message.count(said) for name, (_, message) in pod_conditions(made).items()}
    assert told == {"g-0": 1, "g-1": 1}
    assert all(("Origin reason" in message) is (asks == "4") for _, message in pod_conditions(made).values())


@pytest.mark.parametrize(("minimum", "pods", "said"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_the_record_says_in_which_phase_a_job_is_and_how_many_of_its_pods_wait(minimum, pods, said):
    made = Desk().feed(node("n1", cpu="4"), group("g", minimum))
    made.feed(*(pod(f"g-{i}", "g", **each) for i, each in enumerate(pods))).cycle()
    first = made.cache.record.explain("a/g").splitlines()[0]
    assert first.startswith(f"a/g: {said}")
    assert (" wait: " in first) is (" wait: " in said or "wait: " in said)


def test_members_wait_that_have_a_node_and_those_for_whom_one_is_being_released():
    made = Desk().feed(node("n1", cpu="1"), node("n2", cpu="1"), group("g", 2))
    made.feed(pod("leaves", scheduler="else", cpu="1", node="n2", deleting=True))
    made.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2))).cycle()
    assert made.world.binds == {}
    assert made.cache.record.explain("a/g").startswith("a/g: Inqueue in queue default, 2 of 2 pods wait: ")


@pytest.mark.parametrize("refusal", ["", "no such luck"], ids=["for the first time", "again"])
def test_a_condition_that_is_given_and_over_at_once_is_as_it_was(refusal):
    """A bind that is tried again has the group schedulable and not in turn, which is over where it runs."""
    written = group("g", 1, phase="Running")
    over = {"type": "Unschedulable", "status": "False", "message": "the group is Running"}
    written["status"]["conditions"] = [{**over, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    made = Desk().feed(node("n1"), written, pod("g-0", "g", cpu="1", node="n1", phase="Pending"))
    session = made.feed(pod("g-1", "g", cpu="9")).session()
    made.task("g-1").refusal = refusal
    given = scheduling.PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources")
    session.findings.condition(made.cluster.jobs["a/g"], given)
    ((_, report),) = closing.report(session)
    assert report.status.conditions[0].status == ("False" if refusal else "True")
    assert report.changed is not bool(refusal)


@pytest.mark.parametrize("pod_reasons", [False, True])
def test_without_reasons_of_pods_only_those_are_told_for_whom_a_node_is_held(pod_reasons):
    made = Desk().feed(node("n1"), group("g", 2), pod("g-0", "g", cpu="2"), pod("g-1", "g", cpu="99"))
    session, task = made.session(), made.task("g-0")
    statement = session.statement()
    statement.pipeline([task], [made.node("n1")], evicted=True)
    session.reserve([task], [], 60 * SECOND)
    statement.keep()
    ((_, report),) = closing.report(session, pod_reasons=pod_reasons)
    assert [each.task.name for each in report.tasks] == (["g-0", "g-1"] if pod_reasons else ["g-0"])


# ---- how many are lacking, and what each pod is told


def numbers(session, job):
    """Read how many of a gang are lacking, of how many, from its verdict."""
    return closing.unschedulable(session, job).partition(" tasks in gang")[0].rpartition("; ")[2]


@pytest.mark.parametrize("minimum", [2, 3, 5])
@pytest.mark.parametrize("placed", [0, 1, 2, 3])
def test_as_many_lack_as_an_attempt_that_was_given_up_did_not_place(placed, minimum):
    made = Desk().feed(node("n1"), group("g", minimum), *(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    session, tasks = made.session(), [made.task(f"g-{i}") for i in range(3)]
    statement = session.statement()
    statement.allocate(tasks[:placed], [made.node("n1")] * placed)
    statement.discard()
    assert numbers(session, tasks[0].job) == f"{min(3, max(0, minimum - placed))}/3"


ROLES = [
    ("one of each is there", {"a": 1, "b": 1}, {"a": ["1"], "b": ["1"]}, "2/2"),
    ("one asks for nothing, and is ready", {"a": 1, "b": 1}, {"a": ["0"], "b": ["1"], "c": ["run", "run"]}, "1/4"),
    ("one runs", {"a": 1, "b": 1}, {"a": ["run"], "b": ["1"]}, "1/2"),
    ("one has no pods", {"a": 1, "b": 1}, {"a": ["run", "run"]}, "1/2"),
    ("one more than is needed makes up for no other", {"a": 1, "b": 2}, {"a": ["run", "run"], "b": ["1", "1"]}, "2/4"),
    ("two more make up for no other", {"a": 1, "b": 1}, {"a": ["run", "run", "run"], "b": ["1"]}, "1/4"),
]


@pytest.mark.parametrize(("needed", "roles", "told"), [row[1:] for row in ROLES], ids=[row[0] for row in ROLES])
def test_of_roles_those_lack_that_each_has_too_few_of(needed, roles, told):
    made = Desk().feed(node("n1"), group("g", sum(needed.values()), minTaskMember=needed))
    for role, members in roles.items():
        for i, cpu in enumerate(members):
            place = {"node": "n1", "cpu": "1"} if cpu == "run" else {"cpu": None if cpu == "0" else cpu}
            made.feed(pod(f"g-{role}-{i}", "g", role=role, **place))
    session = made.session()
    assert numbers(session, made.cluster.jobs["a/g"]) == told


def test_each_pod_says_why_it_waits_as_its_condition_does():
    made = Desk().feed(node("n1"), group("g", 1), pod("g-0", "g", cpu="99"), group("late", 1, queue="late"))
    made.feed(pod("late-0", "late", cpu="1"), pod("stray-0", "stray", cpu="1"), pod("alone", cpu="1"))
    made.feed(group("h", 2), pod("h-0", "h", cpu="1"), pod("h-1", "h", cpu="99")).apply()
    found = {}

    def look(explainer):
        for task in made.cluster.tasks.values():
            found[task.name] = closing.task_reason(explainer.session, task)

    made.scheduler.cycle(look)
    assert found["alone"] == ""
    assert found["stray-0"] == "its PodGroup a/stray does not exist"
    assert found["late-0"] == "queue late does not exist; create it or name another in spec.queue"
    written = pod_conditions(made)
    for name in ("g-0", "h-0", "h-1"):
        assert written[name][1].endswith(f"; {found[name]}")
    assert found["h-0"].startswith("Pod a/h-0 can possibly be assigned to n1")


@pytest.mark.parametrize("again", [False, True])
def test_a_bind_that_was_refused_is_the_reason_until_the_pod_is_tried_again(again):
    made = Desk().feed(node("n1"), group("g", 1), pod("g-0", "g", cpu="1"))
    made.cycle()
    made.settle(made.world.of(Bind)[-1], "refused", "no such luck")
    if again:
        made.modify(node("n1", cordoned=True))
    made.cycle(0)
    made.now += 120 * SECOND * again
    made.feed(group("other", 0)).cycle()
    reason, message = pod_conditions(made)["g-0"]
    assert (reason == "SchedulerError", "no such luck" in message) == ((False, False) if again else (True, True))
