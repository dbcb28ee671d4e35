"""Random lives of Volcano's Jobs: pods fail, are evicted and refused, answers are lost, watches are late, controllers are killed.

The oracle reads API objects alone, and is written from the rules: pods by name, retries by their causes, counts by recounting.
"""

import random
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unreliable_world import UnreliableWorld, owners

from drawing import drawn
from pumice.api import kinds
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.sim.identity import Key

LIVELY = settings(max_examples=drawn(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVENTS = ("deliver", "turn", "turn", "turn", "turn", "kubelet", "kubelet", "pass_time", "let_in")
ENDED = ("Aborted", "Completed", "Failed", "Terminated")
PLUGINS = ({}, {"env": []}, {"svc": []}, {"svc": ["--disable-network-policy=true"], "env": []})
MADE = (kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY)
COUNTED = {"pending": "Pending", "running": "Running", "succeeded": "Succeeded", "failed": "Failed"}
CAUSE = re.compile(r"(PodFailed|PodEvicted) of ([a-z0-9-]+)")


class JobWorld(UnreliableWorld):
    """A world with a scheduler that lets groups in, garbage collection, and a judge who counts retries by their causes."""

    def __init__(self):
        self.uids = {}  # name of a pod -> the uids that it has had
        self.failed = {}  # uid of a pod that failed -> its version
        self.evicted = {}  # likewise
        self.causes = []
        self.history = []
        self.restarts = -1
        super().__init__(lambda: [Jobs()])
        self.store.observe(self._judge)
        self.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}})

    def restart(self):
        self.restarts += 1
        super().restart()

    def let_in(self, number):
        """Let the scheduler take note of groups, or lose sight of one."""
        for group in list(self.store.scan(kinds.POD_GROUP)):
            key = Key(kinds.POD_GROUP, "a", group["metadata"]["name"])
            self.store.patch(key, {"status": {"phase": "Unknown" if number % 17 == 0 else "Inqueue"}})

    def collect(self):
        """Delete what belongs to somebody who is gone."""
        alive = {job["metadata"]["uid"] for job in self.store.scan(kinds.JOB)}
        for kind in (kinds.POD, kinds.POD_GROUP, *MADE):
            for each in list(self.store.scan(kind)):
                if owners(each) and not alive.intersection(owners(each)):
                    self.store.remove(Key(kind, "a", each["metadata"]["name"]))

    def order(self, number):
        action = ("AbortJob", "ResumeJob", "RestartJob", "ResumeJob", "TerminateJob", "CompleteJob")[number % 6]
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "x"}
        metadata = {"name": f"c{number}", "namespace": "a"}
        if self.get(kinds.COMMAND, f"c{number}") is None:
            api_version = "bus.volcano.sh/v1alpha1"
            command = {"apiVersion": api_version, "kind": "Command", "metadata": metadata}
            self.create({**command, "action": action, "target": target})

    def settle(self, ending=None, rounds=400):
        """Settle, with groups let in that come only then."""
        before = None
        while before != self.store.resource_version:
            before = self.store.resource_version
            self.let_in(1)
            self.collect()
            super().settle(ending, rounds)

    def kubelet(self, number):
        pods = list(self.store.scan(kinds.POD))
        if pods:
            self.step_pod(pods[number % len(pods)], ("Failed", "Succeeded", None, None)[number % 4])
            self._exit(pods[number % len(pods)]["metadata"]["name"], number)

    def _exit(self, name, number):
        """Let a pod that has failed say with which code."""
        pod = self.get(kinds.POD, name)
        if (
            pod is not None
            and pod.get("status", {}).get("phase") == "Failed"
            and "containerStatuses" not in pod["status"]
        ):
            ended = [{"name": "c", "restartCount": number % 3, "state": {"terminated": {"exitCode": number % 4}}}]
            self.store.patch_status(Key(kinds.POD, "a", name), {"status": {"containerStatuses": ended}})

    def _judge(self, key, event_type, manifest):
        metadata = manifest["metadata"]
        if key.kind is kinds.POD:
            self._judge_pod(event_type, manifest)
        elif key.kind is kinds.JOB and event_type == "MODIFIED":
            self._judge_status(metadata, manifest.get("status", {}))

    def _judge_pod(self, event_type, pod):
        metadata = pod["metadata"]
        uids = self.uids.setdefault(metadata["name"], [])
        version = int(metadata["annotations"]["volcano.sh/job-version"])
        if metadata["uid"] not in uids:
            uids.append(metadata["uid"])
        if pod.get("status", {}).get("phase") == "Failed":
            self.failed.setdefault(metadata["uid"], version)
        ours = "volcano.sh/controller-out-of-sync" in metadata["annotations"]
        known = self.engine.observed.find(kinds.POD, "a", metadata["name"])
        known = known is not None and known["metadata"]["uid"] == metadata["uid"]
        if known and not ours and (event_type == "DELETED" or metadata.get("deletionTimestamp")):
            self.evicted.setdefault(metadata["uid"], version)

    def _judge_status(self, metadata, status):
        before = self.history[-1] if self.history else {}
        if not status or status == before:
            return
        self.history.append(status)
        retries, earlier = status.get("retryCount", 0), before.get("retryCount", 0)
        assert retries - earlier in (0, 1)
        if retries == earlier:
            return
        assert status["state"]["phase"] == "Restarting"
        message = status["state"]["message"]
        cause = CAUSE.search(message)
        # A retry is counted for one pod or one Command, and for each of these once.
        named = (cause[1], self.uids[cause[2]][-1]) if cause else message
        assert named not in self.causes, named
        self.causes.append(named)


