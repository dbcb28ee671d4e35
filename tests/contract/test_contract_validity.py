"""Objects that no API server takes, and how it says so: in the same words on `pumice up` and on a real one."""

from __future__ import annotations

import pytest

CONTAINER = {"name": "a", "image": "x"}
ONCE = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
LABELLED = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"a": "b"}}
GOOD = {
    "pods": ("/api/v1", {"containers": [CONTAINER]}),
    "services": ("/api/v1", {"ports": [{"port": 80}]}),
    "limitranges": ("/api/v1", {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}),
    "resourcequotas": ("/api/v1", {"hard": {"pods": "1"}}),
    "persistentvolumeclaims": ("/api/v1", {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}),
    "deployments": ("/apis/apps/v1", {"selector": SELECTOR, "template": LABELLED}),
    "statefulsets": ("/apis/apps/v1", {"selector": SELECTOR, "template": LABELLED, "serviceName": "s", "replicas": 0}),
    "jobs": ("/apis/batch/v1", {"template": ONCE}),
    "cronjobs": ("/apis/batch/v1", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}),
    "poddisruptionbudgets": ("/apis/policy/v1", {"selector": SELECTOR, "minAvailable": 1}),
}  # fmt: skip
REFUSED = [
    ("containers", {"ports": [{"containerPort": 0}]}, "spec.containers[0].ports[0].containerPort: Required value"),
    ("containers", {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]}, 'spec.containers[0].ports[1].name: Duplicate value: "a"'),
    ("containers", {"env": [{"name": "a=b"}]}, 'spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than \'=\''),
    ("containers", {"env": [{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}, 'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'),
    ("containers", {"volumeMounts": [{"name": "q", "mountPath": "/a"}]}, 'spec.containers[0].volumeMounts[0].name: Not found: "q"'),
    ("pods", {"volumes": [{"name": "v"}, {"name": "v", "emptyDir": {}}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
    ("pods", {"volumes": [{"name": "A_", "emptyDir": {}}]}, 'spec.volumes[0].name: Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and'),
    ("pods", {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]}, "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"),
    ("containers", {"resources": {"limits": {"foo": "1"}}}, '[spec.containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified,'),
    ("containers", {"resources": {"requests": {"nvidia.com/gpu": "1"}}}, "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"),
    ("containers", {"resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}}, 'spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'),
    ("containers", {"resources": {"limits": {"nvidia.com/gpu": "1.5"}}}, '[spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer,'),
    ("containers", {"resources": {"limits": {"memory": "-1"}}}, '[spec.containers[0].resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0, spec.containers[0].resources.requests[memory]:'),
    ("pods", {"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, \'-\', \'_\' or \'.\', and must start and end with an'),
    ("pods", {"nodeSelector": {"a": "c d"}}, 'spec.nodeSelector: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, \'-\', \'_\' or \'.\', and must start'),
    ("pods", {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}]}, "[spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero, spec.topologySpreadConstraints[0].topologyKey: Required"),
    ("pods", {"tolerations": [{"operator": "Exists", "value": "x"}]}, 'spec.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is \'Exists\''),
    ("pods", {"tolerations": [{"operator": "Equal", "value": "x"}]}, 'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"'),
    ("pods", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"),
    ("pods", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}}, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be"),
    ("pods", {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 200, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}}, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 200: must be in the range 1-100"),
    ("pods", {"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    ("pods", {"schedulingGates": [{"name": "a"}, {"name": "a"}]}, 'spec.schedulingGates[1]: Duplicate value: "a"'),
    ("pods", {"nodeName": "x", "schedulingGates": [{"name": "a"}]}, "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"),
    ("pods", {"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Sometimes"}]}, 'spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'),
    ("pods", {"hostname": "A_"}, 'spec.hostname: Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and end with'),
    ("deployments", {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}, "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"),
    ("deployments", {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}, "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"),
    ("deployments", {"strategy": {"rollingUpdate": {"maxSurge": "x"}}}, 'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending \'%\''),
    ("deployments", {"strategy": {"rollingUpdate": {"maxUnavailable": "200%"}}}, 'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%'),
    ("deployments", {"revisionHistoryLimit": -1}, "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    ("deployments", {"minReadySeconds": -1}, "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"),
    ("deployments", {"progressDeadlineSeconds": 1, "minReadySeconds": 2}, "spec.progressDeadlineSeconds: Invalid value: 1: must be greater than minReadySeconds"),
    ("jobs", {"completionMode": "Indexed", "completions": 1000000, "parallelism": 1000000}, "spec.parallelism: Invalid value: 1000000: must be less than or equal to 100000 when completion mode is Indexed"),
    ("jobs", {"podReplacementPolicy": "Foo"}, 'spec.podReplacementPolicy: Unsupported value: "Foo": supported values: "Failed", "TerminatingOrFailed"'),
    ("jobs", {"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
    ("cronjobs", {"schedule": ""}, "spec.schedule: Required value"),
    ("cronjobs", {"schedule": "TZ=UTC * * * * *"}, 'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead'),
    ("cronjobs", {"schedule": "* * * * * *"}, 'spec.schedule: Invalid value: "* * * * * *": expected exactly 5 fields, found 6: [* * * * * *]'),
    ("cronjobs", {"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'),
    ("cronjobs", {"timeZone": "Local"}, 'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'),
    ("cronjobs", {"timeZone": "Mars/X"}, 'spec.timeZone: Invalid value: "Mars/X": unknown time zone Mars/X'),
    ("cronjobs", {"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"),
    ("cronjobs", {"successfulJobsHistoryLimit": -1}, "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    ("cronjobs", {"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    ("cronjobs", {"concurrencyPolicy": "Bad"}, 'spec.concurrencyPolicy: Unsupported value: "Bad": supported values: "Allow", "Forbid", "Replace"'),
    ("cronjobs", {"jobTemplate": {"spec": {"parallelism": -1, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}}}}, "spec.jobTemplate.spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
    ("cronjobs", {"jobTemplate": {"spec": {"manualSelector": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}}}}, 'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"'),
    ("limitranges", {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}}]}, 'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1'),
    ("limitranges", {"limits": [{"type": "Pod", "default": {"cpu": "1"}}]}, "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"),
    ("limitranges", {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}]}, 'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'),
    ("limitranges", {"limits": [{"type": "Container", "min": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "9"}, "max": {"cpu": "4"}}]}, 'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "9": ratio 9 is greater than max/min = 2.000000'),
    ("poddisruptionbudgets", {"minAvailable": -1}, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
    ("poddisruptionbudgets", {"minAvailable": "x"}, 'spec.minAvailable: Invalid value: "x": a valid percent string must be a numeric string followed by an ending \'%\''),
    ("poddisruptionbudgets", {"maxUnavailable": "200%"}, 'spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%'),
    ("resourcequotas", {"hard": {"pods": "-1"}}, 'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'),
    ("resourcequotas", {"hard": {"foo": "1"}}, '[spec.hard[foo]: Invalid value: "foo": must be a standard resource type or fully qualified, spec.hard[foo]: Invalid value: "foo": must be a standard'),
    ("resourcequotas", {"hard": {"pods": "1.5"}}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
    ("services", {"ports": []}, "spec.ports: Required value"),
    ("services", {"ports": [{"port": 80}, {"port": 81}]}, "[spec.ports[0].name: Required value, spec.ports[1].name: Required value]"),
    ("services", {"type": "Foo"}, 'spec.type: Unsupported value: "Foo": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
    ("services", {"clusterIP": "x"}, 'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address,'),
    ("persistentvolumeclaims", {}, "[spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value]"),
]  # fmt: skip
FIXED = [{"serviceName": "q"}, {"podManagementPolicy": "Parallel"}]


def sent(server, plural, spec, method="POST", name=""):
    """Send an object that is not to be kept; give the code and the message of the answer."""
    group, _ = GOOD[plural]
    path = f"{group}/namespaces/default/{plural}{name}?dryRun=All"
    body = {"metadata": {"name": "wrong"}, "spec": spec} if method == "POST" else {"spec": spec}
    kind = {} if method == "POST" else {"content_type": "application/merge-patch+json"}
    code, found = server.answer(method, path, body, **kind)
    return code, found.get("message", "")


@pytest.mark.parametrize("plural", sorted(GOOD))
def test_what_the_table_starts_from_is_taken(server, plural):
    assert sent(server, plural, GOOD[plural][1])[0] == 201


@pytest.mark.parametrize(("plural", "fields", "words"), REFUSED)
def test_a_field_that_is_wrong_is_named_in_the_words_of_kubernetes(server, plural, fields, words):
    if plural == "containers":
        plural, fields = "pods", {"containers": [CONTAINER | fields]}
    base = {} if plural in ("limitranges", "resourcequotas", "persistentvolumeclaims") else GOOD[plural][1]
    if plural == "poddisruptionbudgets":
        base = {"selector": SELECTOR}
    code, message = sent(server, plural, base | fields)
    assert code == 422
    assert f" is invalid: {words}" in message


@pytest.mark.parametrize("change", FIXED)
def test_most_of_a_stateful_set_stays_as_it_is(server, change):
    namespace = server.new_namespace()
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    server.call("POST", path, {"metadata": {"name": "s"}, "spec": GOOD["statefulsets"][1]})
    code, found = server.answer("PATCH", f"{path}/s", {"spec": change}, content_type="application/merge-patch+json")
    assert code == 422
    assert "spec: Forbidden: updates to statefulset spec for fields other than 'replicas'" in found["message"]


def test_a_limit_range_requests_by_default_what_it_limits_by_default(server):
    namespace = server.new_namespace()
    limits = [{"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2", "memory": "1Gi"}}]
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    [found] = server.call("POST", path, {"metadata": {"name": "l"}, "spec": {"limits": limits}})["spec"]["limits"]
    assert found["default"] == found["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}


def test_a_pod_that_asks_for_more_than_a_range_gives_it_is_refused(server):
    namespace = server.new_namespace()
    limits = [{"type": "Container", "default": {"cpu": "1"}}]
    server.call(
        "POST", f"/api/v1/namespaces/{namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    )
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER | {"resources": {"requests": {"cpu": "2"}}}]}}

    def refused():
        code, found = server.answer("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
        return code == 422 and found["message"]

    assert any(refused() for _ in range(500))  # a real server hears of a limit range a moment later
    assert 'requests: Invalid value: "2": must be less than or equal to cpu limit of 1' in refused()
