"""A search leaves no trace, and says the same of the same state. Whether what it says is so is asked in `test_study_truth.py`."""

from __future__ import annotations

import pytest
from study_worlds import lived, rehearsed

from drawing import drawn
from pumice.study import search
from tests.lives import policies

LIVES = drawn(2, 1)


def waiting_jobs(rehearsal):
    return [job.key for job in rehearsal.cluster.jobs.values() if job.group is not None and job.pending]


@pytest.mark.parametrize("policy", policies.NAMES[1::5])
def test_a_search_leaves_every_sum_and_every_status_as_they_were(policy):
    for seed in range(LIVES):
        rehearsal = rehearsed(lived(seed, policy))
        before = picture(rehearsal.cluster)
        for key in waiting_jobs(rehearsal)[:1]:
            search.search(rehearsal, search.Target(key))
        assert picture(rehearsal.cluster) == before


def picture(cluster):
    nodes, named = cluster.nodes, cluster.vocabulary.amounts  # a resource that nobody offers may have got a column
    tasks = {uid: (task.status, task.node.name if task.node else "") for uid, task in sorted(cluster.tasks.items())}
    rows = {
        name: [
            named(matrix[record.row]) for matrix in (nodes.allocatable, nodes.used, nodes.releasing, nodes.pipelined)
        ]
        for name, record in sorted(nodes.by_name.items())
        if record.object is not None
    }
    queues = {
        name: (named(cluster.queue_sums.allocated[cluster.queue_sums.rows[name]]), queue.object and queue.object.spec)
        for name, queue in sorted(cluster.queues.items())
    }
    jobs = {key: (job.group, job.tally.counts) for key, job in sorted(cluster.jobs.items())}
    kept = {kind: dict(sorted(found.items())) for kind, found in sorted(cluster.objects.items()) if found}
    return tasks, rows, queues, jobs, kept, cluster.disruptions, sorted(cluster.priority_classes)


def test_the_same_state_gives_the_same_search():
    for seed in range(LIVES):
        first, second = rehearsed(lived(seed)), rehearsed(lived(seed))
        for key in waiting_jobs(first)[:1]:
            target = search.Target(key)
            found = search.search(first, target)
            assert search.search(second, target) == found
            assert search.search(first, target) == found
