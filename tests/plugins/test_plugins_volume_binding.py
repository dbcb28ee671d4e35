"""Unbound claims get on every node what the rule gives them there; what was chosen is nobody else's until it is given back."""

from __future__ import annotations

import pytest
import volumes_world as world
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes_world import claim, rules, storage_class, uses, volume, words

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.cache.effects import Bind
from pumice.framework.subject import Subject
from pumice.model.statuses import Status

HOSTS = ("n0", "n1", "n2", "n3")
ZONES = ("z0", "z1")
CLASSES = {
    "local": storage_class("local"),
    "net": storage_class(
        "net", "d", topologies=[[(world.ZONE, ("z0",))], [(world.ZONE, ("z1",)), (world.HOST, ("n3",))]]
    ),
    "open": storage_class("open", "e"),
}

# One class far more often than the others, so that claims and volumes meet.
classes = st.sampled_from(["local", "local", "local", "local", *sorted(CLASSES)])
sizes = st.integers(1, 4)
SELECTIVE = {"selector": {"matchLabels": {"tier": "fast"}}}


@st.composite
def nodes(draw):
    zones = draw(st.lists(st.sampled_from([*ZONES, None]), min_size=4, max_size=4))
    return [
        node(host, labels={world.HOST: host, **({world.ZONE: zone} if zone else {})})
        for host, zone in zip(HOSTS, zones, strict=True)
    ]


def mostly(plain, *rare):
    """Draw the plain value in most cases, so that claims and volumes meet."""
    return st.sampled_from([plain] * 12 + list(rare))


@st.composite
def volumes(draw, claims=("c0", "c1", "c2")):
    made = []
    for index in range(draw(st.integers(0, 8))):
        spec = {
            "modes": draw(mostly(("ReadWriteOnce", "ReadOnlyMany"), ("ReadOnlyMany",), ())),
            **draw(
                mostly({}, {"volumeMode": "Block"}, {"volumeMode": "Filesystem"}, {"volumeAttributesClassName": "gold"})
            ),
        }
        reach = draw(st.sampled_from(["all", "zone", "hosts", "hosts", "hosts"]))
        if reach == "zone":
            wanted = [
                {"key": world.ZONE, "operator": "In", "values": [draw(st.sampled_from(ZONES))]},
                {"key": world.HOST, "operator": "Exists"},
            ]
            terms = draw(mostly([{"matchExpressions": wanted}], []))
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        made.append(
            volume(
                f"v{index}",
                draw(classes),
                draw(sizes),
                hosts=draw(st.lists(st.sampled_from(HOSTS), max_size=3)) if reach == "hosts" else None,
                for_claim=draw(mostly("", *claims, "someone")),
                phase=draw(mostly("Available", "Released")),
                labels=draw(st.sampled_from([{"tier": "fast"}, {"tier": "fast"}, {"tier": "slow"}, None])),
                **spec,
            )
        )
    return made


@st.composite
def claims(draw, names=("c0", "c1", "c2")):
    made = []
    for name in names[: draw(st.integers(1, 3))]:
        spec = draw(
            mostly({}, {"volumeMode": "Block"}, {"volumeAttributesClassName": "gold"}, SELECTIVE, SELECTIVE, SELECTIVE)
        )
        selected = draw(mostly("", *HOSTS))
        modes = draw(mostly(("ReadWriteOnce",), ("ReadOnlyMany",), ("ReadWriteOnce", "ReadOnlyMany")))
        made.append(claim(name, draw(classes), draw(sizes), selected=selected, modes=modes, spec=spec))
    return made


def capacities(draw):
    drivers = [world.csi_driver("d", capacity=draw(st.booleans())), world.csi_driver("e", capacity=False)]
    stated = [
        world.capacity(f"s{i}", draw(classes), draw(sizes), draw(topologies), largest=draw(st.none() | sizes))
        for i in range(draw(st.integers(0, 4)))
    ]
    return drivers, stated


topologies = st.sampled_from(
    [None, {}, {world.ZONE: "z0"}, {world.ZONE: "z1"}, {world.HOST: "n0"}, {world.HOST: "n3", world.ZONE: "z0"}]
)


@settings(max_examples=drawn(150), deadline=None)
@given(st.data())
def test_every_node_gets_the_verdict_and_the_volumes_of_the_plain_rule(data):
    hosts, pvs, pvcs = data.draw(nodes()), data.draw(volumes()), data.draw(claims())
    drivers, stated = capacities(data.draw)
    names = [pvc["metadata"]["name"] for pvc in pvcs]
    desk = Desk().feed(*hosts, *CLASSES.values(), *pvs, *pvcs, *drivers, *stated)
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses(*names)))
    desk.session()
    subject = Subject(desk.task("g-0"))
    binding = rules(desk).binding
    verdicts = words(desk, binding.unbound(subject, desk.cluster.nodes.view()))
    for host in hosts:
        name = host["metadata"]["name"]
        reason, given_ = world.bind_on(host, pvcs, pvs, CLASSES, drivers=drivers, capacities=stated)
        assert verdicts[name] == reason, name
        if not reason:
            decided = binding.reservation(subject.constraints.claims, desk.node(name))
            assert {d.claim: d.volume for d in decided.decisions} == given_, name


