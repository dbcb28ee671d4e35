"""How explanations are written out, record by record."""

from __future__ import annotations

import msgspec
import pytest

from pumice.framework.explaining import explanations as made
from pumice.framework.explaining import text, texts

SHORT = made.NodeGroup(reason="Insufficient cpu", count=3, first="n1", resource="cpu", asked="2")
NEAR = made.NearestMiss(node="n7", short={"cpu": "500m"})
BOTH = made.NearestMiss(node="n7", short={"cpu": "500m", "memory": "1Gi"}, otherwise="node(s) were cordoned")
TAINTED = made.NodeGroup(reason="had taints", count=4, first="n2", plugin="predicates")
DETAILS = (made.Detail(text="tainted a:NoSchedule", count=3), made.Detail(text="tainted b:NoSchedule", count=1))


def with_nearest(nearest):
    return msgspec.structs.replace(SHORT, nearest=nearest)


GROUPS = [
    (SHORT, "3 nodes short of 2 cpu"),
    (msgspec.structs.replace(SHORT, count=1), "1 node short of 2 cpu"),
    (with_nearest(NEAR), "3 nodes short of 2 cpu, closest n7 by 500m"),
    (with_nearest(BOTH), "3 nodes short of 2 cpu, closest n7 by 500m cpu and 1Gi memory (node(s) were cordoned)"),
    (
        with_nearest(made.NearestMiss(node="n7", short={"memory": "1Gi"})),
        "3 nodes short of 2 cpu, closest n7 by 1Gi memory",
    ),
    (TAINTED, "4 had taints"),
    (msgspec.structs.replace(TAINTED, details=DETAILS), "3 tainted a:NoSchedule; 1 tainted b:NoSchedule"),
    (
        msgspec.structs.replace(TAINTED, details=DETAILS, count=6),
        "3 tainted a:NoSchedule; 1 tainted b:NoSchedule; 2 had taints",
    ),
]


@pytest.mark.parametrize(("group", "told"), GROUPS)
def test_a_group_of_nodes_is_told_by_what_it_is_short_of_or_by_its_details(group, told):
    assert texts.group_text(group) == told


def placement(*groups, nodes=7, fitting=0, members=1, refusal=""):
    return made.Placement(
        pod="a/p", members=members, request={}, nodes=nodes, fitting=fitting, groups=groups, refusal=refusal
    )


PLACEMENTS = [
    (placement(nodes=0), "there are no nodes"),
    (placement(SHORT, refusal="volume v is missing"), "volume v is missing"),
    (placement(SHORT, TAINTED), "3 nodes short of 2 cpu; 4 had taints"),
    (placement(TAINTED, fitting=3), "3 of 7 take it; 4 had taints"),
    (placement(fitting=7), "7 of 7 take it"),
]


@pytest.mark.parametrize(("placed", "told"), PLACEMENTS)
def test_a_placement_is_told_by_who_takes_it_and_by_each_group_that_does_not(placed, told):
    assert texts.placement_text(placed) == told


def gang(*missing, members=4, minimum=4, placed=0, fit=3):
    return made.GangVerdict(
        members=members, minimum=minimum, placed=placed, fit=fit, enough=False, missing=tuple(missing)
    )


def missing(where=None, count=1):
    return made.MissingMember(pod="w-3", count=count, reason="no place", placement=where)


