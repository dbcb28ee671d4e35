"""numa-aware: against the kubelet's rules written out subset by subset, and what survives cycles, restarts and failures."""

import itertools
import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from pumice.api import nodeinfo
from pumice.plugins.numa_aware import alignment, cells

POLICIES = {"best-effort": alignment.ANYTHING, "restricted": alignment.PREFERRED, "single-numa-node": alignment.SINGLE}


def slowly(total, free, policy, needs):
    """Admit containers one after the other, hint by hint; gives (admitted, CPUs taken of each cell)."""
    left, taken = list(free), [0] * len(free)
    for need in needs:
        if not need:
            continue
        subsets = [
            set(each) for size in range(1, len(free) + 1) for each in itertools.combinations(range(len(free)), size)
        ]
        hints = [each for each in subsets if sum(left[cell] for cell in each) >= need]
        possible = [len(each) for each in subsets if sum(total[cell] for cell in each) >= need]
        preferred = [each for each in hints if possible and len(each) == min(possible)]
        pool = [each for each in preferred if len(each) == 1] if policy == "single-numa-node" else preferred
        if policy != "best-effort" and not pool:
            return False, None
        ranked = sorted(pool or hints, key=lambda each: (len(each), sum(1 << cell for cell in each)))
        wanting = need
        for cell in sorted(ranked[0]) if ranked else ():
            count = min(wanting, left[cell])
            left[cell] -= count
            taken[cell] += count
            wanting -= count
    return True, taken


CELLS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4)


@given(
    st.lists(CELLS, min_size=1, max_size=4), st.lists(st.integers(0, 14), max_size=3), st.sampled_from(sorted(POLICIES))
)
def test_nodes_are_judged_as_their_kubelets_would_one_by_one(nodes, needs, policy):
    width = max(len(each) for each in nodes)
    total = np.zeros((len(nodes), width), dtype=np.int64)
    free = total.copy()
    for row, each in enumerate(nodes):
        for cell, (count, used) in enumerate(each):
            total[row, cell], free[row, cell] = count, max(0, count - used)
    strictness = np.full(len(nodes), POLICIES[policy])
    found = alignment.align(alignment.Masks(width), total, free, strictness, needs)
    for row in range(len(nodes)):
        admitted, taken = slowly(total[row].tolist(), free[row].tolist(), policy, needs)
        assert bool(found.admitted[row]) == admitted
        if admitted:
            assert found.taken[row].tolist() == taken


def topology(name, free, *, policy="restricted", manager="static", pods=(), reserved="0", per_cell=8):
    count = 2 * per_cell
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name, "uid": f"numa.{name}"},
        "spec": {
            "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
            "resReserved": {"cpu": reserved},
            "numares": {"cpu": {"allocatable": free, "capacity": count}},
            "cpuDetail": {
                str(cpu): {"numa": cpu // per_cell, "socket": cpu // per_cell, "core": cpu // 2} for cpu in range(count)
            },
            "podAllocations": [{"uid": uid} for uid in pods],
        },
    }


def aligned_pod(name, cpu="4", policy="restricted", *, limits=True, **more):
    annotations = {"volcano.sh/numa-topology-policy": policy} if policy else None
    made = pod(name, "g", cpu=cpu, memory="1Gi", annotations=annotations, **more)
    if limits:
        made["spec"]["containers"][0]["resources"]["limits"] = {"cpu": cpu, "memory": "1Gi"}
    return made


CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: numa-aware}]
"""


def desk(*objects):
    return Desk(CONFIGURATION).feed(group("g", 1), *objects)


@pytest.mark.parametrize(
    ("free", "policy", "starts"),
    [
        pytest.param("5-15", "restricted", True, id="NU1"),
        pytest.param("5-15", "single-numa-node", True, id="NU1, one cell"),
        pytest.param("5-7,13-15", "best-effort", True, id="NU2: best effort admits"),
        pytest.param("5-7,13-15", "restricted", False, id="NU2: restricted does not"),
        pytest.param("5-7,13-15", "single-numa-node", False, id="NU2: nor does one cell"),
        pytest.param("", "restricted", False, id="no CPU is free"),
    ],
)
def test_a_pod_starts_where_its_policy_admits_it(free, policy, starts):
    made = desk(node("n1", cpu="16"), topology("n1", free, policy=policy), aligned_pod("p", policy=policy))
    made.cycle()
    made.cycle()
    assert ("p" in made.world.binds) == starts


@pytest.mark.parametrize(
    ("given_", "waiting", "starts"),
    [
        pytest.param([], aligned_pod("p"), False, id="a node that says nothing"),
        pytest.param([topology("n1", "0-15", manager="none")], aligned_pod("p"), False, id="CPUs that are not static"),
        pytest.param([topology("n1", "0-15", policy="best-effort")], aligned_pod("p"), False, id="another policy"),
        pytest.param([topology("n1", "0-x")], aligned_pod("p"), False, id="CPUs that cannot be read"),
        pytest.param([], aligned_pod("p", policy=""), True, id="a pod without a policy, a node without cells"),
        pytest.param([topology("n1", "5-7,13-15")], aligned_pod("p", policy=""), False, id="the policy of the node"),
        pytest.param([topology("n1", "5-7,13-15", policy="none")], aligned_pod("p", policy=""), True, id="none at all"),
        pytest.param([topology("n1", "")], aligned_pod("p", limits=False), True, id="NU4: burstable"),
        pytest.param([topology("n1", "5-7")], aligned_pod("p", "2500m"), True, id="a part of a CPU goes anywhere"),
        pytest.param(
            [topology("n1", "4-7,12-15", reserved="5")], aligned_pod("p"), True, id="reserved in the other cell"
        ),
        pytest.param([topology("n1", "4-7,13-15", reserved="4500m")], aligned_pod("p"), False, id="a reserved CPU"),
    ],
)
def test_only_what_a_kubelet_would_refuse_is_refused(given_, waiting, starts):
    made = desk(node("n1", cpu="16"), *given_, waiting)
    made.cycle()
    made.cycle()
    assert ("p" in made.world.binds) == starts


def test_nu3_the_node_with_fewer_cells_is_chosen():
    made = desk(
        node("n1", cpu="16"),
        node("n2", cpu="16"),
        topology("n1", "5-7,13-15", policy="best-effort"),
        topology("n2", "8-15", policy="best-effort"),
        aligned_pod("p", policy="best-effort"),
    )
    made.cycle()
    made.cycle()
    assert made.world.binds == {"p": "n2"}


def decision(made, name):
    bind = next(effect for effect in made.world.effects if getattr(effect, "node", None) and effect.name == name)
    return json.loads(bind.annotations["volcano.sh/topology-decision"])


def test_pods_of_one_cycle_and_of_later_ones_do_not_share_cpus():
    made = desk(node("n1", cpu="64"), topology("n1", "0-15"), *(aligned_pod(f"p{i}", "6") for i in range(2)))
    made.cycle()
    made.cycle()
    assert sorted(str(decision(made, name)) for name in ("p0", "p1")) == [
        "{'numa': {'0': {'cpu': '6'}}}",
        "{'numa': {'1': {'cpu': '6'}}}",
    ]
    made.feed(aligned_pod("late", "4"))
    made.cycle()
    made.cycle()
    assert "late" not in made.world.binds


def test_what_the_agent_has_reported_is_not_counted_twice_and_a_restart_reads_the_rest():
    held = {"volcano.sh/topology-decision": json.dumps({"numa": {"0": {"cpu": "6"}}})}
    running = [aligned_pod(f"r{i}", "6", node="n1", phase="Running") for i in range(2)]
    for each in running:
        each["metadata"].setdefault("annotations", {}).update(held)
    reported = desk(
        node("n1", cpu="64"), topology("n1", "6-15", pods=("a.r0", "a.r1")), *running, aligned_pod("p", "8")
    )
    unreported = desk(
        node("n1", cpu="64"), topology("n1", "0-15"), *running[:1], aligned_pod("p", "2"), aligned_pod("q", "8")
    )
    for made in (reported, unreported):
        made.cycle()
        made.cycle()
    assert "p" in reported.world.binds
    assert set(unreported.world.binds) == {"p", "q"}
    assert decision(unreported, "p") == {"numa": {"0": {"cpu": "2"}}}


def test_a_bind_that_is_refused_gives_its_cpus_back():
    made = desk(node("n1", cpu="16"), topology("n1", "0-15"), aligned_pod("p", "8"))
    made.cycle()
    made.cycle()
    bind = next(effect for effect in made.world.effects if getattr(effect, "node", None))
    assert made.cluster.with_bind.stamps
    made.settle(bind, "refused")
    made.apply()
    assert not made.cluster.with_bind.stamps


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"numares": {"cpu": {"allocatable": "0-99999"}}}, "has more than"),
        ({"numares": {"cpu": {"allocatable": "zero"}}}, "is no CPU"),
        ({"cpuDetail": {"x": {"numa": 0}}}, "is no number of a CPU"),
        ({"cpuDetail": {str(cpu): {"numa": cpu} for cpu in range(9)}}, "has 9 NUMA cells"),
        ({"cpuDetail": {str(cpu): {"numa": 0} for cpu in range(5000)}}, "lists 5000 CPUs"),
        ({"resReserved": {"cpu": "some"}}, "spec.resReserved.cpu"),
        ({"resReserved": {"cpu": []}}, "is no amount"),
    ],
)
def test_what_an_agent_says_and_cannot_be_is_named(change, says):
    manifest = topology("n1", "0-15")
    manifest["spec"].update(change)
    with pytest.raises(cells.CellsError, match=says):
        cells.read(msgspec.convert(manifest, nodeinfo.Numatopology))
