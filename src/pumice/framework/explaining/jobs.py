"""Why a job waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework import causes, closing
from pumice.framework.explaining import holding, members, placements, queues, votes
from pumice.framework.explaining.explanations import ActionVerdict, JobExplanation
from pumice.model.statuses import TENTATIVE, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.explaining.explanations import EvictionVerdict, State
    from pumice.framework.plugin import Action
    from pumice.framework.session import Session
    from pumice.model.job import Job

PLACEMENTS = 8  # kinds of members whose nodes are told of


def explain(session: Session, actions: Sequence[Action], job: Job) -> JobExplanation:
    """Say how a job stands at the end of a cycle, and why it waits if it does."""
    cast = votes.cast(session, job)
    waits = bool(job.pending)
    waiting = [task for task in members.waiting(session, job) if not task.gated]
    usable = session.usable(job)
    kinds = members.alike(waiting)[:PLACEMENTS] if usable else []
    return JobExplanation(
        job=job.key,
        queue=job.queue,
        phase=session.findings.phase(job) if job.group is not None else "",
        state=state(session, job),
        cause=causes.of_job(session, job),
        reason=closing.reason(session, job),
        priority=job.priority,
        minimum=job.min_member,
        members=_counted(job),
        cycle=session.number,
        actions=tuple(_actions(session, job)),
        queue_verdict=queues.verdict(session, job, [v for v in cast if v.point in votes.QUEUE_POINTS])
        if job.group is not None
        else None,
        votes=cast,
        placements=tuple(placements.explain(session, kind) for kind in kinds),
        gang=next(filter(None, (action.gang(session, job) for action in actions)), None) if usable and waits else None,
        evictions=tuple(_evictions(session, actions, job)) if usable and waits else (),
        holds=tuple(holding.of_job(session, job)),
        notes=tuple(_notes(session, job)),
        forecast=_forecast(session, job),
    )


def state(session: Session, job: Job) -> State:
    """Name where a job stands at the end of a cycle."""
    counts = job.tally.counts
    if causes.has_ended(job):
        return "ended"
    if not session.usable(job) and not (job.native and job.held):
        return "invalid"
    if not job.tasks:
        return "without pods"
    if any(counts[status] for status in TENTATIVE):
        return "holds room"
    if job.pending:
        return "not let in" if session.findings.phase(job) == names.PHASE_PENDING else "waits"
    return "starts" if counts[Status.BINDING] else "runs"


def _counted(job: Job) -> dict[str, int]:
    found: dict[str, int] = {}
    for status in Status:
        if count := job.tally.counts[status]:
            found[status.title] = found.get(status.title, 0) + count
    return found


def _actions(session: Session, job: Job) -> list[ActionVerdict]:
    """Say what each action did with a job: what it last said of it, or that it had nothing to do with it."""
    record = session.record
    verdicts = {verdict.source: (verdict.cycle, verdict.text) for verdict in record.verdicts(job.key)}
    for source, text in record.lines(job.key):
        verdicts.setdefault(source, (record.cycle, text))
    found = []
    for action in session.configuration.action_names:
        cycle, said = verdicts.pop(action, (0, ""))
        if action == "enqueue" and not said and session.findings.phase(job) != names.PHASE_PENDING:
            said = "was let in before"
        found.append(ActionVerdict(action=action, cycle=cycle, said=said))
    return found + [ActionVerdict(action=a, cycle=cycle, said=said) for a, (cycle, said) in sorted(verdicts.items())]


def _evictions(session: Session, actions: Sequence[Action], job: Job) -> list[EvictionVerdict]:
    if session.findings.phase(job) == names.PHASE_PENDING:
        return []
    return [found for action in actions if (found := action.candidates(session, job)) is not None]


def _forecast(session: Session, job: Job) -> str:
    """Say when a job is expected to start, and what would bring that forward."""
    found = session.findings.forecasts.get(job.key)
    if found is None:
        return ""
    told = f"{found.condition.reason.lower()}: {found.condition.message}"
    return f"{told}; {found.sooner}" if found.sooner else told


def _notes(session: Session, job: Job) -> list[str]:
    """Say what else bears on a job: bad objects, gates, pauses, a priority class that is missing, that it can never run."""
    found = [f"{subject}: {text}" for subject, text in sorted(session.record.problems(job.key).items())]
    if job.bad:
        found.append(f"the group is invalid: {job.bad}")
    if unknown := closing.unknown_class(session, job):
        found.append(unknown)
    gated = sorted(task.name for task in job.pending.values() if task.gated)
    if gated:
        found.append(f"{len(gated)} pods wait for a scheduling gate to be taken off, {gated[0]} first")
    paused = sorted(task.name for task in job.pending.values() if task.retry_at > session.started)
    if paused:
        found.append(f"{len(paused)} pods pause after a bind that failed, {paused[0]} first")
    if session.usable(job) and job.pending and (never := session.never_running.reason(job)):
        found.append(f"can never run: {never}")
    return found
