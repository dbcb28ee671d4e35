"""What would be is what comes to be: the difference that is shown is the one that making the change has."""

from __future__ import annotations

import pytest
import yaml
from study_worlds import KNOWN, lived, played, policy_of, seen

from drawing import drawn
from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration
from pumice.scenario.stage import SimulatedStage
from pumice.scheduler import Options
from pumice.study import changing, comparing, comparison_text, files
from pumice.study.state import State
from tests.lives import policies

CYCLES = 5
LIVES = drawn(2, 1)
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "new", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "6", "memory": "64Gi", "pods": "110"}},
}


def gang(name, count, cpu):
    """Return a gang that wants to start at once."""
    group = {"minMember": count, "queue": "default"}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    manifests = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "a"},
            "spec": group,
        }
    ]
    for index in range(count):
        annotations = {"scheduling.k8s.io/group-name": name}
        metadata = {"name": f"{name}-{index}", "namespace": "a", "annotations": annotations}
        spec = {"schedulerName": "volcano", "containers": [container]}
        manifests.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return manifests


def nodes(stage):
    """Return where the pods of a simulated cluster are, those that have a node and a group."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"]["nodeName"]
        for pod in stage.cluster.store.scan(kinds.POD)
        if pod["spec"].get("nodeName")
        and "scheduling.k8s.io/group-name" in pod["metadata"].get("annotations", {})
        and pod["status"]["phase"] in ("Pending", "Running")
        and "deletionTimestamp" not in pod["metadata"]
    }


def said(outcome):
    return {f"{key.split('/')[0]}/{pod}": node for key, job in outcome.jobs.items() for pod, node in job.nodes.items()}


def restart(stage):
    """Put a scheduler that knows nothing in the place of the old one: what only a process knows is in no file."""
    stage.take_over(Cache(stage.cluster, Options()))
    stage.cluster.restart(stage.cache)


@pytest.mark.parametrize("policy", policies.NAMES[::4])
def test_a_change_does_what_making_it_does(policy):
    for seed in range(LIVES):
        change = changing.Change(apply=(NODE, *gang("added", 2, "2")))
        stage = played(seed, policy)
        state = seen(stage)
        predicted = comparing.run(state, policy_of(state), change, KNOWN, CYCLES)
        restart(stage)
        stage.apply(change.apply)
        for _ in range(CYCLES):
            stage.cycle(duration.SECOND)
        assert said(predicted) == nodes(stage), (seed, policy)


def test_no_change_makes_no_difference():
    for seed in range(2 * LIVES):
        state = lived(seed)
        policy = policy_of(state)
        found = comparing.compare(state, policy, policy, KNOWN, cycles=CYCLES)
        assert not found.differs
        assert found.same == len(comparing.run(state, policy, changing.NO_CHANGE, KNOWN, 1).jobs)


def test_a_drained_node_is_left_by_all_that_may_go_and_owned_pods_are_made_anew():
    for seed in range(2 * LIVES):
        state = lived(seed)
        policy = policy_of(state)
        name = next(found.metadata.name for found in state.of(kinds.NODE))
        change = changing.Change(drain=(name,))
        after = comparing.run(state, policy, change, KNOWN, 1)  # so short that nobody ends by himself
        bearing = {f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in state.pods() if pod.spec.tolerations}
        assert not [pod for pod, node in said(after).items() if node == name and pod not in bearing]
        before = comparing.run(state, policy, changing.NO_CHANGE, KNOWN, 1)
        assert {key: job.pods for key, job in after.jobs.items()} == {key: job.pods for key, job in before.jobs.items()}


def test_a_state_that_was_read_is_not_changed_by_what_is_tried_on_it():
    state = lived(3)
    before = state.manifests()
    policy = policy_of(state)
    comparing.compare(state, policy, policy, KNOWN, change=changing.Change(apply=(NODE,)), cycles=2)
    assert state.manifests() == before


def test_objects_of_another_simulated_cluster_keep_their_uids_to_themselves():
    stage = played(1, "prop_preempt")
    stage.apply(gang("added", 3, "1"))
    again = comparing.staged(seen(stage), policy_of(seen(stage)), KNOWN)
    again.apply(gang("more", 5, "1"))
    uids = [pod["metadata"]["uid"] for pod in again.cluster.store.scan(kinds.POD)]
    assert len(uids) == len(set(uids))


def test_a_cluster_is_simulated_until_nothing_more_happens():
    """A gang whose room is made by an eviction starts when its victim's grace of 40 s is over, and nothing is due after that."""
    state = waiting_for_a_victim(grace=40)
    outcome = comparing.run(state, policy_of(state), changing.NO_CHANGE, KNOWN)
    assert outcome.settled
    assert outcome.jobs["a/late"].standing == "starts"
    assert outcome.seconds >= 40


