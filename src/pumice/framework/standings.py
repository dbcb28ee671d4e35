"""How jobs stand at the end of a cycle: which of them stand otherwise than when they were last reported, and which of these stand alike."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework import never_running, reason_keys
from pumice.framework.findings import Standing
from pumice.model import tally
from pumice.model.statuses import TENTATIVE, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.findings import LastTransaction
    from pumice.framework.reasons import FitSummary
    from pumice.framework.record import Verdict
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task

News = list[tuple["Job", Standing]]


def news(session: Session) -> News:
    """Return the jobs that were looked at, wait, or changed since the last cycle, and that have a group and a queue, each with its standing.

    A job that stands exactly as it stood when it was last reported is left out: there is nothing new to say.
    """
    if session.findings.news is None:
        session.findings.news = news_of_cycle(session)
    return session.findings.news


def standings(session: Session) -> Iterable[Standing]:
    """Return the standings of the jobs of which there is news, in the order of their first jobs."""
    return dict.fromkeys([standing for _, standing in news(session)])


def noticed(session: Session) -> list[Job]:
    """Return the jobs that changed, wait, or were looked at, but for those of which it is known that there is nothing new to say."""
    cluster, dormant, attempted = session.cluster, session.findings.dormant, session.findings.attempted
    waiting = session.awake
    if dormant and not dormant.keys().isdisjoint(attempted):
        waiting = {k: job for k, job in cluster.pending_jobs.items() if k not in dormant or k in attempted}
    # Who rests has not changed, but for the room that is held for it.
    resting, dirty = session.resting_holders.keys(), cluster.dirty_jobs.items()
    changed = {
        k: job for k, job in dirty if k in attempted or not (k in dormant or (resting and resting & job.tasks.keys()))
    }
    return list({**changed, **waiting, **attempted}.values())


def news_of_cycle(session: Session) -> News:
    """Find out who is to be reported; `news` remembers it."""
    session.never_running.take_back()
    found: News = []
    alike: dict[tuple[object, ...], Standing] = {}
    phases, errors, holds = session.findings.phases, session.findings.fit_errors, session.reservations.holds
    valid, stood = session.valid_queues(), session.record.stood
    closed = {name: queue.state for name, queue in session.cluster.queues.items() if not queue.is_open}
    nevers: dict[int, str] = {}
    forecasts = session.findings.forecasts
    used = b"" if session.record.figures is None else taken(session)
    # Thousands of jobs in a cycle: one pass, without a call for each question about each job.
    for job in noticed(session):
        if job.group is None or job.bad or job.queue not in valid:
            continue
        key, status, counts = job.key, job.status, tuple(job.tally.counts)
        phase = phases.get(key) or status.phase or names.PHASE_PENDING
        # Most jobs run, or are being bound, and wait for nothing.
        waits = job.pending or phase == names.PHASE_PENDING or counts[tally.ALLOCATED] or counts[tally.PIPELINED]
        told = _waits(session, job) if waits or key in errors or (holds and awaited(session, job)) else ()
        outlook = outlook_of(session, job, nevers) if told else 0
        stands = (
            job.group,
            status,
            phase,
            job.version,
            counts,
            told,
            outlook,
            closed.get(job.queue) if waits else None,
            forecasts.get(key) and forecasts[key].condition,
        )
        is_news = stood.get(key) != stands
        if told and used and _have_numbers_changed(session, job, used) and not is_news:
            session.findings.figures.append(job)
        if not is_news:
            continue
        stood[key] = stands
        if waits or job.min_task_member or job.policies:
            standing = Standing()
        else:
            leaving = job.leaving if counts[tally.RELEASING] or counts[tally.EVICTING] else 0
            likeness = (status, phase, counts, leaving, job.min_member, job.queue)
            standing = alike.get(likeness) or alike.setdefault(likeness, Standing())
        standing.jobs.append(job)
        found.append((job, standing))
    return found


# -- what a job waits for --------------------------------------------------------------------------------------


def _waits(session: Session, job: Job) -> tuple[object, ...]:
    """Return what there is to say of what a job waits for; nothing if it waits for nothing."""
    pending = job.pending
    errors = session.findings.errors(job)
    waits = (
        _transactions(session, pending) if session.findings.last_transactions else (),
        tuple([(uid, essence(error)) for uid, error in errors.items()]) if errors else (),
        [task.refusal for task in pending.values() if task.refusal] if pending else (),
        awaited(session, job),
        b"" if errors else _gist(session, job),
        [task.node for task in job.tasks.values() if task.status in TENTATIVE] if _has_tentative(job) else (),
    )
    return waits if any(waits) else ()


def essence(error: FitSummary) -> object:
    """Return why a task found no node; of a queue that has no room without its digits: what it holds and is due moves with everybody's pods, and is no news.

    Nor is by how much a job would delay another: that moves with time.
    """
    if error.queue:
        return error.queue, _without_digits(error.prefix)
    return error if error.counts or not error.prefix else reason_keys.reason_key(error.prefix)


@functools.lru_cache(maxsize=1024)
def _without_digits(text: str) -> bytes:
    return text.encode().translate(None, b"0123456789")


def outlook_of(session: Session, job: Job, nevers: dict[int, str]) -> object:
    """Return what the nodes, or the claims of pods with volumes, could ever do for a job: if that is something else than it was, it is news though who refuses is the same.

    Of jobs of one pod each there are the most: what will always keep such a pod from every node is looked up once for each shape (`nevers`). Of others it is kept as long as nodes are what they are.
    """
    if len(job.pending) == 1 and job.min_member <= 1:
        ((_, first),) = job.pending.items()
        if first.shape.constraint_class.constraints.has_volumes:
            return *session.outlooks.epoch, session.cluster.nodes.claims
        return _never(session, first, nevers)
    kept = session.outlooks.jobs
    known = kept.get(job.key)
    if known is None or known[0] is not job.group or known[1] != job.version:
        known = kept[job.key] = (job.group, job.version, _of_many(session, job, nevers))
    return known[2]


def _of_many(session: Session, job: Job, nevers: dict[int, str]) -> object:
    """Return what will always keep each of the pods of a job from every node, and the job from starting; where that takes too long, or volumes have a say, whether anything has changed."""
    shapes = {task.shape.serial: task for task in job.pending.values() if not task.externally_gated}
    volumes = any(task.shape.constraint_class.constraints.has_volumes for task in shapes.values())
    if volumes or len(shapes) > never_running.MOST_SHAPES:
        return *session.outlooks.epoch, session.cluster.nodes.claims
    starts = session.job_ready(job)
    told = sorted({never for task in shapes.values() if (never := _never(session, task, nevers))})
    return told, "" if starts else reason_keys.cause_key(session.never_running.verdict(job) or "")


def _never(session: Session, task: Task, nevers: dict[int, str]) -> str:
    """Return the reason that will always keep a pod from every node: how many nodes there are, and which is the largest, is no news."""
    never = nevers.get(task.shape.serial)
    if never is None:
        never = nevers[task.shape.serial] = reason_keys.cause_key(session.outlooks.of(task).never)
    return never


def taken(session: Session) -> bytes:
    """Return how much of all nodes is taken, as something to compare with."""
    return session.cluster.nodes.total("taken").tobytes()


def _have_numbers_changed(session: Session, job: Job, used: bytes) -> bool:
    """Tell, and keep, whether what the numbers in the texts about a job follow from is another: what is said by whoever refuses it, and how much of the nodes is taken."""
    said, figures = verdict(session, job), session.record.figures
    errors = tuple(session.findings.errors(job).values())
    numbers = (used, errors or ("" if said is None else said.text))
    if figures is None or figures.get(job.key) == numbers:
        return False
    figures[job.key] = numbers
    return True


def _has_tentative(job: Job) -> bool:
    """Tell whether some task is placed and not bound."""
    counts = job.tally.counts
    return bool(counts[tally.ALLOCATED] or counts[tally.PIPELINED])


def _gist(session: Session, job: Job) -> bytes:
    """Return what an action said of a job as a whole, without its digits: numbers of the moment are no news, and of thousands of jobs this is asked in every cycle."""
    return b"" if (said := verdict(session, job)) is None else _without_digits(said.text)


def _transactions(session: Session, pending: Iterable[str]) -> tuple[LastTransaction | None, ...]:
    """Return where discarded statements had put the pending tasks; nothing at all if none of them was put anywhere."""
    found = tuple(map(session.findings.last_transactions.get, pending))
    return found if any(found) else ()


def awaited(session: Session, job: Job) -> str:
    """Say whose going a job waits for; empty if nobody was evicted for it, or all are gone."""
    if not session.reservations.holds:
        return ""
    known = session.findings.awaited
    if job.key not in known:
        known[job.key] = session.reservations.awaited(session.cluster, job)
    return known[job.key]


def verdict(session: Session, job: Job) -> Verdict | None:
    """Return what was said in this cycle of a job as a whole: that it is not let in, or why none of its members was tried."""
    if session.findings.phase(job) == names.PHASE_PENDING:
        found = session.record.verdict(job.key, "enqueue")
    elif job.pending and not job.tally.waiting and not job.tally.counts[Status.ALLOCATED]:
        found = session.record.verdict(job.key, "allocate")
    else:
        found = None
    return found if found is not None and found.cycle == session.number and isinstance(found.said, str) else None
