"""What a cycle has to report: phases, conditions and texts of jobs and pods. Reading only; writing is the cache's business."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pumice.api import names, scheduling, timestamp
from pumice.framework import causes, group_conditions, standings
from pumice.framework.reason_keys import NOT_READY, ORIGIN, READY, joined, parted
from pumice.model.job import BEST_EFFORT_PENDING
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.framework.findings import Standing
    from pumice.framework.group_conditions import Stamp
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task

Statuses = dict[tuple[object, ...], scheduling.PodGroupStatus]
Conditions = tuple[scheduling.PodGroupCondition, ...]
QUEUE_PATIENCE = 10_000_000
"""So long after its creation a group may wait for its queue to be created before its status says so."""
WAITING = frozenset({Status.PENDING, Status.ALLOCATED, Status.PIPELINED})
# Asked of every job that is reported: plain integers index lists several times faster than members of an enumeration.
_PENDING, _ALLOCATED, _PIPELINED = int(Status.PENDING), int(Status.ALLOCATED), int(Status.PIPELINED)
_BOUND, _RUNNING, _SUCCEEDED = int(Status.BOUND), int(Status.RUNNING), int(Status.SUCCEEDED)
_FAILED = int(Status.FAILED)
_TITLES = tuple(status.title for status in Status)
UNFINISHED_PHASES = frozenset({names.PHASE_UNKNOWN, names.PHASE_PENDING, names.PHASE_INQUEUE})


class TaskReport(msgspec.Struct, frozen=True):
    """Why a pod has no node yet."""

    task: Task
    reason: str
    message: str
    nominated: str


class JobReport(msgspec.Struct, frozen=True, eq=False):
    """How a job, or many that stand alike, stand at the end of a cycle, in a text too, and what of that is different from what is known of them.

    Whether they `entered` a phase, `moved` in their phase or counts, or `changed` in anything a reader could care about.
    """

    status: scheduling.PodGroupStatus
    text: str
    entered: bool
    moved: bool
    changed: bool
    warning: str = ""
    tasks: tuple[TaskReport, ...] = ()


def report(session: Session, *, pod_reasons: bool = True) -> list[tuple[Job, JobReport]]:
    """Report on every job that may have changed; one whose queue cannot be used says so on its group and on every pod.

    Without reasons of pods only those are reported on that are to get a certain node.
    """
    stamp = _stamp(session)
    found = _stranded_jobs(session, stamp)
    conditions, state = session.findings.conditions, session.record.state
    equal: Statuses = {}
    shared: dict[tuple[Standing, Conditions], JobReport] = {}
    for job, standing in standings.news(session):
        given = conditions.get(job.key, ())
        made = shared.get((standing, given))
        if made is None:
            made = shared[standing, given] = _job_report(session, job, stamp, equal, pod_reasons=pod_reasons)
        state(job.key, made.text)
        found.append((job, made))
    return found


def _stranded_jobs(session: Session, stamp: Stamp) -> list[tuple[Job, JobReport]]:
    """Report on the jobs whose queue cannot be used, and warn of what cannot be meant."""
    stranded, valid = [], session.valid_queues()
    for job in standings.noticed(session):
        if job.group is None or job.bad:
            continue
        if job.group.spec.priority_class_name and (text := unknown_class(session, job)):
            session.findings.warn(job, text)
        if job.queue not in valid:
            text = _queue_text(session, job)
            session.record.state(job.key, f"not looked at: {text}")
            session.findings.warn(job, text)
            if (made := _stranded(session, job, text, stamp)) is not None:
                stranded.append((job, made))
    return stranded


def _stranded(session: Session, job: Job, text: str, stamp: Stamp) -> JobReport | None:
    """Report on a job that nobody serves for want of a queue; None if nothing about it has changed, or if the queue may yet follow its groups."""
    # The clock that stamps groups may be a little ahead; for one that is far ahead nobody waits.
    if abs(session.started - job.creation) < QUEUE_PATIENCE:
        session.wake_at(job.creation + QUEUE_PATIENCE)
        return None
    stands = (text, job.group, job.status, job.version, tuple(job.tally.counts))
    if not session.record.is_news(job.key, stands):
        return None
    waiting = [task for task in job.tasks.values() if task.status in WAITING]
    condition = scheduling.PodGroupCondition(
        type=names.CONDITION_UNSCHEDULABLE,
        status="True",
        reason=names.REASON_QUEUE_UNUSABLE,
        message=f"{causes.of_unusable(session, job)}; {len(waiting)}/{len(job.tasks)} tasks in gang unschedulable: {text}",
    )
    session.findings.conditions[job.key] = (condition,) if waiting or not job.tasks else ()
    told = [TaskReport(t, names.REASON_UNSCHEDULABLE, text, "") for t in waiting if not t.gated]
    return _made(job, _status(session, job, stamp, {}), text, tasks=tuple(told))


def unknown_class(session: Session, job: Job) -> str:
    """Say that a group names a priority class that does not exist, and what to do; empty if it does, or if classes do not count here."""
    unknown = causes.unknown_class(session, job)
    return f"{unknown}; create it or name another in spec.priorityClassName" if unknown else ""


def _queue_text(session: Session, job: Job) -> str:
    queue = session.cluster.queues.get(job.queue)
    if queue is None:
        return f"{causes.of_unusable(session, job)}; create it or name another in spec.queue"
    return causes.of_unusable(session, job)


def _job_report(session: Session, job: Job, stamp: Stamp, equal: Statuses, *, pod_reasons: bool) -> JobReport:
    status, counts = _status(session, job, stamp, equal), job.tally.counts
    head = f"{status.phase or names.PHASE_PENDING} in queue {job.queue}"
    lacking = counts[_PENDING] + counts[_PIPELINED] + counts[_ALLOCATED]
    if not lacking:
        return _made(job, status, head, "" if job.tasks else _told(session, job, status.phase))
    waiting = [task for task in job.tasks.values() if task.status in WAITING]
    text, warning = job_text(session, job), ""
    if status.phase in UNFINISHED_PHASES:
        warning = joined(
            causes.of_job(session, job), f"{len(waiting)}/{len(job.tasks)} tasks in gang unschedulable: {text}"
        )
    stands = f"{head}, {lacking} of {len(job.tasks)} pods wait: {text}"
    told = waiting if pod_reasons else [task for task in waiting if task.uid in session.reservations.holds]
    return _made(job, status, stands, warning, tuple(_task_reports(session, job, told)))


def _told(session: Session, job: Job, phase: str) -> str:
    """Return what the condition of a group without pods says that is not let in, for an event."""
    given = session.findings.conditions.get(job.key, ()) if phase in UNFINISHED_PHASES else ()
    return next((each.message for each in given if each.type == names.CONDITION_UNSCHEDULABLE), "")


def _made(
    job: Job, status: scheduling.PodGroupStatus, text: str, warning: str = "", tasks: tuple[TaskReport, ...] = ()
) -> JobReport:
    """Hold the status of a job against what is known of it."""
    known = job.status
    moved = _has_moved(known, status)
    changed = moved or not _same(known, status)
    return JobReport(status, text, status.phase != job.phase, moved, changed, warning, tasks)


# -- phase -----------------------------------------------------------------------------------------------------


def _status(session: Session, job: Job, stamp: Stamp, equal: Statuses) -> scheduling.PodGroupStatus:
    """Return the status of a group; groups that stood alike and are told the same have one."""
    counts = job.tally.counts
    given = session.findings.conditions.get(job.key, ())
    unschedulable = False
    for condition in given:
        unschedulable |= condition.type == names.CONDITION_UNSCHEDULABLE
    entered = phase(job, session.findings.phase(job), unschedulable=unschedulable)
    retries = bool(job.pending) and any(task.refusal for task in job.pending.values())
    empty = not job.tasks
    key = (job.status, entered, retries, empty, counts[_RUNNING], counts[_SUCCEEDED], counts[_FAILED], *given)
    status = equal.get(key)
    if status is None:
        status = equal[key] = scheduling.PodGroupStatus(
            phase=entered,
            conditions=group_conditions.merged(job.status, given, entered, stamp, retries=retries, empty=empty),
            running=counts[_RUNNING],
            succeeded=counts[_SUCCEEDED],
            failed=counts[_FAILED],
        )
    return status


def phase(job: Job, current: str, *, unschedulable: bool) -> str:
    """Return the phase that follows from the job's tasks and this cycle's verdict."""
    counts = job.tally.counts
    if counts[_RUNNING] and unschedulable:
        return names.PHASE_UNKNOWN
    completed = counts[_SUCCEEDED] + counts[_FAILED]
    scheduled = counts[_BOUND] + counts[_RUNNING] + completed + job.leaving
    if scheduled >= job.min_member:
        return names.PHASE_COMPLETED if scheduled == completed else names.PHASE_RUNNING
    return names.PHASE_INQUEUE if current == names.PHASE_INQUEUE else names.PHASE_PENDING


def _stamp(session: Session) -> Stamp:
    """Return what gives a condition the time and the number of this cycle; equal ones of many groups become one."""
    moment, number = timestamp.format_timestamp(session.started), str(session.number)
    given: dict[scheduling.PodGroupCondition, scheduling.PodGroupCondition] = {}

    def stamp(condition: scheduling.PodGroupCondition) -> scheduling.PodGroupCondition:
        stamped = given.get(condition)
        if stamped is None:
            stamped = msgspec.structs.replace(condition, transition_id=number, last_transition_time=moment)
            given[condition] = stamped
        return stamped

    return stamp


def _has_moved(old: scheduling.PodGroupStatus, new: scheduling.PodGroupStatus) -> bool:
    """Tell whether the phase or the counts of a group changed."""
    return (old.phase, old.running, old.succeeded, old.failed) != (new.phase, new.running, new.succeeded, new.failed)


def _same(old: scheduling.PodGroupStatus, new: scheduling.PodGroupStatus) -> bool:
    """Tell whether the conditions of two statuses differ in nothing a reader could care about."""
    return old.conditions == new.conditions or group_conditions.same(old.conditions, new.conditions)


# -- texts -----------------------------------------------------------------------------------------------------


def tentative(session: Session, job: Job) -> int:
    """Count pending tasks that a discarded statement had placed: they would go if the others could."""
    return sum(1 for task in job.pending.values() if causes.was_placed(session, task))


def unschedulable(session: Session, job: Job) -> str:
    """Write the verdict on a gang that cannot start: the cause, then how many members it lacks, of how many pods there are, and why.

    Tools read the numbers. Members of which no pod exists are counted in them only as far as it adds up; the text says how many are needed.
    """
    lacking = max(job.min_member - job.tally.ready - tentative(session, job), _lacking_roles(session, job))
    lacks, exist = min(lacking, len(job.tasks)), len(job.tasks)
    summary = f"{lacks}/{exist} tasks in gang unschedulable: {job_text(session, job)}"
    return joined(causes.of_job(session, job), summary)


def _lacking_roles(session: Session, job: Job) -> int:
    """Count the members that roles lack to their minimum."""
    if not job.roles_enforced:
        return 0
    placed = Counter(task.role for task in job.pending.values() if causes.was_placed(session, task))
    ready = {role: tally.ready + tally.counts[BEST_EFFORT_PENDING] for role, tally in job.roles.items()}
    return sum(max(0, minimum - ready.get(role, 0) - placed[role]) for role, minimum in job.min_task_member.items())


def job_text(session: Session, job: Job) -> str:
    """Sum a job up: how many tasks are in which status, why the pending ones wait, and the first task's own reason."""
    text = session.findings.job_texts.get(job.key)
    if text is None:
        text = session.findings.job_texts[job.key] = _job_text(session, job)
    return text


