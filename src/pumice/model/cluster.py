"""The cluster: nodes, jobs, queues and everything else a decision may look at, with the one function that changes sums.

Events change it between cycles; a statement changes it inside one. `changed` counts changes, `dirty_jobs` names the jobs they touched,
so that whoever derives something from the cluster knows what to derive again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import scheduling
from pumice.model import counted, resources, statuses
from pumice.model.change_log import ChangeLog
from pumice.model.gathering import GatheredSums, Moved
from pumice.model.hypertree import HyperNodes
from pumice.model.job import BEST_EFFORT_PENDING, Job, Tally
from pumice.model.kinship import Kinship
from pumice.model.nodes import NodeTable
from pumice.model.phases import Phases
from pumice.model.queue import Queue
from pumice.model.shape import Shapes
from pumice.model.statuses import Status
from pumice.model.sums import QueueSums, Sums, add_times
from pumice.model.volumes import Volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.api import core, meta
    from pumice.model.counted import Changes
    from pumice.model.nodes import NodeRecord
    from pumice.model.shape import Shape
    from pumice.model.task import Task

PENDING = Status.PENDING
NO_QUEUE = ""  # where jobs without a group are: they count for no queue


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
        self.queue_jobs: dict[str, dict[str, None]] = {}  # the keys of jobs that name a queue, whether or not it exists
        self.priority_classes: dict[str, scheduling.PriorityClass] = {}
        self.nominated: dict[str, Task] = {}
        self.gated: dict[str, Task] = {}  # tasks with gates that somebody else takes off
        self.pending_jobs: dict[str, Job] = {}
        self.dirty_jobs: dict[str, Job] = {}
        self.job_at: dict[int, Job] = {}  # by row
        self.job_changes = ChangeLog()  # rows of jobs, for whoever adds something up over all of them
        self.group_changes = ChangeLog()  # those among them that came, went or have another group
        # How often each disruption budget was used here, by the version of the object that it was used in.
        self.disruptions: dict[str, tuple[str, int]] = {}
        self.last_done: dict[str, int] = {}  # when plugins last did what they do every so often, by name
        self.changed = 0
        self.returned = 0  # how often a job without pending tasks came to have some
        self.gone_jobs: dict[str, None] = {}  # jobs that have left; whoever remembers something of them empties it
        self._recount = False
        self._gathered: GatheredSums | None = None
        self.phases = Phases()
        self.objects: dict[str, dict[str, meta.KubeObject]] = {}
        self.volumes = Volumes(self.nodes)
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
        if task.job_key:
            self._join(task, self._job(task.job_key))
        if node and task.status not in statuses.FINISHED:
            record = self.nodes.record(node)
            task.node = record
            self._put(task, record)
        self.kinship.enter(task)
        self._fix(task, 1)
        self.account(task.job, task.shape, [task.node.row] if task.node else [], task.status, 1, tasks=1)

    def remove_task(self, task: Task) -> None:
        """Let a task go, with everything it counted for."""
        self.changed += 1
        del self.tasks[task.uid]
        self.nominated.pop(task.uid, None)
        self.gated.pop(task.uid, None)
        self.kinship.leave(task)
        self._fix(task, -1)
        self.account(task.job, task.shape, [task.node.row] if task.node else [], task.status, -1, tasks=1)
        if task.node is not None:
            self._take(task, task.node)
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
        self._tally(task, task.status, 1)
        self._index(task, job)
        self._note(job)

    def _leave(self, task: Task, job: Job) -> None:
        self._tally(task, task.status, -1)
        del job.tasks[task.uid]
        job.pending.pop(task.uid, None)
        job.version += 1
        if task.sub_job is not None:
            del task.sub_job.tasks[task.uid]
        if not job.pending:
            self.pending_jobs.pop(job.key, None)
        self._note(job)

    def _index(self, task: Task, job: Job) -> None:
        """Keep the index of pending tasks in step with the task's status."""
        if task.status == PENDING:
            if not job.pending:
                self.pending_jobs[job.key] = job
                self.returned += 1
            job.pending[task.uid] = task
        elif job.pending.pop(task.uid, None) is not None and not job.pending:
            self.pending_jobs.pop(job.key, None)

    @staticmethod
    def _tally(task: Task, status: Status, sign: int) -> None:
        for tally in task.tallies:
            tally.counts[status] += sign
            if status == PENDING and task.best_effort:
                tally.counts[BEST_EFFORT_PENDING] += sign

    @staticmethod
    def _change(task: Task, status: Status) -> None:
        """Give a task another status, and count it under that; asked for every step of every task."""
        before, task.status = task.status, status
        for tally in task.tallies:
            counts = tally.counts
            counts[before] -= 1
            counts[status] += 1
            if task.best_effort:
                counts[BEST_EFFORT_PENDING] += (status == PENDING) - (before == PENDING)

    def _put(self, task: Task, record: NodeRecord) -> None:
        record.tasks[task.uid] = task
        constraint_class = task.shape.constraint_class
        if constraint_class.takes_ports:
            record.port_users[task.uid] = task
        if constraint_class.has_volumes:
            self.volumes.enter(task, record)

    def _take(self, task: Task, record: NodeRecord) -> None:
        del record.tasks[task.uid]
        record.port_users.pop(task.uid, None)
        if task.uid in record.volume_users:
            self.volumes.leave(task, record)

    # -- sums --------------------------------------------------------------------------------------------------

    def account(
        self, job: Job | None, shape: Shape, rows: Sequence[int], status: Status, sign: int, *, tasks: int
    ) -> None:
        """Add (sign 1) or take away (sign -1) what equal tasks of one job contribute in a status to every sum."""
        if self._recount:
            # The vocabulary has grown: everything is counted anew, in the new width, before the next cycle.
            return
        if self._gathered is not None:
            queue_row = None if job is None else self.queue_sums.rows[job.queue]
            self._gathered.add(shape, rows, status, sign, tasks, None if job is None else job.row, queue_row)
            return
        if rows and counted.COLUMNS[status]:
            self._account_nodes(shape, rows, counted.REACHED[status] if sign > 0 else counted.LEFT[status])
        if job is None:
            if status in statuses.PLACED and status != Status.RELEASING:
                for row in rows:
                    self.nodes.foreign[row] += sign * shape.request.vector
            return
        name = counted.SUMMED.get(status)
        self._account_owners(job, shape, () if name is None else ((name, sign),), tasks)

    def _account_owners(self, job: Job, shape: Shape, changes: Changes, tasks: int) -> None:
        """Change the sums that equal tasks count in for their job and its queue."""
        jobs, queues = self.job_sums, self.queue_sums
        queue_row = queues.rows[job.queue]
        queues.changes.append(queue_row)
        vector = shape.request.vector
        for name, sign in changes:
            add_times(getattr(jobs, name)[job.row], vector, sign * tasks)
            add_times(getattr(queues, name)[queue_row], vector, sign * tasks)

    def _note(self, job: Job) -> None:
        """Note that a job has changed."""
        self.dirty_jobs[job.key] = job
        self.job_changes.append(job.row)

    def _note_group(self, job: Job) -> None:
        """Note that a job has come or gone, or has another group or none."""
        self.job_changes.append(job.row)
        self.group_changes.append(job.row)

    def gather(self) -> None:
        """Gather what events change in the sums until `prepare` enters it all at once; nobody reads sums before that."""
        if self._gathered is None:
            self._gathered = GatheredSums()

    def _enter_gathered(self) -> None:
        """Enter what was gathered."""
        if self._gathered is not None:
            if not self._recount:
                self._gathered.enter(self.nodes, self.job_sums, self.queue_sums)
            self._gathered.clear()

    def _fix(self, task: Task, sign: int) -> None:
        """Count a static or daemon pod, which stays with its node whatever is evicted; it counts until it is gone."""
        if task.stays and task.node is not None and not self._recount:
            self.nodes.fixed[task.node.row] += sign * task.shape.request.vector
            self.nodes.fixings += 1

    def _account_nodes(self, shape: Shape, rows: Sequence[int], changes: Changes) -> None:
        """Change the columns that equal tasks count in for their nodes, a row for each task."""
        nodes = self.nodes
        if len(rows) == 1:
            row = rows[0]
            for name, sign in changes:
                if name == "non_zero":
                    nodes.non_zero[row, 0] += sign * shape.non_zero[0]
                    nodes.non_zero[row, 1] += sign * shape.non_zero[1]
                else:
                    add_times(getattr(nodes, name)[row], shape.request.vector, sign)
            nodes.touch(row)
            return
        times: dict[int, int] = {}
        for row in rows:
            times[row] = times.get(row, 0) + 1
        distinct = np.array(list(times), dtype=np.int64)
        count = np.array(list(times.values()), dtype=np.int64)[:, None]
        for name, sign in changes:
            amounts = np.array(shape.non_zero, dtype=np.int64) if name == "non_zero" else shape.request.vector
            getattr(nodes, name)[distinct] += sign * count * amounts
        nodes.touch_all(times)

    def move(
        self,
        tasks: Sequence[Task],
        records: Sequence[NodeRecord | None],
        status: Status,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Give equal tasks of one job, all in one status, a new status and node; stop early once `until` holds.

        Tasks and counts change one by one, so `until` sees each step; the sums follow in one go. Returns how many tasks were moved.
        """
        first = tasks[0]
        if len(tasks) == 1 and until is None:
            return self._move_one(first, records[0], status)
        job, shape, before = first.job, first.shape, first.status
        left: list[int] = []
        reached: list[int] = []
        moved = 0
        kinship = self.kinship if self.kinship.counting else None
        indexed = job if PENDING in (before, status) else None
        try:
            for task, record in zip(tasks, records, strict=False):
                source = task.node
                if source is not None:
                    left.append(source.row)
                if record is not None:
                    reached.append(record.row)
                if kinship is not None:
                    kinship.moved(task, record, status)
                if record is not source:
                    self._transfer(task, record)
                self._change(task, status)
                if indexed is not None:
                    self._index(task, indexed)
                moved += 1
                if until is not None and until():
                    break
        finally:
            # Also when `until`, which asks plugins, breaks down: the sums must agree with the tasks.
            self.changed += 1
            if job is not None:
                self._note(job)
            self._account_moved(job, shape, (left, before), (reached, status), moved)
        return moved

    def _move_one(self, task: Task, record: NodeRecord | None, status: Status) -> int:
        """Give one task a new status and node."""
        job, before, source = task.job, task.status, task.node
        if self.kinship.counting:
            self.kinship.moved(task, record, status)
        if record is not source:
            self._transfer(task, record)
        self._change(task, status)
        self.changed += 1
        if job is not None:
            if PENDING in (before, status):
                self._index(task, job)
            self._note(job)
        left, reached = [source.row] if source is not None else [], [record.row] if record is not None else []
        self._account_moved(job, task.shape, (left, before), (reached, status), 1)
        return 1

    def place(self, tasks: Sequence[Task], records: Sequence[NodeRecord], jobs: Sequence[Job]) -> None:
        """Allocate pending tasks of any shapes to nodes, each of the job beside it; the sums of all of them follow in one go.

        They stay listed as pending, so that taking them back leaves no trace, until they are settled one by one.
        """
        kinship = self.kinship if self.kinship.counting else None
        for task, record in zip(tasks, records, strict=True):
            if kinship is not None:
                kinship.moved(task, record, Status.ALLOCATED)
            self._put(task, record)
            task.node = record
            self._change(task, Status.ALLOCATED)
        self._account_each(tasks, jobs, records, counted.REACHED[Status.ALLOCATED], (PENDING, Status.ALLOCATED))

    def move_each(self, tasks: Sequence[Task], records: Sequence[NodeRecord] | None, status: Status) -> None:
        """Give tasks of any jobs and shapes, all in one status, another: each on the node beside it if they had none, or without the one they had; the sums of all of them follow in one go."""
        before, kinship = tasks[0].status, self.kinship if self.kinship.counting else None
        targets: Sequence[NodeRecord | None] = records or [None] * len(tasks)
        places = records or [task.node for task in tasks if task.node is not None]
        jobs = [job for task in tasks if (job := task.job) is not None]
        for task, job, record in zip(tasks, jobs, targets, strict=True):
            if kinship is not None:
                kinship.moved(task, record, status)
            self._transfer(task, record)
            self._change(task, status)
            if PENDING in (before, status):
                self._index(task, job)
            self._note(job)
        on_nodes = counted.LEFT[before] if records is None else counted.REACHED[status]
        self._account_each(tasks, jobs, places, on_nodes, (before, status))

    def _account_each(
        self,
        tasks: Sequence[Task],
        jobs: Sequence[Job],
        places: Sequence[NodeRecord],
        on_nodes: counted.Changes,
        step: tuple[Status, Status],
    ) -> None:
        """Bring the sums up to date with tasks of any shapes that went from one status to another, each of the job and on the node beside it."""
        self.changed += len(tasks)
        rows, held = self.queue_sums.rows, counted.HELD[step]
        queue_rows = [rows[job.queue] for job in jobs]
        moved = Moved([task.shape for task in tasks])
        moved.enter_nodes(self.nodes, [record.row for record in places], on_nodes)
        moved.enter_sums(self.job_sums, [job.row for job in jobs], held)
        moved.enter_sums(self.queue_sums, queue_rows, held)
        self.queue_sums.changes += queue_rows

    def settle(self, tasks: Iterable[Task]) -> None:
        """Let tasks that were placed be pending no longer."""
        for task in tasks:
            job = task.job
            if job is not None:
                if job.pending.pop(task.uid, None) is not None and not job.pending:
                    self.pending_jobs.pop(job.key, None)
                self.dirty_jobs[job.key] = job
                self.job_changes.append(job.row)

    def restate(self, tasks: Sequence[Task], status: Status) -> None:
        """Give tasks of any jobs, none of them pending, another status; they stay where they are."""
        self.changed += 1
        noted: Job | None = None
        alike: list[int] = []
        for task in tasks:
            job, before, record = task.job, task.status, task.node
            rows = [] if record is None else [record.row]
            if counted.STAYED[before, status] or counted.HELD[before, status]:
                if self.kinship.counting:
                    self.kinship.moved(task, record, status)
                self._account_moved(job, task.shape, (rows, before), (rows, status), 1)
            else:
                alike += rows
            self._change(task, status)
            if job is not None and job is not noted:
                noted = job
                self._note(job)
        # Who looks at single tasks has to look again.
        self.nodes.touch_all(alike)

    def progress(self, task: Task, record: NodeRecord | None, status: Status) -> None:
        """Let a task be what its pod says now, on the node it names; who keeps something of the job looks at it again."""
        if task.job is not None:
            task.job.version += 1
        self._move_one(task, record, status)

    def _account_moved(
        self,
        job: Job | None,
        shape: Shape,
        origin: tuple[list[int], Status],
        goal: tuple[list[int], Status],
        tasks: int,
    ) -> None:
        """Bring the sums up to date with tasks that left some rows in one status for others in another."""
        (left, before), (reached, after) = origin, goal
        stayed, held = counted.STAYED[before, after], counted.HELD[before, after]
        if left == reached and not stayed and not held:
            # Nothing is added up differently; but who looks at single tasks has to look again.
            self.nodes.touch_all(reached)
            if job is not None:
                self.queue_sums.changes.append(self.queue_sums.rows[job.queue])
            return
        if job is None or self._recount or self._gathered is not None:
            self.account(job, shape, left, before, -1, tasks=tasks)
            self.account(job, shape, reached, after, 1, tasks=tasks)
            return
        if left != reached:
            if left:
                self._account_nodes(shape, left, counted.LEFT[before])
            if reached:
                self._account_nodes(shape, reached, counted.REACHED[after])
        elif reached:
            self._account_nodes(shape, reached, stayed)
        self._account_owners(job, shape, held, tasks)

    def _transfer(self, task: Task, record: NodeRecord | None) -> None:
        """List a task under another node."""
        if task.node is not None:
            self._take(task, task.node)
        if record is not None:
            self._put(task, record)
        task.node = record

    # -- jobs --------------------------------------------------------------------------------------------------

    def _job(self, key: str) -> Job:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key, self.job_sums.take())
            self.job_at[job.row] = job
            self._note_group(job)
            self._enter_queue(job, NO_QUEUE)
        return job

    def set_group(self, group: scheduling.PodGroup) -> Job:
        """Take over a PodGroup; a bad value leaves the job invalid, with the problem named."""
        self.changed += 1
        job = self._job(f"{group.metadata.namespace}/{group.metadata.name}")
        reshaped = job.group is None or job.group.spec != group.spec
        job.bad = ""
        self.phases.leave(job)
        try:
            job.describe(group)
        except resources.BadValueError as error:
            job.bad = str(error)
        job.priority = self.priority_of(job)
        if reshaped:
            self._regroup(job)
        self._change_queue(job, group.spec.queue or self.default_queue)
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
            self._note_group(job)
            self._change_queue(job, NO_QUEUE)
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
            self._leave_queue(job)
            self.job_sums.give_back(job.row)
            del self.jobs[job.key], self.job_at[job.row]
            self._note_group(job)
            self.dirty_jobs.pop(job.key, None)
            self.gone_jobs[job.key] = None

    def break_group(self, metadata: meta.ObjectMeta, problem: str) -> Job:
        """Take over a PodGroup of which nothing but the name can be read; its job is invalid until it changes."""
        job = self.set_group(scheduling.PodGroup(metadata=metadata))
        job.bad = problem
        return job

    def priority_of(self, job: Job) -> int:
        """Return the value of the job's priority class, else of the global default, else 0."""
        named = job.group.spec.priority_class_name if job.group else ""
        found = self.priority_classes.get(named)
        if found is None:
            defaults = [c for c in self.priority_classes.values() if c.global_default]
            found = max(defaults, key=lambda c: c.metadata.name) if defaults else None
        return found.value if found else 0

    def set_priority_class(self, name: str, found: scheduling.PriorityClass | None) -> None:
        """Take over or drop a PriorityClass and bring the jobs' priorities up to date."""
        self.changed += 1
        if found is None:
            self.priority_classes.pop(name, None)
        else:
            self.priority_classes[name] = found
        for job in self.jobs.values():
            job.priority = self.priority_of(job)

    def set_status(self, job: Job, status: scheduling.PodGroupStatus) -> None:
        """Take over a job's status, keeping the index of phases in step."""
        self.set_statuses([(job, status)])

    def set_statuses(self, statuses: Sequence[tuple[Job, scheduling.PodGroupStatus]]) -> None:
        """Take over the statuses of many jobs, one after the other."""
        self.phases.change(statuses)
        self.job_changes.extend([job.row for job, _ in statuses])

    # -- queues ------------------------------------------------------------------------------------------------

    def _enter_queue(self, job: Job, name: str) -> None:
        job.queue = name
        self.queue_sums.join(name)
        if job.tasks:
            self._enter_gathered()
            self.queue_sums.carry(name, self.job_sums, job.row, 1)
        self.queue_jobs.setdefault(name, {})[job.key] = None

    def _leave_queue(self, job: Job) -> None:
        if job.tasks:
            self._enter_gathered()
            self.queue_sums.carry(job.queue, self.job_sums, job.row, -1)
        jobs = self.queue_jobs[job.queue]
        del jobs[job.key]
        if not jobs and job.queue not in self.queues:
            del self.queue_jobs[job.queue]
        self.queue_sums.part(job.queue)

    def _change_queue(self, job: Job, name: str) -> None:
        if job.queue != name:
            self._leave_queue(job)
            self._enter_queue(job, name)

    def set_queue(self, found: scheduling.Queue) -> Queue:
        """Take over a Queue; a bad value leaves it invalid, with the problem named."""
        self.changed += 1
        name = found.metadata.name
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, self.queue_sums.join(name))
            queue.jobs = self.queue_jobs.setdefault(name, {})
        queue.bad = ""
        try:
            queue.describe(found)
        except resources.BadValueError as error:
            queue.bad = str(error)
        for key in queue.jobs:
            self.dirty_jobs[key] = self.jobs[key]
        return queue

    def remove_queue(self, name: str) -> None:
        """Drop a Queue; its jobs wait until it is back."""
        self.changed += 1
        if self.queues.pop(name, None) is not None:
            self.queue_sums.part(name)
            if not self.queue_jobs[name]:
                del self.queue_jobs[name]

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
        if self.nodes.register(record, node, allocatable, native):
            self._recount = True
        if known is None or self.nodes.position != position:
            self.changed += 1
        if record.state(known, node):
            self.changed += 1
            self.nodes.restate(record.row)

    def remove_node(self, name: str) -> None:
        """Drop a Node; pods that name it stay counted under that name."""
        self.changed += 1
        self.nodes.unregister(name)

    # -- rest --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Bring everything that events left for later up to date; called between cycles."""
        if self._recount:
            self.recount()
        self._enter_gathered()
        self._gathered = None
        self.nodes.arrange()
        self.queue_sums.changes.clear()
        self.kinship.prepare()
        self.hyper_nodes.prepare()

    def recount(self) -> None:
        """Compute every sum anew from the tasks."""
        self._recount = False
        self._gathered = None
        self.job_sums.widen()
        self.queue_sums.widen()
        nodes = self.nodes
        for matrix in (nodes.used, nodes.releasing, nodes.pipelined, nodes.foreign, nodes.fixed, nodes.non_zero):
            matrix[:] = 0
        for task in self.tasks.values():
            task.shape.request.lay(self.vocabulary)
            self._fix(task, 1)
            self.account(task.job, task.shape, [task.node.row] if task.node else [], task.status, 1, tasks=1)