def policy_of(rng):
    """Give a policy of any kind, with a time-out now and then."""
    events = ["PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "PodPending", "*"]
    actions = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition", "AbortJob", "CompleteJob", "ResumeJob")
    found = {"action": rng.choice(actions)}
    if rng.random() < 0.2:
        found["exitCode"] = rng.choice((1, 3))
    else:
        found["events"] = rng.sample(events, rng.choice((1, 1, 2)))
    return found | ({"timeout": f"{rng.randrange(1, 40)}s"} if rng.random() < 0.3 else {})


def job_of(rng, *, plain=True):
    """Give a Job; a plain one has a single policy, which the judge can follow."""
    restart = rng.choice(("RestartJob", "RestartJob", "RestartTask", "RestartPod", "AbortJob", None))
    events = rng.choice((["PodFailed"], ["PodFailed", "PodEvicted"], ["PodEvicted"]))
    tasks = []
    for place in range(rng.choice((1, 2))):
        replicas = rng.randrange(1, 4)
        task = {"name": f"t{place}", "replicas": replicas, "template": {"spec": {"containers": [{"name": "c"}]}}}
        if rng.random() < 0.3:
            task["minAvailable"] = rng.randrange(0, replicas + 1)
        if not plain:
            task["policies"] = [policy_of(rng) for _ in range(rng.randrange(3))]
            task |= {"partitionPolicy": {"partitionSize": 2}} if rng.random() < 0.5 else {}
        tasks.append(task)
    if len(tasks) == 2 and rng.random() < 0.3:
        tasks[1]["dependsOn"] = {"name": ["t0"]}
    total = sum(task["replicas"] for task in tasks)
    spec = {"tasks": tasks, "minAvailable": rng.randrange(0, total + 1), "maxRetry": rng.choice((1, 2, 3, 50))}
    if restart:
        spec["policies"] = [{"events": events, "action": restart}] if plain else [policy_of(rng) for _ in range(2)]
    if rng.random() < 0.3:
        spec["minSuccess"] = rng.randrange(1, total + 1)
    spec["plugins"] = rng.choice(PLUGINS)
    metadata = {"name": "j", "namespace": "a", "uid": f"u{rng.randrange(99)}"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def story_of(rng, *more):
    return [(rng.choice((*EVENTS, *more)), rng.randrange(10_000)) for _ in range(rng.randrange(150))]


def live(world, story, **more):
    for event, number in story:
        more.get(event, getattr(world, event, None))(number)


def scaled(world, job, largest):
    def scale(number):
        tasks = [{**task, "replicas": (number + place) % 4} for place, task in enumerate(job["spec"]["tasks"])]
        for task in tasks:
            largest[task["name"]] = max(largest[task["name"]], task["replicas"])
        if world.get(kinds.JOB, "j") is not None:
            world.patch(kinds.JOB, "j", {"spec": {"tasks": tasks}})

    return scale


def check_numbers(world, largest):
    """Never more pods than were ever wanted, and none beyond the indexes."""
    for pod in world.pods():
        role, index = pod["metadata"]["name"].split("-")[1:]
        assert int(index) < largest[role], pod["metadata"]["name"]


def check_end(world, *, over=None, known=True, plain=True):
    job = world.get(kinds.JOB, "j")
    spec, status = job["spec"], job["status"]
    phase, uid = status["state"]["phase"], job["metadata"]["uid"]
    assert over is None or phase in over, (phase, status)
    assert not list(world.store.scan(kinds.COMMAND))
    mine = world.pods(uid)
    assert len(mine) == len(world.pods())
    assert not any(pod["metadata"].get("deletionTimestamp") for pod in mine)
    for field, name in COUNTED.items():
        found = sum(pod["status"].get("phase") == name for pod in mine)
        kept = phase in ("Completed", "Failed", "Terminated") and field in ("succeeded", "failed")
        assert status[field] >= found if kept else status[field] == found, (field, status, found)
    assert status["terminating"] == status["unknown"] == 0
    at_work = phase not in ENDED
    groups = list(world.store.scan(kinds.POD_GROUP))
    assert len(groups) == at_work
    if not at_work:
        assert not world.active()
        assert not any(list(world.store.scan(kind)) for kind in MADE)
        return
    group = groups[0]
    assert group["spec"]["minMember"] == spec["minAvailable"] == status["minAvailable"]
    assert group["metadata"]["annotations"]["volcano.sh/job-version"] == str(status["version"])
    made = "svc" in spec["plugins"]
    assert [len(list(world.store.scan(kind))) for kind in MADE[:2]] == [made, made]
    if plain:
        check_retries(world, spec, status, known=known and not world.restarts)


def check_retries(world, spec, status, *, known):
    """No retry was lost: whoever failed is of the past, if policies say so; of those who vanished a new controller may know nothing."""
    policy = (spec.get("policies") or [{"events": [], "action": ""}])[0]
    present = {pod["metadata"]["uid"] for pod in world.pods()}
    current = [uid for uid, version in world.failed.items() if version >= status["version"]]
    if "PodFailed" in policy["events"] and policy["action"].startswith("Restart"):
        assert not present.intersection(current)
    if "PodFailed" in policy["events"] and policy["action"] == "RestartJob" and known:
        assert not current


@LIVELY
@given(st.integers(0, 2**32))
def test_a_job_survives_whatever_befalls_it_and_its_controller(seed):
    rng = random.Random(seed)  # noqa: S311  tells a life again
    world, job = JobWorld(), job_of(rng)
    world.busy = bool(seed % 2)
    largest = {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}
    world.judges.append(lambda: check_numbers(world, largest))
    world.create(job)
    more = rng.choice((("delete_pod",), ("delete_pod", "order"), ("scale",), ("order", "scale", "delete_pod")))
    story = story_of(rng, *more, "restarted")
    live(world, story, restarted=lambda _: world.restart(), scale=scaled(world, job, largest))
    world.settle()
    assert not world.complaints
    check_numbers(world, largest)
    check_end(world, over=("Running", "Pending", *ENDED), known="scale" not in more)


@LIVELY
@given(st.integers(0, 2**32))
def test_a_job_with_any_policies_ends_in_order(seed):
    rng = random.Random(seed)  # noqa: S311  tells a life again
    world, job = JobWorld(), job_of(rng, plain=False)
    world.busy = bool(seed % 2)
    largest = {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}
    world.judges.append(lambda: check_numbers(world, largest))
    world.create(job)
    live(world, story_of(rng, "delete_pod", "order", "restarted"), restarted=lambda _: world.restart())
    world.settle()
    assert not world.complaints
    check_end(world, over=("Running", "Pending", *ENDED), known=False, plain=False)


@LIVELY
@given(st.integers(0, 2**32))
def test_a_job_whose_pods_succeed_in_the_end_is_over(seed):
    rng = random.Random(seed)  # noqa: S311  tells a life again
    world, job = JobWorld(), job_of(rng)
    world.busy = bool(seed % 2)
    world.create(job)
    live(world, story_of(rng, "delete_pod"))
    world.settle(ending="Succeeded")
    check_end(world, over=ENDED)


@LIVELY
@given(st.integers(0, 2**32))
def test_a_job_that_is_deleted_in_whatever_phase_leaves_nothing(seed):
    rng = random.Random(seed)  # noqa: S311  tells a life again
    world = JobWorld()
    world.busy = bool(seed % 2)
    world.create(job_of(rng))
    story = story_of(rng, "delete_pod", "order")
    when = rng.randrange(len(story) + 1)
    live(world, story[:when])
    world.store.remove(Key(kinds.JOB, "a", "j"))
    live(world, story[when:])
    world.settle()
    world.clock.advance(120_000_000)
    world.settle()
    assert not [each for kind in (kinds.POD, kinds.POD_GROUP, kinds.COMMAND, *MADE) for each in world.store.scan(kind)]


@LIVELY
@given(st.integers(0, 2**32))
def test_an_eviction_is_never_missed_by_a_controller_that_lives(seed):
    rng = random.Random(seed)  # noqa: S311  tells a life again
    world, job = JobWorld(), job_of(rng)
    world.busy = bool(seed % 2)
    job["spec"] |= {"policies": [{"event": "PodEvicted", "action": "RestartJob"}], "maxRetry": 1000, "minSuccess": 99}
    world.create(job)
    live(world, [(event, number) for event, number in story_of(rng, "delete_pod", "delete_pod") if event != "turn"])
    for event, number in story_of(rng, "delete_pod", "delete_pod"):
        live(world, [(event, number)])
    world.settle()
    if world.restarts:
        return
    status = world.get(kinds.JOB, "j")["status"]
    if status["state"]["phase"] not in ENDED:
        assert all(version < status["version"] for version in world.evicted.values())
