"""The cluster: nodes, jobs, queues and everything else a decision may look at, with the one function that changes sums.

Events change it between cycles; a statement changes it inside one. `changed` counts changes, `dirty_jobs` names the jobs they touched,
so that whoever derives something from the cluster knows what to derive again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import job_priority, marks, native_groups, resources, statuses, tally
from pumice.model.accounting import Accounting
from pumice.model.arrivals import Arrivals
from pumice.model.change_log import ChangeLog
from pumice.model.devices.registry import Devices
from pumice.model.hypertree import HyperNodes
from pumice.model.job import Job, Tally
from pumice.model.kinship import Kinship
from pumice.model.nodes import NodeTable
from pumice.model.phases import Phases
from pumice.model.places import Places
from pumice.model.queue_members import NO_QUEUE, QueueMembers
from pumice.model.shape import Shapes
from pumice.model.statuses import Status
from pumice.model.sums import QueueSums, Sums
from pumice.model.volume_usage import Volumes
from pumice.model.with_bind import WithBind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import core, meta, scheduling
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.task import Task

PENDING = Status.PENDING


class Cluster:
    """Everything the scheduler knows."""

    def __init__(self, default_queue: str = "default") -> None:
        self.default_queue = default_queue
        self.vocabulary = resources.Vocabulary()
        self.shapes = Shapes()
        self.nodes = NodeTable(self.vocabulary)
        self.job_sums = Sums(self.vocabulary)
        self.queue_sums = QueueSums(self.vocabulary)
        self.tasks: dict[str, Task] = {}
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, scheduling.PriorityClass] = {}
        self.nominated: dict[str, Task] = {}
        self.gated: dict[str, Task] = {}  # tasks with gates that somebody else takes off
        self.pending_jobs: dict[str, Job] = {}
        self.listings = ChangeLog()  # rows of jobs as they came into that list; forgotten when its order is changed
        self.invalid_jobs: dict[str, Job] = {}  # those with a group that cannot be understood
        self.owed: dict[str, NodeRecord] = {}  # what logs were not told, by job (`held_blocks`)
        self.dirty_jobs: dict[str, Job] = {}
        self.job_at: dict[int, Job] = {}  # by row
        self.job_changes = ChangeLog()  # rows of jobs, for whoever adds something up over all of them
        self.group_changes = ChangeLog()  # those among them that came, went or have another group
        # How often each disruption budget was used here, by the version of the object that it was used in.
        self.disruptions: dict[str, tuple[str, int]] = {}
        self.with_bind = WithBind()
        self.arrivals = Arrivals()
        self.last_done: dict[str, int] = {}  # when plugins last did what they do every so often, by name
        self.changed = 0
        self.departures = 0  # how many tasks have gone
        self.evictions_refused = 0  # how many tasks were to go and stayed
        self.returned = 0  # how often a job without pending tasks came to have some
        self.gone_jobs: dict[str, None] = {}  # jobs that have left; whoever remembers something of them empties it
        self.accounting = Accounting(self.nodes, self.job_sums, self.queue_sums)
        self._members = QueueMembers(self.queue_sums, self.accounting)
        self.queue_jobs = self._members.jobs
        self.phases = Phases()
        self.objects: dict[str, dict[str, meta.KubeObject]] = {}
        self.volumes = Volumes(self.nodes)
        self.devices = Devices(self.nodes, self.shapes, self.vocabulary)
        self._places = Places(self.volumes, self.devices)
        self.kinship = Kinship(self.nodes)
        self.hyper_nodes = HyperNodes(self.nodes)

    # -- tasks -------------------------------------------------------------------------------------------------

    def add_task(self, task: Task, node: str) -> None:
        """Take a task in, on the node it names and in the job it names."""
        self.changed += 1
        self.tasks[task.uid] = task
        if task.nominated:
            self.nominated[task.uid] = task
        if task.externally_gated:
            self.gated[task.uid] = task
        task.shape.request.lay(self.vocabulary)
        if task.shape.constraint_class.has_device_claims or self.devices.takes_over(task):
            self.devices.join(task)
        if task.job_key:
            self._join(task, self._job(task.job_key))
        if node and task.status not in statuses.FINISHED:
            record = self.nodes.record(node)
            task.node = record
            self._places.put(task, record)
        self.kinship.enter(task)
        if self.arrivals.followed:
            self.arrivals.note(task)
        self.accounting.count(task, 1)

    def remove_task(self, task: Task) -> None:
        """Let a task go, with everything it counted for."""
        self.changed += 1
        self.departures += 1
        del self.tasks[task.uid]
        self.nominated.pop(task.uid, None)
        self.gated.pop(task.uid, None)
        self.kinship.leave(task)
        if task.shape.constraint_class.has_device_claims:
            self.devices.forget(task)
        self.accounting.count(task, -1)
        if task.node is not None:
            self._places.take(task, task.node)
        job = task.job
        if job is not None:
            self._leave(task, job)
            self._collect(job)
        self.shapes.release(task.shape)

    def _join(self, task: Task, job: Job) -> None:
        task.job = job
        job.tasks[task.uid] = task
        job.version += 1
        sub_job = job.sub_job_for(task.pod.metadata.labels)
        task.sub_job = sub_job
        sub_job.tasks[task.uid] = task
        sub_job.priority = max(sub_job.priority, task.priority)
        tallies = [job.tally]
        if task.role:
            tallies.append(job.roles.setdefault(task.role, Tally()))
        if job.policies:
            tallies.append(sub_job.tally)
        else:
            sub_job.tally = job.tally
        task.tallies = tuple(tallies)
        tally.count(task.tallies, task.status, 1, best_effort=task.best_effort)
        self._index(task, job)
        self.note(job)

    def _leave(self, task: Task, job: Job) -> None:
        tally.count(task.tallies, task.status, -1, best_effort=task.best_effort)
        del job.tasks[task.uid]
        job.pending.pop(task.uid, None)
        job.version += 1
        if task.sub_job is not None:
            del task.sub_job.tasks[task.uid]
        if not job.pending:
            self.pending_jobs.pop(job.key, None)
        self.note(job)

    def _index(self, task: Task, job: Job) -> None:
        """Keep the index of pending tasks in step with the task's status."""
        if task.status == PENDING:
            if not job.pending:
                self.pending_jobs[job.key] = job
                self.listings.append(job.row)
                self.returned += 1
            job.pending[task.uid] = task
        elif job.pending.pop(task.uid, None) is not None and not job.pending:
            self.pending_jobs.pop(job.key, None)

    # -- changes -----------------------------------------------------------------------------------------------

    def note(self, job: Job) -> None:
        """Note that a job has changed."""
        self.dirty_jobs[job.key] = job
        self.job_changes.append(job.row)

    def _note_group(self, job: Job) -> None:
        """Note that a job has come or gone, or has another group or none."""
        self.job_changes.append(job.row)
        self.group_changes.append(job.row)

    def apply(
        self,
        tasks: Sequence[Task],
        nodes: Sequence[NodeRecord | None],
        status: Status,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Give tasks of any jobs another status, each on the node beside it, and stop early once `until` holds; returns how many were moved.

        Tasks and counts change one by one, so `until` sees each step; the sums follow in one go.
        """
        if len(tasks) == 1:
            return self._apply_one(tasks[0], nodes[0], status)
        befores, sources = [task.status for task in tasks], [task.node for task in tasks]
        self.changed += 1
        if until is None:
            self._move(tasks, nodes, befores, status)
            self.accounting.follow(tasks, (sources, nodes), befores, status)
            return len(tasks)
        moved = 0
        try:
            while moved < len(tasks):
                start, moved = moved, moved + 1
                self._move(tasks[start:moved], nodes[start:moved], befores[start:moved], status)
                if until():
                    break
        finally:
            # Also when `until`, which asks plugins, breaks down: the sums must agree with the tasks.
            self.accounting.follow(tasks[:moved], (sources[:moved], nodes[:moved]), befores[:moved], status)
        return moved

    def _move(
        self, tasks: Sequence[Task], nodes: Sequence[NodeRecord | None], befores: Sequence[Status], status: Status
    ) -> None:
        """Give tasks another node and status, with everything but the sums."""
        if self.kinship.counting:
            for task, record in zip(tasks, nodes, strict=True):
                self.kinship.moved(task, record, status)
        self._places.transfer(tasks, nodes)
        tally.move_all(tasks, befores, status)
        changed: dict[str, Job] = {}
        for task, before in zip(tasks, befores, strict=True):
            task.status, job = status, task.job
            if job is not None:
                changed[job.key] = job
                if before is PENDING or status is PENDING:
                    self._index(task, job)
        self.dirty_jobs.update(changed)
        self.job_changes.extend([job.row for job in changed.values()])

    def _apply_one(self, task: Task, record: NodeRecord | None, status: Status) -> int:
        """Move one task; whoever tries something out does this most often."""
        before, source, job = task.status, task.node, task.job
        if self.kinship.counting:
            self.kinship.moved(task, record, status)
        if record is not source:
            self._places.transfer([task], [record])
        task.status = status
        tally.move(task.tallies, before, status, task.best_effort)
        self.changed += 1
        if job is not None:
            if before is PENDING or status is PENDING:
                self._index(task, job)
            self.note(job)
        self.accounting.follow_one(task, source, before)
        return 1

    def progress(self, task: Task, record: NodeRecord | None, status: Status) -> None:
        """Let a task be what its pod says now, on the node it names; who keeps something of the job looks at it again."""
        if task.job is not None:
            task.job.version += 1
        self.apply([task], [record], status)

    # -- jobs --------------------------------------------------------------------------------------------------

    def _job(self, key: str) -> Job:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key, self.job_sums.take())
            self.job_at[job.row] = job
            self._note_group(job)
            self._members.enter(job, NO_QUEUE)
        return job

    def set_group(self, group: scheduling.PodGroup, problem: str = "") -> Job:
        """Take over a PodGroup; a bad value, or a problem that was found before, leaves the job invalid."""
        self.changed += 1
        job = self._job(native_groups.group_key(group))
        reshaped = job.group is None or job.group.spec != group.spec
        self.phases.leave(job)
        try:
            job.describe(group)
            job.bad = problem
        except resources.BadValueError as error:
            job.bad = problem or str(error)
        if job.bad:
            self.invalid_jobs[job.key] = job
        else:
            self.invalid_jobs.pop(job.key, None)
        job.priority = job_priority.priority_of(job, self.priority_classes)
        if reshaped:
            self._regroup(job)
        self._members.change(job, group.spec.queue or self.default_queue)
        self.phases.enter(job)
        self.dirty_jobs[job.key] = job
        self._note_group(job)
        return job

    def remove_group(self, key: str) -> None:
        """Drop a PodGroup; its tasks, if any, wait for another of the same name."""
        job = self.jobs.get(key)
        if job is not None:
            self.changed += 1
            self.phases.leave(job)
            job.forget_group()
            self.invalid_jobs.pop(key, None)
            self._note_group(job)
            self._members.change(job, NO_QUEUE)
            self._regroup(job)
            self._collect(job)

    def _regroup(self, job: Job) -> None:
        """Count the tasks of a job anew under its present policies."""
        job.tally, job.roles, job.sub_jobs = Tally(), {}, {}
        for task in list(job.tasks.values()):
            self._join(task, job)

    def _collect(self, job: Job) -> None:
        """Forget a job that has neither group nor tasks."""
        if job.group is None and not job.tasks:
            self._members.leave(job)
            self.job_sums.give_back(job.row)
            del self.jobs[job.key], self.job_at[job.row]
            self._note_group(job)
            self.dirty_jobs.pop(job.key, None)
            self.gone_jobs[job.key] = None

    def set_priority_class(self, name: str, found: scheduling.PriorityClass | None) -> None:
        """Take over or drop a PriorityClass and bring the jobs' priorities up to date."""
        self.changed += 1
        if found is None:
            self.priority_classes.pop(name, None)
        else:
            self.priority_classes[name] = found
        for job in self.jobs.values():
            job.priority = job_priority.priority_of(job, self.priority_classes)

    def set_status(self, job: Job, status: scheduling.PodGroupStatus) -> None:
        """Take over a job's status, keeping the index of phases in step."""
        self.set_statuses([(job, status)])

    def set_statuses(self, statuses: Sequence[tuple[Job, scheduling.PodGroupStatus]]) -> None:
        """Take over the statuses of many jobs, one after the other."""
        self.phases.change(statuses)
        self.job_changes.extend([job.row for job, _ in statuses])

    # -- queues ------------------------------------------------------------------------------------------------

    def set_queue(self, found: scheduling.Queue) -> Queue:
        """Take over a Queue; a bad value leaves it invalid, with the problem named."""
        self.changed += 1
        name = found.metadata.name
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = self._members.open(name)
        before = None if queue.object is None else (queue.bad, queue.state, queue.annotations, queue.object.spec)
        queue.bad = ""
        try:
            queue.describe(found)
        except resources.BadValueError as error:
            queue.bad = str(error)
        # What it holds is written in its status every second, and is no news to its jobs.
        if before != (queue.bad, queue.state, queue.annotations, found.spec):
            for key in queue.jobs:
                self.dirty_jobs[key] = self.jobs[key]
        return queue

    def remove_queue(self, name: str) -> None:
        """Drop a Queue; its jobs wait until it is back."""
        self.changed += 1
        if self.queues.pop(name, None) is not None:
            self._members.close(name)

    def queue_of(self, job: Job) -> Queue | None:
        """Return the queue of a job if it exists and is valid."""
        queue = self.queues.get(job.queue)
        return None if queue is None or queue.bad else queue

    # -- nodes -------------------------------------------------------------------------------------------------

    def set_node(self, node: core.Node, allocatable: resources.Amounts, native: tuple[int, int]) -> None:
        """Take over a Node with what it offers; a heartbeat that says nothing new changes nothing."""
        record = self.nodes.record(node.metadata.name)
        known = record.object
        position = self.nodes.position
        if self.nodes.register(record, node, self.devices.mapped.offered(node, allocatable), native):
            self.accounting.outdated = True
        if known is None or self.nodes.position != position:
            self.changed += 1
        if record.state(known, node):
            self.changed += 1
            self.nodes.restate(record.row)
        if known is not None and marks.cards(known.metadata.annotations) != marks.cards(node.metadata.annotations):
            self.changed += 1
            self.nodes.touch(record.row)

    def remove_node(self, name: str) -> None:
        """Drop a Node; pods that name it stay counted under that name."""
        self.changed += 1
        self.nodes.unregister(name)

    # -- rest --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Bring everything that events left for later up to date; called between cycles."""
        if self.devices.remap():
            for task in self.tasks.values():
                self.devices.reconsider(task)
        self.accounting.prepare(self.tasks.values(), self.vocabulary)
        self.nodes.arrange()
        self.kinship.prepare()
        self.hyper_nodes.prepare()
