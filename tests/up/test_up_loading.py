"""A cluster that begins with a dump is the cluster that was dumped: nothing is deleted, made anew or ended for want of what the dump lacks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded_cluster import LoadedCluster

from drawing import drawn
from pumice.api import kinds, timestamp
from pumice.server import dump
from pumice.sim.identity import Key
from pumice.study import explanation, files
from tests.study import study_worlds

NOW = timestamp.parse("2026-01-01T00:00:00Z")
SPEC = {
    "containers": [{"name": "c", "image": "x", "command": ["sleep", "7200"]}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
}


def labelled(name):
    return {"metadata": {"labels": {"app": name}}, "spec": SPEC}


def workload(kind, name, **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": labelled(name), **spec},
    }


def node(name):
    ready = {"type": "Ready", "status": "True"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}}
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


NEVER = {"spec": {**SPEC, "restartPolicy": "Never"}}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
WORKLOADS = (
    workload("Deployment", "web", replicas=3),
    workload("ReplicaSet", "plain", replicas=2),
    workload("DaemonSet", "each"),
    workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[CLAIM]),
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "team"},
        "spec": {"parallelism": 2, "completions": 4, "template": NEVER},
    },
    {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "gang", "namespace": "team"},
        "spec": {
            "minAvailable": 2,
            "schedulerName": "volcano",
            "tasks": [{"name": "t", "replicas": 2, "template": NEVER}],
        },
    },
)


class Scheduled(LoadedCluster):
    """A cluster whose pods are bound, one after another, by nobody in particular."""

    def live(self, minutes):
        for _ in range(6):
            super().live(0)
            for group in list(self.store.scan(kinds.POD_GROUP)):
                place = Key(kinds.POD_GROUP, "team", group["metadata"]["name"])
                self.store.patch(place, {"status": {"phase": "Inqueue"}})
            for claim in list(self.store.scan(kinds.PERSISTENT_VOLUME_CLAIM)):
                place = Key(kinds.PERSISTENT_VOLUME_CLAIM, "team", claim["metadata"]["name"])
                note = {"volume.kubernetes.io/selected-node": "n0"}
                self.store.patch(place, {"metadata": {"annotations": note}})
            for number, pod in enumerate(list(self.store.scan(kinds.POD))):
                if not pod["spec"].get("nodeName"):
                    place = Key(kinds.POD, "team", pod["metadata"]["name"])
                    self.store.bind(place, uid=pod["metadata"]["uid"], node=f"n{number % 3}")
        super().live(minutes)


class Objects(list):
    """Objects of which a report says how many there are."""

    def __repr__(self):
        return f"{len(self)} objects"


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Everything that is in a cluster in which one workload of each kind has come to rest."""
    path = tmp_path_factory.mktemp("lived") / "nothing.json"
    path.write_text("[]")
    source = Scheduled(path, NOW)
    source.made.judge_volcano_kinds()
    source.made.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for manifest in (*map(node, ("n0", "n1", "n2")), *WORKLOADS):
        source.made.ensure(manifest)
    source.live(2)
    running = [pod["metadata"]["name"] for pod in source.store.scan(kinds.POD) if pod["status"]["phase"] == "Running"]
    assert len(running) == 3 + 2 + 3 + 2 + 2 + 2, running
    return Objects(each for key, each in source.store.everything() if key.kind is not kinds.CONFIG_MAP)


KINDS = [
    "ClusterRole",
    "ControllerRevision",
    "DaemonSet",
    "Deployment",
    "Job",
    "Lease",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodGroup",
    "PriorityClass",
    "Queue",
    "ReplicaSet",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
]


@pytest.mark.long
@settings(max_examples=drawn(60))
@given(left_out=st.sets(st.sampled_from(KINDS)), later=st.sampled_from([0, 1, 30 * 24 * 60]))
def test_no_object_is_lost_and_no_pod_is_made_for_want_of_what_a_dump_lacks(lived, tmp_path_factory, left_out, later):
    kept = [each for each in lived if each["kind"] not in left_out]
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": kept}))
    loaded = LoadedCluster(path, NOW + later * 60_000_000)
    loaded.live(60)
    check(loaded, kept)


