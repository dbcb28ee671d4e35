"""task-topology: bring the roles of a job together, or keep them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.plugins.task_topology.buckets import Buckets, Roles, VoidTopologyError, role_of
from pumice.plugins.task_topology.closeness import Closeness

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.job import Job
    from pumice.model.nodes import Nodes, NodeTable
    from pumice.model.task import Task
    from pumice.plugins.task_topology.buckets import Bucket

OUT_OF_BUCKET = (1,)


class TaskTopologySettings(Settings):
    """How much company counts."""

    weight = settings.whole("task-topology.weight", 1, help="weight of the score; 0 switches it off")


class TaskTopology(Plugin):
    """Put pods of a job on one node, or on different ones, by their roles (`volcano.sh/task-spec`, an annotation of the pod).

    Annotations of the PodGroup say what belongs together: `volcano.sh/task-topology-affinity` and `volcano.sh/task-topology-anti-affinity` hold groups of roles, `a,b;c`. Roles of one
    group attract or shun each other; a role that stands alone attracts or shuns its own kind. `volcano.sh/task-topology-task-order` says which roles come first. An
    annotation that names a role which no pod has, or one role twice in a group, voids the job's topology; a warning on the group says so.

    The pods are put into buckets: each into the one where most of what attracts it is and least of what it shuns, a new one if it shuns them all. The largest bucket comes first, and in a
    bucket the roles that are bound most. A node scores by how many pods of the bucket are there, or fit there together, less those that the pod shuns: 100 times `task-topology.weight`
    if the whole of the largest bucket is or fits there. Unlike in Volcano, pods that were placed in earlier cycles count too, and what is undone does not.
    """

    name = "task-topology"
    points = frozenset({"TaskOrder", "NodeOrder"})
    settings = Configured(TaskTopologySettings)

    def open(self, session: Session) -> None:
        """Register order and score, and follow what is placed."""
        self._session = session
        self._known: dict[str, Buckets | None] = {}
        self._weight = self.settings.weight
        session.task_order.add(self.order)
        if self._weight:
            reads = Reads.COLUMNS | Reads.OTHER_NODES
            session.score.add(self.applies, reads=reads, follow=self.closeness, apart=self.concerned)
            session.divide_runs(self.bucket)
        session.add_handler(self.follow)

    def buckets(self, job: Job | None) -> Buckets | None:
        """Return the buckets of a job, made when they are first asked for; None if it has no topology."""
        if job is None:
            return None
        if job.key not in self._known:
            self._known[job.key] = self._made(job)
        return self._known[job.key]

    def _made(self, job: Job) -> Buckets | None:
        annotations = job.annotations
        if names.TASK_TOPOLOGY_AFFINITY not in annotations and names.TASK_TOPOLOGY_ANTI_AFFINITY not in annotations:
            return None
        known = dict.fromkeys(role for task in job.tasks.values() if (role := role_of(task)))
        try:
            roles = Roles(annotations, known)
        except VoidTopologyError as error:
            text = f"the topology is ignored: {error}"
            self._session.record.judge(job.key, self.name, text)
            self._session.findings.warn(job, f"{self.name}: {text}")
            return None
        self._session.record.acquit(job.key, self.name)
        return Buckets(roles, job.tasks.values())

    def follow(self, run: Run, sign: int) -> None:
        """Keep the buckets of a job in step with its placements."""
        job = run.tasks[0].job
        buckets = self._known.get(job.key) if job is not None else None
        if buckets is not None:
            buckets.follow(run, sign)

    def bucket(self, task: Task) -> Bucket | None:
        """Return the bucket of a task, None if it is in none."""
        buckets = self.buckets(task.job)
        return None if buckets is None else buckets.of.get(task.uid)

    def order(self, task: Task) -> tuple[Any, ...]:
        """Order tasks: those with a topology first, large buckets before small ones, then as the roles say."""
        buckets = self.buckets(task.job)
        bucket = buckets.of.get(task.uid) if buckets is not None else None
        if buckets is None or bucket is None:
            return OUT_OF_BUCKET
        return (0, -len(bucket.waiting), bucket.index, *buckets.roles.order(role_of(task)))

    def concerned(self, subject: Subject) -> str | None:
        """Tell tasks that are in a bucket from those that are not; which one it is matters only to their score."""
        return None if self.bucket(subject.task) is None else self.name

    def applies(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Tell whether a task is scored at all."""
        return None if self.bucket(subject.task) is None else np.zeros(len(nodes))

    def closeness(self, subject: Subject, table: NodeTable) -> Closeness:
        """Return the score of nodes for a task and for equal ones that follow it."""
        buckets = self.buckets(subject.job)
        if buckets is None:
            raise LookupError(f"{subject.task.key} has no topology")
        return Closeness(buckets, subject.task, table, self._weight)
