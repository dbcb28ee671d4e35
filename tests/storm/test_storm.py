"""The storm: lives in which everything goes wrong at once, and what looks on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pumice.api import kinds
from pumice.sim.identity import Key
from tests.storm import life, telling, world

SEEDS = 400 if os.environ.get("PUMICE_FUZZ") else 12


@pytest.fixture(scope="module")
def loaded():
    telling.prepare()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_goes_wrong_the_rules_hold(loaded, seed):
    found = telling.lived(seed)
    assert found["broken"] == []
    assert found["steps"] > 1000


def test_storms_are_storms(loaded):
    """Of a few lives together every program was killed or ended, and every kind of fault has come."""
    faults = set()
    for seed in range(1000, 1004):
        faults |= telling.lived(seed)["faults"].keys()
    assert faults >= {"late", "refused", "answered in vain", "ends", "dial refused"}


def test_a_seed_gives_the_same_life_in_any_process():
    code = "from tests.storm import telling; print(telling.lived(3)['digest'])"
    run = [sys.executable, "-c", code]
    one, other = (
        subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": each})
        for each in ("1", "2")
    )
    assert one.stdout == other.stdout
    assert len(one.stdout) > 60


# -- who looks on must see ------------------------------------------------------------------------------------------


@pytest.fixture
def made():
    made = world.World(1)
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    made.create(life.node("n0", 4))
    return made


def pod(made, name, cpu, *, group="", job=""):
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "t0"} if job else {}
    metadata = {"name": name, "namespace": "a", "annotations": annotations, "labels": labels}
    made.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": life.pod_spec(cpu)})


def bind(made, name):
    uid = made.store.find(Key(kinds.POD, "a", name))["metadata"]["uid"]
    made.store.bind(Key(kinds.POD, "a", name), uid=uid, node="n0")


def rules(made):
    return [rule for rule, _ in made.oracle.broken]


def test_too_much_on_a_node_is_seen(made):
    pod(made, "p", 3)
    pod(made, "q", 3)
    bind(made, "p")
    assert rules(made) == []
    bind(made, "q")
    assert rules(made) == ["room"]


def test_who_writes_without_the_lease_is_seen(made):
    made.oracle.sent("sched-a#1", b"POST /api/v1/namespaces/a/pods/p/binding HTTP/1.1\r\n", "")
    assert rules(made) == ["lease"]
    made.oracle.sent("user", b"POST /api/v1/namespaces/a/pods HTTP/1.1\r\n", "")
    assert rules(made) == ["lease"]


def group(made, name, least):
    metadata = {"name": name, "namespace": "a"}
    made.create(
        {
            "apiVersion": kinds.POD_GROUP.api_version,
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": least},
        }
    )


def test_a_gang_in_part_and_a_gang_that_fits_and_waits_are_seen(made):
    group(made, "g", 2)
    pod(made, "p", 1, group="g")
    pod(made, "q", 1, group="g")
    bind(made, "p")
    made.oracle.judge(0.0)
    assert {"part", "fits"} <= set(rules(made))


def test_programs_that_do_not_run_are_seen(made):
    made.oracle.judge(0.0)
    assert rules(made) == ["alive"] * 4


def test_a_pod_too_many_is_seen(made):
    made.create(life.job("j", [(1, 1, 3)], 1))
    owner = made.store.find(Key(kinds.JOB, "a", "j"))["metadata"]["uid"]
    for name in ("j-t0-0", "j-t0-1"):
        metadata = {
            "name": name,
            "namespace": "a",
            "labels": {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "t0"},
            "ownerReferences": [{"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": owner}],
        }
        made.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": life.pod_spec(1)})
    assert rules(made) == ["twice"]


def test_what_is_left_out_does_not_happen(loaded):
    found = telling.lived(5, ["fates", *telling.lived(5)["happened"]])
    assert (found["broken"], found["faults"]) == ([], {})
