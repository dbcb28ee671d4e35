"""Nobody waits for a clock that is ahead of ours: what a stamp of the future begins, begins when the stamp is met."""

from __future__ import annotations

import pytest

from pumice.api import duration, kinds, names, timestamp
from pumice.controllers import device_taints, podgroups
from pumice.controllers.cron_jobs import controlling, flavours
from pumice.controllers.queueing import ahead, engine, requests
from pumice.controllers.volcano.jobs import expiring
from pumice.controllers.volcano.queues.controlling import Queues
from pumice.controllers.volcano.queues.orders import PATIENCE
from pumice.controllers.workloads.jobs.controlling import Jobs

SECOND = duration.SECOND
NOW = 1_800_000_000 * SECOND
PAST, NEAR, FAR = (timestamp.format_timestamp(NOW + seconds * SECOND) for seconds in (-5, 20, 3600))


def named(name, namespace="a", *, metadata=(), **body):
    home = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "1", **home, **dict(metadata)}, **body}


def ended_job(stamp):
    state = {"phase": "Completed", "lastTransitionTime": stamp}
    yield kinds.JOB, named("j", spec={"ttlSecondsAfterFinished": 30}, status={"state": state})


def ended_batch_job(stamp):
    spec = {"ttlSecondsAfterFinished": 30, "selector": {"matchLabels": {"job": "j"}}, "template": {}}
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": stamp}
    yield kinds.BATCH_JOB, named("j", spec=spec, status={"conditions": [complete]})


def tolerated_taint(stamp):
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": stamp}
    yield kinds.DEVICE_TAINT_RULE, named("r", "", spec={"taint": taint})
    toleration = {"operator": "Exists", "tolerationSeconds": 30}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "g", "tolerations": [toleration]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"name": "p", "uid": "u-p"}]}
    yield kinds.POD, named("p", spec={"nodeName": "n"}, status={"phase": "Running"})
    yield kinds.RESOURCE_CLAIM, named("c", status=status)


def order_below_a_closed_queue(stamp):
    until = timestamp.format_timestamp(timestamp.parse(stamp) + PATIENCE)
    yield kinds.QUEUE, named("above", "", spec={"parent": "root"}, status={"state": "Closed"})
    order = {"annotations": {names.QUEUE_ORDER: f"OpenQueue {until} u"}}
    yield kinds.QUEUE, named("q", "", metadata=order, spec={"parent": "above"}, status={"state": "Closed"})


def command_for_no_queue(stamp):
    target = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "name": "q"}
    yield kinds.COMMAND, named("c", metadata={"creationTimestamp": stamp}, target=target, action="OpenQueue")


def pod_without_group(stamp):
    spec = {"schedulerName": names.SCHEDULER, "containers": []}
    yield kinds.POD, named("p", metadata={"creationTimestamp": stamp}, spec=spec, status={"phase": "Pending"})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-p", "controller": True}
    yield kinds.POD_GROUP, named("podgroup-u-p", metadata={"ownerReferences": [owner]}, spec={"minMember": 1})


RULES = [
    (expiring.ExpiredJobs, ended_job, 30),
    (Jobs, ended_batch_job, 30),
    (device_taints.TaintedClaims, tolerated_taint, 30),
    (Queues, order_below_a_closed_queue, 164),
    (Queues, command_for_no_queue, 10),
    (lambda: podgroups.controllers(patience=7 * SECOND)[0], pod_without_group, 7),
]


def acts_at(controller, objects, speed=1.0):
    """Give when something is done about the objects at last, in seconds, looking once a second."""
    turns = engine.Engine([controller])
    for kind, manifest in objects:
        turns.feed(kind, "ADDED", manifest)
    for second in range(2 * 3600):
        if turns.take(requests.Moment(NOW + second * SECOND, speed)) is not None:
            return second
    return None


@pytest.mark.parametrize(("make", "objects", "span"), RULES)
@pytest.mark.parametrize(("stamp", "passed"), [(PAST, 5), (NEAR, 0), (FAR, 0)])
def test_nobody_waits_longer_than_the_rule_says(make, objects, span, stamp, passed):
    assert acts_at(make(), objects(stamp)) == span - passed


def test_where_time_passes_faster_an_order_stands_for_less():
    assert acts_at(Queues(), order_below_a_closed_queue(FAR), speed=2.0) == 82 + 1  # spans are rounded up


def test_a_cron_job_begins_with_the_next_slot_though_it_says_that_it_was_created_later():
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}
    made = named("c", metadata={"creationTimestamp": FAR}, spec=spec)
    turns = engine.Engine([controlling.CronJobs(flavours.BATCH)])
    turns.feed(kinds.BATCH_CRON_JOB, "ADDED", made)
    created = []
    for second in range(70):
        while (turn := turns.take(requests.Moment(NOW + second * SECOND))) is not None:
            steps = turns.next_steps(turn)
            created += [second for each in steps if type(each.request).__name__ == "Create"]
            for each in steps:
                turns.answered(turn, each, requests.Answer(), requests.Moment(NOW + second * SECOND))
    assert created == [60 - NOW // SECOND % 60]


def test_of_each_reader_it_is_known_when_a_stamp_was_met_of_the_latest():
    known = ahead.Ahead()
    assert known.since("a", 10, 10) == known.since("a", 10, 99) == 10
    assert known.since("a", 50, 20) == known.since("a", 50, 40) == known.since("a", 50, 90) == 20
    assert known.since("b", 50, 30) == 30
    assert known.since("b", 50, 90) == 30
    for stamp in range(ahead.MOST):
        known.since("c", 1000 + stamp, 100)
    assert known.since("a", 50, 100) == 50
    assert known.since("c", 1000, 2000) == 100
