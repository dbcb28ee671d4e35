"""deviceshare: the worked cases, cards that are never given twice, and what survives cycles, restarts and failures."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from pumice.framework import configuration, registry
from pumice.plugins.deviceshare import cards, gpus, vgpus
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
    assert not desk.cluster.stamps


def test_what_one_plugin_takes_back_leaves_what_another_has_to_say_to_the_bind():
    desk = Desk(text(GPUSharingEnable=True)).feed(gpu_node("n1"), group("g", 2), asking("p", {MEMORY: "100"}))
    cluster = desk.session().cluster
    cluster.stamp("a.p", {"volcano.sh/gpu-index": "0", "volcano.sh/predicate-time": "1"})
    cluster.stamp("a.p", {"volcano.sh/topology-decision": "{}"})
    cluster.unstamp("a.p", ("volcano.sh/gpu-index", "volcano.sh/predicate-time"))
    assert cluster.stamps == {"a.p": {"volcano.sh/topology-decision": "{}"}}
    cluster.unstamp("a.p", ("volcano.sh/topology-decision",))
    cluster.unstamp("a.p", ("volcano.sh/topology-decision",))
    assert cluster.stamps == {}


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


@settings(max_examples=60)
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


def test_pods_with_ascend_cards_wait_with_a_reason():
    made = _offering("n1", {"huawei.com/Ascend310P": "4"})
    desk = Desk(text(AscendHAMiVNPUEnable=True)).feed(made, group("g", 1), asking("p", {"huawei.com/Ascend310P": "1"}))
    run(desk)
    assert desk.world.binds == {}
    assert "are not known to share Ascend cards" in desk.cycle().explain("a/g")