@settings(max_examples=drawn(50), deadline=None)
@given(st.data())
def test_pods_of_one_cycle_get_what_they_would_get_one_after_another(data):
    """What is chosen for one pod is, for the next, as if the cluster had it already."""
    hosts = data.draw(nodes())
    pvs = data.draw(volumes(claims=()))
    pvcs = [claim(f"c{i}", data.draw(st.sampled_from(["local", "open"])), data.draw(sizes)) for i in range(4)]
    desk = Desk().feed(*hosts, *CLASSES.values(), *pvs, *pvcs)
    for index in range(4):
        desk.feed(group(f"g{index}"), pod(f"p{index}", f"g{index}", created=index, cpu="1", volumes=uses(f"c{index}")))
    desk.cycle()
    known = {pv["metadata"]["name"]: pv for pv in pvs}
    by_name = {host["metadata"]["name"]: host for host in hosts}
    taken = {}
    for bind in desk.world.of(Bind):
        pvc = pvcs[int(bind.name[1:])]
        free = [pv for name, pv in known.items() if name not in taken]
        reason, wanted = world.bind_on(by_name[bind.node], [pvc], free, CLASSES)
        assert not reason
        assert {d.claim: d.volume for d in bind.volumes} == wanted
        for decision in bind.volumes:
            if decision.volume:
                taken[decision.volume] = decision.claim
    for index, pvc in enumerate(pvcs):
        if f"p{index}" not in desk.world.binds:
            free = [pv for name, pv in known.items() if name not in taken]
            assert all(world.bind_on(host, [pvc], free, CLASSES)[0] for host in hosts)


def test_the_smallest_claim_chooses_first():
    desk = Desk().feed(
        node("n0"), storage_class("open", "e"), volume("v0", "open", 9), claim("c0", "open", 3), claim("c1", "open", 1)
    )
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0", "c1")))
    desk.cycle()
    assert {d.claim: d.volume for d in desk.world.of(Bind)[0].volumes} == {"c1": "v0", "c0": ""}


@pytest.mark.parametrize(("largest", "fits"), [(None, False), (60, True)])
def test_volumes_on_their_way_reduce_the_room_but_not_the_largest_size(largest, fits):
    desk = Desk().feed(
        node("n0", labels={world.ZONE: "z0"}), storage_class("open", "e"), world.csi_driver("e", capacity=True)
    )
    desk.feed(
        world.capacity("s", "open", 80, {world.ZONE: "z0"}, largest=largest),
        claim("c0", "open", 50),
        claim("c1", "open", 50),
    )
    for index in range(2):
        desk.feed(group(f"g{index}"), pod(f"p{index}", f"g{index}", created=index, cpu="1", volumes=uses(f"c{index}")))
    desk.cycle()
    assert ("p1" in desk.world.binds) is fits


# ---- giving back


def state(cluster):
    found = cluster.volumes
    per_node = {record.name: sorted(record.volume_users) for record in cluster.nodes.records}
    return (
        dict(sorted(found.chosen.items())),
        dict(sorted(found.taken.items())),
        {key: sorted(holders) for key, holders in sorted(found._holders.items())},  # noqa: SLF001  undone is what was done, all of it
        sorted(found.reservations),
        {key: sorted(users) for key, users in sorted(found._users.items())},  # noqa: SLF001  as above
        per_node,
    )


steps = st.lists(
    st.tuples(
        st.sampled_from(["allocate", "pipeline", "undo", "rollback", "mark"]), st.integers(0, 7), st.integers(0, 3)
    ),
    max_size=20,
)


