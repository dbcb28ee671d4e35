"""deviceshare: the worked cases, cards that are never given twice, and what survives cycles, restarts and failures."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import configuration, registry
from pumice.plugins.deviceshare import cards, geometries, gpus, vgpus
from pumice.plugins.deviceshare.cards import Card, Held, Share

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


def text(**arguments):
    told = "".join(f"      deviceshare.{key}: {json.dumps(value)}\n" for key, value in arguments.items())
    return (
        'actions: "enqueue, allocate, preempt, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n'
        f"- plugins:\n  - name: predicates\n  - name: deviceshare\n    arguments:\n{told}"
    )


def gpu_node(name, memory="32768", number="4", **more):
    return _offering(name, {MEMORY: memory, NUMBER: number}, **more)


def _offering(name, offered, annotations=None):
    made = node(name, cpu="64", memory="256Gi", annotations=annotations)
    made["status"]["allocatable"].update(offered)
    return made


def asking(name, limits, *, group_name="g", annotations=None, **more):
    made = pod(name, group_name, cpu="1", annotations=annotations, **more)
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(limits)
    resources["requests"] = {**resources.get("requests", {}), **limits}
    return made


def bound(made, name):
    return next(e for e in made.world.effects if getattr(e, "node", None) and e.name == name)


def run(desk, cycles=2):
    for _ in range(cycles):
        desk.cycle()
    return desk


# ---- GPUs by memory and by number


def held(memory=0, users=0):
    return Held(memory, 0, users)


def test_ds1_the_first_card_with_enough_memory_is_taken():
    of = tuple(Card(str(index), 8192) for index in range(4))
    state = (held(6000, 1), held(4096, 1), held(), held())
    assert gpus.by_memory(of, state, 3000).shares == (Share(1, 3000),)
    assert "at most 8192" in gpus.by_memory(of, state, 9000).refusal


def test_ds2_idle_cards_that_are_well_are_counted():
    made = gpu_node("n1", annotations={"volcano.sh/gpu-unhealthy-ids": "2"})
    desk = Desk(text(GPUNumberEnable=True)).feed(
        made,
        group("g", 1),
        asking("busy", {NUMBER: "1"}, annotations={"volcano.sh/gpu-index": "0"}, node="n1", phase="Running"),
        asking("three", {NUMBER: "3"}),
        asking("two", {NUMBER: "2"}),
    )
    run(desk)
    assert bound(desk, "two").annotations["volcano.sh/gpu-index"] == "1,3"
    assert "three" not in desk.world.binds


def test_pods_of_one_cycle_and_of_later_ones_share_no_memory_twice():
    desk = Desk(text(GPUSharingEnable=True)).feed(
        gpu_node("n1", "16384", "2"), group("g", 1), *(asking(f"p{i}", {MEMORY: "3000"}) for i in range(6))
    )
    run(desk)
    given_ = [bound(desk, f"p{i}").annotations["volcano.sh/gpu-index"] for i in range(4)]
    assert sorted(given_) == ["0", "0", "1", "1"]
    assert bound(desk, "p0").annotations["volcano.sh/predicate-time"].isdigit()
    assert set(desk.world.binds) == {"p0", "p1", "p2", "p3"}


def test_a_restart_reads_cards_back_and_a_bind_that_is_refused_gives_them_back():
    running = asking("r", {MEMORY: "8000"}, annotations={"volcano.sh/gpu-index": "0"}, node="n1", phase="Running")
    desk = Desk(text(GPUSharingEnable=True)).feed(
        gpu_node("n1", "16384", "2"), group("g", 1), running, asking("p", {MEMORY: "8000"})
    )
    run(desk)
    sent = bound(desk, "p")
    assert sent.annotations["volcano.sh/gpu-index"] == "1"
    desk.settle(sent, "refused").apply()
    assert not desk.cluster.with_bind.stamps


def test_what_one_plugin_takes_back_leaves_what_another_has_to_say_to_the_bind():
    desk = Desk(text(GPUSharingEnable=True)).feed(gpu_node("n1"), group("g", 2), asking("p", {MEMORY: "100"}))
    cluster = desk.session().cluster
    cluster.with_bind.stamp("a.p", {"volcano.sh/gpu-index": "0", "volcano.sh/predicate-time": "1"})
    cluster.with_bind.stamp("a.p", {"volcano.sh/topology-decision": "{}"})
    cluster.with_bind.unstamp("a.p", ("volcano.sh/gpu-index", "volcano.sh/predicate-time"))
    assert cluster.with_bind.stamps == {"a.p": {"volcano.sh/topology-decision": "{}"}}
    cluster.with_bind.unstamp("a.p", ("volcano.sh/topology-decision",))
    cluster.with_bind.unstamp("a.p", ("volcano.sh/topology-decision",))
    assert cluster.with_bind.stamps == {}


def test_a_card_that_turns_ill_takes_nobody():
    ill = {"volcano.sh/gpu-unhealthy-ids": "1"}
    desk = Desk(text(GPUSharingEnable=True)).feed(gpu_node("n1", "16384", "2"), group("g", 1))
    run(desk)
    desk.modify(gpu_node("n1", "16384", "2", annotations=ill)).feed(
        *(asking(f"p{i}", {MEMORY: "8000"}) for i in range(2))
    )
    run(desk)
    assert desk.world.binds == {"p0": "n1"}


def test_a_victim_frees_its_card_for_who_waits_and_not_before_it_is_gone():
    victim = asking(
        "v", {MEMORY: "8000"}, group_name="low", annotations={"volcano.sh/gpu-index": "0"}, node="n1", phase="Running"
    )
    desk = Desk(text(GPUSharingEnable=True)).feed(
        gpu_node("n1", "16384", "2"),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high", "uid": "h"},
            "value": 9,
        },
        group("low", 0, phase="Running"),
        asking(
            "other",
            {MEMORY: "8000"},
            group_name="low",
            annotations={"volcano.sh/gpu-index": "1"},
            node="n1",
            phase="Running",
        ),
        victim,
        group("g", 1, priorityClassName="high"),
        asking("p", {MEMORY: "8000"}),
    )
    run(desk)
    assert len(desk.world.evictions) == 1
    assert "p" not in desk.world.binds


# ---- virtual GPUs

REGISTER = "volcano.sh/node-vgpu-register"
VGPU = {"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "32768", "volcano.sh/vgpu-cores": "200"}


def vgpu_node(name, register="GPU-A,10,16384,NVIDIA-A100,true,hami-core:GPU-B,10,16384,NVIDIA-A100,true,hami-core:"):
    return _offering(name, VGPU, annotations={REGISTER: register})


def wanting(name="p", number="1", memory="8192", cores="30", **more):
    limits = {"volcano.sh/vgpu-number": number, "volcano.sh/vgpu-memory": memory, "volcano.sh/vgpu-cores": cores}
    return asking(name, {key: value for key, value in limits.items() if value}, **more)


AB = vgpus.Register((Card("GPU-A", 16384, 10, "A100"), Card("GPU-B", 16384, 10, "A100")))


@pytest.mark.parametrize(
    ("policy", "cores", "card", "score"),
    [
        ("", 30, 1, 0.0),
        ("binpack", 30, 0, 75.0),
        ("spread", 30, 1, 100.0),
        ("", 100, 1, 0.0),
        ("binpack", 100, 1, 50.0),
        ("spread", 100, 1, 100.0),
    ],
)
def test_ds3_a_policy_chooses_the_card(policy, cores, card, score):
    state = (Held(4096, 50, 1), Held())
    found = vgpus.choose(AB, state, vgpus.Request((vgpus.Asked(1, 8192, 0, cores),)), policy)
    assert [share.position for share in found.shares] == [card]
    assert found.score == score


def test_what_was_given_is_written_as_the_device_plugin_reads_it():
    desk = Desk(text(VGPUEnable=True, SchedulePolicy="spread")).feed(vgpu_node("n1"), group("g", 1), wanting())
    run(desk)
    notes = bound(desk, "p").annotations
    assert notes["volcano.sh/vgpu-ids-new"] == notes["volcano.sh/devices-to-allocate"] == "GPU-A,NVIDIA,8192,30:"
    assert notes["volcano.sh/vgpu-node"] == "n1"
    assert notes["volcano.sh/bind-phase"] == "allocating"


@pytest.mark.parametrize(
    ("more", "starts"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"memory": "16385"}, False, id="more memory than a card has"),
        pytest.param({"memory": "", "cores": ""}, True, id="a whole card"),
        pytest.param({"number": "3"}, False, id="more cards than there are"),
        pytest.param({"annotations": {"volcano.sh/vgpu-use-gpuuuid": "GPU-C"}}, False, id="another card"),
        pytest.param({"annotations": {"volcano.sh/vgpu-nouse-gpuuuid": "GPU-A,GPU-B"}}, False, id="none of these"),
        pytest.param(
            {"annotations": {"volcano.sh/vgpu-use-gpuuuid": "GPU-A", "volcano.sh/vgpu-nouse-gpuuuid": "GPU-A"}},
            False,
            id="who is refused is refused",
        ),
        pytest.param({"annotations": {"nvidia.com/use-gputype": "h100, a100"}}, True, id="of this type"),
        pytest.param({"annotations": {"nvidia.com/use-gputype": "h100"}}, False, id="of another type"),
        pytest.param({"annotations": {"nvidia.com/nouse-gputype": "A100"}}, False, id="not of this type"),
        pytest.param({"annotations": {"volcano.sh/vgpu-mode": "mig"}}, False, id="cut into instances"),
        pytest.param({"annotations": {"volcano.sh/vgpu-mode": "hami-core"}}, True, id="shared like this"),
    ],
)
def test_a_card_has_to_suit_the_pod(more, starts):
    desk = Desk(text(VGPUEnable=True)).feed(vgpu_node("n1"), group("g", 1), wanting(**more))
    run(desk)
    assert ("p" in desk.world.binds) == starts


@pytest.mark.parametrize(
    ("register", "starts"),
    [
        ("GPU-A,10,16384,A100,true,hami-core:GPU-B,10,100,A100,true,hami-core", True),
        ("GPU-A,10,16384,A100,false,hami-core:GPU-B,10,100,A100,true,hami-core", False),
        ("GPU-A,10,16384,A100,true,mig:GPU-B,10,100,A100,true,mig", False),
    ],
)
def test_cards_that_are_not_well_or_cut_into_instances_take_nobody(register, starts):
    desk = Desk(text(VGPUEnable=True)).feed(vgpu_node("n1", register), group("g", 1), wanting())
    run(desk)
    assert ("p" in desk.world.binds) == starts


@pytest.mark.parametrize("register", ["GPU-A,10,16384", "GPU-A,x,16384,A100,true,hami-core", "GPU-A,1,-5,A,true,h"])
def test_a_register_that_cannot_be_read_is_named(register):
    desk = Desk(text(VGPUEnable=True)).feed(vgpu_node("n1", register), vgpu_node("n2"), group("g", 1), wanting())
    said = [line for _ in range(2) for line in desk.cycle().trace()]
    assert any("Node n1: volcano.sh/node-vgpu-register" in line for line in said)


def test_pods_under_one_rule_keep_off_each_others_cards():
    rules = [{"team": "a"}]
    labels = {"labels": {"team": "a"}}
    desk = Desk(text(VGPUEnable=True, GPUExclusiveRules=rules)).feed(
        vgpu_node("n1"),
        group("g", 1),
        *(wanting(f"a{i}", memory="100", cores="1", **labels) for i in range(3)),
        wanting("free", memory="100", cores="1"),
    )
    run(desk)
    assert set(desk.world.binds) == {"a0", "a1", "free"}
    assert (
        bound(desk, "a0").annotations["volcano.sh/vgpu-ids-new"]
        != bound(desk, "a1").annotations["volcano.sh/vgpu-ids-new"]
    )


def test_a_group_that_spreads_has_one_pod_on_a_card():
    spread = {"annotations": {"volcano.sh/vgpu-podgroup-policy": "spread"}}
    desk = Desk(text(VGPUEnable=True, SchedulePolicy="binpack")).feed(
        vgpu_node("n1"), group("g", 1), *(wanting(f"s{i}", memory="100", cores="1", **spread) for i in range(3))
    )
    run(desk)
    assert len(desk.world.binds) == 2


REQUESTS = st.builds(
    vgpus.Asked,
    number=st.integers(1, 2),
    memory=st.integers(1, 600),
    percentage=st.just(0),
    cores=st.sampled_from([0, 0, 20, 50, 100]),
)


@settings(max_examples=drawn(60))
@given(
    st.lists(st.tuples(st.lists(REQUESTS, min_size=1, max_size=2), st.booleans()), max_size=14),
    st.sampled_from(["", "binpack", "spread"]),
)
def test_no_card_is_ever_given_more_than_it_has_and_what_is_given_back_is_as_if_it_had_never_been(steps, policy):
    register = vgpus.Register((Card("A", 1000, 3), Card("B", 800, 2)))
    state, log = (cards.NOTHING, cards.NOTHING), []
    for containers, gives_back in steps:
        if gives_back and log:
            shares = log.pop(len(log) // 2)
            state = cards.given_back(state, shares)
            continue
        found = vgpus.choose(register, state, vgpus.Request(tuple(containers)), policy)
        if found.shares:
            state = cards.taken(state, found.shares)
            log.append(found.shares)
        else:
            assert found.refusal
        for card, each in zip(register.cards, state, strict=True):
            assert 0 <= each.memory <= card.memory
            assert 0 <= each.cores <= 100
            assert 0 <= each.users <= card.slots
    anew = (cards.NOTHING, cards.NOTHING)
    for shares in log:
        anew = cards.taken(anew, shares)
    assert anew == state


def test_what_is_written_is_read_back():
    request = vgpus.Request((vgpus.Asked(2, 100, 0, 5), vgpus.Asked(0, 0, 100, 0), vgpus.Asked(1, 50, 0, 0)))
    found = vgpus.choose(AB, (cards.NOTHING, cards.NOTHING), request, "")
    assert vgpus.held_by(vgpus.written(AB.cards, found, 3), AB.cards, ()) == found.shares
    assert vgpus.held_by("GPU-Z,NVIDIA,1,1:;nonsense;;GPU-A,NVIDIA,x,1:", AB.cards, ()) == ()


# ---- MIG

DEVICE_CONFIG = """
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  knownMigGeometries:
  - models: [A30]
    allowedGeometries: [{group: g1, geometries: [{name: 1g, memory: 6144, count: 4}]}]
  - models: [A100-40GB, A100-SXM]
    allowedGeometries:
    - {group: g1, geometries: [{name: 1g, memory: 5120, count: 7}]}
    - {group: g2, geometries: [{name: 2g, memory: 10240, count: 3}, {name: 1g, memory: 5120, count: 1}]}
