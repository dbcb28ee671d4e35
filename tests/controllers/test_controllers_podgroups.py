import pytest

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.podgroups import CompanionGroups, Delete

GROUP_NAME = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def pod(name="p", *, uid=None, owner=None, annotations=None, labels=None, scheduler="volcano", **spec):
    metadata = {
        "name": name,
        "namespace": "a",
        "uid": uid or f"uid-{name}",
        "annotations": annotations or {},
        "labels": labels or {},
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
        ]
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, "containers": containers, **spec}}


def workload(uid="rs", replicas=3, annotations=None, **fields):
    return {
        "metadata": {"name": "r", "namespace": "a", "uid": uid, "annotations": annotations or {}},
        "spec": {"replicas": replicas},
        **fields,
    }


class World:
    """Answers a controller as a cluster would: writes come back as events."""

    def __init__(self, **options):
        self.controller = CompanionGroups(**options)
        self.pods, self.groups = {}, {}

    def add(self, kind, manifest):
        store = {kinds.POD: self.pods, kinds.POD_GROUP: self.groups}.get(kind, {})
        store[manifest["metadata"]["name"]] = manifest
        self.controller.feed(kind, "MODIFIED", manifest)

    def settle(self):
        done = []
        while requests := self.controller.reconcile():
            done += requests
            for request in requests:
                self.perform(request)
                self.controller.settled(request, None)
        return done

    def perform(self, request):
        if isinstance(request, Delete):
            self.controller.feed(kinds.POD_GROUP, "DELETED", self.groups.pop(request.name))
        elif isinstance(request, effects.Create):
            metadata = {**request.manifest["metadata"], "uid": "group-uid"}
            self.add(kinds.POD_GROUP, {**request.manifest, "metadata": metadata})
        else:
            from pumice.sim import structure

            store = self.pods if request.kind is kinds.POD else self.groups
            self.add(request.kind, structure.merged(store[request.name], request.body))


def test_a_bare_pod_gets_a_group_of_its_own():
    world = World()
    world.add(kinds.POD, pod(priorityClassName="gold", annotations={"scheduling.volcano.sh/queue-name": "q1"}))
    create, patch = world.settle()
    assert create.manifest == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "podgroup-uid-p",
            "namespace": "a",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "p",
                    "uid": "uid-p",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "minMember": 1,
            "minResources": {"count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1"},
            "priorityClassName": "gold",
            "queue": "q1",
        },
        "status": {"phase": "Pending"},
    }
    assert patch == effects.Patch(
        kind=kinds.POD,
        namespace="a",
        name="p",
        uid="uid-p",
        body={"metadata": {"annotations": {GROUP_NAME: "podgroup-uid-p"}}},
    )


@pytest.mark.parametrize(
    "manifest",
    [
        pod(scheduler="default-scheduler"),
        pod(scheduler=None),
        pod(annotations={GROUP_NAME: "mine"}),
        pod(annotations={GROUP_NAME: 3}),
        pod(annotations={GROUP_NAME: "mine"}, owner="rs"),
    ],
)
def test_pods_of_others_and_pods_with_a_group_are_left_alone(manifest):
    world = World()
    world.add(kinds.POD, manifest)
    assert world.settle() == []


@pytest.mark.parametrize("annotations", [{GROUP_NAME: ""}, {"scheduling.volcano.sh/group-name": "other"}])
def test_an_empty_group_name_or_another_key_is_no_group(annotations):
    world = World()
    world.add(kinds.POD, pod(annotations=annotations))
    assert len(world.settle()) == 2


def test_any_of_our_scheduler_names_counts():
    world = World(scheduler_names=("one", "two"))
    world.add(kinds.POD, pod(scheduler="two"))
    assert len(world.settle()) == 2