@settings(max_examples=drawn(70), deadline=None)
@given(steps=steps, data=st.data())
def test_whatever_is_undone_gives_back_exactly_what_it_had_reserved(steps, data):
    pvs = [volume(f"v{i}", "local", 1 + i % 3, hosts=[HOSTS[i % 4]]) for i in range(8)]
    desk = Desk().feed(*(node(h, labels={world.HOST: h}) for h in HOSTS), *CLASSES.values(), *pvs)
    desk.feed(*(claim(f"c{i}", "local" if i % 3 else "open", 1 + i % 2) for i in range(6)))
    desk.feed(group("g", 8))
    for i in range(8):
        desk.feed(pod(f"g-{i}", "g", cpu="1", volumes=uses(*{f"c{i % 6}", f"c{data.draw(st.integers(0, 5))}"})))
    session = desk.session()
    before = state(desk.cluster)
    statement, marks = session.statement(), []
    for what, which, where in steps:
        task, record = desk.task(f"g-{which}"), desk.node(HOSTS[where])
        if what in ("allocate", "pipeline") and task.status == Status.PENDING:
            getattr(statement, what)([task], [record])
        elif what == "undo" and task.status != Status.PENDING:
            statement.undo(task)
        elif what == "mark":
            marks.append((statement.checkpoint(), state(desk.cluster), len(statement)))
        elif what == "rollback" and marks:
            mark, then, size = marks.pop()
            undone_since = len(statement) < size
            statement.rollback(mark)
            if not undone_since and len(statement) == size:
                assert state(desk.cluster) == then
    taken = desk.cluster.volumes.taken
    assert all(desk.cluster.volumes.chosen[key][0] == pv for pv, key in taken.items())
    statement.discard()
    assert state(desk.cluster) == before


def test_a_placement_that_gets_no_volume_is_not_bound():
    desk = Desk().feed(
        node("n0"), storage_class("local"), claim("c0"), group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0"))
    )
    session = desk.session()
    statement = session.statement()
    statement.allocate([desk.task("g-0")], [desk.node("n0")])
    statement.commit()
    assert desk.world.binds == {}
    assert desk.task("g-0").status == Status.PENDING
    assert any('persistentvolumeclaim "c0" gets no volume on node n0' in line for line in session.record.trace())


# ---- decisions on their way


def in_flight():
    desk = Desk().feed(node("n0"), storage_class("local"), volume("v0"), claim("c0"), claim("c1"))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0")))
    desk.cycle()
    return desk, desk.world.of(Bind)[0]


def test_a_bind_carries_its_volumes_and_the_time_they_may_take():
    _, bind = in_flight()
    (decision,) = bind.volumes
    assert (decision.namespace, decision.claim, decision.uid, decision.volume) == ("a", "c0", "a.c0", "v0")
    assert bind.volume_patience == 600 * 1_000_000


def test_the_time_volumes_may_take_is_a_setting():
    config = "actions: allocate\ntiers:\n- plugins: [{name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 30}}]\n"
    desk = Desk(config).feed(node("n0"), storage_class("local"), volume("v0"), claim("c0"))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0")))
    desk.cycle()
    assert desk.world.of(Bind)[0].volume_patience == 30 * 1_000_000


def test_a_pod_without_unbound_claims_carries_no_volumes():
    desk = Desk().feed(node("n0"), storage_class("local"), volume("v0", for_claim="c0"), claim("c0", volume="v0"))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0")))
    desk.cycle()
    assert desk.world.of(Bind)[0].volumes == ()


@pytest.mark.parametrize("change", ["pod event", "nothing", "unknown"])
def test_a_volume_on_its_way_stays_taken_whatever_happens_meanwhile(change):
    desk, bind = in_flight()
    if change == "pod event":
        desk.modify(pod("g-0", "g", cpu="1", volumes=uses("c0"), labels={"touched": "yes"}))
    elif change == "unknown":
        desk.settle(bind, "unknown")
    desk.feed(group("h"), pod("h-0", "h", cpu="1", volumes=uses("c1")))
    desk.cycle()
    assert desk.world.binds == {"g-0": "n0"}
    assert desk.cluster.volumes.taken == {"v0": "a/c0"}


def test_a_bound_pod_keeps_its_volume_until_the_claim_says_so_itself():
    desk, _ = in_flight()
    desk.modify(pod("g-0", "g", cpu="1", node="n0", volumes=uses("c0"))).apply()
    assert desk.cluster.volumes.taken == {"v0": "a/c0"}
    desk.modify(claim("c0", volume="v0")).apply()
    assert desk.cluster.volumes.taken == {}
    assert desk.cluster.volumes.reservations.get("a.g-0") is None


@pytest.mark.parametrize("end", ["bind fails", "pod deleted", "claim deleted"])
def test_a_volume_is_free_again_when_its_decision_is_void(end):
    desk, bind = in_flight()
    if end == "bind fails":
        desk.settle(bind, "conflict")
    elif end == "pod deleted":
        desk.delete(pod("g-0", "g", cpu="1", volumes=uses("c0")))
    else:
        desk.delete(claim("c0"))
    desk.apply()
    assert desk.cluster.volumes.taken == {}
    assert desk.cluster.volumes.chosen == {}


def test_binds_that_wait_for_volumes_are_not_asked_after_too_early():
    desk, _ = in_flight()
    desk.cycle(seconds=60)
    desk.cycle()
    assert desk.world.reads == []
    desk.cycle(seconds=600)
    desk.cycle()
    assert desk.world.reads == ["g-0"]


