"""Groups that can never run: never one that allocate could place on emptied nodes, and none that it could not, where members are equal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads

TEXT = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]
"""


def daemon(name, cpu, on, kind="DaemonSet"):
    made = pod(name, "", cpu=cpu, node=on, scheduler="default-scheduler")
    made["metadata"]["ownerReferences"] = [{"kind": kind, "name": "d", "uid": "u", "controller": True}]
    return made


def reason(made, name="g"):
    session = made.session()
    return session.never_running.reason(made.cluster.jobs[f"a/{name}"])


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@settings(max_examples=drawn(150), deadline=None)
@given(
    nodes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    asked=sizes,
    daemons=st.integers(0, 2),
    slack=st.integers(0, 2),
)
def test_whoever_allocate_places_on_emptied_nodes_may_run(nodes, asked, daemons, slack):
    minimum = max(len(asked) - slack, 1)
    manifests = [
        *(node(f"m{i}", str(cores), "64Gi", "100") for i, cores in enumerate(nodes)),
        *(daemon(f"d{i}", "1", f"m{i}") for i in range(min(daemons, len(nodes)))),
        group("g", minimum, phase="Inqueue"),
        *(pod(f"g-x-{i}", "g", cpu=str(cores)) for i, cores in enumerate(asked)),
    ]
    empty = Desk(TEXT).feed(*manifests)
    empty.cycle()
    full = Desk(TEXT).feed(
        *manifests, *(pod(f"web{i}", "", cpu=str(cores), node=f"m{i}", scheduler="x") for i, cores in enumerate(nodes))
    )
    verdict = reason(full)
    if empty.world.binds:
        assert verdict is None
    elif len(set(asked)) == 1:
        offered = [cores - (i < min(daemons, len(nodes))) for i, cores in enumerate(nodes)]
        fit = sum(left // asked[0] for left in offered)
        assert (
            verdict == f"even empty nodes hold {fit} of the {minimum} pods that it needs beside static and daemon pods"
        )


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ([group("g", 2, phase="Inqueue", minResources={"cpu": "8"})], None),
        (
            [group("g", 2, phase="Inqueue", minResources={"cpu": "9"})],
            "it needs 9 cpu at the least, all nodes together have 8",
        ),
        (
            [group("g", 2, phase="Inqueue", minResources={"example/acc": "1"})],
            "it needs 1 example/acc at the least, all nodes together have 0",
        ),
        ([group("g", 2, phase="Inqueue")], None),
        # Pods count once there are as many as the minimum, and then minResources do not.
        ([group("g", 1, phase="Inqueue", minResources={"cpu": "9"}), pod("p", "g", cpu="1")], None),
        (
            [group("g", 1, phase="Inqueue"), pod("p", "g", cpu="5")],
            "even empty nodes hold 0 of the 1 pods that it needs",
        ),
        ([group("g", 1, phase="Inqueue"), pod("p", "g", cpu="5"), pod("r", "g", cpu="1")], None),
        (
            [group("g", 2, phase="Inqueue"), pod("p", "g", cpu="5"), pod("r", "g")],
            "even empty nodes ",
        ),
        ([group("g", 1, phase="Inqueue"), pod("p", "g", cpu="5"), pod("r", "g")], None),
        ([group("g", 1, phase="Inqueue"), pod("p", "g", cpu="1", requests={"example/acc": "1"})], "even empty nodes "),
        (
            [
                queue("q", parent="up"),
                queue("up", capability={"cpu": "1"}),
                group("g", 1, phase="Inqueue", queue="q"),
                pod("p", "g", cpu="2"),
            ],
            "queue up may hold 1 cpu at the most, the job asks for 2",
        ),
        (
            [
                group("g", 2, phase="Inqueue", minTaskMember={"driver": 1}),
                pod("p", "g", cpu="5", role="driver"),
                *(pod(f"r-x-{i}", "g", cpu="1") for i in range(3)),
            ],
            "even empty nodes ",
        ),
        (
            [
                daemon("d", "2", "m0", "Node"),
                daemon("e", "2", "m1", "Node"),
                group("g", 1, phase="Inqueue"),
                pod("p", "g", cpu="3"),
            ],
            "even empty nodes ",
        ),
        (
            [
                daemon("d", "4", "m0", "Node"),
                daemon("e", "5", "m1", "Node"),
                group("g", 1, phase="Inqueue"),
                pod("p", "g", cpu="1m"),
            ],
            "even empty nodes ",
        ),
        (
            [queue("q", capability={"cpu": "1"}), group("g", 2, phase="Inqueue", queue="q", minResources={"cpu": "2"})],
            "queue q may hold 1 cpu at the most, the job asks for 2",
        ),
        # Each of them fits, and all of them do not.
        (
            [group("g", 3, phase="Inqueue"), *(pod(f"p{cpu}-{i}", "g", cpu=cpu) for i, cpu in enumerate("332"))],
            "even empty nodes do not hold the 3 pods that it needs",
        ),
        (
            [group("g", 1, phase="Inqueue"), pod("p", "g", cpu="1", nodeSelector={"is": "elsewhere"})],
            "even empty nodes hold 0 of the 1 pods that it needs",
        ),
        # What has run counts.
        (
            [
                group("g", 2, phase="Inqueue", minResources={"cpu": "9"}),
                pod("done", "g", cpu="1", phase="Succeeded"),
                pod("p", "g", cpu="4"),
            ],
            None,
        ),
        # Each role needs so many, and of the others the smallest do.
        (
            [
                group("g", 3, phase="Inqueue", minTaskMember={"driver": 2}),
                *(pod(f"d{cpu}", "g", cpu=cpu, role="driver") for cpu in "15"),
                *(pod(f"w{i}", "g", cpu="1", role="worker") for i in range(2)),
            ],
            "even empty nodes ",
        ),
        (
            [
                group("g", 2, phase="Inqueue", minTaskMember={"driver": 1}),
                pod("d", "g", cpu="1", role="driver"),
                *(pod(f"w{cpu}", "g", cpu=cpu, role="worker") for cpu in "15"),
            ],
            None,
        ),
        (
            [
                group("g", 1, phase="Inqueue", minTaskMember={"driver": 1}),
                pod("d", "g", cpu="1", role="driver"),
                pod("w", "g", cpu="5", role="worker"),
            ],
            None,
        ),
        # Members of a role that have run, or that ask for nothing, count for it.
        (
            [
                group("g", 2, phase="Inqueue", minTaskMember={"driver": 1}),
                pod("done", "g", cpu="1", role="driver", phase="Succeeded"),
                *(pod(f"p{role}", "g", cpu=cpu, role=role) for role, cpu in (("driver", "5"), ("worker", "1"))),
            ],
            None,
        ),
        (
            [
                group("g", 2, phase="Inqueue", minTaskMember={"driver": 1}),
                pod("small", "g", role="driver"),
                *(pod(f"p{role}", "g", cpu=cpu, role=role) for role, cpu in (("driver", "5"), ("worker", "1"))),
            ],
            None,
        ),
        (
            [
                group("g", 1, phase="Inqueue", minTaskMember={"driver": 1}),
                *(pod(f"small{i}", "g", role="worker") for i in range(2)),
                pod("p", "g", cpu="5", role="driver"),
            ],
            "even empty nodes hold 0 of the 1 pods that it needs",
        ),
        (
            [
                group("g", 1, phase="Inqueue", minTaskMember={"driver": 1}),
                *(pod(f"small{i}", "g", role="driver") for i in range(2)),
                pod("p", "g", cpu="5", role="worker"),
            ],
            None,
        ),
    ],
)
def test_the_reason_says_what_is_in_the_way(manifests, said):
    made = Desk(TEXT).feed(node("m0", "4", "64Gi", "100"), node("m1", "4", "64Gi", "100"), *manifests)
    found = reason(made)
    assert found is None if said is None else found is not None and found.startswith(said)


