"""What the API server fills in for built-in kinds when their author leaves it out. Manifests are changed in place."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from pumice.sim import filling, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Document = dict[str, Any]
_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill(manifest: Document, group: str, kind: str) -> None:
    """Fill in the defaults of a built-in kind."""
    function = _FILLERS.get((group, kind))
    if function is not None:
        function(manifest)


def _set(parent: Document, **values: Any) -> None:
    for name, value in values.items():
        if parent.get(name) is None:
            parent[name] = value


def _child(parent: Document, name: str) -> Document:
    found = parent.get(name)
    if not isinstance(found, dict):
        found = parent[name] = {}
    return found


def _each(parent: Document, name: str) -> Iterator[Document]:
    found = parent.get(name)
    return (each for each in found if isinstance(each, dict)) if isinstance(found, list) else iter(())


# ---- pods and their templates


def _pod(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    pod_spec(spec)
    _set(spec, enableServiceLinks=True)
    filling.requests(spec)
    _set(spec, serviceAccountName="default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    _tolerate(spec)
    _child(manifest, "status").setdefault("phase", "Pending")
    manifest["status"].setdefault("qosClass", quality(spec))


def mark_gated(pod: Document, moment: str) -> None:
    """Say of a new pod with gates that nobody schedules it."""
    status = structure.mapping(pod, "status")
    if structure.mapping(pod, "spec").get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": None,
            "lastTransitionTime": moment,
        }
        pod["status"] = {**status, "conditions": [*(status.get("conditions") or ()), condition]}


def _tolerate(spec: Document) -> None:
    """Let a pod stay five minutes on a node that fails, as admission does, unless it says otherwise."""
    tolerations = list(_each(spec, "tolerations"))
    for taint in _UNREACHABLE:
        if not any(_tolerates(each, taint) for each in tolerations):
            tolerations.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _tolerates(toleration: Document, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")


def pod_spec(spec: Document) -> None:
    """Fill in what pods and templates of pods share."""
    _set(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
    )
    _child(spec, "securityContext")
    for container in (*_each(spec, "initContainers"), *_each(spec, "containers")):
        _container(container)
    for volume in _each(spec, "volumes"):
        _volume(volume)


def _container(container: Document) -> None:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    fresh = "@" not in image and tag in ("", "latest")
    _set(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if fresh else "IfNotPresent",
    )
    _child(container, "resources")
    for port in _each(container, "ports"):
        _set(port, protocol="TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(found := container.get(probe), dict):
            _set(found, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            if isinstance(http := found.get("httpGet"), dict):
                _set(http, path="/", scheme="HTTP")
    for variable in _each(container, "env"):
        if isinstance(field := structure.mapping(variable, "valueFrom").get("fieldRef"), dict):
            _set(field, apiVersion="v1")


def _volume(volume: Document) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "projected", "downwardAPI"):
        if isinstance(found := volume.get(source), dict):
            _set(found, defaultMode=420)
    if isinstance(path := volume.get("hostPath"), dict):
        path.setdefault("type", "")


def quality(spec: Document) -> str:
    """Give a pod's class of service."""
    containers = [*_each(spec, "containers"), *_each(spec, "initContainers")]
    whole = structure.mapping(spec, "resources")
    # What is stated for the pod as a whole is what counts, where it is.
    amounts = [whole] if whole else [structure.mapping(each, "resources") for each in containers]
    if not any(each.get("requests") or each.get("limits") for each in amounts):
        return "BestEffort"
    even = all(
        structure.mapping(each, "limits").get(name) is not None
        and structure.mapping(each, "requests").get(name, each["limits"][name]) == each["limits"][name]
        for each in amounts
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if even else "Burstable"


def _template(spec: Document) -> None:
    template = _child(spec, "template")
    _child(template, "metadata")
    pod_spec(_child(template, "spec"))


# ---- what makes pods


def _deployment(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _child(spec, "strategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)
    _child(manifest, "status")


def _replica_set(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, replicas=1)
    _template(spec)
    _child(manifest, "status").setdefault("replicas", 0)


def _replication_controller(manifest: Document) -> None:
    _replica_set(manifest)
    spec = manifest["spec"]
    labels = structure.mapping(spec, "template", "metadata", "labels")
    if labels:
        _set(spec, selector=dict(labels))


def _stateful_set(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    strategy = _child(spec, "updateStrategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_child(strategy, "rollingUpdate"), partition=0)
    _set(_child(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    for claim in _each(spec, "volumeClaimTemplates"):
        _claim(claim)
        _set(claim, apiVersion="v1", kind="PersistentVolumeClaim")
    _template(spec)
    _set(_child(manifest, "status"), replicas=0, availableReplicas=0)


def _daemon_set(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, revisionHistoryLimit=10)
    strategy = _child(spec, "updateStrategy")
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(_child(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _template(spec)
    status = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
    _set(_child(manifest, "status"), **status)


def _job(manifest: Document) -> None:
    job_spec(_child(manifest, "spec"))
    labels = structure.mapping(manifest, "spec", "template", "metadata").get("labels")
    if labels and not manifest["metadata"].get("labels"):
        manifest["metadata"]["labels"] = labels  # the same map: what selects the pods will be in both
    _child(manifest, "status")


def job_spec(spec: Document) -> None:
    """Fill in what Jobs and the templates of CronJobs share."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    failing = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _set(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy=failing,
    )
    _template(spec)


def _cron_job(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = _child(spec, "jobTemplate")
    _child(template, "metadata")
    pods = _child(_child(_child(template, "spec"), "template"), "spec")
    _child(template["spec"]["template"], "metadata")
    pod_spec(pods)
    _child(manifest, "status")


# ---- the rest


def _service(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] != "ExternalName":
        _set(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _set(
            spec,
            externalTrafficPolicy="Cluster",
            **({"allocateLoadBalancerNodePorts": True} if spec["type"] == "LoadBalancer" else {}),
        )
    for port in _each(spec, "ports"):
        _set(port, protocol="TCP", targetPort=port.get("port"))
    _child(_child(manifest, "status"), "loadBalancer")


def _claim(manifest: Document) -> None:
    _set(_child(manifest, "spec"), volumeMode="Filesystem")
    _set(_child(manifest, "status"), phase="Pending")


def _persistent_volume(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    _set(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if isinstance(reference := spec.get("claimRef"), dict):
        _set(reference, kind="PersistentVolumeClaim", apiVersion="v1")
    if isinstance(path := spec.get("hostPath"), dict):
        path.setdefault("type", "")
    filling.volume(manifest)


def _storage_class(manifest: Document) -> None:
    _set(manifest, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _namespace(manifest: Document) -> None:
    filling.namespace(manifest)
    _set(_child(manifest, "spec"), finalizers=["kubernetes"])


def _node(manifest: Document) -> None:
    filling.node(manifest)
    _child(manifest, "spec")


def _secret(manifest: Document) -> None:
    _set(manifest, type="Opaque")
    texts = manifest.pop("stringData", None)
    if isinstance(texts, dict):
        data = _child(manifest, "data")
        data.update({name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()})


def _priority_class(manifest: Document) -> None:
    _set(manifest, preemptionPolicy="PreemptLowerPriority")


def _role_binding(manifest: Document) -> None:
    if isinstance(reference := manifest.get("roleRef"), dict):
        _set(reference, apiGroup="rbac.authorization.k8s.io")
    for subject in _each(manifest, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            _set(subject, apiGroup="rbac.authorization.k8s.io")


def _quota(manifest: Document) -> None:
    status = _child(manifest, "status")
    hard = structure.mapping(manifest, "spec", "hard")
    _set(status, hard=dict(hard))


def _limit_range(manifest: Document) -> None:
    """Let the default be the maximum, and what is requested by default the default, as LimitRanges do."""
    for limit in _each(_child(manifest, "spec"), "limits"):
        if limit.get("type") != "Container":
            continue
        default = _child(limit, "default")
        for name, amount in structure.mapping(limit, "max").items():
            default.setdefault(name, amount)
        request = _child(limit, "defaultRequest")
        for name, amount in (*default.items(), *structure.mapping(limit, "min").items()):
            request.setdefault(name, amount)
        for name in ("default", "defaultRequest"):
            if not limit[name]:
                del limit[name]


def _budget(manifest: Document) -> None:
    _set(_child(manifest, "status"), disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0, expectedPods=0)


def _definition(manifest: Document) -> None:
    spec = _child(manifest, "spec")
    names = _child(spec, "names")
    kind = str(names.get("kind", ""))
    _set(names, singular=kind.lower(), listKind=f"{kind}List")
    _set(_child(spec, "conversion"), strategy="None")


def _webhooks(manifest: Document) -> None:
    for webhook in _each(manifest, "webhooks"):
        _set(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        _set(webhook, namespaceSelector={}, objectSelector={})
        if manifest.get("kind") == "MutatingWebhookConfiguration":
            _set(webhook, reinvocationPolicy="Never")
        for rule in _each(webhook, "rules"):
            _set(rule, scope="*")
        if isinstance(service := _child(webhook, "clientConfig").get("service"), dict):
            _set(service, port=443)


def _device_claim(manifest: Document) -> None:
    _device_requests(_child(manifest, "spec"))


def _device_claim_template(manifest: Document) -> None:
    _device_requests(_child(_child(manifest, "spec"), "spec"))


def _device_requests(spec: Document) -> None:
    for request in _each(_child(spec, "devices"), "requests"):
        exactly = request.get("exactly")
        for each in (*([exactly] if isinstance(exactly, dict) else ()), *_each(request, "firstAvailable")):
            _set(each, allocationMode="ExactCount")
            if each["allocationMode"] == "ExactCount":
                _set(each, count=1)
            for toleration in _each(each, "tolerations"):
                _set(toleration, operator="Equal")


def _pod_group(manifest: Document) -> None:
    _set(_child(manifest, "spec"), disruptionMode="Pod")


_FILLERS: Final[dict[tuple[str, str], Callable[[Document], None]]] = {
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _template,
    ("", "ReplicationController"): _replication_controller,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("scheduling.k8s.io", "PodGroup"): _pod_group,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _budget,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _role_binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): _role_binding,
    ("resource.k8s.io", "ResourceClaim"): _device_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): _device_claim_template,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
