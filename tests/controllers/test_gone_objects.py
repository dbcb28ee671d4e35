"""About an object that is not there, or is being deleted, nothing is done, and one that nobody owns concerns nobody."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, stamp
from pumice.api import kinds
from pumice.controllers import podgroups, standard, volumes
from pumice.controllers.cron_jobs import controlling as cron_jobs
from pumice.controllers.cron_jobs import flavours
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Moment, Reconciled
from pumice.controllers.volcano import registry
from pumice.controllers.volcano.hyper_nodes.counting import HyperNodeCounts
from pumice.controllers.volcano.job_flows.controlling import JobFlows
from pumice.controllers.volcano.job_flows.templates import JobTemplates
from pumice.controllers.volcano.jobs.expiring import ExpiredJobs

ALL = [
    *standard.controllers(gang_jobs=True),
    *registry.controllers(),
    *podgroups.controllers(),
]


def name_of(each):
    return f"{type(each).__module__.removeprefix('pumice.controllers.')}.{type(each).__name__}-{each.kind.name}"


@pytest.mark.parametrize("each", ALL, ids=name_of)
def test_about_what_is_not_there_nothing_is_done(each):
    plan = each.reconcile("a" if each.kind.namespaced else "", "gone", Observed(), Moment(NOW))
    assert isinstance(plan, Reconciled)
    assert (plan.steps, plan.notes, plan.again, plan.stuck) == ([], [], None, "")


@pytest.mark.parametrize("each", ALL, ids=name_of)
def test_what_is_nobodys_concerns_nobody_while_there_is_nobody(each):
    for kind in each.watched:
        manifest = {"metadata": {"name": "x", "uid": "x", **({"namespace": "a"} if kind.namespaced else {})}}
        if kind is kinds.COMMAND:
            continue  # it says itself whom it concerns
        assert list(each.concerns(kind, manifest, Observed())) == []


def due(**more):
    """Make a CronJob of which a start is due."""
    return {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}, **more}


CLASS = {"metadata": {"name": "s"}, "provisioner": "p"}
ENDED = {"phase": "Completed", "lastTransitionTime": stamp(0)}
MADE = {"metadata": {"name": "i", "namespace": "a", "labels": {"volcano.sh/createdByJobTemplate": "a.x"}}}
MEMBER = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
BUSY = [
    (cron_jobs.CronJobs(), due(), []),
    (cron_jobs.CronJobs(flavours.BATCH), due(), []),
    (volumes.Claims(), {"spec": {"storageClassName": "s"}}, [(kinds.STORAGE_CLASS, CLASS)]),
    (volumes.Volumes(), {"spec": {}}, []),
    (JobFlows(), {"spec": {}}, []),
    (JobTemplates(), {"spec": {}}, [(kinds.JOB, MADE)]),
    (HyperNodeCounts(), {"spec": {"members": [MEMBER]}}, []),
    (ExpiredJobs(), {"spec": {"ttlSecondsAfterFinished": 0}, "status": {"state": ENDED}}, []),
]


@pytest.mark.parametrize(("each", "body", "others"), BUSY, ids=[name_of(each) for each, *_ in BUSY])
@pytest.mark.parametrize("going", [False, True])
def test_about_what_is_being_deleted_nothing_is_done(each, body, others, going):
    home = "a" if each.kind.namespaced else ""
    metadata = {"name": "x", "namespace": home, "uid": "u", "creationTimestamp": stamp(0)}
    observed = Observed()
    observed.feed(
        each.kind, "ADDED", {"metadata": metadata | ({"deletionTimestamp": stamp(1)} if going else {}), **body}
    )
    for kind, other in others:
        observed.feed(kind, "ADDED", other)
    plan = each.reconcile(home, "x", observed, Moment(NOW + 100 * SECOND))
    assert isinstance(plan, Reconciled)
    assert bool(plan.steps) is not going
    assert not going or (plan.notes, plan.again, plan.stuck) == ([], None, "")