# ---- before nodes are looked at


def owned(uid):
    return [{"apiVersion": "v1", "kind": "Pod", "name": "g-0", "uid": uid, "controller": True}]


PROBLEMS = [
    ([], 'persistentvolumeclaim "c0" not found'),
    ([claim("c0", deletionTimestamp="2026-01-01T00:00:00Z")], 'persistentvolumeclaim "c0" is being deleted'),
    ([claim("c0", "now")], "pod has unbound immediate PersistentVolumeClaims"),
    ([claim("c0", "unset")], 'storageclass "unset" has no volumeBindingMode'),
    ([claim("c0", None)], "the claim names no storage class"),
    ([claim("c0", volume="v0", bound=False)], 'its binding to persistentvolume "v0" is not complete'),
    (
        [claim("c0", spec={"resources": {"requests": {"storage": "much"}}}, gi=None)],
        "spec.resources.requests.storage: ",
    ),
    ([claim("c0")], None),
    ([claim("c0", volume="v0")], None),
]


@pytest.mark.parametrize(("objects", "text"), PROBLEMS)
def test_a_claim_that_no_node_could_help_is_named_first(objects, text):
    desk = Desk().feed(
        node("n0"), storage_class("local"), storage_class("now", "d", "Immediate"), storage_class("unset", "d", "")
    )
    desk.feed(*objects, group("g"), pod("g-0", "g", cpu="1", volumes=uses("c0")))
    found = desk.session().pre_predicate(Subject(desk.task("g-0")))
    assert found is None if text is None else text in found


@pytest.mark.parametrize(
    ("owners", "text"), [([], "the pod is not its owner"), (owned("else"), "not its owner"), (owned("a.g-0"), None)]
)
def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own(owners, text):
    desk = Desk().feed(node("n0"), storage_class("local"), claim("g-0-tmp", ownerReferences=owners), group("g"))
    desk.feed(pod("g-0", "g", cpu="1", volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]))
    found = desk.session().pre_predicate(Subject(desk.task("g-0")))
    assert found is None if text is None else text in found


# ---- what it costs the others


def test_pods_without_volumes_share_shapes_and_are_asked_nothing():
    desk = Desk().feed(
        node("n0"), group("g", 2), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="1", volumes=[{"name": "e"}])
    )
    session = desk.session()
    assert desk.task("g-0").shape is desk.task("g-1").shape
    found, subject, view = rules(desk), Subject(desk.task("g-0")), desk.cluster.nodes.view()
    assert found.problem(subject) is None
    for answer in (found.limits.fits, found.zone.fits, found.binding.bound, found.binding.unbound):
        assert answer(subject, view) is None
    assert not session.handlers.may_refuse


def test_pods_that_share_a_bound_claim_share_a_shape_and_are_placed_in_runs():
    desk = Desk().feed(
        node("n0"), storage_class("local"), volume("v0", hosts=["n0"]), claim("c0", volume="v0"), group("g", 50)
    )
    desk.feed(*(pod(f"g-{i}", "g", memory="1Mi", volumes=uses("c0")) for i in range(50)))
    session = desk.session()
    shapes = {id(desk.task(f"g-{i}").shape) for i in range(50)}
    evaluation = session.evaluate(Subject(desk.task("g-0")))
    evaluation.mask(released=False)
    assert len(shapes) == 1
    assert not evaluation.is_stepwise(released=False)


def test_a_changed_claim_voids_the_verdicts_of_pods_with_volumes_only():
    desk = Desk().feed(node("n0"), storage_class("local"), claim("c0"), group("g", 2), pod("g-0", "g", cpu="1"))
    desk.feed(pod("g-1", "g", cpu="1", volumes=uses("c0")))
    desk.session()
    table, plain, asking = desk.cluster.nodes, desk.task("g-0").shape.constraints, desk.task("g-1").shape.constraints
    before = table.stated(plain), table.stated(asking)
    desk.modify(claim("c0", gi=6)).apply()
    assert table.stated(plain) == before[0]
    assert table.stated(asking) > before[1]


@pytest.mark.parametrize("where", ["n1", "n2"])
def test_a_pod_goes_where_its_volume_can_be_reached_by_now_though_no_node_has_changed(where):
    made = Desk().feed(*(node(f"n{i}", labels={world.HOST: f"n{i}"}) for i in range(3)), storage_class("local"))
    made.feed(claim("data", volume="v"), volume("v", hosts=["elsewhere"], for_claim="data", phase="Bound"))
    made.feed(group("g"), pod("p", "g", volumes=uses("data"))).cycle()
    assert made.world.binds == {}
    made.modify(volume("v", hosts=[where], for_claim="data", phase="Bound")).cycle()
    assert made.world.binds == {"p": where}
