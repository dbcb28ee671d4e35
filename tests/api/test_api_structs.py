import subprocess
import sys

import msgspec
import pytest

from pumice.api import core, decoding, kinds

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
NODE_TERM = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
POD_TERM = {
    "labelSelector": SELECTOR,
    "namespaces": ["x"],
    "namespaceSelector": {},
    "topologyKey": "zone",
    "matchLabelKeys": ["h"],
    "mismatchLabelKeys": ["i"],
}
REQUIRED, PREFERRED = (word + "DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
POD_RULES = {REQUIRED: [POD_TERM], PREFERRED: [{"weight": 5, "podAffinityTerm": POD_TERM}]}
RESOURCES = {
    "requests": {"cpu": "500m", "memory": 1024},
    "limits": {"cpu": 1.5},
    "claims": [{"name": "gpu", "request": "r"}],
}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "",
    "volumeMode": "Block",
}

CEL = {"cel": {"expression": "device.driver == 'd'"}}
CONFIG = {"requests": ["r"], "opaque": {"driver": "d", "parameters": {"any": ["thing", 1]}}}
DEVICE_TAINT = {"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
TOLERATION = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
RESOURCE_SLICE = {
    "spec": {
        "driver": "d",
        "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
        "nodeName": "n1",
        "nodeSelector": {"nodeSelectorTerms": [NODE_TERM]},
        "allNodes": True,
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": "g0",
                "attributes": {"a": {"int": 0}, "b": {"bool": False}, "c": {"string": ""}, "e": {"version": "1.2.3"}},
                "capacity": {
                    "memory": {
                        "value": "40Gi",
                        "requestPolicy": {
                            "default": "1Gi",
                            "validValues": ["1Gi", 2],
                            "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"},
                        },
                    }
                },
                "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "1"}}}],
                "nodeName": "n1",
                "nodeSelector": {"nodeSelectorTerms": [NODE_TERM]},
                "allNodes": True,
                "taints": [DEVICE_TAINT],
                "bindsToNode": True,
                "bindingConditions": ["Attached"],
                "bindingFailureConditions": ["Failed"],
                "allowMultipleAllocations": True,
            }
        ],
        "sharedCounters": [{"name": "s", "counters": {"m": {"value": "80Gi"}}}],
    }
}
SUB_REQUEST = {
    "deviceClassName": "gpu",
    "selectors": [CEL],
    "allocationMode": "ExactCount",
    "count": 2,
    "tolerations": [TOLERATION],
    "capacity": {"requests": {"memory": "1Gi"}},
}
CLAIM_SPEC = {
    "devices": {
        "requests": [
            {"name": "r", "exactly": {**SUB_REQUEST, "adminAccess": True}},
            {"name": "q", "firstAvailable": [{"name": "s", **SUB_REQUEST}]},
        ],
        "constraints": [{"requests": ["r"], "matchAttribute": "d/numa", "distinctAttribute": "d/uuid"}],
        "config": [CONFIG],
    }
}
CLAIM_STATUS = {
    "allocation": {
        "devices": {
            "results": [
                {
                    "request": "q/s",
                    "driver": "d",
                    "pool": "p",
                    "device": "g0",
                    "adminAccess": True,
                    "tolerations": [TOLERATION],
                    "bindingConditions": ["Attached"],
                    "bindingFailureConditions": ["Failed"],
                    "shareID": "5",
                    "consumedCapacity": {"memory": "1Gi"},
                }
            ],
            "config": [{**CONFIG, "source": "FromClaim"}],
        },
        "nodeSelector": {"nodeSelectorTerms": [NODE_TERM]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    },
    "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p1", "uid": "u1"}],
    "devices": [
        {
            "driver": "d",
            "pool": "p",
            "device": "g0",
            "shareID": "5",
            "conditions": [{"type": "Attached", "status": "True"}],
        }
    ],
}