GANGS = [
    (gang(), "3 of 4 members fit"),
    (gang(minimum=2), "3 of 4 members fit (minMember 2)"),
    (gang(placed=1, fit=2), "3 of 4 members fit, 1 of them placed already"),
    (gang(missing()), "3 of 4 members fit; w-3: no place"),
    (gang(missing(count=2), missing()), "3 of 4 members fit; w-3 and 1 like it: no place; w-3: no place"),
    (gang(missing(placement(SHORT))), "3 of 4 members fit; w-3 lacks 2 cpu everywhere"),
    (
        gang(missing(placement(with_nearest(NEAR)), count=2)),
        "3 of 4 members fit; w-3 and 1 like it lack 2 cpu everywhere, closest n7 by 500m",
    ),
    (gang(missing(placement(TAINTED))), "3 of 4 members fit; w-3: 4 had taints"),
    (gang(missing(placement(SHORT, TAINTED))), "3 of 4 members fit; w-3: 3 nodes short of 2 cpu; 4 had taints"),
    (gang(missing(placement(SHORT, fitting=4))), "3 of 4 members fit; w-3: 4 of 7 take it; 3 nodes short of 2 cpu"),
    (gang(missing(placement(SHORT, refusal="volume v is missing"))), "3 of 4 members fit; w-3: no place"),
    (gang(missing(placement(fitting=7))), "3 of 4 members fit; w-3: no place"),
]


@pytest.mark.parametrize(("verdict", "told"), GANGS)
def test_a_gang_is_told_by_how_many_fit_and_what_each_other_lacks(verdict, told):
    assert texts.gang_text(verdict) == told


DIMENSION = made.Dimension(resource="cpu", queue="q", have="3", want="2", limit="4", kind="ceiling")
HOLDERS = (made.Holder(name="a/x", amount="2"), made.Holder(name="a/y", amount="1"))
DIMENSIONS = [
    ({}, "queue q: cpu 3 held + 2 wanted, ceiling 4"),
    ({"let_in": ""}, "queue q: cpu 3 held + 2 wanted, ceiling 4"),
    ({"let_in": "1", "kind": "due"}, "queue q: cpu 3 held + 1 let in + 2 wanted, due 4"),
    ({"holders": HOLDERS}, "queue q: cpu 3 held + 2 wanted, ceiling 4; held by a/x 2, a/y 1"),
    (
        {"holders": HOLDERS, "other_holders": 5},
        "queue q: cpu 3 held + 2 wanted, ceiling 4; held by a/x 2, a/y 1 and 5 more",
    ),
]


@pytest.mark.parametrize(("given", "told"), DIMENSIONS)
def test_a_lack_of_room_in_a_queue_is_told_with_who_holds_it(given, told):
    assert texts.dimension_text(msgspec.structs.replace(DIMENSION, **given)) == told


KEPT = (
    made.CandidateGroup(reason="protected", count=9, first="a/v"),
    made.CandidateGroup(reason="of equal priority", count=8, first="a/w"),
)
EVICTIONS = [
    (made.EvictionVerdict(action="preempt", candidates=0), "no candidates"),
    (made.EvictionVerdict(action="preempt", candidates=0, unseen=3), "no candidates; 3 more were not looked at"),
    (made.EvictionVerdict(action="preempt", candidates=1, groups=KEPT[:1]), "1 candidate: 9 protected"),
    (
        made.EvictionVerdict(action="preempt", candidates=2, groups=KEPT, unseen=1),
        "2 candidates: 9 protected, 8 of equal priority; 1 more were not looked at",
    ),
]


@pytest.mark.parametrize(("verdict", "told"), EVICTIONS)
def test_why_nobody_goes_is_told_by_what_keeps_each_candidate(verdict, told):
    assert texts.eviction_text(verdict) == told


HOLDS = [
    ({}, (), "a place on n is held for a/p"),
    ({"cpu": "2", "memory": "1Gi"}, ("a/v",), "2 cpu, 1Gi memory on n is held for a/p, once a/v is gone"),
    ({"cpu": "2"}, ("a/v", "a/w"), "2 cpu on n is held for a/p, once a/v, a/w are gone"),
]


@pytest.mark.parametrize(("request_", "awaits", "told"), HOLDS)
def test_held_room_is_told_with_whose_going_it_waits_for(request_, awaits, told):
    assert texts.hold_text(made.Hold(pod="a/p", job="a/g", node="n", request=request_, awaits=awaits)) == told


def standing(**amounts):
    words = ("held", "asked", "let_in", "due", "ceiling", "guarantee", "room")
    return made.QueueDimension(resource="cpu", **{word: amounts.get(word, "") for word in words})