PLACES = [
    # Were the small ones first, they would take the only node where the large one fits.
    ("the largest is first", [("a", "8", "2Gi"), ("b", "2", "8Gi")], [("8", "0"), ("1", "1Gi"), ("1", "1Gi")]),
    # On the node that it fills most it would leave room for none of the others.
    ("the widest node is first", [("a", "4", "64Gi"), ("b", "7", "64Gi")], [("3", "0"), *[("2", "0")] * 4]),
    # On the widest node it would take room for two of the others.
    ("the tightest node is first", [("a", "4", "64Gi"), ("b", "9", "64Gi")], [("4", "0"), *[("3", "0")] * 3]),
]


@pytest.mark.parametrize(("nodes", "pods"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
def test_a_gang_may_run_for_which_there_are_places_whichever_nodes_are_to_be_filled_first(nodes, pods):
    made = Desk(TEXT).feed(*(node(*each) for each in nodes), group("g", len(pods), phase="Inqueue"))
    made.feed(*(pod(f"p{i}", "g", cpu=cpu, memory=memory) for i, (cpu, memory) in enumerate(pods)))
    assert reason(made) is None


def test_a_verdict_is_kept_until_the_group_the_nodes_or_the_limits_change(monkeypatch):
    made = Desk(TEXT).feed(node("m0", "4", "64Gi", "100"), group("g", 1, phase="Inqueue"), pod("p", "g", cpu="5"))
    judged = []
    session = made.session()
    kind = type(session.never_running)
    judge = kind._judge  # noqa: SLF001  how often somebody is judged shows nowhere else
    monkeypatch.setattr(kind, "_judge", lambda self, job: judged.append(job.key) or judge(self, job))
    for change, times in (
        ([], 1),
        ([pod("foreign", "", cpu="1", node="m0", scheduler="x")], 1),
        ([node("m0", "4", "64Gi", "100")], 1),
        ([node("m1", "2", "64Gi", "100")], 2),
        ([queue("q", capability={"cpu": "3"})], 3),
        ([group("g", 1, phase="Inqueue", queue="q")], 4),
        ([pod("r", "g", cpu="5")], 5),
        ([daemon("d", "1", "m1")], 6),
    ):
        made.feed(*change)
        reason(made)
        assert len(judged) == times, change


def test_it_is_tried_in_every_cycle_and_runs_when_it_can():
    made = Desk(TEXT).feed(node("m0", "4", "64Gi", "100"), group("g", 1, phase="Inqueue"), pod("p", "g", cpu="5"))
    made.cycle()
    assert any("can never run" in text for name, _, text in made.world.notes if name == "g")
    made.feed(node("m1", "8", "64Gi", "100"))
    made.cycle()
    assert made.world.binds == {"p": "m1"}


@pytest.mark.parametrize(("minimum", "never"), [(1, False), (3, False), (4, False), (5, True)])
def test_members_without_requests_count_before_those_that_fit_nowhere(minimum, never):
    made = Desk(TEXT).feed(node("n", "1"), group("g", minimum, phase="Inqueue"))
    made.feed(*(pod(f"large-{i}", "g", cpu="9") for i in range(3)), *(pod(f"small-{i}", "g") for i in range(4)))
    assert (reason(made) is not None) is never


class Lambdas(Plugin):
    """Registers functions that are others in every cycle, so that little is kept."""

    name = "lambdas"
    points = frozenset({"Predicate"})
    reads = Reads.NODE

    def open(self, session):
        session.predicate.add(lambda *_: None)


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("{name: gang}", "{name: gang}, {name: lambdas}")])
@pytest.mark.parametrize("runs", [True, False])
def test_who_was_let_in_and_can_never_run_takes_no_room_from_others_and_is_told_so_until_it_can(text, runs):
    """Whether it runs then, or waits for others to go."""
    made = Desk(text, Lambdas).feed(node("m0", "4", "64Gi", "100"), queue("q", capability={"cpu": "10"}))
    made.feed(group("big", 1, queue="q", phase="Inqueue", minResources={"cpu": "8"}), pod("p", "big", cpu="9"))
    record = made.feed(group("small", 1, queue="q", minResources={"cpu": "4"})).cycle()
    phases = {each.name: each.body["status"]["phase"] for each in made.world.patches("PodGroup")}
    assert phases["small"] == "Inqueue"
    said = "let in, takes no room from others: can never run: even empty nodes hold 0 of the 1 pods that it needs"
    assert said in record.explain("a/big")
    record = made.feed(group("late", 1)).cycle()
    assert said in record.explain("a/big")
    if not runs:
        made.feed(pod("else", cpu="9", node="m1", scheduler="else"))
    record = made.feed(node("m1", "16", "64Gi", "100")).cycle()
    assert made.world.binds == ({"p": "m1"} if runs else {})
    assert "never run" not in record.explain("a/big")
    record = made.delete(pod("p", "big", cpu="9"), group("big")).feed(group("later", 1)).cycle()
    assert "never run" not in record.explain("a/big")


def test_it_is_known_that_nodes_are_others_though_nobody_has_asked_about_a_group_yet():
    made = Desk(TEXT).feed(node("m0", "4"))
    known = [made.feed(*more).session().never_running.epoch for more in ([], [], [node("m1", "4")], [])]
    assert known[0] == known[1] < known[2] == known[3]


@pytest.mark.parametrize(("minimum", "never"), [(2, False), (3, True)])
def test_nodes_take_no_more_pods_than_they_offer_places(minimum, never):
    made = Desk(TEXT).feed(node("n", "9", pods="2"), group("g", minimum, phase="Inqueue"))
    made.feed(*(pod(f"p{i}", "g", cpu="1") for i in range(3)))
    assert (reason(made) is not None) is never