def _job_text(session: Session, job: Job) -> str:
    counts = job.tally.counts
    titles: dict[str, int] = {}
    for title, count in zip(_TITLES, counts, strict=False):
        if count:
            titles[title] = titles.get(title, 0) + count
    items = [f"{count} {title}" for title, count in titles.items()]
    items.append(f"{job.min_member} minAvailable")
    text = f"{READY if session.job_ready(job) else NOT_READY}, {', '.join(sorted(items))}"
    if job.pending:
        reasons = Counter(_pending_reason(session, task) for task in job.pending.values())
        text += f"; Pending: {', '.join(sorted(f'{n} {reason}' for reason, n in reasons.items()))}"
    if unknown := unknown_class(session, job):
        text += f". The {unknown}"
    if awaited := standings.awaited(session, job):
        text += f". {awaited}"
    origin = _origin(session, job)
    return f"{text}. {ORIGIN} {origin}" if origin else text


def reason(session: Session, job: Job) -> str:
    """Say in a sentence why a job waits: what its group and its pods say; empty if none of its members waits."""
    if job.group is None or job.bad:
        return causes.of_unusable(session, job)
    if not session.usable(job):
        return _queue_text(session, job)
    if job.tasks and not any(task.status in WAITING for task in job.tasks.values()):
        return ""
    return job_text(session, job)