def test_of_a_queues_standing_what_is_nothing_is_left_out_but_for_what_it_holds():
    assert texts.standing_text(standing(held="0", asked="0", due="0", room="0")) == "cpu: held 0"
    told = "cpu: held 1, asked 2, let in 3, due 4, guaranteed 6, ceiling 5, room 7"
    full = standing(held="1", asked="2", let_in="3", due="4", ceiling="5", guarantee="6", room="7")
    assert texts.standing_text(full) == told


CLAIM = made.Claim(claimant="own", job="a/g", owner="lent", amounts={"cpu": "2"})
VOTES = (
    made.PluginVote(point="JobReady", plugin="gang", answer="for"),
    made.PluginVote(point="Overused", plugin="proportion", answer="against", reason="full"),
    made.PluginVote(point="JobValid", plugin="gang", answer="for"),
    made.PluginVote(point="JobValid", plugin="sla", answer="abstains"),
    made.PluginVote(point="JobValid", plugin="drf", answer="for"),
)
ACTIONS = (
    made.ActionVerdict(action="enqueue", cycle=3, said="let in"),
    made.ActionVerdict(action="allocate", cycle=0, said="no room"),
    made.ActionVerdict(action="preempt", cycle=0, said=""),
    made.ActionVerdict(action="reclaim", cycle=2, said=""),
)
JOB = made.JobExplanation(
    job="a/g", queue="q", phase="", state="waits", reason="", priority=0, minimum=2, members={}, cycle=4
)


def test_a_job_that_has_nothing_to_say_is_told_in_a_line():
    assert text(JOB) == ["a/g: waits in queue q (phase none, no pods, minMember 2)"]
    counted = msgspec.structs.replace(JOB, queue="", members={"Running": 1, "Pending": 2})
    assert text(counted) == ["a/g: waits (1 Running, 2 Pending, no PodGroup)"]


def full_job():
    return msgspec.structs.replace(
        JOB,
        phase="Inqueue",
        cause="no node has room",
        reason="pod group is not ready",
        notes=("one", "two"),
        queue_verdict=made.QueueVerdict(queue="q", state="Open", refusals=("it is full",), dimensions=(DIMENSION,)),
        gang=gang(),
        placements=(placement(SHORT, members=2), placement(TAINTED)),
        evictions=(made.EvictionVerdict(action="preempt", candidates=0),),
        holds=(made.Hold(pod="a/p", job="a/g", node="n", request={}),),
        votes=VOTES,
        actions=ACTIONS,
        forecast="at noon",
    )


def test_a_job_is_told_part_by_part():
    assert text(full_job()) == [
        "no node has room",
        "a/g: waits in queue q (phase Inqueue, no pods, minMember 2)",
        "  pod group is not ready",
        "  note: one",
        "  note: two",
        "  queue q: it is full",
        "  queue q: cpu 3 held + 2 wanted, ceiling 4",
        "  gang: 3 of 4 members fit",
        "  nodes for a/p and 1 like it: 3 nodes short of 2 cpu",
        "  nodes for a/p: 4 had taints",
        "  preempt: no candidates",
        "  a place on n is held for a/p",
        "  Overused: proportion against: full",
        "  for it: gang (JobReady, JobValid), drf (JobValid)",
        "  abstains it: sla (JobValid)",
        "  action enqueue: (cycle 3) let in",
        "  action allocate: no room",
        "  had nothing to do with it: preempt, reclaim",
        "  start at noon",
    ]


POD = made.PodExplanation(pod="a/p", status="Pending", node="", reason="", placement=None, notes=(), job=None)


def test_a_pod_is_told_with_its_job_and_what_stands_for_both_once():
    assert text(POD) == ["a/p: Pending"]
    placed = msgspec.structs.replace(
        POD,
        node="n",
        cause="no node has room",
        reason="why",
        notes=("one",),
        placement=placement(SHORT),
        job=full_job(),
    )
    own = ["no node has room", "a/p: Pending on n", "  why", "  note: one", "  nodes: 3 nodes short of 2 cpu"]
    assert text(placed) == [*own, *text(full_job())[1:]]
    other = msgspec.structs.replace(placed, cause="a volume is missing")
    assert text(other) == ["a volume is missing", *own[1:], *text(full_job())]
    assert text(msgspec.structs.replace(POD, job=JOB)) == ["a/p: Pending", *text(JOB)]


