import re

import pytest

from pumice.api import kinds, names

TYPED = [
    "Pod",
    "Node",
    "PodGroup",
    "Queue",
    "HyperNode",
    "PriorityClass",
    "PodDisruptionBudget",
    "ResourceQuota",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "Service",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "Binding",
    "Event",
    "Lease",
    "Job",
    "CronJob",
    "JobFlow",
    "Numatopology",
    "CardGeometries",
    "NodeUsage",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "DeviceClass",
    "DeviceTaintRule",
]
OPAQUE = [
    "NodeShard",
    "Command",
    "JobTemplate",
    "ColocationConfiguration",
    "HyperJob",
    "DataSource",
    "DataSourceClaim",
]


@pytest.mark.parametrize("name", TYPED)
def test_every_kind_the_scheduler_reads_or_writes_has_a_struct(name):
    assert kinds.by_singular(name.lower()).struct.__name__ == name


@pytest.mark.parametrize("name", OPAQUE)
def test_every_other_kind_is_known_without_a_struct(name):
    assert kinds.by_singular(name.lower()).struct is None


def test_every_kind_is_found_by_its_own_version_and_name():
    assert all(kinds.find(kind.api_version, kind.name) is kind for kind in kinds.KINDS)


def test_every_kind_constant_is_listed_once():
    constants = [value for value in vars(kinds).values() if isinstance(value, kinds.Kind)]
    assert len(constants) == len(kinds.KINDS) == len(set(kinds.KINDS))
    assert all(kind in kinds.KINDS for kind in constants)


def test_unknown_kinds_are_none():
    assert kinds.find("v1", "Nothing") is None
    assert kinds.find("v2", "Pod") is None
    assert kinds.by_singular("nothing") is None


@pytest.mark.parametrize(
    ("singular", "kind"),
    [("podgroup", kinds.POD_GROUP), ("queue", kinds.QUEUE), ("job", kinds.JOB), ("pod", kinds.POD)],
)
def test_the_current_version_wins_a_lower_case_name(singular, kind):
    assert kinds.by_singular(singular) is kind


@pytest.mark.parametrize(
    ("kind", "api_version", "namespaced"),
    [
        (kinds.POD, "v1", True),
        (kinds.NODE, "v1", False),
        (kinds.POD_GROUP, "scheduling.volcano.sh/v1beta1", True),
        (kinds.QUEUE, "scheduling.volcano.sh/v1beta1", False),
        (kinds.PRIORITY_CLASS, "scheduling.k8s.io/v1", False),
        (kinds.INCUBATOR_POD_GROUP, "scheduling.incubator.k8s.io/v1alpha1", True),
        (kinds.SIGS_QUEUE, "scheduling.sigs.dev/v1alpha2", False),
    ],
)
def test_a_kind_knows_its_version_and_scope(kind, api_version, namespaced):
    assert (kind.api_version, kind.namespaced) == (api_version, namespaced)


def test_names_are_unique_within_their_domain_and_well_formed():
    keys = [value for name, value in vars(names).items() if name.isupper() and "/" in value]
    assert len(keys) == len(set(keys)) > 80
    assert all(re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9.-]*", key) for key in keys)


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (names.GROUP_NAME, "scheduling.k8s.io/group-name"),
        (names.TASK_SPEC, "volcano.sh/task-spec"),
        (names.PREEMPTABLE, "volcano.sh/preemptable"),
        (names.TASK_PRIORITY, "volcano.sh/task-priority"),
        (names.HIERARCHY, "volcano.sh/hierarchy"),
        (names.QUEUE_GATE, "scheduling.volcano.sh/queue-allocation-gate"),
        (names.RUN_TIME, "pumice.dev/run-time"),
        (names.EXIT, "pumice.dev/exit"),
        (names.ROOT_QUEUE, "root"),
        (names.DEFAULT_QUEUE, "default"),
    ],
)
def test_names_that_others_rely_on_are_as_written(constant, text):
    assert constant == text
