"""Templates of pods: what kube-apiserver would refuse of the pods is refused of the job, at the field."""

from __future__ import annotations

import pytest
from admission_objects import container, edited, job, refusals

POD = ("spec", "tasks", 0, "template", "spec")
FIRST = (*POD, "containers", 0)
AT = "spec.tasks[0].template"
MAIN = f"{AT}.spec.containers[0]"


def amounts(requests: dict | None = None, limits: dict | None = None) -> dict:
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}


BROKEN = [
    ((*POD, "containers"), [], f"{AT}.spec.containers", "at least one container"),
    ((*POD, "containers"), "x", f"{AT}.spec.containers", "must be a list"),
    ((*FIRST, "name"), "Main", f"{MAIN}.name", "lower-case"),
    ((*FIRST, "name"), "", f"{MAIN}.name", "missing"),
    ((*FIRST, "image"), "", f"{MAIN}.image", "missing"),
    ((*FIRST, "image"), " busybox", f"{MAIN}.image", "space"),
    ((*FIRST, "imagePullPolicy"), "Sometimes", f"{MAIN}.imagePullPolicy", "one of Always, IfNotPresent, Never"),
    ((*FIRST, "command"), "sleep 1", f"{MAIN}.command", "must be a list"),
    ((*FIRST, "args"), [1], f"{MAIN}.args[0]", "must be a string"),
    ((*POD, "containers"), [container(), container()], f"{AT}.spec.containers[1].name", "containers[0] is called already"),
    ((*POD, "initContainers"), [container()], f"{MAIN}.name", "initContainers[0] is called already"),
    # amounts
    ((*FIRST, "resources"), amounts({"cpu": "2"}, {"cpu": "1"}), f"{MAIN}.resources.requests.cpu", "is 2, above the limit of 1"),
    ((*FIRST, "resources"), amounts({"cpu": "1x"}), f"{MAIN}.resources.requests.cpu", "no quantity"),
    ((*FIRST, "resources"), amounts({"cpu": "-1"}), f"{MAIN}.resources.requests.cpu", "is -1, and must be at least 0"),
    ((*FIRST, "resources"), amounts({"gpu": "1"}), f"{MAIN}.resources.requests.gpu", "no resource of a container"),
    ((*FIRST, "resources"), amounts({"nvidia.com/gpu": "1"}), f"{MAIN}.resources.requests[nvidia.com/gpu]", "needs a limit"),
    ((*FIRST, "resources"), amounts({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}), f"{MAIN}.resources.requests[nvidia.com/gpu]", "must equal its limit of 2"),
    ((*FIRST, "resources"), amounts(None, {"nvidia.com/gpu": "500m"}), f"{MAIN}.resources.limits[nvidia.com/gpu]", "whole number"),
    ((*FIRST, "resources"), amounts(None, {"hugepages-2Mi": "4Mi"}), f"{MAIN}.resources.limits.hugepages-2Mi", "needs cpu or memory"),
    ((*FIRST, "resources"), amounts({"memory": True}), f"{MAIN}.resources.requests.memory", "must be an amount"),
    # ports
    ((*FIRST, "ports"), [{"containerPort": 70000}], f"{MAIN}.ports[0].containerPort", "is 70000, and must be at most 65535"),
    ((*FIRST, "ports"), [{"name": "web"}], f"{MAIN}.ports[0].containerPort", "missing"),
    ((*FIRST, "ports"), [{"containerPort": 1, "name": "far-too-long-a-name"}], f"{MAIN}.ports[0].name", "at most 15"),
    ((*FIRST, "ports"), [{"containerPort": 1, "name": "80"}], f"{MAIN}.ports[0].name", "must hold a letter"),
    ((*FIRST, "ports"), [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}], f"{MAIN}.ports[1].name", "ports[0] is called already"),
    ((*FIRST, "ports"), [{"containerPort": 1, "protocol": "HTTP"}], f"{MAIN}.ports[0].protocol", "one of TCP"),
    ((*FIRST, "ports"), [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}], f"{MAIN}.ports[1].hostPort", "is 9, which containers[0].ports[0] holds already"),
    # variables
    ((*FIRST, "env"), [{"value": "x"}], f"{MAIN}.env[0].name", "missing"),
    ((*FIRST, "env"), [{"name": "A=B"}], f"{MAIN}.env[0].name", "other than ="),
    ((*FIRST, "env"), [{"name": "A", "value": 1}], f"{MAIN}.env[0].value", "put quotes around it"),
    ((*FIRST, "env"), [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}], f"{MAIN}.env[0].valueFrom", "together with value"),
    ((*FIRST, "env"), [{"name": "A", "valueFrom": {}}], f"{MAIN}.env[0].valueFrom", "exactly one of"),
    ((*FIRST, "env"), [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}], f"{MAIN}.env[0].valueFrom.secretKeyRef.key", "missing"),
    ((*FIRST, "envFrom"), [{}], f"{MAIN}.envFrom[0]", "exactly one of configMapRef and secretRef"),
    # mounts and volumes
    ((*FIRST, "volumeMounts"), [{"name": "data", "mountPath": "/d"}], f"{MAIN}.volumeMounts[0].name", "no volume of that name"),
    ((*POD, "volumes"), [{"name": "a", "emptyDir": {}}, {"name": "a"}], f"{AT}.spec.volumes[1].name", "called already"),
    ((*POD, "volumes"), [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}], f"{AT}.spec.volumes[0]", "one source, not 2"),
    ((*POD, "volumes"), [{"name": "a", "hostPath": {}}], f"{AT}.spec.volumes[0].hostPath.path", "missing"),
    ((*POD, "volumes"), [{"name": "a", "hostpath": {"path": "/"}}], f"{AT}.spec.volumes[0].hostpath", "did you mean hostPath?"),
    ((*POD, "volumes"), [{"name": "a", "persistentVolumeClaim": {}}], f"{AT}.spec.volumes[0].persistentVolumeClaim.claimName", "missing"),
    ((*POD, "volumes"), [{"name": "a", "emptyDir": {"sizeLimit": "big"}}], f"{AT}.spec.volumes[0].emptyDir.sizeLimit", "no quantity"),
    ((*POD, "volumes"), [{"name": "A", "emptyDir": {}}], f"{AT}.spec.volumes[0].name", "lower-case"),
    # life
    ((*POD, "restartPolicy"), "Once", f"{AT}.spec.restartPolicy", "one of Always, OnFailure, Never"),
    ((*POD, "dnsPolicy"), "Fast", f"{AT}.spec.dnsPolicy", "one of ClusterFirst"),
    ((*POD, "dnsPolicy"), "None", f"{AT}.spec.dnsConfig.nameservers", "at least one server"),
    ((*POD, "terminationGracePeriodSeconds"), -1, f"{AT}.spec.terminationGracePeriodSeconds", "is -1"),
    ((*POD, "activeDeadlineSeconds"), 0, f"{AT}.spec.activeDeadlineSeconds", "is 0"),
    ((*POD, "ephemeralContainers"), [container()], f"{AT}.spec.ephemeralContainers", "cannot be given"),
    ((*POD, "hostname"), "a.b", f"{AT}.spec.hostname", "lower-case"),
    ((*POD, "serviceAccountName"), "A", f"{AT}.spec.serviceAccountName", "lower-case"),
    ((*POD, "securityContext"), {"runAsUser": -1}, f"{AT}.spec.securityContext.runAsUser", "is -1"),
    ((*POD, "initContainers"), [{"name": "i", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}}}], f"{AT}.spec.initContainers[0].livenessProbe", "restartPolicy is Always"),
    ((*FIRST, "livenessProbe"), {}, f"{MAIN}.livenessProbe", "exactly one of exec"),
    ((*FIRST, "livenessProbe"), {"httpGet": {"path": "/"}}, f"{MAIN}.livenessProbe.httpGet.port", "missing"),
    ((*FIRST, "readinessProbe"), {"tcpSocket": {"port": 0}}, f"{MAIN}.readinessProbe.tcpSocket.port", "is 0"),
    # places
    ((*POD, "nodeSelector"), {"gpu": True}, f"{AT}.spec.nodeSelector.gpu", "put quotes around"),
    ((*POD, "nodeSelector"), {"a b": "c"}, f"{AT}.spec.nodeSelector[a b]", "no key of a label"),
    ((*POD, "tolerations"), [{"operator": "Equal", "value": "x"}], f"{AT}.spec.tolerations[0].operator", "must be Exists"),
    ((*POD, "tolerations"), [{"key": "a", "operator": "Exists", "value": "x"}], f"{AT}.spec.tolerations[0].value", "must be empty"),
    ((*POD, "tolerations"), [{"key": "a", "effect": "No"}], f"{AT}.spec.tolerations[0].effect", "one of NoSchedule"),
    ((*POD, "affinity"), {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}, f"{AT}.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", "at least one term"),
    ((*POD, "affinity"), {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}, f"{AT}.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey", "missing"),
    ((*POD, "affinity"), {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}}, f"{AT}.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "is 101"),
    ((*POD, "topologySpreadConstraints"), [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}], f"{AT}.spec.topologySpreadConstraints[0].maxSkew", "is 0"),
    # metadata
    (("spec", "tasks", 0, "template", "metadata"), {"labels": {"a": "b c"}}, f"{AT}.metadata.labels.a", "the value of a label"),
    (("spec", "tasks", 0, "template", "metadata"), {"annotations": {"a": 1}}, f"{AT}.metadata.annotations.a", "must be a string"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "field", "message"), BROKEN, ids=[f"{case[2]}-{case[3][:20]}" for case in BROKEN]
)
def test_a_template_is_refused_where_its_pods_would_be(path, value, field, message):
    found = refusals(edited(job(), path, value))

    assert [(where, message in text) for where, text in found] == [(field, True)], found


