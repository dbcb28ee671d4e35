"""Lists of openb and `--stay`: what is read and refused, what is drawn in which order, and that each pod goes where the rules say."""

import gzip

import numpy as np
import pytest

from pumice.framework import registry
from pumice.simulate import gpus, loading, openb, running
from pumice.simulate.engine import Simulation
from pumice.simulate.settings import PolicyFile, Settings
from pumice.simulate.trace import TraceError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,32000,131072,1,T4\nn2,96000,393216,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
TIMED = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
POLICY = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: fragmentation}]\n'


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_nodes_offer_a_thousand_for_each_card(tmp_path):
    packed = tmp_path / "nodes.csv.gz"
    packed.write_bytes(gzip.compress(NODES.encode()))
    found = {node.metadata.name: node for _, node in openb.nodes(str(packed))}
    assert found["n0"].status.allocatable["pumice.dev/gpu-milli"] == "2000"
    assert found["n0"].metadata.labels["nvidia.com/gpu.product"] == "P100"
    assert "pumice.dev/gpu-milli" not in found["n2"].status.allocatable


def test_a_pod_is_a_job_with_its_cards_models_and_times(tmp_path):
    text = (
        TIMED
        + "a,1000,2048,1,460,T4|P100,LS,Running,5,100,7\nb,2000,0,2,1000,,LS,Failed,3,9,4\nc,0,0,0,0,,BE,Pending,4,9,\n"
    )
    trace = openb.read(written(tmp_path, "pods.csv", text))
    assert [(job.name, job.submit, job.run_time) for job in trace.jobs] == [
        ("b", 3_000_000, 5_000_000),
        ("a", 5_000_000, 93_000_000),
    ]
    assert [gpus.cards(job) for job in trace.jobs] == [(2, 1000), (1, 460)]
    assert trace.skipped == 1
    assert trace.notes == ["1 pods that never ran are skipped"]
    terms = trace.jobs[1].members[0].spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert terms.node_selector_terms[0].match_expressions[0].values == ("P100", "T4")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; its first line names the columns name,cpu_milli"),
        ("name,cpu_milli,memory_mib,num_gpu\n", "pods.csv:1: column gpu_milli: is missing"),
        (
            "name,cpu_mili,memory_mib,num_gpu,gpu_milli\n",
            "pods.csv:1: column cpu_mili: is not known; did you mean cpu_milli?",
        ),
        ("name,name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "pods.csv:1: column name: is there twice"),
        (PODS + "a,1000,2048,1\n", "pods.csv:2: has 4 values, and the first line names 5 columns"),
        (PODS + "a,-5,2048,1,1000\n", "pods.csv:2: column cpu_milli: '-5' is no whole number"),
        (PODS + "a,1,1,1,1001\n", "pods.csv:2: column gpu_milli: '1001' is no whole number from 0 to 1,000"),
        (PODS + "a,1,1,65,1000\n", "pods.csv:2: column num_gpu: '65' is no whole number from 0 to 64"),
        (PODS + "a,1,1,2,500\n", "column gpu_milli: is 500 of each of 2 cards"),
        (PODS + "a,1,1,1,0\n", "column gpu_milli: is 0, and the pod asks for 1 cards"),
        (PODS + "A b,1,1,1,10\n", "column name: 'A b' is no name"),
        (PODS + '"a,1,1,1,10\n', "pods.csv:2: is no line of comma-separated values"),
    ],
)
def test_what_cannot_be_read_is_named_by_line_and_column(tmp_path, text, says):
    with pytest.raises(TraceError) as refused:
        openb.read(written(tmp_path, "pods.csv", text), stay=True)
    assert says in str(refused.value)


def test_without_times_pods_can_only_stay(tmp_path):
    with pytest.raises(TraceError, match=r"pods\.csv:1: column creation_time: is missing; without times"):
        openb.read(written(tmp_path, "pods.csv", PODS + "a,1,1,1,10\n"))