QUEUE = made.QueueExplanation(
    queue="q",
    state="Open",
    parent="",
    weight=2,
    priority=1,
    reclaimable=True,
    plugin="",
    share=None,
    overused="",
    dimensions=(),
    jobs=(),
    other_jobs=0,
)


def test_a_queue_is_told_part_by_part():
    assert text(QUEUE) == ["queue q: Open, weight 2, priority 1"]
    named = {"phase": "Running", "priority": 5, "running": 1, "waiting": 2}
    full = msgspec.structs.replace(
        QUEUE,
        parent="root",
        reclaimable=False,
        plugin="proportion",
        share=0.0,
        overused="it is full",
        dimensions=(standing(held="1"),),
        jobs=(
            made.QueueJob(job="a/x", held={"cpu": "1"}, asked={"cpu": "2"}, **named),
            made.QueueJob(job="a/y", held={}, asked={}, **named),
        ),
        other_jobs=7,
        claims=(CLAIM,),
        claimed=(msgspec.structs.replace(CLAIM, refusal="it is closed"),),
        going=(made.Going(pod="a/v", job="a/x", claimant=""), made.Going(pod="a/w", job="a/x", claimant="a/g")),
    )
    assert text(full) == [
        "queue q under root: Open, weight 2, priority 1, not reclaimable",
        "  proportion: holds 0% of what it is due",
        "  overused: it is full",
        "  cpu: held 1",
        "  a/x: Running, priority 5, 1 placed, 2 wait; holds 1 cpu, asks for 2 cpu",
        "  a/y: Running, priority 5, 1 placed, 2 wait; holds nothing",
        "  and 7 more jobs",
        "  queue own can take back 2 cpu from queue lent for a/g",
        "  queue own would take back, but may not ask 2 cpu from queue lent for a/g: it is closed",
        "  a/v is going",
        "  a/w is going for a/g",
    ]


def test_a_node_is_told_part_by_part():
    node = made.NodeExplanation(
        node="n", ready=True, cordoned=False, taints=(), amounts=(), pods=(), holds=(), waiting=()
    )
    assert text(node) == ["node n: ready, 0 pods"]
    cpu = made.NodeAmount(resource="cpu", allocatable="8", used="3", releasing="0", held="0", free="5")
    full = msgspec.structs.replace(
        node,
        ready=False,
        cordoned=True,
        taints=("a:NoSchedule", "b:NoExecute"),
        amounts=(cpu, msgspec.structs.replace(cpu, releasing="1", held="2")),
        pods=(
            made.NodePod(pod="a/p", job="", queue="", status="Running", request={}),
            made.NodePod(pod="a/q", job="a/g", queue="q", status="Running", request={"cpu": "1"}),
        ),
        holds=(made.Hold(pod="a/r", job="a/g", node="n", request={}),),
        waiting=(
            made.WaitingGroup(reason="too small", jobs=2, first="a/h"),
            made.WaitingGroup(reason="it would take them", jobs=1, first="a/i"),
        ),
    )
    assert text(full) == [
        "node n: not ready, cordoned, tainted a:NoSchedule, tainted b:NoExecute, 2 pods",
        "  cpu: 5 free of 8",
        "  cpu: 5 free of 8, 1 being released, 2 held",
        "  a/p: Running, no requests",
        "  a/q of a/g in queue q: Running, 1 cpu",
        "  a place on n is held for a/r",
        "  2 jobs wait (a/h first): too small",
        "  1 job waits (a/i): it would take them",
    ]


def test_a_part_is_no_explanation():
    with pytest.raises(TypeError, match="Hold is no explanation"):
        text(made.Hold(pod="a/p", job="a/g", node="n", request={}))
