"""What simulated containers do, and what pools of nodes look like."""

from __future__ import annotations

import pytest

from pumice.local_cluster import pools
from pumice.sim.kubelets import plans

SECOND = 1_000_000


def container(*command):
    return {"command": list(command)}


@pytest.mark.parametrize(
    ("command", "seconds", "code", "lines"),
    [
        (["sleep", "30"], 30, 0, []),
        (["/bin/sleep", "1.5m"], 90, 0, []),
        (["true"], 0, 0, []),
        (["false"], 0, 1, []),
        (["sh", "-c", "exit 3"], 0, 3, []),
        (["/bin/sh", "-c", "echo one; sleep 2 && echo two\nexit 4; echo never"], 2, 4, [(0, "one"), (2, "two")]),
        (["bash", "-ec", "nonsense"], None, 0, []),
        (["sh", "-c", "echo up; exec server"], None, 0, [(0, "up")]),
        (["sleep", "infinity"], None, 0, []),
        (["nginx"], None, 0, []),
        ([], None, 0, []),
        (["sh", "-c", "echo 'unclosed"], None, 0, []),
    ],
)
def test_a_command_says_how_long_a_container_runs_and_how_it_ends(command, seconds, code, lines):
    plan = plans.of_container(container(*command))
    if command[:2] == ["bash", "-ec"]:
        assert plan.run_time is None
        return
    assert plan.run_time == (None if seconds is None else seconds * SECOND)
    assert plan.exit_code == code
    assert [(at / SECOND, text) for at, text in plan.lines] == lines


@pytest.mark.parametrize(
    ("annotations", "seconds", "code", "problems"),
    [
        ({"pumice.dev/run-time": "5s"}, 5, 0, 0),
        ({"pumice.dev/run-time": "5s", "pumice.dev/exit": "failed"}, 5, 1, 0),
        ({"pumice.dev/run-time": "5s", "pumice.dev/exit-code": "7"}, 5, 7, 0),
        ({"pumice.dev/exit-code": "7"}, 0, 7, 0),
        ({"pumice.dev/run-time": "soon"}, None, 0, 1),
        ({"pumice.dev/run-time": "5s", "pumice.dev/exit-code": "999"}, 5, 0, 1),
        ({"pumice.dev/run-time": "5s", "pumice.dev/exit": "perhaps"}, 5, 0, 1),
    ],
)
def test_annotations_count_before_commands(annotations, seconds, code, problems):
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [container("sleep", "99")]}}
    plan, told = plans.of_pod(pod)
    assert plan.run_time == (None if seconds is None else seconds * SECOND)
    assert (plan.exit_code, len(told)) == (code, problems)


def test_a_pod_ends_with_its_last_container_and_badly_if_one_did():
    plan, _ = plans.of_pod(
        {"metadata": {}, "spec": {"containers": [container("sleep", "3"), container("sh", "-c", "sleep 9; exit 2")]}}
    )
    assert (plan.run_time, plan.exit_code) == (9 * SECOND, 2)


def test_a_file_of_pools_is_nodes_and_hyper_nodes(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(
        "pools:\n"
        "- {name: gpu, count: 5, cpu: 64, resources: {nvidia.com/gpu: 8}, labels: {a: b}, zones: 2, hyperNodes: 2,"
        " taints: [{key: gpu, effect: NoSchedule}]}\n"
    )
    (pool,) = pools.read(path)
    nodes = list(pools.nodes(pool, 0, 1))
    assert [node["metadata"]["name"] for node in nodes] == [f"gpu-{index}" for index in range(5)]
    assert nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert nodes[0]["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {"zone-0", "zone-1"}
    members = [
        [each["selector"]["exactMatch"]["name"] for each in hyper["spec"]["members"]]
        for hyper in pools.hyper_nodes(pool)
    ]
    assert members == [["gpu-0", "gpu-1"], ["gpu-2", "gpu-3", "gpu-4"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pools: [{name: a, count: 0}]", "count is 0"),
        ("pools: [{name: a, cpus: 3}]", "cpus"),
        ("pools: [{name: a, cpu: many}]", "cpu"),
        ("pools: [{name: a, hyperNodes: 2}]", "hyperNodes is 2"),
        ("pools: [{name: a, taints: [{key: x, effect: Never}]}]", "Never"),
        ("pools: [{name: a}, {name: a}]", "same name"),
        ("nodes: 3", "pools"),
        ("pools: [", "pools.yaml"),
    ],
)
def test_a_pool_that_cannot_be_made_is_refused_with_the_field(tmp_path, text, words):
    path = tmp_path / "pools.yaml"
    path.write_text(text)
    with pytest.raises(pools.PoolError, match=words):
        pools.read(path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo $INDEX of ${TOTAL}", "3 of 5"),
        ('echo "pod $NAME, $TIER"', "pod p-3, gold"),
        ("echo '$INDEX' $NOBODY.", "$INDEX ."),
        (r"echo \$INDEX $HOSTNAME", "$INDEX p-3"),
        ("echo $(INDEX)", "3"),
        ("echo $BAD", "$BAD"),
    ],
)
def test_a_script_knows_the_environment_of_its_container(script, said):
    annotations = {"batch.kubernetes.io/job-completion-index": "3"}
    pod = {"metadata": {"name": "p-3", "labels": {"tier": "gold"}, "annotations": annotations}}
    by_field = {"INDEX": "metadata.annotations['batch.kubernetes.io/job-completion-index']", "NAME": "metadata.name", "TIER": "metadata.labels['tier']"}  # fmt: skip
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in by_field.items()]
    env += [{"name": "TOTAL", "value": "5"}, {"name": "BAD", "value": "x; exit 1"}]
    plan = plans.of_container({**container("sh", "-c", script), "env": env}, pod)
    assert [text for _, text in plan.lines] == [said]
    assert (plan.run_time, plan.exit_code) == (0, 0)


def test_a_command_refers_to_variables_without_a_shell():
    given = {**container("sleep", "$(LONG)"), "env": [{"name": "LONG", "value": "7"}]}
    assert plans.of_container(given, {}).run_time == 7_000_000
