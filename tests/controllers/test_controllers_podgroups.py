import itertools

import pytest

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers import companions, podgroups
from pumice.controllers.queueing import engine, observed, requests, running
from pumice.sim import structure

GROUP_NAME = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def pod(
    name="p",
    *,
    uid=None,
    owner=None,
    kind=kinds.REPLICA_SET,
    annotations=None,
    labels=None,
    scheduler="volcano",
    **spec,
):
    metadata = {
        "name": name,
        "namespace": "a",
        "uid": uid or f"uid-{name}",
        "annotations": annotations or {},
        "labels": labels or {},
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": kind.api_version, "kind": kind.name, "name": "r", "uid": owner, "controller": True}
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
    """Answers the controllers as a cluster would; `failures` are the codes of the next answers, and nothing is done for those that have one."""

    def __init__(self, **options):
        self.complaints = []
        self.engine = engine.Engine(podgroups.controllers(**options), complain=self.complaints.append)
        self.pods, self.groups = {}, {}
        self.failures = []
        self.now = 0
        self._done = []
        self._version = 0

    def add(self, kind, manifest):
        self.engine.feed(kind, "MODIFIED", self.store(kind, manifest))

    def drop(self, kind, manifest):
        self.engine.feed(kind, "DELETED", self._versioned(manifest))

    def store(self, kind, manifest):
        stored = self._versioned(manifest)
        {kinds.POD: self.pods, kinds.POD_GROUP: self.groups}.get(kind, {})[stored["metadata"]["name"]] = stored
        return stored

    def _versioned(self, manifest):
        self._version += 1
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self._version)}}

    def settle(self, *failures, later=0):
        """Let the controllers do what is due after some seconds, and give what they asked for, reads aside."""
        self.failures, self._done = list(failures), []
        self.now += later * 1_000_000
        while running.run_due(self.engine, self, lambda: requests.Moment(self.now)):
            pass
        assert not self.complaints
        return self._done

    def perform(self, request):
        if isinstance(request, effects.Read):
            found = {kinds.POD: self.pods, kinds.POD_GROUP: self.groups}[request.kind].get(request.name)
            return requests.Answer(object=found) if found else requests.Answer(code="notfound")
        self._done.append(request)
        code = self.failures.pop(0) if self.failures else ""
        if code:
            return requests.Answer(code=code, message="m")
        if isinstance(request, requests.Delete):
            gone = self.groups.pop(request.name)
            self.drop(kinds.POD_GROUP, gone)
            return requests.Answer()
        if isinstance(request, effects.Create):
            metadata = {**request.manifest["metadata"], "uid": "group-uid"}
            return requests.Answer(object=self.store(kinds.POD_GROUP, {**request.manifest, "metadata": metadata}))
        present = (self.pods if request.kind is kinds.POD else self.groups)[request.name]
        return requests.Answer(object=self.store(request.kind, structure.merged(present, request.body)))


def born(manifest, second):
    return {**manifest, "metadata": {**manifest["metadata"], "creationTimestamp": f"1970-01-01T00:00:{second:02}Z"}}


def kinds_of(done):
    return [(type(request).__name__, request.kind) for request in done]


@pytest.mark.parametrize("owner", [None, "rs"])
@pytest.mark.parametrize("age", [0, 1, 2, 30])
def test_with_patience_a_pod_has_its_group_at_once_and_names_it_only_if_nobody_has_bound_it_for_a_while(owner, age):
    world = World(patience=2_000_000)
    world.now = (10 + age) * 1_000_000
    if owner:
        world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, born(pod(owner=owner), 10))
    created, named = [("Create", kinds.POD_GROUP)], [("Patch", kinds.POD)]
    assert kinds_of(world.settle()) == (created if age < 2 else created + named)
    assert kinds_of(world.settle(later=1)) == (named if age == 1 else [])
    assert kinds_of(world.settle(later=1)) == (named if age == 0 else [])
    assert world.pods["p"]["metadata"]["annotations"][GROUP_NAME] == f"podgroup-{owner or 'uid-p'}"
    assert kinds_of(world.settle(later=60)) == []


