"""What tests of workloads share: a beginning of time, whom a workload called `s` owns, and what all that keep revisions do first."""

from __future__ import annotations

from pumice.api import duration, kinds, timestamp
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads import manifests

START = 1_767_225_600 * duration.SECOND


def stamp(second):
    return timestamp.format_timestamp(START + second * duration.SECOND)


def at(second):
    return requests.Moment(START + second * duration.SECOND)


def owned(name, kind, **more):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "s", "uid": "u-s", "controller": True}
    return {
        "name": name,
        "namespace": "a",
        "uid": f"u-{name}",
        "resourceVersion": "1",
        "ownerReferences": [owner],
        **more,
    }


def begun(controller, kind, owner, orphan):
    """Look at a workload that has nothing, and then at one that finds a pod of its own: it makes its first revision, and before that takes the pod in. Gives what it observed."""
    observed = Observed()
    observed.feed(kind, "ADDED", owner)
    (first,) = controller.reconcile("a", "s", observed, at(100)).steps
    assert first.request.kind == manifests.CONTROLLER_REVISION
    observed.feed(kinds.POD, "ADDED", orphan)
    both = controller.reconcile("a", "s", observed, at(100)).steps
    assert [step.request.kind for step in both[1:]] == [kinds.POD, manifests.CONTROLLER_REVISION]
    assert controller.reconcile("a", "other", observed, at(100)) == requests.Reconciled()
    return observed