"""
MIG = "GPU-U,10,40960,NVIDIA-A100-40GB,true,mig"


def cuts(text=DEVICE_CONFIG):
    return {
        "apiVersion": "pumice.dev/v1alpha1",
        "kind": "CardGeometries",
        "metadata": {"name": "cluster", "uid": "geometries"},
        "text": text,
    }


def given_to(desk, *names):
    return [bound(desk, name).annotations["volcano.sh/vgpu-ids-new"] for name in names]


def test_ds4_the_first_way_with_a_large_enough_instance_is_taken_and_stays():
    desk = Desk(text(VGPUEnable=True)).feed(cuts(), vgpu_node("n1", MIG), group("g", 1))
    desk.feed(wanting("first", memory="6000", cores="")).cycle()
    desk.feed(wanting("second", memory="3000", cores="")).cycle()
    assert given_to(desk, "first", "second") == ["GPU-U[g2-0],NVIDIA,10240,0:", "GPU-U[g2-1],NVIDIA,10240,0:"]


def test_instances_of_another_size_are_used_when_those_in_use_are_taken():
    desk = Desk(text(VGPUEnable=True)).feed(cuts(), vgpu_node("n1", MIG), group("g", 1))
    desk.feed(*(wanting(f"p{i}", memory="6000", cores="", created=i) for i in range(4))).cycle()
    desk.feed(wanting("small", memory="3000", cores="", created=9)).cycle()
    assert given_to(desk, "p0", "p1", "p2") == [f"GPU-U[g2-{i}],NVIDIA,10240,0:" for i in range(3)]
    assert "p3" not in desk.world.binds
    assert given_to(desk, "small") == ["GPU-U[g2-3],NVIDIA,5120,0:"]


def test_a_restart_reads_instances_back_and_a_card_that_nobody_uses_is_cut_anew():
    notes = {"volcano.sh/vgpu-ids-new": "GPU-U[g2-1],NVIDIA,10240,0:"}
    running = wanting("r", memory="6000", cores="", annotations=notes, node="n1", phase="Running")
    desk = Desk(text(VGPUEnable=True)).feed(cuts(), vgpu_node("n1", MIG), group("g", 1), running)
    desk.feed(wanting("p", memory="6000", cores="")).cycle()
    assert given_to(desk, "p") == ["GPU-U[g2-0],NVIDIA,10240,0:"]
    desk.delete(running, wanting("p", memory="6000", cores=""))
    desk.feed(wanting("q", memory="3000", cores="")).cycle()
    assert given_to(desk, "q") == ["GPU-U[g1-0],NVIDIA,5120,0:"]


@pytest.mark.parametrize(
    ("noted", "held"),
    [
        ("GPU-A,NVIDIA,1024,30:;", [(1024, 30)]),
        ("GPU-A,NVIDIA,1024,30:GPU-A,NVIDIA,x,1:", [(1024, 30)]),
        *((f"GPU-A,NVIDIA,{number},1:", []) for number in ("\u00b2", "-1", "1.5", "", "x")),
        *((f"GPU-A,NVIDIA,1,{number}:", []) for number in ("\u00b2", "-1", "1.5", "", "x")),
        (f"GPU-A,NVIDIA,{'9' * 5000},{'9' * 5000}:", [(10**12 - 1, 10**6 - 1)]),
        ("GPU-Z,NVIDIA,1,1:;;:,,,", []),
    ],
)
def test_what_is_noted_on_a_pod_and_cannot_be_read_holds_nothing(noted, held):
    shares = vgpus.held_by(noted, AB.cards, ("gpu",))
    assert [(share.memory, share.cores) for share in shares] == held


def test_the_factor_of_the_device_plugin_multiplies_what_is_asked_for():
    desk = Desk(text(VGPUEnable=True)).feed(cuts(DEVICE_CONFIG + "  gpuMemoryFactor: 1000\n"), vgpu_node("n1", MIG))
    desk.feed(group("g", 1), wanting("p", memory="6", cores="")).cycle()
    assert given_to(desk, "p") == ["GPU-U[g2-0],NVIDIA,10240,0:"]


def test_a_type_without_a_geometry_is_named_until_there_is_one():
    desk = Desk(text(VGPUEnable=True)).feed(vgpu_node("n1", MIG), group("g", 1), wanting(cores=""))
    run(desk)
    assert desk.world.binds == {}
    assert "cut into MIG instances of no known geometry" in desk.cycle().explain("a/g")
    desk.feed(cuts()).cycle()
    assert desk.world.binds == {"p": "n1"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("nvidia: [", "expected"),
        ("nvidia: 3", "nvidia: expected a map"),
        ("nvidia: {knownMigGeometries: 3}", "nvidia.knownMigGeometries: expected a list"),
        ("nvidia: {gpuMemoryFactor: many}", "gpuMemoryFactor"),
        (
            "nvidia: {knownMigGeometries: [{models: [A], allowedGeometries: [{group: 'a,b'}]}]}",
            "group: expected a name",
        ),
        (
            "nvidia: {knownMigGeometries: [{models: [A], allowedGeometries: [{group: g, geometries: [{memory: 0, count: 1}]}]}]}",
            "whole number from 1 on",
        ),
        (
            "nvidia: {knownMigGeometries: [{models: [A], allowedGeometries: [{group: g, geometries: [{memory: 1, count: 99}]}]}]}",
            "more than 64 instances",
        ),
    ],
)
def test_geometries_that_cannot_be_read_are_named_and_those_known_before_stay(wrong, says):
    desk = Desk(text(VGPUEnable=True)).feed(cuts(), vgpu_node("n1", MIG), group("g", 1))
    desk.cycle()
    desk.modify(cuts(wrong)).feed(wanting(cores=""))
    said = desk.cycle().trace()
    assert any("ConfigMap kube-system/volcano-vgpu-device-config" in line and says in line for line in said)
    assert desk.world.binds == {"p": "n1"}


GROUPS = st.lists(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=3), min_size=1, max_size=3
)


@given(GROUPS, st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=20))
def test_an_instance_belongs_to_one_pod_and_a_card_is_cut_one_way(ways, steps):
    groups = tuple(
        geometries.Group(
            f"g-{index}",
            tuple(
                geometries.Profile("", memory, count, sum(c for _, c in sizes[:at]))
                for at, (memory, count) in enumerate(sizes)
            ),
        )
        for index, sizes in enumerate(ways)
    )
    sizes = {
        f"{group.name}-{position}": profile.memory
        for group in groups
        for profile in group.profiles
        for position in range(profile.first, profile.first + profile.count)
    }
    used = []
    for need, gives_back in steps:
        if gives_back and used:
            used.pop(len(used) // 2)
            continue
        found = geometries.choose(groups, tuple(sorted(used)), need)
        way = used[0].rpartition("-")[0] if used else None
        fits = [
            name
            for name, size in sizes.items()
            if size >= need and name not in used and way in (None, name.rpartition("-")[0])
        ]
        assert (found is not None) == bool(fits)
        if found is not None:
            assert found[0] in fits
            assert found[1] == sizes[found[0]]
            used.append(found[0])


# ---- cards that are not well


@pytest.mark.parametrize("arguments", [{"GPUSharingEnable": True}, {"GPUNumberEnable": True}])
def test_a_card_that_is_not_well_is_named_to_who_waits(arguments):
    made = gpu_node("n1", "16384", "2", annotations={"volcano.sh/gpu-unhealthy-ids": "0,1"})
    limits = {MEMORY: "8000"} if "GPUSharingEnable" in arguments else {NUMBER: "2"}
    desk = Desk(text(**arguments)).feed(made, group("g", 1), asking("p", limits))
    run(desk)
    assert "had cards for the pod that are not well" in desk.cycle().explain("a/g")


def test_a_card_that_is_gone_is_named_with_who_holds_it():
    notes = {"volcano.sh/gpu-index": "1"}
    running = asking("r", {MEMORY: "8000"}, annotations=notes, node="n1", phase="Running")
    desk = Desk(text(GPUSharingEnable=True)).feed(gpu_node("n1", "16384", "2"), group("g", 1), running)
    assert not any("is gone" in line for line in desk.cycle().trace())
    desk.modify(gpu_node("n1", "8192", "1"))
    assert any("Node n1: card 1 is gone, and a/r holds it" in line for line in desk.cycle().trace())
    desk.modify(gpu_node("n1", "16384", "2"))
    assert not any("is gone" in line for line in desk.cycle().trace())


# ---- configuration


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"GPUSharingEnable": True, "GPUNumberEnable": True}, "cannot be on together"),
        ({"GPUSharingEnable": True, "VGPUEnable": True}, "cannot be on together"),
        ({"GPUExclusiveRules": ["x"]}, "expected a map of labels"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, says):
    with pytest.raises(configuration.ConfigurationError, match=says):
        configuration.load(text(**arguments), registry.catalog())


@pytest.mark.parametrize(
    ("argument", "resource"),
    [("AscendHAMiVNPUEnable", "huawei.com/Ascend310P"), ("AscendMindClusterVNPUEnable", "huawei.com/npu-core")],
)
def test_pods_with_ascend_cards_wait_with_a_reason(argument, resource):
    made = _offering("n1", {resource: "4"})
    desk = Desk(text(**{argument: True})).feed(made, group("g", 1), asking("p", {resource: "1"}))
    run(desk)
    assert desk.world.binds == {}
    assert "are not known to share Ascend cards" in desk.cycle().explain("a/g")