def check(loaded, kept):
    """Compare what is there with a dump: all of its objects by uid and spec, pods with their phase and node, and no pod beside them."""
    for manifest in kept:
        found = loaded.find(manifest)
        if manifest["kind"] == "Lease":
            continue
        assert found is not None, (manifest["kind"], manifest["metadata"]["name"])
        assert found["metadata"]["uid"] == manifest["metadata"]["uid"]
        assert found.get("spec") == manifest.get("spec"), manifest["metadata"]["name"]
        assert not found["metadata"].get("deletionTimestamp")
        if manifest["kind"] == "Pod":
            assert found["status"] == manifest["status"]
    there = {pod["metadata"]["name"] for pod in loaded.store.scan(kinds.POD)}
    assert there == {each["metadata"]["name"] for each in kept if each["kind"] == "Pod"}


def test_a_dump_takes_the_place_of_what_every_cluster_has(lived, tmp_path):
    queue = next(each for each in lived if each["kind"] == "Queue" and each["metadata"]["name"] == "default")
    dumped = [{**queue, "spec": {**queue["spec"], "weight": 7}}]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(dumped))
    loaded = LoadedCluster(path, NOW)
    found = loaded.find(queue)
    assert (found["spec"]["weight"], found["metadata"]["uid"]) == (7, queue["metadata"]["uid"])


def test_a_workload_that_was_left_alone_is_looked_after_once_somebody_changes_it(lived, tmp_path):
    kept = [each for each in lived if each["kind"] != "ReplicaSet"]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(kept))
    loaded = LoadedCluster(path, NOW)
    loaded.live(5)
    check(loaded, kept)
    key = next(key for key, each in loaded.store.everything() if each["metadata"]["name"] == "web")
    loaded.store.patch(key, {"spec": {"replicas": 4}})
    loaded.live(5)
    made = [each for each in loaded.store.scan(kinds.REPLICA_SET) if each["metadata"]["namespace"] == "team"]
    assert [each["spec"]["replicas"] for each in made] == [4]


def test_what_an_owner_that_is_there_leaves_is_still_collected(lived, tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(lived))
    loaded = LoadedCluster(path, NOW)
    loaded.live(1)
    loaded.store.delete(Key(kinds.REPLICA_SET, "team", "plain"))
    loaded.live(2)
    assert not [pod for pod in loaded.store.scan(kinds.POD) if pod["metadata"].get("labels", {}).get("app") == "plain"]


@pytest.mark.parametrize("seed", range(12))
def test_a_loaded_cluster_is_explained_as_the_dump_is(seed, tmp_path):
    stage = study_worlds.played(seed)
    path = tmp_path / f"snapshot-{stage.cluster.clock.now() // 1_000_000}.json"
    path.write_bytes(dump.encode(stage.model))
    dumped = files.read(str(path), study_worlds.KNOWN)
    loaded = LoadedCluster(path, dumped.now)
    loaded.live(0)
    again = tmp_path / "again" / path.name
    again.parent.mkdir()
    loaded.write(again, [kind for kind in kinds.SCHEDULING if kind not in (kinds.EVENT, kinds.LEASE)])
    read = files.read(str(again), study_worlds.KNOWN)
    read.configuration = dumped.configuration = stage.configuration
    groups = dumped.of(kinds.POD_GROUP)
    assert {each.metadata.uid for each in read.of(kinds.POD_GROUP)} == {each.metadata.uid for each in groups}
    for group in groups:
        request = explanation.Request(what="job", name=f"{group.metadata.namespace}/{group.metadata.name}")
        first, second = (explanation.answer(each, request, study_worlds.KNOWN) for each in (dumped, read))
        assert first.explanation == second.explanation


def test_no_pod_has_the_name_of_one_before_it_through_restarts(lived, tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(lived))
    cluster = LoadedCluster(path, NOW)
    names = []
    for _ in range(6):  # each life begins with controllers that remember nothing
        for pod in list(cluster.store.scan(kinds.POD)):
            if pod["metadata"].get("labels", {}).get("app") == "plain":
                cluster.store.remove(Key(kinds.POD, "team", pod["metadata"]["name"]))
                names.append(pod["metadata"]["name"])
        cluster.live(1)
    assert len(names) == 12
    assert len(set(names)) == 12