def test_pods_of_one_controller_share_its_group():
    world = World()
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "3", "volcano.sh/x": "y", "other/z": "1"}))
    for index in range(3):
        world.add(kinds.POD, pod(f"p{index}", owner="rs"))
    requests = world.settle()
    assert [type(request).__name__ for request in requests] == ["Create", "Patch", "Patch", "Patch"]
    group = world.groups["podgroup-rs"]
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"]["cpu"] == "3"
    assert group["metadata"]["annotations"] == {"volcano.sh/x": "y"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == "rs"
    assert {each["metadata"]["annotations"][GROUP_NAME] for each in world.pods.values()} == {"podgroup-rs"}


@pytest.mark.parametrize("kind", [kinds.DAEMON_SET, kinds.BATCH_JOB, kinds.STATEFUL_SET])
def test_every_sort_of_workload_is_inherited_from(kind):
    world = World()
    world.add(kind, workload(annotations={MIN_MEMBER: "2"}))
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["minMember"] == 2


@pytest.mark.parametrize(
    ("text", "members"),
    [("0", 0), ("7", 7), ("-1", 1), ("x", 1), ("1.5", 1), ("99999999999", 1), ("4294967296", 1), (3, 1), ("", 1)],
)
def test_a_min_member_that_makes_no_sense_is_one(text, members):
    world = World()
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: text}))
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["minMember"] == members


def test_nothing_is_inherited_when_that_is_switched_off():
    world = World(inherit=False)
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "3", "volcano.sh/x": "y"}))
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    group = world.groups["podgroup-rs"]
    assert group["spec"]["minMember"] == 1
    assert "annotations" not in group["metadata"]


def test_what_is_copied_from_the_pod():
    keys = ("preemptable", "cooldown-time", "revocable-zone", "jdb-min-available", "jdb-max-unavailable")
    annotations = {f"volcano.sh/{key}": "1" for key in keys} | {"volcano.sh/other": "1"}
    labels = {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5s", "app": "x"}
    world = World()
    world.add(kinds.REPLICA_SET, workload(annotations={"volcano.sh/preemptable": "owner"}))
    world.add(kinds.POD, pod(owner="rs", annotations=annotations, labels=labels))
    world.settle()
    metadata = world.groups["podgroup-rs"]["metadata"]
    assert metadata["annotations"] == {f"volcano.sh/{key}": "1" for key in keys[:4]}
    assert metadata["labels"] == {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5s"}


@pytest.mark.parametrize(
    ("mode", "tier", "topology"),
    [
        (None, None, None),
        ("soft", None, {"mode": "soft"}),
        ("SOFT", "2", {"mode": "soft", "highestTierAllowed": 2}),
        ("Hard", "x", {"mode": "hard"}),
        ("odd", "-1", {"mode": "hard"}),
        (None, "3", {"mode": "hard", "highestTierAllowed": 3}),
    ],
)
def test_topology_comes_from_two_annotations(mode, tier, topology):
    keys = {"volcano.sh/network-topology-mode": mode, "volcano.sh/network-topology-highest-tier": tier}
    world = World()
    world.add(kinds.POD, pod(annotations={key: value for key, value in keys.items() if value is not None}))
    world.settle()
    assert world.groups["podgroup-uid-p"]["spec"].get("networkTopology") == topology


def test_an_existing_group_is_used_as_it_is():
    world = World()
    world.add(
        kinds.POD_GROUP,
        {"metadata": {"name": "podgroup-uid-p", "namespace": "a", "uid": "x"}, "spec": {"minMember": 9}},
    )
    world.add(kinds.POD, pod())
    assert [type(request).__name__ for request in world.settle()] == ["Patch"]
    assert world.groups["podgroup-uid-p"]["spec"] == {"minMember": 9}


def test_scaling_to_nothing_deletes_the_group_and_back_creates_it():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.add(kinds.REPLICA_SET, workload(replicas=0))
    assert world.settle() == [Delete(kind=kinds.POD_GROUP, namespace="a", name="podgroup-rs", uid="group-uid")]
    assert world.settle() == []
    world.add(kinds.REPLICA_SET, workload(replicas=2))
    assert [type(request).__name__ for request in world.settle()] == ["Create"]


def test_a_change_of_the_owner_changes_the_group_and_nothing_that_others_wrote():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.groups["podgroup-rs"]["spec"]["queue"] = "theirs"
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "2", "volcano.sh/x": "y"}))
    (patch,) = world.settle()
    resources = {"count/pods": "2", "pods": "2", "cpu": "2", "requests.cpu": "2"}
    assert patch.body == {
        "spec": {"minMember": 2, "minResources": resources},
        "metadata": {"annotations": {"volcano.sh/x": "y"}},
    }
    assert world.groups["podgroup-rs"]["spec"]["queue"] == "theirs"
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "2", "volcano.sh/x": "y"}))
    assert world.settle() == []