def test_with_patience_a_pod_that_named_its_group_when_it_was_bound_is_left_alone_and_one_that_did_not_is_told():
    world = World(patience=2_000_000)
    for name in ("p", "q"):
        world.add(kinds.POD, born(pod(name), 0))
    assert kinds_of(world.settle()) == [("Create", kinds.POD_GROUP)] * 2
    world.add(kinds.POD, born(pod("p", annotations={GROUP_NAME: "podgroup-uid-p"}, nodeName="n"), 0))
    world.add(kinds.POD, born(pod("q", nodeName="n"), 0))
    assert [(request.kind, request.name) for request in world.settle()] == [(kinds.POD, "q")]
    assert world.settle(later=60) == []


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
        pod(schedulingGroup={"podGroupName": "g"}),
        pod(workloadRef={"name": "w"}),
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


@pytest.mark.parametrize(
    ("of", "fields", "made"),
    [
        ({}, {}, 1),
        ({"owner": "job", "kind": kinds.BATCH_JOB}, {}, 1),
        ({"owner": "rs", "kind": kinds.REPLICA_SET}, {}, 0),
        ({}, {"nodeName": "n"}, 0),
        ({"annotations": {GROUP_NAME: "another"}}, {}, 0),
        ({"scheduler": "another"}, {}, 0),
    ],
)
def test_a_group_that_others_delete_is_made_anew_for_pods_that_wait_in_it_unless_that_is_their_workloads_matter(
    of, fields, made
):
    world = World()
    name = f"podgroup-{of.get('owner', 'uid-p')}"
    group = {"metadata": {"name": name, "namespace": "a", "uid": "g"}, "spec": {}}
    group["metadata"]["ownerReferences"] = (
        pod(**of)["metadata"].get("ownerReferences")
        if of.get("owner")
        else [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    )
    world.add(kinds.POD_GROUP, group)
    for each in ("p", "q") if of.get("owner") else ("p",):
        world.add(kinds.POD, pod(each, **{"annotations": {GROUP_NAME: name}, **of}, **fields))
    assert world.settle() == []
    world.drop(kinds.POD_GROUP, world.groups.pop(name))
    assert kinds_of(world.settle(later=60)) == [("Create", kinds.POD_GROUP)] * made
    assert kinds_of(world.settle(later=600)) == []


def test_pods_of_one_controller_share_its_group():
    world = World()
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "3", "volcano.sh/x": "y", "other/z": "1"}))
    for index in range(3):
        world.add(kinds.POD, pod(f"p{index}", owner="rs"))
    assert [type(request).__name__ for request in world.settle()] == ["Create", "Patch", "Patch", "Patch"]
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
    world.add(kinds.POD, pod(owner="rs", kind=kind))
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["minMember"] == 2


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("0", 0),
        ("7", 7),
        ("2147483647", 2147483647),
        ("2147483648", 1),
        ("-1", 1),
        ("x", 1),
        ("1.5", 1),
        ("99999999999", 1),
        ("4294967296", 1),
        (3, 1),
        ("", 1),
    ],
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
        (None, "999999999", {"mode": "hard", "highestTierAllowed": 999_999_999}),
        (None, "1000000000", {"mode": "hard"}),
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