def task_reason(session: Session, task: Task) -> str:
    """Say why a pod waits, in the words that its condition has after the cause."""
    job = task.job
    if job is None or job.group is None or not session.usable(job):
        return reason(session, job) if job is not None else ""
    return next((parted(entry.message)[1] for entry in _task_reports(session, job, [task])), "")


def _pending_reason(session: Session, task: Task) -> str:
    if causes.was_placed(session, task):
        return names.REASON_SCHEDULABLE
    return names.REASON_SCHEDULER_ERROR if _was_refused(session, task) else names.REASON_UNSCHEDULABLE


def _was_refused(session: Session, task: Task) -> bool:
    """Tell whether a failed bind is the latest news of a task: in this cycle it was not tried, or found a node."""
    return bool(task.refusal) and task.uid not in session.findings.fit_errors.get(task.job_key, {})


def _origin(session: Session, job: Job) -> str:
    """Return the reason that stands for the whole job: a fit error of this cycle, a bind that failed, what an action said of the group, or that it has no pods."""
    for uid, failure in session.findings.errors(job).items():
        return f"{job.tasks[uid].name if uid in job.tasks else uid}: {failure}"
    if refused := next((f"{task.name}: {task.refusal}" for task in job.pending.values() if task.refusal), ""):
        return refused
    if (said := standings.verdict(session, job)) is not None:
        return f"{said.source}: {said.text}"
    if not job.tasks and not session.job_ready(job):
        return (
            f"{job.name}: it has no pods yet, minMember is {job.min_member}; whoever made the group has to create them"
        )
    return ""