def test_a_simulation_that_is_stopped_before_says_so():
    state = waiting_for_a_victim(grace=40)
    outcome = comparing.run(state, policy_of(state), changing.NO_CHANGE, KNOWN, cycles=2)
    assert not outcome.settled
    assert outcome.cycles == 2
    assert outcome.lately == (0, 1)


def waiting_for_a_victim(grace):
    """Return a node that is full, and a gang of higher priority that waits for it."""
    text = 'actions: "enqueue, allocate, preempt"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: predicates}]\n'
    low, high = gang("early", 1, "6"), gang("late", 1, "6")
    low[1]["spec"] |= {"nodeName": "new", "terminationGracePeriodSeconds": grace}
    low[0]["spec"]["minMember"] = 0
    high[0]["spec"]["priorityClassName"] = high[1]["spec"]["priorityClassName"] = "high"
    first = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    stage = SimulatedStage(configuration.load(text, KNOWN.catalog(), "config"), Options(), KNOWN)
    stage.apply([NODE, first, *low, *high])
    return seen(stage)


# -- Jobs of Volcano, whose controller is run, too


def job(name, replicas, cpu, **spec):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    spec = {"minAvailable": replicas, "schedulerName": "volcano", "queue": "default", "tasks": [task], **spec}
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def cluster_of(tmp_path, *given):
    """A cluster with two nodes of 4 cpu, in which controllers have seen to what is given."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}
        for name in ("n1", "n2")
    ]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*nodes, *given]), encoding="utf-8")
    state = files.read(str(file), KNOWN)
    stage = comparing.staged(state, policy_of(state), KNOWN)
    for _ in range(2 * LIVES):
        stage.cycle(duration.SECOND)
    objects, jobs = files.stored(stage.cluster), files.jobs_of(stage.cluster.store.scan(kinds.JOB))
    return State(source="a cluster", now=stage.cluster.clock.now(), objects=objects, jobs=jobs)


def test_a_new_job_of_volcano_is_seen_by_the_pods_that_its_controller_makes(tmp_path):
    state = cluster_of(tmp_path)
    made = job("train", 3, "2")
    for filled_in in ("minAvailable", "schedulerName", "queue"):
        del made["spec"][filled_in]
    change = changing.Change(apply=(made,))
    found = comparing.compare(state, policy_of(state), policy_of(state), KNOWN, change=change)
    (seen_job,) = found.jobs
    assert (seen_job.job, seen_job.after.standing, seen_job.after.placed) == ("a/train", "starts", 3)
    assert sorted(seen_job.after.nodes) == ["train-w-0", "train-w-1", "train-w-2"]
    assert found.settled


def test_pods_of_a_job_that_waits_are_made_once_the_change_lets_it_in(tmp_path):
    state = cluster_of(tmp_path, job("train", 3, "4"))
    assert not list(state.pods())
    change = changing.Change(apply=(NODE,))
    (found,) = comparing.compare(state, policy_of(state), policy_of(state), KNOWN, change=change).jobs
    assert (found.job, found.before.standing, found.after.standing) == ("a/train", "has no pods", "starts")
    assert (found.after.placed, found.after.pods) == (3, 3)


def test_pods_of_a_drained_node_are_made_anew_once_by_the_controller_of_their_job(tmp_path):
    policies = [{"event": "PodEvicted", "action": "RestartTask"}]
    state = cluster_of(tmp_path, job("train", 2, "2", minAvailable=1, policies=policies))
    on_it = {pod.spec.node_name for pod in state.pods()}
    change = changing.Change(drain=(min(on_it),))
    after = comparing.run(state, policy_of(state), change, KNOWN)
    assert (after.jobs["a/train"].placed, after.jobs["a/train"].pods) == (2, 2)
    assert min(on_it) not in after.jobs["a/train"].nodes.values()


def test_job_that_ends_while_it_is_simulated_is_compared_by_when(tmp_path):
    short = job("train", 2, "2", minAvailable=1)
    short["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {"pumice.dev/run-time": "60s"}}
    state = cluster_of(tmp_path, short)
    on_it = min(pod.spec.node_name for pod in state.pods())
    same = comparing.compare(state, policy_of(state), policy_of(state), KNOWN)
    assert (same.differs, same.same) == (False, 1)
    change = changing.Change(drain=(on_it,))
    (found,) = comparing.compare(state, policy_of(state), policy_of(state), KNOWN, change=change).jobs
    assert (found.job, found.before.standing, found.after.standing) == ("a/train", "ends", "ends")
    assert 50 <= found.before.seconds <= 60 < found.after.seconds
    assert f"ends after {found.after.seconds} s" in "\n".join(
        comparison_text.lines(comparing.compare(state, policy_of(state), policy_of(state), KNOWN, change=change))
    )
    deleted = changing.Change(delete=("job/a/train",))
    (found,) = comparing.compare(state, policy_of(state), policy_of(state), KNOWN, change=deleted).jobs
    assert found.after.standing == "is not there"