def test_the_group_of_a_pod_that_is_resized_before_it_has_a_node_follows_it():
    world = World()
    world.add(kinds.POD, pod())
    world.settle()
    (group,) = world.groups.values()
    grown = structure.copied(world.pods["p"])
    grown["metadata"]["generation"] = 2
    grown["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    world.add(kinds.POD, grown)
    (change,) = world.settle()
    assert change.body == {"spec": {"minResources": {"count/pods": "1", "pods": "1", "cpu": "3", "requests.cpu": "3"}}}
    assert change.name == group["metadata"]["name"]
    placed = structure.copied(grown)
    placed["metadata"]["generation"] = 3
    placed["spec"] |= {"nodeName": "n"}
    placed["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    world.add(kinds.POD, placed)
    assert world.settle() == []


@pytest.mark.parametrize("why", ["another scheduler's", "a group that goes", "no group"])
def test_the_group_of_a_resized_pod_is_left_alone_if_it_is_not_ours_or_goes(why):
    world = World()
    group = {"metadata": {"name": "podgroup-uid-p", "namespace": "a", "uid": "x"}, "spec": {"minMember": 1}}
    if why == "a group that goes":
        group["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:01Z"
    if why != "no group":
        world.add(kinds.POD_GROUP, group)
    named = {GROUP_NAME: "podgroup-uid-p"}
    resized = pod(annotations=named, scheduler="other" if why == "another scheduler's" else "volcano")
    resized["metadata"]["generation"] = 2
    world.add(kinds.POD, resized)
    changed = [each for each in world.settle() if isinstance(each, effects.Patch) and each.kind is kinds.POD_GROUP]
    assert changed == []


def test_nothing_is_done_about_a_group_that_goes():
    world = World()
    group = {
        "metadata": {"name": "podgroup-rs", "namespace": "a", "uid": "x", "deletionTimestamp": "1970-01-01T00:00:01Z"}
    }
    world.add(kinds.POD_GROUP, {**group, "spec": {"minMember": 1}})
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    assert world.settle() == []


def test_the_group_of_a_workload_asks_for_what_the_first_of_its_pods_by_name_does():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    larger = pod("p0", owner="rs", containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    for each in (pod("p1", owner="rs"), larger):
        world.add(kinds.POD, each)
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["minResources"]["cpu"] == "3"


@pytest.mark.parametrize("each", podgroups.controllers(), ids=lambda each: f"{type(each).__name__} {each.kind.name}")
def test_of_what_is_not_followed_only_that_it_comes_and_goes_is_looked_at(each):
    same = {kind: each.is_same(kind, {}, {}) for kind in each.watched}
    follows_pods = each.kind is kinds.POD
    assert same == {kind: not (follows_pods and kind is kinds.POD) for kind in each.watched}


@pytest.mark.parametrize(("kind", "concerned"), [(kinds.BATCH_JOB, [("a", "r")]), (kinds.REPLICA_SET, [])])
def test_a_group_of_a_job_concerns_that_job(kind, concerned):
    (ending,) = [each for each in podgroups.controllers() if each.kind is kinds.BATCH_JOB]
    assert ending.concerns(kinds.POD_GROUP, pod("podgroup-x", owner="x", kind=kind), observed.Observed()) == concerned


def test_scaling_to_nothing_deletes_the_group_and_back_creates_it():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.add(kinds.REPLICA_SET, workload(replicas=0))
    deletion = requests.Delete(kind=kinds.POD_GROUP, namespace="a", name="podgroup-rs", uid="group-uid", policy="")
    assert world.settle() == [deletion]
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
    for index, revision in enumerate(("old", "new")):
        labels = {"controller-revision-hash": revision}
        made = pod(f"s-{index}", owner="rs", kind=kinds.STATEFUL_SET, labels=labels, priorityClassName=revision)
        world.add(kinds.POD, made)
    world.add(kinds.STATEFUL_SET, workload(status={"updateRevision": "new"}))
    world.settle()
    assert world.groups["podgroup-rs"]["spec"]["priorityClassName"] == "new"


# ---- failures


def names_of(found):
    return [type(request).__name__ for request in found]


def test_a_request_is_made_once_until_its_answer():
    world = World()
    world.add(kinds.POD, pod())
    turn = world.engine.take(requests.Moment(0))
    assert len(turn.left) == 2
    assert world.engine.take(requests.Moment(0)) is None


@pytest.mark.parametrize("code", ["unavailable", "unknown", "refused", "conflict"])
@pytest.mark.parametrize(("failing", "first", "again"), [(0, 1, 2), (1, 2, 1)])
def test_what_failed_is_tried_again_and_no_pod_names_a_group_that_could_not_be_created(code, failing, first, again):
    world = World()
    world.add(kinds.POD, pod())
    assert len(world.settle(*[""] * failing, code)) == first
    assert world.settle() == []
    assert len(world.settle(later=1)) == again
    assert world.pods["p"]["metadata"]["annotations"] == {GROUP_NAME: "podgroup-uid-p"}


def test_a_group_that_is_there_though_nobody_told_of_it_is_used():
    world = World()
    world.store(kinds.POD_GROUP, {"metadata": {"name": "podgroup-uid-p", "namespace": "a", "uid": "x"}, "spec": {}})
    world.add(kinds.POD, pod())
    assert names_of(world.settle("exists")) == ["Create"]
    assert names_of(world.settle(later=1)) == ["Patch"]


def test_a_pod_that_is_gone_when_it_is_written_to_is_left_alone():
    world = World()
    world.add(kinds.POD, pod())
    del world.pods["p"]
    assert names_of(world.settle("", "notfound")) == ["Create", "Patch"]
    assert world.settle(later=60) == []


def test_the_next_pod_creates_the_group_of_an_owner_if_the_first_one_is_gone():
    world = World()
    world.add(kinds.POD, pod("p0", owner="rs"))
    world.add(kinds.POD, pod("p1", owner="rs"))
    assert names_of(world.settle("refused")) == ["Create"]
    world.drop(kinds.POD, world.pods.pop("p0"))
    assert names_of(world.settle()) == ["Create", "Patch"]
    assert world.pods["p1"]["metadata"]["annotations"] == {GROUP_NAME: "podgroup-rs"}


def test_a_pod_that_cannot_be_written_to_keeps_no_other_of_its_owner_from_its_group():
    world = World()
    for index in range(4):
        world.add(kinds.POD, pod(f"p{index}", owner="rs"))
    world.settle("", "refused")
    named = [each["metadata"]["annotations"].get(GROUP_NAME) for each in world.pods.values()]
    assert sorted(map(str, named)) == ["None", *["podgroup-rs"] * 3]


def test_a_failed_update_or_delete_of_a_group_is_tried_again():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.add(kinds.REPLICA_SET, workload(annotations={MIN_MEMBER: "2"}))
    (patch,) = world.settle("unavailable")
    assert world.settle(later=1) == [patch]
    world.add(kinds.REPLICA_SET, workload(replicas=0))
    (delete,) = world.settle("unavailable")
    assert world.settle(later=1) == [delete]


def test_a_group_that_others_delete_while_its_workload_is_scaled_up_again_is_made_anew():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()
    world.drop(kinds.POD_GROUP, world.groups.pop("podgroup-rs"))
    assert names_of(world.settle()) == ["Create"]


def test_a_group_that_others_delete_again_and_again_is_made_anew_ever_more_seldom():
    world = World()
    world.add(kinds.REPLICA_SET, workload())
    world.add(kinds.POD, pod(owner="rs"))
    world.settle()

    def made_in(seconds):
        """Delete the group as soon as it is there, look at everything fifty times a second, and give after how long it was made."""
        moments, began = [], world.now
        while world.now < began + seconds * 1_000_000:
            if world.groups:
                world.drop(kinds.POD_GROUP, world.groups.pop("podgroup-rs"))
            if names_of(world.settle(later=0.02)):
                moments.append((world.now - began) / 1e6)
        return moments

    moments = made_in(200)
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert pauses[:5] == [pytest.approx(0.05 * 2**number, abs=0.05) for number in range(5)]
    assert pauses[-1] == pytest.approx(30, abs=0.05)
    assert len(moments) <= 15
    assert len(made_in(61)) <= 3
    while not world.groups:
        world.settle(later=1)
    world.settle(later=90)
    assert len(made_in(0.1)) == 2  # after peace the first pause is none again


def test_a_pod_that_is_gone_asks_for_nothing():
    world = World()
    world.add(kinds.POD, pod())
    world.drop(kinds.POD, pod())
    assert world.settle() == []
    world.add(kinds.REPLICA_SET, workload())
    world.drop(kinds.REPLICA_SET, workload())
    assert world.settle() == []


def batch_job(start=None, seconds=None):
    """A Job of Kubernetes, which may have started, and may say how long it takes at the most."""
    found = workload(uid="j", status={"startTime": start} if start else {})
    found["spec"] = {"activeDeadlineSeconds": seconds} if seconds is not None else {}
    return found


def ends_by(world):
    return (world.groups["podgroup-j"]["metadata"].get("annotations") or {}).get("pumice.dev/ends-by")


def test_the_group_of_a_job_says_when_the_job_ends_its_pods_whenever_that_becomes_known():
    world = World()
    world.add(kinds.BATCH_JOB, batch_job(seconds=90))
    world.add(kinds.POD, pod(owner="j", kind=kinds.BATCH_JOB))
    world.settle()
    assert ends_by(world) is None
    world.add(kinds.BATCH_JOB, batch_job("2026-01-01T00:00:00Z", 90))
    world.settle()
    assert ends_by(world) == "2026-01-01T00:01:30Z"
    world.add(kinds.BATCH_JOB, batch_job("2026-01-01T01:00:00Z", 90))
    world.settle()
    assert ends_by(world) == "2026-01-01T01:01:30Z", "one that goes on after a pause starts anew"
    world.add(kinds.BATCH_JOB, batch_job("2026-01-01T01:00:00Z"))
    world.settle()
    assert ends_by(world) is None
    assert world.settle() == []


@pytest.mark.parametrize("inherit", [True, False])
def test_a_group_that_comes_after_its_job_has_started_says_so_at_once_unless_groups_inherit_nothing(inherit):
    world = World(inherit=inherit)
    world.add(kinds.BATCH_JOB, batch_job("2026-01-01T00:00:00Z", 90))
    world.add(kinds.POD, pod(owner="j", kind=kinds.BATCH_JOB))
    create, _ = world.settle()
    annotations = create.manifest["metadata"].get("annotations", {})
    assert annotations == ({"pumice.dev/ends-by": "2026-01-01T00:01:30Z"} if inherit else {})


@pytest.mark.parametrize("job", [batch_job("soon", 90), batch_job("2026-01-01T00:00:00Z", "90")])
def test_a_job_whose_start_or_deadline_cannot_be_read_ends_nothing(job):
    world = World()
    world.add(kinds.BATCH_JOB, job)
    world.add(kinds.POD, pod(owner="j", kind=kinds.BATCH_JOB))
    world.settle()
    assert ends_by(world) is None


@pytest.mark.parametrize("there", [False, True])
def test_a_group_concerns_all_pods_that_wait_for_it_or_the_one_that_is_to_make_it(there):
    known = observed.Observed()
    named = {GROUP_NAME: "podgroup-rs"}
    pods = [pod("p2", owner="rs"), pod("p0", owner="rs", annotations=named), pod("p1", owner="rs"), pod("q", owner="x")]
    for each in pods:
        known.feed(kinds.POD, "ADDED", each)
    group = pod("podgroup-rs", owner="rs")
    if there:
        known.feed(kinds.POD_GROUP, "ADDED", group)
    grouped = podgroups.controllers()[0]
    concerned = set(grouped.concerns(kinds.POD_GROUP, group, known))
    assert concerned == ({("a", "p1"), ("a", "p2")} if there else {("a", "p2")})
    assert grouped.concerns(kinds.POD, pods[2], known) == ([] if there else [("a", "p2")])


def test_a_group_of_a_bare_pod_concerns_that_pod():
    own = pod("podgroup-x", owner="uid-p")
    own["metadata"]["ownerReferences"][0] |= {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    assert podgroups.controllers()[0].concerns(kinds.POD_GROUP, own, observed.Observed()) == [("a", "p")]


@pytest.mark.parametrize(
    ("stated", "count"), [({"replicas": 0}, 0), ({"replicas": 3}, 3), ({}, 1), ({"replicas": "x"}, 1)]
)
def test_a_workload_wants_one_pod_if_it_does_not_say(stated, count):
    assert companions.replicas({"spec": stated}) == count
