"""Random lives of controllers: late watches, lost answers, refusals, restarts; afterwards what is there equals a recount."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unreliable_world import UnreliableWorld, owners, template, workload

from drawing import drawn
from pumice.api import kinds
from pumice.controllers.workloads import daemon_sets, manifests, replica_sets, stateful_sets
from pumice.controllers.workloads.deployments.controlling import Deployments
from pumice.controllers.workloads.jobs import indexes, tallying
from pumice.controllers.workloads.jobs.controlling import Jobs

EVENTS = ("deliver", "turn", "turn", "turn", "kubelet", "kubelet", "pass_time")
LIVELY = settings(max_examples=drawn(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def lives(*more):
    """Give long lives, each told by its number and its length: a shorter one of the same number is its beginning."""
    return st.builds(
        lambda number, length: life(number, length, (*EVENTS, *more)), st.integers(0, 2**32), st.integers(0, 120)
    )


def life(number, length, events):
    rng = random.Random(number)  # noqa: S311  tells a life again
    return [(rng.choice(events), rng.randrange(10_000)) for _ in range(length)]


def live(world, story, **more):
    for event, number in story:
        more.get(event, getattr(world, event, None))(number)


# ---- ReplicaSets


@LIVELY
@given(lives("delete_pod", "scale", "restarted"))
def test_a_replica_set_never_has_more_pods_than_were_ever_wanted_and_ends_with_as_many_as_are(story):
    world = UnreliableWorld(lambda: [replica_sets.ReplicaSets()])
    largest = [3]

    def scale(number):
        largest.append(number % 6)
        world.patch(kinds.REPLICA_SET, "w", {"spec": {"replicas": number % 6}})

    world.judges.append(lambda: _at_most(world, max(largest)))
    world.create(workload("apps/v1", "ReplicaSet", replicas=3))
    live(world, story, scale=scale, restarted=lambda _: world.restart())
    world.settle()
    assert len(world.active()) == largest[-1]
    assert not world.complaints
    status = world.get(kinds.REPLICA_SET, "w")["status"]
    assert status["replicas"] == status.get("readyReplicas", 0) == status.get("availableReplicas", 0) == largest[-1]
    assert "conditions" not in status


def test_a_replication_controller_has_as_many_pods_as_it_says_by_its_map_of_labels():
    kind = kinds.REPLICATION_CONTROLLER
    world = UnreliableWorld(lambda: [replica_sets.ReplicaSets(kind)])
    stated = workload("v1", kind.name, replicas=3)
    stated["spec"]["selector"] = stated["spec"]["selector"]["matchLabels"]
    world.create(stated)
    world.settle()
    assert {owners(pod)[0] for pod in world.active()} == {world.get(kind, "w")["metadata"]["uid"]}
    assert world.get(kind, "w")["status"]["readyReplicas"] == len(world.active()) == 3
    world.patch(kind, "w", {"spec": {"replicas": 1}})
    world.settle()
    assert len(world.active()) == 1
    assert not world.complaints


@LIVELY
@given(
    lives("delete_pod", "delete_pod", "vanish", "restarted"),
    st.sampled_from((("ReplicaSet", ""), ("Job", "NonIndexed"), ("Job", "Indexed"), ("DaemonSet", ""))),
)
def test_no_pod_ever_has_the_name_of_one_before_it_and_there_are_never_too_many(story, kind):
    make = {"ReplicaSet": replica_sets.ReplicaSets, "Job": Jobs, "DaemonSet": daemon_sets.DaemonSets}[kind[0]]
    world = UnreliableWorld(lambda: [make()])
    for place in range(3 if kind[0] == "DaemonSet" else 0):
        world.create(_node(place))
    work = {"completions": 60, "parallelism": 3, "completionMode": kind[1], "backoffLimit": 1000}
    sizes = {"ReplicaSet": {"replicas": 3}, "Job": work, "DaemonSet": {}}[kind[0]]
    world.create(workload("batch/v1" if kind[0] == "Job" else "apps/v1", kind[0], **sizes))
    world.judges.append(lambda: _at_most(world, 3))

    def vanish(number):
        """Let a pod be gone at once, one that the controller has heard of: of a creation without an answer nobody can tell it from one that never came."""
        found = [pod for pod in world.pods() if world.engine.observed.has(kinds.POD, "a", pod["metadata"]["name"])]
        if found:
            world.store.remove(_key(kinds.POD, found[number % len(found)]["metadata"]["name"]))

    live(world, story, vanish=vanish, restarted=lambda _: world.restart())
    world.settle()
    names = [key.name for key in world.created]
    assert len(set(names)) == len(names)
    assert len(world.active()) == 3
    assert not world.complaints


@LIVELY
@given(lives(), st.integers(0, 2**32), st.sampled_from(("ReplicaSet", "Job", "DaemonSet")))
def test_two_controllers_at_once_with_late_watches_make_no_pod_twice(story, number, kind):
    make = {"ReplicaSet": replica_sets.ReplicaSets, "Job": Jobs, "DaemonSet": daemon_sets.DaemonSets}[kind]
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    one = UnreliableWorld(lambda: [make()], pods_end=False, alone=False)
    two = UnreliableWorld(lambda: [make()], pods_end=False, beside=one, alone=False)
    for place in range(4 if kind == "DaemonSet" else 0):
        one.create(_node(place))
    sizes = {"ReplicaSet": {"replicas": 4}, "Job": {"completions": 4, "parallelism": 4}, "DaemonSet": {}}
    one.create(workload(api_version, kind, **sizes[kind]))
    rng = random.Random(number)  # noqa: S311  tells a life again
    for world in (one, two):
        world.judges.append(lambda: _at_most(one, 4))
    for event in story:
        live(rng.choice((one, two)), [event])
    one.settle()
    two.settle()
    assert len(one.active()) == 4


@pytest.mark.parametrize("fault", ["lost", "away"])
@pytest.mark.parametrize("kind", ["ReplicaSet", "Job"])
def test_with_the_answer_to_every_third_request_lost_there_are_as_many_pods_as_are_wanted(fault, kind):
    make, api_version = (Jobs, "batch/v1") if kind == "Job" else (replica_sets.ReplicaSets, "apps/v1")
    world = UnreliableWorld(lambda: [make()], pods_end=False)
    sizes = {"completions": 5, "parallelism": 5} if kind == "Job" else {"replicas": 5}
    world.create(workload(api_version, kind, **sizes))
    world.judges.append(lambda: _at_most(world, 5))
    plain, count = world.perform, [0]

    def perform(request, _=""):
        count[0] += 1
        return plain(request, fault if count[0] % 3 == 1 else "")

    world.perform = perform
    world.settle()
    assert len(world.active()) == 5


def _at_most(world, most):
    assert len(world.active()) <= most, [pod["metadata"]["name"] for pod in world.active()]


@LIVELY
@given(lives("delete_pod", "orphan", "relabel", "foreign"), st.integers(0, 5))
def test_orphans_are_adopted_strangers_are_let_go_and_what_others_own_is_left_alone(story, replicas):
    world = UnreliableWorld(lambda: [replica_sets.ReplicaSets()])
    world.create(workload("apps/v1", "ReplicaSet", replicas=replicas))
    uid = world.get(kinds.REPLICA_SET, "w")["metadata"]["uid"]
    other = {"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "other", "controller": True}

    def pod(name, references):
        metadata = {"name": name, "namespace": "a", "labels": {"app": "x"}, "ownerReferences": references}
        if world.get(kinds.POD, name) is None:
            world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})

    def relabel(number):
        found = world.pods(uid)
        if found:
            world.patch(
                kinds.POD, found[number % len(found)]["metadata"]["name"], {"metadata": {"labels": {"app": "y"}}}
            )

    live(
        world,
        story,
        orphan=lambda n: pod(f"orphan-{n % 3}", []),
        foreign=lambda n: pod("foreign", [other]),
        relabel=relabel,
    )
    world.settle()
    assert len(world.active(uid)) == replicas
    for each in world.pods():
        labels, named = each["metadata"].get("labels", {}), owners(each)
        if named == ["other"]:
            continue
        assert (uid in named) == (labels.get("app") == "x")


# ---- Jobs


@LIVELY
@given(
    lives("delete_pod", "suspend", "parallel", "restarted"),
    st.sampled_from(("NonIndexed", "Indexed")),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_a_job_counts_each_pod_once_and_never_runs_more_than_it_may(story, mode, completions, parallelism, limit):
    world = UnreliableWorld(lambda: [Jobs()])
    spec = {"completions": completions, "parallelism": parallelism, "completionMode": mode, "backoffLimit": limit}
    world.create(workload("batch/v1", "Job", **spec))
    most = [parallelism]

    def parallel(number):
        most.append(number % 4)
        world.patch(kinds.BATCH_JOB, "w", {"spec": {"parallelism": number % 4}})

    def suspend(number):
        world.patch(kinds.BATCH_JOB, "w", {"spec": {"suspend": bool(number % 2)}})

    world.judges.append(lambda: _at_most(world, max(most)))
    live(world, story, suspend=suspend, parallel=parallel, restarted=lambda _: world.restart())
    world.patch(kinds.BATCH_JOB, "w", {"spec": {"suspend": False, "parallelism": max(1, parallelism)}})
    world.settle(ending="Succeeded")
    assert not world.complaints
    _check_job(world, world.get(kinds.BATCH_JOB, "w"), mode, completions, limit)


def _check_job(world, job, mode, completions, limit):
    status = job["status"]
    assert not world.active()
    assert not any(tallying.is_tracked(pod) for pod in world.pods())
    assert not status["uncountedTerminatedPods"]
    assert "active" not in status
    assert status["terminating"] == 0
    good, bad = status.get("succeeded", 0), status.get("failed", 0)
    assert bad == list(world.ends.values()).count("Failed")
    if manifests.has(status, "Complete"):
        assert good == completions
        assert bad <= limit
        assert "completionTime" in status
    else:
        assert manifests.has(status, "Failed")
        assert bad > limit
    if mode == "Indexed":
        assert good == len(indexes.parse(status.get("completedIndexes"), completions))
    else:
        assert good == list(world.ends.values()).count("Succeeded")


@LIVELY
@given(lives(), st.integers(1, 4), st.integers(1, 3))
def test_a_job_without_completions_is_over_when_one_pod_succeeded_and_all_have_ended(story, parallelism, limit):
    world = UnreliableWorld(lambda: [Jobs()])
    world.create(workload("batch/v1", "Job", parallelism=parallelism, backoffLimit=limit))
    live(world, story)
    world.settle(ending="Succeeded")
    status = world.get(kinds.BATCH_JOB, "w")["status"]
    phases = [phase for phase in world.ends.values() if phase == "Succeeded"]
    assert manifests.has(status, "Complete") or manifests.has(status, "Failed")
    assert status.get("succeeded", 0) == len(phases)
    assert not world.active()


@LIVELY
@given(lives("delete_pod"), st.integers(0, 60))
def test_a_job_that_is_gone_leaves_no_pod_that_waits_to_be_counted(story, when):
    world = UnreliableWorld(lambda: [Jobs()])
    world.create(workload("batch/v1", "Job", parallelism=3, completions=5))
    live(world, story[:when])
    if world.get(kinds.BATCH_JOB, "w") is not None:
        world.store.remove(_key(kinds.BATCH_JOB, "w"))
    live(world, story[when:])
    world.settle()
    assert not any(tallying.is_tracked(pod) for pod in world.pods())


def _key(kind, name):
    from pumice.sim.identity import Key

    return Key(kind, "a", name)


# ---- Deployments


IMAGES = ("i", "j", "k")


@LIVELY
@given(
    lives("image", "scale"),
    st.sampled_from(((1, 0), (0, 1), ("25%", "25%"), (2, 2), ("100%", "0%"))),
    st.integers(0, 5),
)
def test_a_rolling_update_keeps_to_its_surge_and_ends_with_the_new_template_alone(story, bounds, replicas):
    world = UnreliableWorld(lambda: [Deployments(), replica_sets.ReplicaSets()], pods_end=False)
    rolling = {"maxSurge": bounds[0], "maxUnavailable": bounds[1]}
    spec = {
        "replicas": replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "revisionHistoryLimit": 1,
    }
    world.create(workload("apps/v1", "Deployment", **spec))
    wanted, image = [replicas], ["i"]

    def scale(number):
        wanted.append(number % 6)
        world.patch(manifests.DEPLOYMENT, "w", {"spec": {"replicas": number % 6}})

    def change(number):
        image.append(IMAGES[number % 3])
        world.patch(manifests.DEPLOYMENT, "w", {"spec": {"template": template(image=image[-1])}})

    world.judges.append(lambda: _within_surge(world, max(wanted), bounds[0]))
    live(world, story, scale=scale, image=change)
    world.settle(rounds=3000)
    assert not world.complaints
    _check_deployment(world, wanted[-1], image[-1])


def _within_surge(world, most, surge):
    allowed = most + manifests.scaled(surge, most, up=True)
    sizes = [manifests.number(each["spec"], "replicas") for each in world.store.scan(kinds.REPLICA_SET)]
    assert sum(sizes) <= allowed


def _check_deployment(world, replicas, image):
    deployment = world.get(manifests.DEPLOYMENT, "w")
    assert len(world.active()) == replicas
    assert all(pod["spec"]["containers"][0]["image"] == image for pod in world.active())
    sets = list(world.store.scan(kinds.REPLICA_SET))
    new = [each for each in sets if each["spec"]["template"]["spec"]["containers"][0]["image"] == image]
    assert len(new) == 1
    assert len(sets) <= 2 or replicas == 0
    status = deployment["status"]
    assert status["observedGeneration"] == deployment["metadata"]["generation"]
    for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"):
        assert status.get(field, 0) == replicas, field
    assert manifests.condition(status, "Progressing")["reason"] in ("NewReplicaSetAvailable", "NewReplicaSetCreated")
    revision = "deployment.kubernetes.io/revision"
    numbers = [int(each["metadata"]["annotations"][revision]) for each in sets]
    assert int(new[0]["metadata"]["annotations"][revision]) == max(numbers)
    assert deployment["metadata"]["annotations"][revision] == str(max(numbers))


@LIVELY
@given(lives("image"), st.sampled_from(((1, 0), (0, 1), ("25%", "25%"), (2, 2))), st.integers(1, 5))
def test_a_rolling_update_leaves_enough_pods_available_at_any_time(story, bounds, replicas):
    world = UnreliableWorld(lambda: [Deployments(), replica_sets.ReplicaSets()], pods_end=False)
    rolling = {"maxSurge": bounds[0], "maxUnavailable": bounds[1]}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    world.create(workload("apps/v1", "Deployment", replicas=replicas, strategy=strategy, revisionHistoryLimit=1))
    world.settle()
    least = replicas - (manifests.scaled(bounds[1], replicas, up=False) or (not bounds[0]))
    image = ["i"]

    def change(number):
        image.append(IMAGES[number % 3])
        world.patch(manifests.DEPLOYMENT, "w", {"spec": {"template": template(image=image[-1])}})

    world.judges.append(lambda: _at_least(world, least))
    live(world, story, image=change)
    world.settle(rounds=3000)
    _check_deployment(world, replicas, image[-1])


def _at_least(world, least):
    running = [pod for pod in world.active() if pod.get("status", {}).get("phase") == "Running"]
    assert len(running) >= least


@LIVELY
@given(lives("image"))
def test_recreate_starts_no_new_pod_while_an_old_one_is_there(story):
    world = UnreliableWorld(lambda: [Deployments(), replica_sets.ReplicaSets()], pods_end=False)
    world.create(workload("apps/v1", "Deployment", replicas=3, strategy={"type": "Recreate"}, revisionHistoryLimit=1))
    image = ["i"]

    def change(number):
        image.append(IMAGES[number % 3])
        world.patch(manifests.DEPLOYMENT, "w", {"spec": {"template": template(image=image[-1])}})

    def alone():
        images = {pod["spec"]["containers"][0]["image"] for pod in world.pods()}
        assert len(images) <= 1, images

    world.judges.append(alone)
    live(world, story, image=change)
    world.settle(rounds=3000)
    _check_deployment(world, 3, image[-1])


# ---- StatefulSets


@LIVELY
@given(lives("delete_pod", "image", "scale", "restarted"), st.sampled_from(("OrderedReady", "Parallel")))
def test_a_stateful_set_has_one_pod_for_each_number_with_its_own_volume(story, policy):
    world = UnreliableWorld(lambda: [stateful_sets.StatefulSets()])
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    spec = {"replicas": 3, "serviceName": "s", "podManagementPolicy": policy, "volumeClaimTemplates": [claim]}
    world.create(workload("apps/v1", "StatefulSet", **spec))
    wanted, image = [3], ["i"]

    def scale(number):
        wanted.append(number % 5)
        world.patch(kinds.STATEFUL_SET, "w", {"spec": {"replicas": number % 5}})

    def change(number):
        image.append(IMAGES[number % 3])
        world.patch(kinds.STATEFUL_SET, "w", {"spec": {"template": template(image=image[-1])}})

    live(world, story, scale=scale, image=change, restarted=lambda _: world.restart())
    world.settle(rounds=2000)
    assert not world.complaints
    names = sorted(pod["metadata"]["name"] for pod in world.active())
    assert names == [f"w-{number}" for number in range(wanted[-1])]
    for pod in world.active():
        assert pod["spec"]["containers"][0]["image"] == image[-1]
        assert pod["spec"]["volumes"] == [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{pod['metadata']['name']}"}}
        ]
        assert world.get(kinds.PERSISTENT_VOLUME_CLAIM, f"data-{pod['metadata']['name']}") is not None
    status = world.get(kinds.STATEFUL_SET, "w")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["replicas"] == status.get("updatedReplicas", 0) == status.get("readyReplicas", 0) == wanted[-1]


@LIVELY
@given(lives())
def test_an_ordered_stateful_set_makes_a_pod_only_after_all_before_it_are_ready(story):
    world = UnreliableWorld(lambda: [stateful_sets.StatefulSets()], pods_end=False)
    world.create(workload("apps/v1", "StatefulSet", replicas=4))

    def ordered():
        numbers = sorted(int(pod["metadata"]["name"][2:]) for pod in world.pods())
        assert numbers == list(range(len(numbers)))
        ready = [
            world.get(kinds.POD, f"w-{number}").get("status", {}).get("phase") == "Running" for number in numbers[:-1]
        ]
        assert all(ready)

    world.judges.append(ordered)
    live(world, story)
    world.settle()
    assert len(world.active()) == 4


# ---- DaemonSets


@LIVELY
@given(lives("delete_pod", "node", "taint", "image", "restarted"))
def test_a_daemon_set_has_one_pod_on_each_node_that_bears_it_and_none_elsewhere(story):
    world = UnreliableWorld(lambda: [daemon_sets.DaemonSets()])
    for number in range(3):
        world.create(_node(number))
    world.create(workload("apps/v1", "DaemonSet"))
    image = ["i"]

    def node(number):
        name = f"n{number % 5}"
        if world.get(kinds.NODE, name) is None:
            world.create(_node(number % 5))
        elif number % 2:
            from pumice.sim.identity import Key

            world.store.remove(Key(kinds.NODE, "", name))

    def taint(number):
        effect = ("NoSchedule", "NoExecute")[number % 2]
        spec = {"taints": [{"key": "k", "effect": effect}] if number % 3 else None}
        world.patch(kinds.NODE, f"n{number % 5}", {"spec": spec}, namespace="")

    def change(number):
        image.append(IMAGES[number % 3])
        world.patch(kinds.DAEMON_SET, "w", {"spec": {"template": template(image=image[-1])}})

    live(world, story, node=node, taint=taint, image=change, restarted=lambda _: world.restart())
    world.settle(rounds=2000)
    assert not world.complaints
    nodes = {each["metadata"]["name"]: each for each in world.store.scan(kinds.NODE)}
    effects = {
        name: {each["effect"] for each in node.get("spec", {}).get("taints") or ()} for name, node in nodes.items()
    }
    places = [daemon_sets.node_fit.node_of(pod) for pod in world.active()]
    assert len(places) == len(set(places))
    assert {name for name in nodes if not effects[name]} <= set(places)
    assert not {name for name in nodes if "NoExecute" in effects[name]} & set(places)
    assert set(places) <= set(nodes)
    status = world.get(kinds.DAEMON_SET, "w")["status"]
    assert status["desiredNumberScheduled"] == sum(not each for each in effects.values())


def _node(number):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "spec": {}}


@pytest.mark.parametrize(
    ("text", "found"), [("", set()), ("1", {1}), ("0,2-4", {0, 2, 3, 4}), ("3-1", set()), ("x,1-9", {1, 2, 3, 4})]
)
def test_completion_indexes_are_read_as_far_as_they_make_sense(text, found):
    assert [index for each in indexes.parse(text, 5).ranges for index in each] == sorted(found)


@given(st.sets(st.integers(0, 40)))
def test_completion_indexes_are_read_as_they_were_written(found):
    given = indexes.Indexes().with_others(found)
    assert indexes.parse(indexes.write(given), 41).ranges == given.ranges
