"""Each example of why a job waits is cured by the change that is offered first, made on a cluster with controllers, and by nothing less."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.cache.options import Options
from pumice.framework import registry
from pumice.study import files, search
from pumice.study.rehearsal import Rehearsal
from tests.lives import changes

KNOWN = registry.installed()
FOLDER = Path(__file__).parents[2] / "docs/examples/why"
EXAMPLES = sorted(path.name for path in FOLDER.glob("[0-9]*.yaml"))
JOB = "ml/train"
OFFERED = {
    "no-room": "wait until ml/old ends (4 pods)",
    "quota": "raise cpu of ResourceQuota ml/compute from 8 to 10",
    "queue-capability": "raise capability cpu of queue team from 8 to 10",
    "queue-closed": "open the queue team",
    "selector": "label node n1 disk=nvme and wait until ml/old ends (2 pods)",
    "taint": "let its pods tolerate dedicated=gpu:NoSchedule (2 nodes)",
    "claim-unbound": "create a PersistentVolume for the claim ml/data (10Gi, class fast)",
    "below-min-member": "create the 1 pod that is missing below its minMember of 3",
    "gang-fits-partly": "lower its minMember from 3 to 2",
    "waits-for-victims": "",
    "not-let-in": "raise capability cpu of queue team from 8 to 10",
    "missing-queue": "create the queue tema",
    "missing-group": "create the PodGroup ml/train that its pods name (minMember 1, the default queue)",
    "priority-class": "create the priority class hihg that its group names (value 1000)",
}


def found(name):
    """Return an example as it is read, and what is offered."""
    state = files.read(str(FOLDER / name), KNOWN)
    rehearsal = Rehearsal(state.objects, state.configuration, Options(), state.now, KNOWN, jobs=state.jobs)
    return state, search.find(rehearsal, search.Target(JOB), clock=lambda: 0.0)


def starts(state, made):
    """Make a change on a cluster of its own, and tell whether the job starts."""
    ground = changes.Ground(state.configuration, state.manifests(), state.now, counts=False)
    before = ground.placed(JOB)
    if made is not None:
        ground.change(made, None)
    return ground.starts(JOB, before)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_change_that_is_offered_first_starts_the_job(name):
    state, offered = found(name)
    assert offered.search.smallest or offered.search.nothing_to_change
    assert starts(state, offered.smallest)
    expected = OFFERED.get(name.removesuffix(".yaml").split("-", 1)[1])
    assert expected in (None, offered.search.smallest)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_change_that_is_not_enough_does_not_start_the_job(name):
    state, offered = found(name)
    for made in [made for made, trial in offered.trials if not trial.enough][:2]:
        assert not starts(state, made), made.said


def test_a_job_whose_victims_are_going_has_nothing_to_change_and_says_until_when():
    _, offered = found("10-waits-for-victims.yaml")
    assert offered.search.nothing_to_change == "it starts by 2026-01-01T00:00:30Z, once ml/old-1 is gone"