def test_resources_that_are_no_longer_asked_for_leave_the_group():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod("b", owner="rs"))
    world.settle()
    containers = [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]
    world.add(kinds.POD, pod("a", owner="rs", containers=containers))
    world.add(kinds.REPLICA_SET, workload())
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["minResources"] == {
        "count/pods": "1",
        "pods": "1",
        "memory": "1Gi",
        "requests.memory": "1Gi",
    }


def test_a_workload_whose_first_pod_has_a_foreign_group_is_left_alone():
    world = World()
    world.add(kinds.POD, pod(owner="rs", annotations={GROUP_NAME: "mine"}))
    world.add(kinds.REPLICA_SET, workload())
    assert world.settle() == []


def test_a_stateful_set_looks_at_pods_of_its_update_revision():
    world = World()
    world.add(kinds.POD, pod("s-0", owner="rs", labels={"controller-revision-hash": "old"}, priorityClassName="old"))
    world.add(kinds.POD, pod("s-1", owner="rs", labels={"controller-revision-hash": "new"}, priorityClassName="new"))
    world.add(kinds.STATEFUL_SET, workload(status={"updateRevision": "new"}))
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["priorityClassName"] == "new"


# ---- failures


def test_a_request_is_made_once_until_its_answer():
    controller = CompanionGroups()
    controller.feed(kinds.POD, "ADDED", pod())
    assert len(controller.reconcile()) == 2
    assert controller.reconcile() == []


@pytest.mark.parametrize(
    ("code", "failing", "again"),
    [("unavailable", 0, 2), ("conflict", 1, 1), ("unavailable", 1, 1), ("notfound", 1, 0), ("notfound", 0, 2)],
)
def test_what_failed_is_tried_again_unless_its_object_is_gone(code, failing, again):
    controller = CompanionGroups()
    controller.feed(kinds.POD, "ADDED", pod())
    requests = controller.reconcile()
    for index, request in enumerate(requests):
        controller.settled(request, effects.Failure(code, "m") if index == failing else None)
    assert len(controller.reconcile()) == again


def test_a_failed_update_or_delete_of_a_group_is_tried_again():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "2"}))
    (patch,) = world.controller.reconcile()
    world.controller.settled(patch, effects.Failure("unavailable", "m"))
    assert world.controller.reconcile() == [patch]
    world.add(kinds.REPLICA_SET, workload(replicas=0))
    (delete,) = world.controller.reconcile()
    world.controller.settled(delete, effects.Failure("unavailable", "m"))
    world.controller.feed(kinds.POD_GROUP, "MODIFIED", world.groups["podgroup-rs"])
    assert world.controller.reconcile() == [delete]


def test_a_pod_that_is_gone_asks_for_nothing():
    world = World()
    world.add(kinds.POD, pod())
    world.controller.feed(kinds.POD, "DELETED", pod())
    assert world.settle() == []
    world.add(kinds.REPLICA_SET, workload())
    world.controller.feed(kinds.REPLICA_SET, "DELETED", workload())
    assert world.settle() == []