def test_a_node_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(TraceError, match=r"nodes\.csv:3: column sn: n0 is there twice"):
        openb.nodes(written(tmp_path, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,1,A\nn0,1,1,1,A\n"))


def staying(folder, *, seed=42, load=1.3, typical="history", node_order="seeded", nodes=NODES):
    kinds = [
        (1000, 1024, 1, 250),
        (2000, 1024, 1, 500),
        (4000, 2048, 1, 1000),
        (4000, 2048, 2, 1000),
        (8000, 1024, 0, 0),
    ]
    lines = [f"p{at:02},{','.join(map(str, kinds[at * 7 % 5]))}\n" for at in range(12)]
    return Settings(
        trace=written(folder, "pods.csv", PODS + "".join(lines)),
        cluster=written(folder, "nodes.csv", nodes),
        policies=(PolicyFile(name="fgd", text=POLICY),),
        format="openb",
        stay=True,
        load=load,
        seed=seed,
        typical=typical,
        node_order=node_order,
    )


def drawn(sizes, load, seed, *, capacity=3000, nodes=3):
    """Who arrives, drawn by hand."""
    names = sorted(sizes)
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes).tolist()
    arriving = [names[at] for at in rng.permutation(len(names))]
    total = sum(k * g for k, g in (sizes[name] for name in arriving))
    while True:
        name = names[rng.integers(len(names))]
        if total + sizes[name][1] > load * capacity:
            break
        arriving.append(name)
        total += sizes[name][0] * sizes[name][1]
    while total > load * capacity:
        gone = arriving.pop(int(rng.integers(len(arriving))))
        total -= sizes[gone][0] * sizes[gone][1]
    return order, arriving


@pytest.mark.parametrize(("seed", "load"), [(42, 1.3), (7, 3.0), (7, 10.0), (3, 0.4)])
def test_nodes_and_pods_come_in_the_order_that_is_drawn(tmp_path, seed, load):
    loaded = loading.load(staying(tmp_path, seed=seed, load=load))
    pods = openb.read(str(tmp_path / "pods.csv"), stay=True).jobs
    sizes = {job.name: gpus.cards(job) for job in pods}
    order, arriving = drawn(sizes, load, seed)
    names = [node.metadata.name for kind, node in loaded.cluster if kind.name == "Node"]
    assert [loaded.trace.shown[name] for name in sorted(names)] == [f"n{at}" for at in order]
    assert [job.name.rpartition(".")[0] for job in loaded.trace.jobs] == arriving
    assert [job.submit for job in loaded.trace.jobs] == [at * 10_000_000 for at in range(len(arriving))]
    by_name = loading.load(staying(tmp_path, seed=seed, load=load, node_order="name"))
    assert [node.metadata.name for kind, node in by_name.cluster if kind.name == "Node"] == ["n0", "n1", "n2"]
    assert [job.name for job in by_name.trace.jobs] == [job.name for job in loaded.trace.jobs]


@pytest.mark.parametrize("typical", ["history", "trace"])
def test_every_pod_is_decided_before_the_next_and_allocation_is_that_at_the_full_load(tmp_path, typical):
    settings = staying(tmp_path, load=2.0, typical=typical)
    loaded = loading.load(settings)
    known = registry.installed()
    result = Simulation(
        loaded.trace, loaded.cluster, running.configured(settings.policies[0], known), known=known
    ).run()
    assert not result.failures
    held, arrived, full = {}, 0, []
    most = sum(number * milli for number, milli in map(gpus.cards, loaded.trace.jobs))
    for job, each in zip(loaded.trace.jobs, result.jobs, strict=True):
        number, milli = gpus.cards(job)
        arrived += number * milli
        if each.start is not None:
            assert each.start == each.submit
            where = each.runs[0].node
            assert where in ("n0", "n1", "n2")
            held[where] = held.get(where, 0) + number * milli
        if round(100 * arrived / 3000) == round(100 * most / 3000):
            full.append(sum(held.values()))
    assert held["n0"] <= 2000
    assert held["n1"] <= 1000
    assert gpus.allocation_at_load(loaded.trace, result.jobs, 3000) == pytest.approx(sum(full) / len(full) / 3000)
    assert any(each.start is None for each in result.jobs)


def test_without_gpus_there_is_nothing_to_fill(tmp_path):
    with pytest.raises(TraceError, match="no node has GPUs"):
        loading.load(staying(tmp_path, nodes="sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,0,\n"))