POD = {
    "spec": {
        "schedulerName": "volcano",
        "nodeName": "n1",
        "nodeSelector": {"a": "b"},
        "priority": 7,
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": True,
        "hostUsers": False,
        "schedulingGroup": {"podGroupName": "g"},
        "workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"},
        "overhead": {"cpu": "1"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
                PREFERRED: [{"weight": 3, "preference": NODE_TERM}],
            },
            "podAffinity": POD_RULES,
            "podAntiAffinity": POD_RULES,
        },
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
                "minDomains": 2,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["h"],
            }
        ],
        "containers": [
            {
                "name": "c",
                "image": "x:1",
                "resources": RESOURCES,
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}],
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": RESOURCES}],
        "resources": RESOURCES,
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "a", "resourceClaimName": "b"}, {"name": "c", "resourceClaimTemplateName": "d"}],
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
            {"name": "c", "csi": {"driver": "d"}},
            {"name": "d", "image": {"reference": "r"}},
            {"name": "e", "awsElasticBlockStore": {"volumeID": "v"}},
            {"name": "f", "gcePersistentDisk": {"pdName": "p"}},
            {"name": "g", "azureDisk": {"diskName": "n", "diskURI": "u"}},
            {"name": "h", "azureFile": {"shareName": "s", "secretName": "t"}},
            {"name": "i", "cinder": {"volumeID": "v"}},
            {"name": "j", "vsphereVolume": {"volumePath": "p"}},
            {"name": "k", "portworxVolume": {"volumeID": "v"}},
        ],
    },
    "status": {
        "phase": "Running",
        "reason": "r",
        "message": "m",
        "nominatedNodeName": "n2",
        "resources": RESOURCES,
        "allocatedResources": {"cpu": "1"},
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "t"}],
        "containerStatuses": [{"name": "c", "resources": RESOURCES, "allocatedResources": {"cpu": "1"}}],
        "initContainerStatuses": [{"name": "side", "allocatedResources": {"cpu": "1"}}],
        "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}],
    },
}
NODE = {
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4"},
        "capacity": {"cpu": "5"},
        "images": [{"names": ["x:1"], "sizeBytes": 2**31}],
        "declaredFeatures": ["UserNamespacesHostNetworkSupport"],
        "conditions": [{"type": "Ready", "status": "Unknown"}],
    },
}
TOPOLOGY = {"mode": "soft", "highestTierAllowed": 0, "highestTierName": "rack"}
POD_GROUP = {
    "spec": {
        "minMember": 3,
        "minTaskMember": {"w": 2},
        "queue": "q",
        "priorityClassName": "high",
        "minResources": {"cpu": "3"},
        "networkTopology": TOPOLOGY,
        "subGroupPolicy": [
            {
                "name": "p",
                "networkTopology": TOPOLOGY,
                "subGroupSize": 2,
                "minSubGroups": 1,
                "labelSelector": SELECTOR,
                "matchLabelKeys": ["k"],
            }
        ],
    },
    "status": {
        "phase": "Inqueue",
        "running": 1,
        "succeeded": 2,
        "failed": 3,
        "conditions": [
            {
                "type": "Unschedulable",
                "status": "True",
                "transitionID": "t",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "NotEnoughResources",
                "message": "m",
            }
        ],
    },
}
QUEUE = {
    "spec": {
        "weight": 4,
        "capability": {"cpu": 9},
        "reclaimable": False,
        "guarantee": {"resource": {"cpu": "1"}},
        "deserved": {"cpu": "2"},
        "parent": "root",
        "priority": 5,
        "dequeueStrategy": "fifo",
        "type": "t",
        "extendClusters": [{"name": "c", "weight": 2, "capacity": {"cpu": 1}}],
        "affinity": {
            "nodeGroupAffinity": {REQUIRED: ["a"], PREFERRED: ["b"]},
            "nodeGroupAntiAffinity": {REQUIRED: ["c"], PREFERRED: ["d"]},
        },
    },
    "status": {
        "state": "Open",
        "allocated": {"cpu": "1"},
        "unknown": 1,
        "pending": 2,
        "running": 3,
        "inqueue": 4,
        "completed": 5,
        "reservation": {"nodes": ["n"], "resource": {"cpu": "1"}},
    },
}
VOLUME = {
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "s",
        "volumeMode": "Block",
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "a", "name": "c", "uid": "u"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
        "csi": {"driver": "d", "volumeHandle": "h"},
        "volumeAttributesClassName": "v",
    },
    "status": {"phase": "Available"},
}
CASES = [
    (kinds.POD, POD),
    (kinds.NODE, NODE),
    (kinds.POD_GROUP, POD_GROUP),
    (kinds.QUEUE, QUEUE),
    (kinds.PERSISTENT_VOLUME, VOLUME),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        {"spec": CLAIM | {"volumeName": "v", "selector": SELECTOR}, "status": {"phase": "Bound"}},
    ),
    (kinds.PRIORITY_CLASS, {"value": -5, "globalDefault": True, "preemptionPolicy": "Never"}),
    (
        kinds.HYPER_NODE,
        {
            "spec": {
                "tier": 2,
                "tierName": "rack",
                "members": [
                    {"type": "HyperNode", "selector": {"exactMatch": {"name": "h"}}},
                    {"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}},
                    {"type": "Node", "selector": {"labelMatch": SELECTOR}},
                ],
            },
            "status": {"nodeCount": 7},
        },
    ),
    (
        kinds.NUMATOPOLOGY,
        {
            "spec": {
                "policies": {"CPUManagerPolicy": "static"},
                "resReserved": {"cpu": "1"},
                "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
                "cpuDetail": {"0": {"numa": 1, "socket": 1, "core": 1}},
                "podAllocations": [{"uid": "u"}],
            }
        },
    ),
    (
        kinds.NODE_USAGE,
        {
            "time": "2026-01-01T00:00:00Z",
            "interval": "1m",
            "nodes": {"n1": {"cpu": "40.125", "memory": 20, "time": "2026-01-01T00:00:01Z"}},
        },
    ),
    (kinds.CARD_GEOMETRIES, {"text": "nvidia: {}"}),
    (
        kinds.POD_DISRUPTION_BUDGET,
        {
            "spec": {"selector": {}, "minAvailable": "50%", "maxUnavailable": 1},
            "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}, "expectedPods": 3},
        },
    ),
    (
        kinds.STORAGE_CLASS,
        {
            "provisioner": "d",
            "parameters": {"a": "b"},
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        },
    ),
    (
        kinds.CSI_NODE,
        {"spec": {"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": ["k"], "allocatable": {"count": 0}}]}},
    ),
    (kinds.CSI_DRIVER, {"spec": {"attachRequired": False, "storageCapacity": True}}),
    (
        kinds.CSI_STORAGE_CAPACITY,
        {"nodeTopology": SELECTOR, "storageClassName": "s", "capacity": "1Gi", "maximumVolumeSize": 5},
    ),
    (
        kinds.VOLUME_ATTACHMENT,
        {
            "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
            "status": {"attached": True},
        },
    ),
    (
        kinds.NATIVE_POD_GROUP,
        {
            "spec": {
                "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
                "schedulingPolicy": {"gang": {"minCount": 4}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "resourceClaims": [{"name": "c", "resourceClaimName": "r"}],
                "disruptionMode": "PodGroup",
                "priorityClassName": "high",
                "priority": 0,
            },
            "status": {"conditions": [{"type": "PodGroupScheduled", "status": "True", "observedGeneration": 2}]},
        },
    ),
    (kinds.UNSERVED_KIND, {}),
    (kinds.SERVICE, {"spec": {"selector": {"a": "b"}}}),
    (kinds.REPLICATION_CONTROLLER, {"spec": {"replicas": 0, "selector": {"a": "b"}}}),
    (kinds.REPLICA_SET, {"spec": {"replicas": 0, "selector": SELECTOR}}),
    (kinds.STATEFUL_SET, {"spec": {"replicas": 2, "selector": SELECTOR}}),
    (kinds.RESOURCE_QUOTA, {"spec": {"hard": {"cpu": 1}}, "status": {"hard": {"cpu": 1}, "used": {"cpu": "500m"}}}),
    (kinds.NAMESPACE, {}),
    (kinds.JOB, {"status": {"state": {"phase": "Pending"}}}),
    (kinds.CRON_JOB, {"status": {"lastScheduleTime": "t"}}),
    (kinds.JOB_FLOW, {"status": {"state": {"phase": "Running"}}}),
    (kinds.BINDING, {"target": {"kind": "Node", "name": "n1"}}),
    (
        kinds.EVENT,
        {
            "involvedObject": {"kind": "Pod", "name": "p"},
            "type": "Warning",
            "reason": "r",
            "message": "m",
            "count": 2,
            "source": {"component": "volcano"},
            "firstTimestamp": "a",
            "lastTimestamp": "b",
        },
    ),
    (
        kinds.LEASE,
        {
            "spec": {
                "holderIdentity": "h",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 0,
                "acquireTime": "a",
                "renewTime": "b",
            }
        },
    ),
    (kinds.RESOURCE_SLICE, RESOURCE_SLICE),
    (kinds.DEVICE_CLASS, {"spec": {"selectors": [CEL], "config": [CONFIG], "extendedResourceName": "v/gpu"}}),
    (kinds.RESOURCE_CLAIM, {"spec": CLAIM_SPEC, "status": CLAIM_STATUS}),
    (kinds.RESOURCE_CLAIM_TEMPLATE, {"spec": {"metadata": {"labels": {"l": "1"}}, "spec": CLAIM_SPEC}}),
    (
        kinds.DEVICE_TAINT_RULE,
        {"spec": {"deviceSelector": {"driver": "d", "pool": "p", "device": "g0"}, "taint": DEVICE_TAINT}},
    ),
]
METADATA = {
    "name": "x",
    "namespace": "a",
    "uid": "u",
    "resourceVersion": "5",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-02T00:00:00Z",
    "deletionGracePeriodSeconds": 0,
    "labels": {"l": "1"},
    "annotations": {"a": "2"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}],
}


@pytest.mark.parametrize(("kind", "body"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_every_field_that_is_read_survives_decoding_under_its_own_name(kind, body):
    manifest = {"metadata": METADATA, **body}
    decoded = decoding.decode({"apiVersion": kind.api_version, "kind": kind.name, **manifest})
    assert type(decoded) is kind.struct
    assert msgspec.json.decode(msgspec.json.encode(decoded)) == manifest


def test_every_typed_kind_has_a_case():
    assert {kind.name for kind, _ in CASES} == {kind.name for kind in kinds.KINDS if kind.struct is not None}


def test_objects_cannot_be_changed():
    with pytest.raises(AttributeError):
        core.Pod().spec.node_name = "n1"


@pytest.mark.parametrize(
    "struct", sorted({kind.struct for kind in kinds.KINDS if kind.struct}, key=lambda s: s.__name__)
)
def test_every_struct_is_frozen_small_and_usable_without_arguments(struct):
    config = struct.__struct_config__
    assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True)
    assert msgspec.to_builtins(struct()) == {}


def test_importing_the_package_itself_loads_none_of_its_modules():
    code = "import sys, pumice.api; print([name for name in sys.modules if name.startswith('pumice.api.') or name == 'msgspec'])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
