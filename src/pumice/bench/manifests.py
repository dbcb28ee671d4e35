"""Objects of a workload as an API server lists them: bare ones that hold what is read, and full ones of the size that real ones have."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice.bench.workloads import Cells, Devices

Manifest = dict[str, Any]

NAMESPACE = "bench"
GROUP = "scheduling.volcano.sh/v1beta1"
DRIVER = "devices.example.com"
DEVICE_CLASS = "device"
_CREATED = "2026-01-01T00:00:00Z"
_IMAGES = [
    {"names": [f"registry.example.com/image-{k}@sha256:{k:064x}", f"registry.example.com/image-{k}:v1"], "sizeBytes": 10**8 + k}
    for k in range(20)
]  # fmt: skip
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]


def uid_of(text: str) -> str:
    """Return an identity that is always the same for the same name."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def node_name(index: int) -> str:
    """Name a node."""
    return f"node-{index:05d}"


def queue(name: str, **spec: Any) -> Manifest:
    """Return a Queue."""
    return {
        "apiVersion": GROUP,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
        "status": {"state": "Open"},
    }


def priority_class(value: int) -> Manifest:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"priority-{value}"},
        "value": value,
    }


def node(index: int, cpu: int = 64, memory: int = 256, pods: int = 110, **labels: str) -> Manifest:
    """Return a Node."""
    name = node_name(index)
    amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "zone": f"z{index % 3}", **labels},
            "annotations": {},
        },
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def numatopology(index: int, cpu: int, cells: Cells) -> Manifest:
    """Return the Numatopology of a node, whose cores are those of its cells in turn, two of each core."""
    each = max(1, cpu // cells.count)
    detail = {str(i): {"numa": i // each, "socket": i // each, "core": i // 2} for i in range(each * cells.count)}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": node_name(index)},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": cells.policy},
            "cpuDetail": detail,
            "numares": {"cpu": {"allocatable": f"0-{len(detail) - 1}", "capacity": len(detail)}},
        },
    }


def device_class() -> Manifest:
    """Return the DeviceClass of all devices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [selector]},
    }


def resource_slice(index: int, devices: Devices) -> Manifest:
    """Return the ResourceSlice of a node."""
    name = node_name(index)
    attributes = {key: {"string": value} for key, value in devices.attributes.items()}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "nodeName": name,
            "devices": [{"name": f"device-{number}", "attributes": attributes} for number in range(devices.count)],
        },
    }


def claim(made: Manifest, count: int, expression: str) -> Manifest:
    """Return a claim that was made for a pod, and let the pod know it."""
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    made["spec"]["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": "devices"}]
    made["status"]["resourceClaimStatuses"] = [{"name": "devices", "resourceClaimName": name}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid_of(f"Pod {namespace}/{name}")}
    selectors = [{"cel": {"expression": expression}}] if expression else []
    request = {"name": "devices", "exactly": {"deviceClassName": DEVICE_CLASS, "count": count, "selectors": selectors}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"devices": {"requests": [request]}},
    }


def group(name: str, minimum: int, queue_name: str = "default", phase: str = "Inqueue", **spec: Any) -> Manifest:
    """Return a PodGroup."""
    return {
        "apiVersion": GROUP,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": minimum, "queue": queue_name, **spec},
        "status": {"phase": phase},
    }


def pod(group_name: str, index: int, cpu: str, memory: str, node: str = "", **spec: Any) -> Manifest:
    """Return a Pod, running if it names a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{group_name}-worker-{index}",
            "namespace": NAMESPACE,
            "annotations": {"scheduling.k8s.io/group-name": group_name},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def full_node(bare: Manifest) -> Manifest:
    """Add what a kubelet and a cloud say of a node, images included."""
    metadata, name = bare["metadata"], bare["metadata"]["name"]
    metadata["labels"] |= {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
        "topology.kubernetes.io/region": "north-1",
        "topology.kubernetes.io/zone": f"north-1{metadata['labels']['zone']}",
    }
    metadata["annotations"] |= {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "csi.volume.kubernetes.io/nodeid": f'{{"disk.csi.example.com":"{uid_of(name)}"}}',
    }
    bare["spec"] = {"providerID": f"cloud:///{uid_of(name)}", "podCIDR": "10.0.0.0/24"}
    status = bare["status"]
    status["conditions"] = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": _CREATED,
            "lastTransitionTime": _CREATED,
            "reason": f"KubeletHas{kind}",
            "message": f"kubelet reports {kind}",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    status["images"] = _IMAGES
    status["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}]
    return bare


def full_pod(bare: Manifest, number: int) -> Manifest:
    """Add what a Job controller, admission and a kubelet say of a pod."""
    metadata, spec, status = bare["metadata"], bare["spec"], bare["status"]
    job, index = metadata["annotations"]["scheduling.k8s.io/group-name"], metadata["name"].rsplit("-", 1)[1]
    told = {"volcano.sh/job-name": job, "volcano.sh/queue-name": "default", "volcano.sh/task-index": index}
    metadata["labels"] = {**metadata.get("labels", {}), **told, "volcano.sh/job-namespace": NAMESPACE}
    metadata["annotations"] |= {**told, "volcano.sh/job-version": "0", "volcano.sh/template-uid": f"{job}-worker"}
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": uid_of(f"Job {job}")}
    metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    container = spec["containers"][0]
    token = f"kube-api-access-{number % 0xFFFFF:05x}"
    container["env"] = [{"name": "VC_TASK_INDEX", "value": index}]
    container["volumeMounts"] = [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    container["resources"]["limits"] = container["resources"]["requests"]
    spec |= {"priority": 0, "terminationGracePeriodSeconds": 30, "tolerations": _TOLERATIONS, "restartPolicy": "Never"}
    spec["volumes"] = [{"name": token, "projected": {"defaultMode": 420, "sources": [{"configMap": {"name": "ca"}}]}}]
    if status["phase"] == "Running":
        status |= _run(container["resources"], number)
    return bare


def _run(resources: Manifest, number: int) -> Manifest:
    """Return what a kubelet says of a pod that runs."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    moment = f"2026-01-01T00:00:{number % 60:02d}Z"
    return {
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind in kinds],
        "startTime": moment,
        "podIP": "10.1.0.1",
        "qosClass": "Guaranteed",
        "containerStatuses": [
            {
                "name": "c",
                "ready": True,
                "allocatedResources": resources["requests"],
                "resources": resources,
                "state": {"running": {"startedAt": moment}},
            }
        ],
    }
