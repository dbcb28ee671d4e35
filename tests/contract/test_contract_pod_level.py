"""Amounts that are stated for a pod as a whole, and what a binding does to a pod: what is filled in and refused, and that both servers do the same."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/{}/pods"
MERGE = {"content_type": "application/merge-patch+json"}


def container(name="c", **resources):
    return {"name": name, "image": "x", "resources": resources}


def sent(server, spec):
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container()], **spec}}
    return server.answer("POST", f"{PODS.format('default')}?dryRun=All", body)


HALVES = [container("c", requests={"cpu": "500m"}), container("d", requests={"cpu": "700m"})]
WHOLE = {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "requests", "quality"),
    [
        ({"resources": {"limits": WHOLE}}, WHOLE, "Guaranteed"),
        ({"resources": {"limits": WHOLE}, "containers": HALVES}, {"cpu": "1200m", "memory": "1Gi"}, "Burstable"),
        ({"resources": {"requests": {"cpu": "2"}}, "containers": HALVES}, {"cpu": "2"}, "Burstable"),
        (
            {"resources": {"limits": {"cpu": "2"}}, "containers": [container(limits={"cpu": "1", "memory": "1Gi"})]},
            {"cpu": "1", "memory": "1Gi"},
            "Burstable",
        ),
        (
            {
                "resources": {"limits": {"hugepages-2Mi": "4Mi"}},
                "containers": [container(requests={"cpu": "1"})],
            },
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
            "Burstable",
        ),
    ],
)
def test_what_is_left_out_is_filled_in(server, spec, requests, quality):
    code, made = sent(server, spec)
    assert code == 201, made
    assert made["spec"]["resources"]["requests"] == requests
    assert made["status"]["qosClass"] == quality


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"resources": {"requests": {"cpu": "2"}}, "containers": [container(requests={"cpu": "3"})]},
            'spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate container requests of 3',
        ),
        (
            {"resources": {"requests": {"cpu": "2"}}, "initContainers": [container("i", requests={"cpu": "5"})]},
            'spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate container requests of 5',
        ),
        (
            {"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}},
            'spec.resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
        ),
        (
            {
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
                "containers": [container(requests={"cpu": "1"}, limits={"cpu": "3"})],
            },
            'spec.resources.containers[0][cpu].limits: Invalid value: "3": must be less than or equal to pod limits of 2',
        ),
        (
            {"resources": {"requests": {"ephemeral-storage": "2"}}},
            'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
        ),
        (
            {"resources": {"requests": {"cpu": "-3"}}},
            'spec.resources.requests[cpu]: Invalid value: "-3": must be greater than or equal to 0',
        ),
    ],
)
def test_what_is_wrong_is_named_in_the_words_of_kubernetes(server, spec, words):
    code, found = sent(server, spec)
    assert code == 422
    assert words in found["message"]


def test_a_bound_pod_has_the_zone_of_its_node_and_is_nominated_no_more(server):
    namespace = server.new_namespace()
    node = f"n-{namespace}"
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
    server.call("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": {**labels, "other": "x"}}})
    pods = PODS.format(namespace)
    server.call("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [container()]}})
    server.call("PATCH", f"{pods}/p/status", {"status": {"nominatedNodeName": "n7"}}, **MERGE)
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    server.call("POST", f"{pods}/p/binding", target)
    bound = server.call("GET", f"{pods}/p")
    assert bound["metadata"]["labels"] == labels
    assert "nominatedNodeName" not in bound["status"]


def test_a_pod_with_gates_says_so_and_is_not_bound_until_the_last_is_gone(server):
    pods = PODS.format(server.new_namespace())
    gates = [{"name": "x"}, {"name": "y"}]
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container()], "schedulingGates": gates}}
    (condition,) = server.call("POST", pods, body)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    change = {"spec": {"schedulingGates": [{"name": "y"}], "nodeSelector": {"disk": "ssd"}}}
    server.call("PATCH", f"{pods}/p", change, **MERGE)
    assert server.answer("POST", f"{pods}/p/binding", target)[0] == 409
    opened = server.call("PATCH", f"{pods}/p", {"spec": {"schedulingGates": None}}, **MERGE)
    assert opened["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert server.answer("POST", f"{pods}/p/binding", target)[0] == 201