def _task_reports(session: Session, job: Job, waiting: list[Task]) -> list[TaskReport]:
    reports = []
    errors = session.findings.errors(job)
    fallback, unknown = "", unknown_class(session, job)
    for task in waiting:
        if task.gated:
            continue
        reason, message, nominated = _task_verdict(session, task)
        if not message:
            failure = errors.get(task.uid)
            fallback = fallback or job_text(session, job)
            message = str(failure) if failure is not None else fallback
        if unknown and message is not fallback:
            message = f"{message.rstrip('.')}. The {unknown}"
        if reason != names.REASON_SCHEDULER_ERROR:
            message = joined(causes.of_task(session, task), message)
        reports.append(TaskReport(task, reason, message, nominated))
    return reports


def _task_verdict(session: Session, task: Task) -> tuple[str, str, str]:
    """Return reason, message and nominated node from where the task stands, or where a discarded statement had put it."""
    status, node, evicted = task.status, task.node.name if task.node else "", task.uid in session.statements.evicted_for
    last = session.findings.last_transactions.get(task.uid)
    if status == Status.PENDING and last is not None:
        status, node, evicted = last.status, last.node, last.evicted
    if status == Status.ALLOCATED:
        text = f"Pod {task.key} can possibly be assigned to {node}, once minAvailable is satisfied"
        return names.REASON_SCHEDULABLE, text, ""
    if status == Status.PIPELINED:
        text = f"Pod {task.key} can possibly be assigned to {node}, once resource is released and minAvailable is satisfied"
        # Only a plan that was made nominates: an attempt that was given up has no claim to the room. What is written is what is held: where a member
        # waits in this cycle alone may be room that is held for another, and a restart would believe it.
        hold = session.reservations.holds.get(task.uid) if evicted else None
        return names.REASON_UNSCHEDULABLE, text, hold.node if hold is not None else ""
    if _was_refused(session, task):
        return names.REASON_SCHEDULER_ERROR, task.refusal, ""
    return names.REASON_UNSCHEDULABLE, "", ""
