"""Jobs and pods with whatever in them: a controller bears them all, and nobody else pays for it."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_volcano_job_cuts import CutWorld, job

from drawing import drawn
from pumice.api import kinds
from pumice.controllers.queueing import engine, requests
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.controllers.volcano.jobs.expiring import ExpiredJobs
from pumice.controllers.volcano.jobs.working import MOST_PODS

SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=6) | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=4), each, max_size=3),
    max_leaves=5,
)
WORDS = st.sampled_from(("PodFailed", "*", "RestartJob", "RestartTask", "1m", "a", "any", "svc", "Running", "Failed"))
LEAVES = VALUES | WORDS


def maps(*fields):
    return st.fixed_dictionaries({}, optional=dict.fromkeys(fields, LEAVES))


POLICY = st.fixed_dictionaries(
    {}, optional={"event": LEAVES, "events": LEAVES, "action": LEAVES, "exitCode": LEAVES, "timeout": LEAVES}
)
TASK = st.fixed_dictionaries(
    {},
    optional={
        "name": LEAVES,
        "replicas": LEAVES | st.integers(0, 3),
        "minAvailable": LEAVES,
        "template": LEAVES | st.just({"spec": {"containers": [{"name": "c"}]}}),
        "policies": LEAVES | st.lists(POLICY, max_size=2),
        "maxRetry": LEAVES,
        "dependsOn": LEAVES | maps("name", "iteration"),
        "partitionPolicy": LEAVES | maps("totalPartitions", "partitionSize", "minPartitions", "networkTopology"),
        "topologyPolicy": LEAVES,
    },
)
SPEC = st.fixed_dictionaries(
    {"tasks": LEAVES | st.lists(TASK | LEAVES, max_size=3)},
    optional={
        "minAvailable": LEAVES | st.integers(0, 3),
        "volumes": LEAVES | st.lists(maps("mountPath", "volumeClaimName", "volumeClaim"), max_size=2),
        "policies": LEAVES | st.lists(POLICY | LEAVES, max_size=2),
        "plugins": LEAVES | st.dictionaries(st.sampled_from(("svc", "env", "ssh", "ray", "x")), LEAVES, max_size=2),
        "maxRetry": LEAVES,
        "minSuccess": LEAVES,
        "networkTopology": LEAVES | maps("mode", "highestTierAllowed", "highestTierName"),
        "priorityClassName": LEAVES,
        "schedulerName": LEAVES,
        "ttlSecondsAfterFinished": LEAVES,
    },
)
PHASES = st.sampled_from(("Pending", "Running", "Restarting", "Aborting", "Completed", "Failed", "strange"))
STATUS = LEAVES | st.fixed_dictionaries(
    {
        "state": LEAVES
        | st.fixed_dictionaries(
            {"phase": PHASES | LEAVES}, optional={"reason": LEAVES, "message": LEAVES, "lastTransitionTime": LEAVES}
        )
    },
    optional=dict.fromkeys(
        ("version", "retryCount", "taskStatusCount", "conditions", "controlledResources", "succeeded"), LEAVES
    ),
)
POD_STATUS = maps("phase", "conditions", "containerStatuses", "initContainerStatuses")
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


@settings(max_examples=drawn(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    SPEC,
    STATUS,
    st.lists(st.tuples(st.text(max_size=3), VALUES, POD_STATUS), max_size=3),
    st.sampled_from(("", "Inqueue")),
)
def test_nothing_in_a_job_or_its_pods_breaks_the_controller(spec, status, pods, group):
    complaints = []
    turns = engine.Engine([Jobs(), ExpiredJobs()], complain=complaints.append)
    metadata = {"name": "j", "namespace": "a", "uid": "u", "resourceVersion": "1", "generation": 1}
    turns.feed(kinds.QUEUE, "ADDED", {"metadata": {"name": "default", "uid": "q", "resourceVersion": "1"}})
    if group:
        named = {**metadata, "name": "j-u", "uid": "g", "ownerReferences": [OWNER]}
        turns.feed(kinds.POD_GROUP, "ADDED", {"metadata": named, "status": {"phase": group}})
    for place, (index, annotations, found) in enumerate(pods):
        named = {"name": f"j-a-{index}", "namespace": "a", "uid": str(place), "resourceVersion": str(place + 2)}
        stamped = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "a", "volcano.sh/job-version": "0"}
        texts = annotations if isinstance(annotations, dict) else stamped
        turns.feed(
            kinds.POD,
            "ADDED",
            {"metadata": {**named, "annotations": texts, "ownerReferences": [OWNER]}, "status": found},
        )
    turns.feed(kinds.JOB, "ADDED", {"metadata": metadata, "spec": spec, "status": status})
    moment = requests.Moment(1_800_000_000_000_000)
    for _ in range(4):
        turn = turns.take(moment)
        if turn is not None:
            turn.left = []
            turns.finish(turn, moment)
    assert not complaints


def test_a_job_of_too_many_pods_is_refused_and_others_are_served():
    world = CutWorld({})
    world.create(job((("a", MOST_PODS), ("b", 1))))
    other = job()
    other["metadata"] |= {"name": "k", "uid": "other"}
    world.create(other)
    world.settle()
    assert world.get(kinds.JOB, "j")["status"]["state"]["phase"] == "Terminated"
    assert any(str(MOST_PODS + 1) in note.message for note in world.notes)
    assert world.get(kinds.JOB, "k")["status"]["state"]["phase"] == "Running"


def test_of_two_tasks_of_one_name_the_first_has_pods():
    world = CutWorld({})
    world.create(job((("a", 2), ("a", 3)), minAvailable=2))
    world.calm()
    assert sorted(pod["metadata"]["name"] for pod in world.pods()) == ["j-a-0", "j-a-1"]
    assert world.told()[0]["running"] == 2
