"""What the search for the smallest change claims is what happens when the change is really made."""

from __future__ import annotations

import pytest
from study_worlds import lived, rehearsed, staged

from pumice.api import duration, kinds
from pumice.study import search
from pumice.study.relaxing import relaxation
from pumice.study.state import manifest
from tests.lives import policies

LIVES = 2
PATIENCE = 60  # cycles in which victims have gone and their claimants are bound


def waiting_jobs(rehearsal):
    return [job.key for job in rehearsal.cluster.jobs.values() if job.group is not None and job.pending]


def make(stage, changes):
    """Make changes to a simulated cluster, as somebody would with kubectl."""
    for kind, event, found in changes:
        metadata = found.metadata
        if event == "DELETED":
            stage.delete(["/".join(filter(None, (kind.singular, metadata.namespace, metadata.name)))], None)
        else:
            stage.apply([manifest(kind, found)])


def nodes_of(stage, key):
    """Return the nodes of a job's pods, by name."""
    pods = stage.cluster.store.scan(kinds.POD)
    mine = [pod for pod in pods if f"{pod['metadata']['namespace']}/{group_of(pod)}" == key]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in mine if pod["spec"].get("nodeName")}


def group_of(pod):
    return pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name", "")


@pytest.mark.parametrize("policy", policies.NAMES[::3])
def test_a_change_is_enough_exactly_if_making_it_starts_the_job(policy):
    tried = 0
    for seed in range(LIVES):
        state = lived(seed, policy)
        rehearsal = rehearsed(state)
        for key in waiting_jobs(rehearsal)[:2]:
            target = search.Target(key)
            question = search.question_of(rehearsal, target)
            for each in list(search.relaxations(question)):
                trial = search.attempt(rehearsal, target, each)
                stage = staged(state)
                before = nodes_of(stage, key)
                make(stage, relaxation.effect(each.edits)[0])
                stage.cycle(duration.SECOND)
                at_once = len(nodes_of(stage, key)) > len(before)
                assert at_once == (trial.verdict.standing == "starts"), (seed, policy, key, trial)
                if trial.verdict.standing == "starts after evictions":
                    assert later(stage, key, before), (seed, policy, key, trial)
                tried += 1
    assert tried or policy


def later(stage, key, before):
    """Tell whether a job starts once its victims are gone."""
    for _ in range(PATIENCE):
        stage.cycle(duration.SECOND)
        if len(nodes_of(stage, key)) > len(before):
            return True
    return False


@pytest.mark.parametrize("policy", policies.NAMES[1::5])
def test_a_search_leaves_every_sum_and_every_status_as_they_were(policy):
    for seed in range(LIVES):
        rehearsal = rehearsed(lived(seed, policy))
        before = picture(rehearsal.cluster)
        for key in waiting_jobs(rehearsal)[:1]:
            search.search(rehearsal, search.Target(key))
        assert picture(rehearsal.cluster) == before


def picture(cluster):
    nodes = cluster.nodes
    tasks = {uid: (task.status, task.node.name if task.node else "") for uid, task in sorted(cluster.tasks.items())}
    rows = {
        name: [
            matrix[record.row].tolist() for matrix in (nodes.allocatable, nodes.used, nodes.releasing, nodes.pipelined)
        ]
        for name, record in sorted(nodes.by_name.items())
        if record.object is not None
    }
    queues = {
        name: (cluster.queue_sums.allocated[cluster.queue_sums.rows[name]].tolist(), queue.object and queue.object.spec)
        for name, queue in sorted(cluster.queues.items())
    }
    jobs = {key: (job.group and job.group.spec, job.tally.counts) for key, job in sorted(cluster.jobs.items())}
    return tasks, rows, queues, jobs


def test_the_same_state_gives_the_same_search():
    for seed in range(LIVES):
        first, second = rehearsed(lived(seed)), rehearsed(lived(seed))
        for key in waiting_jobs(first):
            target = search.Target(key)
            found = search.search(first, target)
            assert search.search(second, target) == found
            assert search.search(first, target) == found