VALID = [
    ((*FIRST, "resources"), amounts({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "nvidia.com/gpu": 2})),
    ((*FIRST, "resources"), amounts({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"})),
    ((*FIRST, "ports"), [{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}]),
    ((*FIRST, "env"), [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    ((*POD, "initContainers"), [{"name": "side", "image": "x", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": "http"}}}]),
    ((*POD, "tolerations"), [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3}]),
    ((*POD, "volumes"), [{"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "b", "configMap": {"name": "c"}}]),
    ((*POD, "restartPolicy"), "OnFailure"),
    ((*POD, "initContainers"), [{"name": "first", "image": "x", "restartPolicy": "Never"}]),
    ((*POD, "volumes"), [{"name": "a", "sourceOfTheFuture": {}}]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), VALID)
def test_a_template_that_makes_pods_is_let_in(path, value):
    assert refusals(edited(job(), path, value)) == []


def test_hosts_ports_equal_those_of_containers_on_the_hosts_network():
    pod = edited(job(), (*FIRST, "ports"), [{"containerPort": 80, "hostPort": 81}])

    assert refusals(pod) == []
    assert [field for field, _ in refusals(edited(pod, (*POD, "hostNetwork"), True))] == [f"{MAIN}.ports[0].hostPort"]


def test_mounts_are_found_by_name_and_lie_apart():
    pod = edited(job(), (*POD, "volumes"), [{"name": "data", "emptyDir": {}}])
    good = [{"name": "data", "mountPath": "/a", "subPath": "x/y"}, {"name": "data", "mountPath": "/b"}]

    assert refusals(edited(pod, (*FIRST, "volumeMounts"), good)) == []
    wrong = [{"name": "dta", "mountPath": "/a"}, {"name": "data", "mountPath": "/a", "subPath": "../x"}]
    assert refusals(edited(pod, (*FIRST, "volumeMounts"), wrong)) == [
        (f"{MAIN}.volumeMounts[0].name", 'is "dta", and the pod has no volume of that name; did you mean data?'),
        (f"{MAIN}.volumeMounts[1].mountPath", 'is "/a", which volumeMounts[0] mounts already'),
        (f"{MAIN}.volumeMounts[1].subPath", 'is "../x", and may not hold ..'),
    ]
