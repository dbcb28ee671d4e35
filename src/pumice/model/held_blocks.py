"""Equal pods that wait, cycle after cycle, on the nodes that are held for them: they are put there and taken away together.

Nobody who follows the logs of changed nodes and jobs is told, since whenever anybody looks they are where they were; the cluster keeps whom it `owes` to the logs
until they are put back, or somebody says that they are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import tally
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord, Rows
    from pumice.model.task import Task


class HeldBlock:
    """The only pods of some jobs of one queue, all of one shape, each with its node; it holds as long as none of these has changed."""

    __slots__ = ("_are_distinct", "_entries", "_rows_of_jobs", "by_job", "by_uid", "nodes", "rows", "tasks")

    def __init__(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord]) -> None:
        self.tasks = tasks
        self.nodes = nodes
        jobs = [job for task in tasks if (job := task.job) is not None]
        self.by_uid = {task.uid: task for task in tasks}
        self.by_job = dict(zip([job.key for job in jobs], nodes, strict=True))
        self.rows: Rows = np.array([node.row for node in nodes], dtype=np.int64)
        self._rows_of_jobs: Rows = np.array([job.row for job in jobs], dtype=np.int64)
        self._are_distinct = len(set(self.rows.tolist())) == len(self.rows)
        # Moved in every cycle, hundreds of them: whatever can be looked up once is.
        counts = [[each.counts for each in task.tallies] for task in tasks]
        self._entries = list(zip(tasks, nodes, self.by_uid, jobs, counts, strict=True))

    def put(self, cluster: Cluster) -> None:
        """Let the pods, which are pending, wait on their nodes."""
        waiting, status, left, reached = cluster.pending_jobs, Status.PIPELINED, tally.PENDING, tally.PIPELINED
        for task, record, uid, job, tallies in self._entries:
            record.tasks[uid] = task
            task.node, task.status = record, status
            for counts in tallies:
                counts[left] -= 1
                counts[reached] += 1
            del job.pending[uid], waiting[job.key]
        self._count(cluster, 1)

    def take(self, cluster: Cluster, gone: Container[str] = ()) -> None:
        """Let the pods be pending again, but for those of which others have seen to it."""
        waiting, status, left, reached = cluster.pending_jobs, Status.PENDING, tally.PIPELINED, tally.PENDING
        for task, record, uid, job, tallies in self._entries:
            if uid in gone:
                continue
            del record.tasks[uid]
            task.node, task.status = None, status
            for counts in tallies:
                counts[left] -= 1
                counts[reached] += 1
            job.pending[uid] = task
            waiting[job.key] = job
        cluster.returned += 1
        cluster.listings.extend([job.row for _, _, uid, job, _ in self._entries if uid not in gone])
        self._count(cluster, -1)
        for number, uid in enumerate(self.by_uid) if gone else ():
            if uid in gone:
                self._count_one(cluster, number)

    def _count_one(self, cluster: Cluster, number: int) -> None:
        """Count one pod as waiting again."""
        first, row, job = self.tasks[0], self.rows[number], self._rows_of_jobs[number]
        vector = first.shape.request.vector
        cluster.nodes.pipelined[row] += vector
        for sums, at in ((cluster.job_sums, job), (cluster.queue_sums, self._queue_row(cluster))):
            sums.pipelined[at] += vector
            sums.pending[at] -= vector

    def _queue_row(self, cluster: Cluster) -> int:
        job = self.tasks[0].job
        return cluster.queue_sums.rows["" if job is None else job.queue]

    def _count(self, cluster: Cluster, sign: int) -> None:
        """Change the sums of nodes, jobs and their queue."""
        first = self.tasks[0]
        vector, table = sign * first.shape.request.vector, cluster.nodes
        if self._are_distinct:
            table.pipelined[self.rows] += vector
        else:
            np.add.at(table.pipelined, self.rows, vector)
        cluster.job_sums.pipelined[self._rows_of_jobs] += vector
        cluster.job_sums.pending[self._rows_of_jobs] -= vector
        queues, row = cluster.queue_sums, self._queue_row(cluster)
        queues.pipelined[row] += vector * len(self.tasks)
        queues.pending[row] -= vector * len(self.tasks)
        queues.changes.append(row)
        cluster.changed += 1


def tell_the_logs(cluster: Cluster, but: Container[str] = ()) -> None:
    """Tell the logs of all that they were not told of, but for jobs whose pods are where they were."""
    for key, record in cluster.owed.items():
        if key not in but:
            cluster.nodes.touch(record.row)
            if (job := cluster.jobs.get(key)) is not None:
                cluster.note(job)
    cluster.owed.clear()
