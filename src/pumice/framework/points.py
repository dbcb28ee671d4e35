"""The extension points, each declared once: name, how answers combine, what its functions take and give, and its switches in the configuration.

From these declarations follow the attributes of a session, the switches of a configuration file, the check of what a plugin registers, and the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pumice.api import documents
from pumice.framework.combining import (
    All,
    AllInFirstTier,
    ContextOrder,
    FirstAnswer,
    Notify,
    Position,
    Refusals,
    Sum,
    Votes,
)
from pumice.framework.extensions import Point
from pumice.framework.functions import Filters, Scores
from pumice.framework.job_domains import Groups, Purpose
from pumice.framework.naming_tasks import Intersection, Union
from pumice.framework.ordering import Ordering, TaskOrdering
from pumice.framework.reads import EVERYTHING, NODE_LOCAL, NODE_TASKS, Reads
from pumice.framework.reasons import Invalid
from pumice.framework.registration import RegistrationError
from pumice.framework.subject import Demand, EvictionContext, Subject
from pumice.framework.vectors import Floats
from pumice.model.hypernodes import HyperNode
from pumice.model.job import Job, SubJob
from pumice.model.nodes import NodeRecord, Nodes
from pumice.model.queue import Queue
from pumice.model.resources import Matrix
from pumice.model.task import Task

if TYPE_CHECKING:
    from pumice.framework.registration import Roster


class Points:
    """The extension points of a session, as its attributes."""

    job_order = Point(
        "JobOrder",
        Ordering[Job],
        "job",
        "enableJobOrder",
        says="Give what a job is ordered by inside its queue; the smallest goes first.",
        fallback=("creation", "key"),
    )
    queue_order = Point(
        "QueueOrder",
        Ordering[Queue],
        "queue",
        "enableQueueOrder",
        says="Give what a queue is ordered by; the smallest is served first.",
        fallback=("creation", "name"),
    )
    task_order = Point(
        "TaskOrder",
        TaskOrdering,
        "task",
        "enableTaskOrder",
        says="Give what a task is ordered by inside its job.",
        fallback=("creation", "uid"),
    )
    sub_job_order = Point(
        "SubJobOrder",
        Ordering[SubJob],
        "sub_job",
        "enabledSubJobOrder",
        says="Give what a sub-job is ordered by inside its job.",
        fallback=("match_index", "key"),
    )
    victim_queue_order = Point(
        "VictimQueueOrder",
        ContextOrder[Queue, Queue],
        "victim, claimant",
        says="Give what a queue that victims come from is ordered by for the claimant's queue; the smallest loses first.",
    )
    job_valid = Point("JobValid", Refusals[[Job], Invalid], "job", says="Say why a job cannot be scheduled at all.")
    job_enqueueable = Point(
        "JobEnqueueable", Votes[[Job]], "job", "enableJobEnqueued", says="Vote on letting a job in."
    )
    job_enqueued = Point(
        "JobEnqueued", Notify[[Job]], "job", "enableJobEnqueued", says="Hear of a job that was let in."
    )
    job_ready = Point(
        "JobReady", All[[Job]], "job", "enableJobReady", says="Tell whether enough of a job has a place to be bound."
    )
    job_pipelined = Point(
        "JobPipelined",
        Votes[[Job]],
        "job",
        "enableJobPipelined",
        says="Vote on keeping places for a job that waits for room being released.",
    )
    job_starving = Point(
        "JobStarving",
        AllInFirstTier[[Job]],
        "job",
        "enableJobStarving",
        says="Tell whether a job lacks members for which others may be evicted.",
    )
    job_delay = Point(
        "JobDelay",
        Refusals[[Job], str],
        "job",
        says="Say whom a job would delay if it started now, as far as amounts alone tell.",
    )
    job_blocked = Point(
        "JobBlocked",
        Notify[[Job]],
        "job",
        says="Hear of a job that found too little room; `session.search` looks for its places as they would be at another time.",
    )
    sub_job_ready = Point(
        "SubJobReady",
        All[[SubJob]],
        "sub_job",
        "enabledSubJobReady",
        says="Tell whether enough of a sub-job has a place.",
    )
    sub_job_pipelined = Point(
        "SubJobPipelined",
        Votes[[SubJob]],
        "sub_job",
        "enabledSubJobPipelined",
        says="Vote on keeping places for a sub-job that waits for room being released.",
    )
    overused = Point(
        "Overused",
        Refusals[[Queue], str],
        "queue",
        "enabledOverused",
        says="Say why a queue has enough and gets nothing more.",
    )
    allocatable = Point(
        "Allocatable",
        Refusals[[Queue, Demand], str],
        "queue, demand",
        "enabledAllocatable",
        says="Say why a queue may not take on some tasks.",
    )
    preemptive = Point(
        "Preemptive",
        Refusals[[Queue, Demand], str],
        "queue, demand",
        "enablePreemptive",
        says="Say why a queue may not reclaim for some tasks.",
    )
    pre_predicate = Point(
        "PrePredicate",
        Refusals[[Subject], str],
        "subject",
        "enablePredicate",
        says="Say, before any node is looked at, why a task fits nowhere.",
    )
    predicate = Point(
        "Predicate",
        Filters,
        "subject, nodes",
        "enablePredicate",
        says="Give each node 0 if it takes the task, otherwise the number of a reason.",
    )
    score = Point(
        "NodeOrder",
        Scores,
        "subject, nodes",
        "enableNodeOrder",
        says="Give each node a score; the highest sum is chosen.",
    )
    best_node = Point(
        "BestNode",
        Position[[Subject, Nodes, Floats], int],
        "subject, nodes, scores",
        "enableBestNode",
        says="Choose among the candidates, as a position in the view.",
    )
    hyper_node_order = Point(
        "HyperNodeOrder",
        Sum[SubJob, HyperNode],
        "sub_job, domains",
        "enabledHyperNodeOrder",
        says="Score hyper-nodes for a sub-job.",
    )
    job_gradient = Point(
        "HyperNodeGradientForJob",
        FirstAnswer[[Job, HyperNode, Purpose], Groups],
        "job, root, purpose",
        "enabledHyperNodeGradient",
        says="Give the hyper-nodes that may hold a job, in groups that are tried one after the other.",
    )
    sub_job_gradient = Point(
        "HyperNodeGradientForSubJob",
        FirstAnswer[[SubJob, HyperNode, Purpose], Groups],
        "sub_job, root, purpose",
        "enabledHyperNodeGradient",
        says="Give the hyper-nodes that may hold a sub-job inside one that was chosen for its job.",
    )
    preemptable = Point(
        "Preemptable",
        Intersection[Task],
        "claimant, candidates",
        "enablePreemptable",
        says="Name who may go for a claimant of the same queue; None abstains.",
    )
    reclaimable = Point(
        "Reclaimable",
        Intersection[Task],
        "claimant, candidates",
        "enableReclaimable",
        says="Name who may go for a claimant of another queue; None abstains.",
    )
    unified_evictable = Point(
        "UnifiedEvictable",
        Intersection[EvictionContext],
        "context, candidates",
        says="Name who may go for a whole gang; None abstains.",
    )
    due = Point(
        "Due",
        FirstAnswer[[Job], Matrix],
        "job",
        says="Give what every queue is due if the job's minimum were asked for, a row each.",
    )
    protection = Point(
        "Protection",
        Refusals[[Task | None, Task, str], str],
        "claimant, victim, action",
        says="Say why an action may not evict a victim, for a claimant or for nobody in particular.",
        about=1,
    )
    victim_tasks = Point(
        "VictimTasks",
        Union[[Sequence[Task]]],
        "running",
        "enabledVictim",
        says="Name running tasks that shuffle is to evict.",
    )
    simulate_remove_task = Point(
        "SimulateRemoveTask",
        Refusals[[Task, Task, NodeRecord], str],
        "claimant, task, node",
        "enablePreemptable",
        "enabledAllocatable",
        says="Follow a trial that takes a task off a node; a reason ends it.",
    )
    simulate_add_task = Point(
        "SimulateAddTask",
        Refusals[[Task, Task, NodeRecord], str],
        "claimant, task, node",
        "enablePreemptable",
        "enabledAllocatable",
        says="Follow a trial that puts a task on a node; a reason ends it.",
    )
    simulate_predicate = Point(
        "SimulatePredicate",
        Refusals[[Task, NodeRecord], str],
        "claimant, node",
        "enablePredicate",
        says="Say why a node would not take a claimant once the victims of a trial are gone.",
    )
    simulate_allocatable = Point(
        "SimulateAllocatable",
        Refusals[[Queue, Demand], str],
        "queue, demand",
        "enabledAllocatable",
        says="Say why a queue could not take on tasks once the victims of a trial are gone.",
    )
    pre_bind = Point(
        "PreBind",
        Refusals[[Task, NodeRecord], str],
        "task, node",
        says="Say, as the last thing before a bind is sent, what speaks against it.",
    )

    def declare(self, roster: Roster) -> None:
        """Let this session have an extension of its own at every point."""
        self._roster = roster

    if not TYPE_CHECKING:  # so that a name that does not exist stays a mistake to a type checker

        def __getattr__(self, name: str) -> Any:
            """Tell a plugin that registers somewhere else what it may have meant."""
            slot = self.__dict__["_roster"].slot if "_roster" in self.__dict__ else None
            if slot is None or name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise RegistrationError(f'plugin "{slot.plugin}": a session has no extension point {name}{_meant(name)}')


POINTS: tuple[Point[Any], ...] = tuple(point for point in vars(Points).values() if isinstance(point, Point))
BY_NAME = {point.name: point for point in POINTS}


def unknown(name: str) -> str:
    """Say that there is no point of a name, and which one was probably meant."""
    words = {word: point.name for point in POINTS for word in (point.name, point.attribute)}
    near = documents.nearest(name, words)
    return f"there is no extension point {name}" + (f"; did you mean {words[near]}?" if near else "")


def _meant(name: str) -> str:
    words = {word: point for point in POINTS for word in (point.attribute, point.name)}
    near = documents.nearest(name, words)
    return f"; did you mean {words[near].attribute} ({words[near].name})?" if near else ""


__all__ = [
    "BY_NAME",
    "EVERYTHING",
    "NODE_LOCAL",
    "NODE_TASKS",
    "POINTS",
    "Point",
    "Points",
    "Reads",
    "RegistrationError",
    "unknown",
]
