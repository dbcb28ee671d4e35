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

    __slots__ = ("_are_distinct", "_entries", "_rows_of_jobs", "nodes", "rows", "tasks")

    def __init__(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord]) -> None:
        self.tasks = tasks
        self.nodes = nodes
        jobs = [job for task in tasks if (job := task.job) is not None]
        self.rows: Rows = np.array([node.row for node in nodes], dtype=np.int64)
        self._rows_of_jobs: Rows = np.array([job.row for job in jobs], dtype=np.int64)
        self._are_distinct = len(set(self.rows.tolist())) == len(self.rows)
        # Moved in every cycle, hundreds of them: whatever can be looked up once is.
        counts = [[each.counts for each in task.tallies] for task in tasks]
        self._entries = list(zip(tasks, nodes, [task.uid for task in tasks], jobs, counts, strict=True))

    def some(self, chosen: Sequence[int]) -> HeldBlock:
        """Return some of the pods."""
        return HeldBlock([self.tasks[i] for i in chosen], [self.nodes[i] for i in chosen])

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

    def take(self, cluster: Cluster) -> None:
        """Let the pods be pending again."""
        waiting, status, left, reached = cluster.pending_jobs, Status.PENDING, tally.PIPELINED, tally.PENDING
        for task, record, uid, job, tallies in self._entries:
            del record.tasks[uid]
            task.node, task.status = None, status
            for counts in tallies:
                counts[left] -= 1
                counts[reached] += 1
            job.pending[uid] = task
            waiting[job.key] = job
        cluster.returned += 1
        self._count(cluster, -1)

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
        if first.job is not None:
            queues, row = cluster.queue_sums, cluster.queue_sums.rows[first.job.queue]
            queues.pipelined[row] += vector * len(self.tasks)
            queues.pending[row] -= vector * len(self.tasks)
            queues.changes.append(row)
        cluster.changed += 1


def owe(cluster: Cluster, block: HeldBlock) -> None:
    """Note that the logs do not tell that pods were taken from their nodes."""
    cluster.owed.update(zip([task.job_key for task in block.tasks], block.nodes, strict=True))


def tell_the_logs(cluster: Cluster, but: Container[str] = ()) -> None:
    """Tell the logs of all that they were not told of, but for jobs whose pods are where they were."""
    for key, record in cluster.owed.items():
        if key not in but:
            cluster.nodes.touch(record.row)
            if (job := cluster.jobs.get(key)) is not None:
                cluster.note(job)
    cluster.owed.clear()
