"""Why a job or a pod waits, as one sentence: the cause in a person's words, with numbers and names.

It is found here and nowhere else: conditions and events begin with it, explanations and lists show it. What will never change comes before what
may pass: that no node could ever take a pod, before that none has room now. Whoever compares texts leaves numbers and passing names out (`reason_keys`),
so a sentence says the same as long as the same things are in the way, whichever node comes nearest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import kinds, names
from pumice.framework import outlooks, queue_room, standings, subject
from pumice.framework.outlooks import SHORT
from pumice.model import native_groups, resources
from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from pumice.api import core
    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.resources import Request
    from pumice.model.task import Task

MOST_SHAPES = 64
RELEASED = "waits for room that is being released"
VICTIMS = "waits for pods evicted for it to go"
NO_PODS = "it has no pods yet"


def of_job(session: Session, job: Job) -> str:
    """Say why a job waits; empty if there is nothing to say, or it does not wait."""
    causes = session.findings.causes
    known = causes.get(job.key)
    if known is None:
        shared = _likeness(session, job)
        known = None if shared is None else causes.get(shared)
        if known is None:
            known = _of_job(session, job)
            causes[shared or job.key] = known
        causes[job.key] = known
    return known


def _likeness(session: Session, job: Job) -> Hashable:
    """Return what a job that waits with its only pod shares with its equals, of which there may be thousands; None if it stands for itself."""
    group = job.group
    if len(job.tasks) != 1 or len(job.pending) != 1 or job.min_member > 1 or job.min_task_member or job.policies:
        return None
    ((uid, task),) = job.pending.items()
    if group is None or task.gated:
        return None
    against: object = None
    if session.findings.phase(job) == names.PHASE_PENDING:
        vote = session.findings.kept_out.get(job.key)
        against = None if vote is None else vote.reason
    elif (errors := session.findings.fit_errors.get(job.key)) is not None:
        against = errors.get(uid)
    if against is None:
        return None
    return (
        "alone",
        task.shape.serial,
        against,
        job.queue,
        job.min_member,
        group.spec.priority_class_name,
        job.priority,
    )


def of_task(session: Session, task: Task) -> str:
    """Say why a pod waits: what will always keep it from every node, what keeps its job waiting until somebody changes an object, else what keeps it from every node now."""
    job = task.job
    if job is None:
        return ""
    whole = of_job(session, job)
    if len(job.tasks) == 1:
        return whole
    if task.status != Status.PENDING or was_placed(session, task) or not session.usable(job):
        return whole
    if not task.gated and (never := _nowhere(session, task)):
        return never
    failure = session.findings.errors(job).get(task.uid)
    if failure is None or not failure.nodes or _lasting(session, job):
        return whole
    own = _of_failure(session, task, failure)
    return whole if whole.endswith(own) else _with_class(session, job, own)


def _of_job(session: Session, job: Job) -> str:
    if unusable := of_unusable(session, job):
        return unusable
    if job.tasks and not waits(job):
        return _too_few(job) if _lacks_pods(session, job) else ""
    return _lasting(session, job) or _with_class(session, job, _passing(session, job))


def _with_class(session: Session, job: Job, passing: str) -> str:
    """Say first that a priority class is missing: with its priority the job might not wait."""
    lacking = unknown_class(session, job) if passing else ""
    return f"{lacking}, and {passing}" if lacking else passing


def waits(job: Job) -> bool:
    """Tell whether a member of a job has no node yet."""
    counts = job.tally.counts
    return bool(job.pending or counts[Status.ALLOCATED] or counts[Status.PIPELINED])


# -- objects that are missing or bad ---------------------------------------------------------------------------


def has_ended(job: Job) -> bool:
    """Tell whether all pods of a job have ended: nobody serves it any more, and its controller may have taken its group away."""
    counts = job.tally.counts
    return bool(job.tasks) and counts[Status.SUCCEEDED] + counts[Status.FAILED] == len(job.tasks)


def of_unusable(session: Session, job: Job) -> str:
    """Say why nobody serves a job, whatever room there is; empty if it has a valid group and a queue, or has ended."""
    if job.group is None:
        return "" if has_ended(job) else missing_group(session.cluster, job.key)
    if job.bad:
        return f"the group is invalid: {job.bad}"
    queue = session.cluster.queues.get(job.queue)
    if queue is None:
        return f"queue {job.queue} does not exist"
    return f"queue {job.queue} is invalid: {queue.bad}" if queue.bad else job.held


def missing_group(cluster: Cluster, key: str) -> str:
    """Say that the group of some pods does not exist, and cannot if its kind is not served."""
    if native_groups.is_older(key):
        name = key.removesuffix(native_groups.OLDER_MARK)
        return f"it names its group by spec.workloadRef ({name}), which Kubernetes 1.36 replaced by spec.schedulingGroup; only that is served"
    if native_groups.is_native(key):
        if native_groups.KIND in cluster.objects.get(kinds.UNSERVED_KIND.name, {}):
            return f"{native_groups.NOT_SERVED}, so its PodGroup {key.removesuffix(native_groups.MARK)} cannot exist"
        return f"its PodGroup {key.removesuffix(native_groups.MARK)} of scheduling.k8s.io does not exist"
    return f"its PodGroup {key} does not exist"


def without_group(pod: core.Pod) -> str:
    """Say why nobody serves a pod that names no group."""
    name = pod.spec.scheduler_name
    if name != names.SCHEDULER:
        return f"it belongs to no group; it names scheduler {name}, and Pumice serves {names.SCHEDULER} unless told otherwise"
    return f"it belongs to no group; the controllers make one for each such pod of scheduler {name}: do they run?"


def unknown_class(session: Session, job: Job) -> str:
    """Say that a group names a priority class that does not exist; empty if it does, or if classes do not count here."""
    named = job.group.spec.priority_class_name if job.group is not None else ""
    known = session.cluster.priority_classes
    if not named or not known or named in known:
        return ""
    return f"priority class {named} does not exist, so it has priority {job.priority}"


# -- what lasts ------------------------------------------------------------------------------------------------


def _lasting(session: Session, job: Job) -> str:
    key = (job.key, "lasting")
    known = session.findings.causes.get(key)
    if known is None:
        known = session.findings.causes[key] = _lasting_told(session, job)
    return known


def _lasting_told(session: Session, job: Job) -> str:
    """Say what keeps a job waiting until somebody changes an object: a queue that is closed, pods or gates, what no node or queue could ever hold."""
    tally, phase = job.tally, session.findings.phase(job)
    if tally.counts[Status.PIPELINED]:
        return _awaited(session, job)
    queue = session.cluster.queues[job.queue]
    if not queue.is_open and (session.closed(job) is not None or job.key in session.findings.kept_out):
        return f"queue {job.queue} is {queue.state}, only {names.QUEUE_OPEN} queues start new jobs"
    if phase != names.PHASE_PENDING and (missing := _missing_pods(session, job)):
        return missing
    if session.job_ready(job):
        return ""
    return _never(session, job) or session.never_running.verdict(job) or ""


def _awaited(session: Session, job: Job) -> str:
    """Say that a job waits for room that is being released, and for whose going if that was its doing."""
    victims = standings.awaited(session, job).partition(": ")[2].partition("; ")[0]
    return f"{VICTIMS}: {victims}" if victims else RELEASED


def _missing_pods(session: Session, job: Job) -> str:
    """Say that too few pods exist, or too few of them may be looked at."""
    if not job.tasks:
        return "" if session.job_ready(job) else f"{NO_PODS}, minMember is {job.min_member}"
    gated = [task for task in job.pending.values() if task.externally_gated]
    if not session.announced.minimums_count or job.tally.ready:
        return _gates(gated, job) if gated and len(gated) == len(job.pending) else ""
    if job.min_task_member and (role := job.short_role()) is not None:
        return f"role {role[0]} has {role[1]} of the {role[2]} pods that it needs"
    if job.policies and (policy := job.short_policy()) is not None:
        return f"policy {policy[0]} has {policy[1]} of the {policy[2]} sub-groups that it needs"
    if job.tally.valid < job.min_member:
        return _too_few(job)
    return _gates(gated, job) if gated and job.tally.valid - len(gated) < job.min_member else ""


def _too_few(job: Job) -> str:
    return f"only {job.tally.valid} of the {job.min_member} pods that minMember needs exist"


def _lacks_pods(session: Session, job: Job) -> bool:
    """Tell whether a gang of which every pod has a node, and which is not ending, has fewer than it needs."""
    counts = job.tally.counts
    scheduled = counts[Status.BOUND] + counts[Status.RUNNING] + counts[Status.SUCCEEDED] + counts[Status.FAILED]
    return session.announced.minimums_count and max(job.tally.valid, scheduled + job.leaving) < job.min_member


def _gates(gated: Sequence[Task], job: Job) -> str:
    gates = min(gated, key=lambda task: task.name).pod.spec.scheduling_gates
    named = next((each.name for each in gates if each.name != names.QUEUE_GATE), "")
    return f"{len(gated)} of its {len(job.tasks)} pods wait for scheduling gates to be taken off: {named}"


def _never(session: Session, job: Job) -> str:
    """Say of a gang that so many of its pods could never have a node that the others are too few; empty if that is not so."""
    shapes: dict[int, list[Task]] = {}
    for task in job.pending.values():
        if not task.externally_gated:
            shapes.setdefault(task.shape.serial, []).append(task)
    if len(shapes) > MOST_SHAPES:
        return ""
    lost = {
        min(task.name for task in alike): (never, alike)
        for alike in shapes.values()
        if (never := _nowhere(session, alike[0]))
    }
    needed = job.tally.valid - sum(len(alike) for _, alike in lost.values()) < job.min_member
    for name, (never, alike) in sorted(lost.items()):
        if needed or (job.roles_enforced and _is_needed(job, alike)):
            return never if len(shapes) == 1 else f"its pod {name} has no node to go to: {never}"
    return ""


def _nowhere(session: Session, task: Task) -> str:
    """Say why no node takes a pod as long as nobody changes an object; empty if one may."""
    never = session.outlooks.of(task).never
    return never if never or not _has_claims(task) else _of_claims(session, task)


def _has_claims(task: Task) -> bool:
    return task.shape.constraint_class.has_volumes or task.shape.constraint_class.has_device_claims


def _of_claims(session: Session, task: Task, reasons: Collection[str] = ()) -> str:
    """Say what plugins say of the volumes and devices that a pod claims."""
    asked = subject.Subject(task, session.queue_of(task.job) if task.job is not None else None)
    return next(filter(None, (cause(asked, reasons) for cause in session.announced.pod_causes)), "")


def _is_needed(job: Job, alike: Sequence[Task]) -> bool:
    """Tell whether a role has too few pods without some."""
    role = alike[0].role
    tally, minimum = job.roles.get(role), job.min_task_member.get(role, 0)
    return tally is not None and tally.valid - sum(task.role == role for task in alike) < minimum


# -- what may pass ---------------------------------------------------------------------------------------------


def _passing(session: Session, job: Job) -> str:
    """Say what keeps a job waiting that may pass by itself: it was not let in, its queue or the nodes have no room, a bind was refused."""
    if session.findings.phase(job) == names.PHASE_PENDING and (vote := session.findings.kept_out.get(job.key)):
        return f"not let in: {vote.cause or vote.reason}"
    if (decisive := _decisive(session, job)) is not None:
        task, failure = decisive
        return _head(session, job, failure) + _of_failure(session, task, failure)
    if refused := next((task.refusal for task in job.pending.values() if task.refusal), ""):
        return refused
    said = standings.verdict(session, job)
    if said is None:
        return ""
    queue = session.queue_of(job)
    lack = None if queue is None else queue_room.lack(session, queue, _wanted(job))
    return said.text if lack is None else str(lack)


def _decisive(session: Session, job: Job) -> tuple[Task, FitSummary] | None:
    """Return the member that keeps a job waiting and why: the first one, but one that could never have a node only if there is no other, as the job may start without it."""
    first: tuple[Task, FitSummary] | None = None
    for uid, failure in session.findings.errors(job).items():
        if (task := job.tasks.get(uid)) is None:
            continue
        if not session.outlooks.of(task).never:
            return task, failure
        first = first or (task, failure)
    return first


def _head(session: Session, job: Job, failure: FitSummary) -> str:
    """Say how many members of a gang would find a place before the one that does not."""
    if failure.queue or not failure.counts or session.job_ready(job):
        return ""
    fit = sum(1 for task in job.pending.values() if was_placed(session, task))
    if not fit:
        return ""
    ready = job.tally.ready
    return f"room for {fit} of the {job.min_member - ready} pods it {'still ' if ready else ''}needs, then "


def was_placed(session: Session, task: Task) -> bool:
    """Tell whether a discarded statement had placed a task: it would go if the others could."""
    last = session.findings.last_transactions.get(task.uid)
    return last is not None and last.status in ALLOCATED_LIKE


def _wanted(job: Job) -> resources.Vector:
    """Return what a job asks its queue for: what it lacks to its minimum, or its next pod."""
    waiting = [task for task in job.pending.values() if not task.best_effort and not task.externally_gated]
    lacking = max(1, job.min_member - job.tally.ready)
    if any(task.shape is not waiting[0].shape for task in waiting):
        waiting.sort(key=lambda task: task.name)
    return subject.demand(waiting[:lacking] or list(job.pending.values())).amounts


def _of_failure(session: Session, task: Task, failure: FitSummary) -> str:
    """Say why no node takes a pod; pods of one shape that fail alike share the sentence."""
    job = task.job
    wanted = (job.key, job.version) if failure.queue and job is not None else None
    key = (task.shape.serial, failure, wanted)
    known = session.findings.causes.get(key)
    if known is None:
        known = session.findings.causes[key] = _failure_told(session, task, failure)
    return known


def _failure_told(session: Session, task: Task, failure: FitSummary) -> str:
    outlook = session.outlooks.of(task)
    if outlook.never and failure.nodes:
        return outlook.never
    if failure.queue and task.job is not None:
        lack = queue_room.lack(session, session.cluster.queues[failure.queue], _wanted(task.job))
        if lack is not None and lack.whole and task.job.min_member - task.job.tally.ready <= 1:
            return _no_room(session, task.shape.request, outlook.able, [lack.name])
        return failure.prefix if lack is None else str(lack)
    if not failure.counts:
        return str(failure).rstrip(".")
    reasons = [text for text, _ in failure.counts]
    short = [text.removeprefix(SHORT) for text in reasons if text.startswith(SHORT)]
    others = [text for text in reasons if not text.startswith(SHORT) and text not in outlook.ruled_out]
    if _has_claims(task) and (claims := _of_claims(session, task, reasons)):
        return claims
    if failure.prefix:
        return f"{failure.prefix}: {', '.join(reasons)}"
    if short and not others:
        return _no_room(session, task.shape.request, outlook.able, short)
    if len(reasons) == 1 and not reasons[0].startswith(outlooks.NODES) and failure.counts[0][1] == failure.nodes:
        return reasons[0]  # it was said before any node was looked at
    return outlooks.counted(failure.nodes, failure.counts)


def _no_room(session: Session, request: Request, able: Rows, short: Sequence[str]) -> str:
    """Say that no node has some amounts free, and how near the freest comes; if the freest has enough, others of the job would take it first."""
    table, vocabulary = session.cluster.nodes, session.cluster.vocabulary
    who = "no node" if len(able) == table.count else "no node that it may use"
    if short == ["pods"]:
        return f"{who} has a slot for another pod"
    columns = {vocabulary.columns[name] for name in short if name != "pods" and name in vocabulary.columns}
    chosen = np.array([column in columns for column in request.asked.tolist()], dtype=np.bool_)
    told = f"{who} has {outlooks.listed(vocabulary.names, request, chosen)} free"
    asked, needed = request.asked[chosen], request.needed[chosen]
    free = table.future_idle_at(able)[:, asked]
    missing = np.maximum(needed - free, 0)
    if not len(able) or not chosen.any() or not (missing > 0).any(axis=1).all():
        return told
    best = int((missing / np.maximum(needed, 1)).max(axis=1).argmin())
    has = " and ".join(
        f"{resources.shown(vocabulary.names[column], max(0, units))} {vocabulary.names[column]}"
        for column, units in zip(asked.tolist(), free[best].tolist(), strict=True)
    )
    return f"{told}: the freest of {len(able)}, {table.records[int(able[best])].name}, has {has}"
