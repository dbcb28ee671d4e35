"""What each plugin answers about a job, asked one by one: the dispatcher stops at the first refusal, an explanation wants them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pumice.api import names
from pumice.framework import subject
from pumice.framework.explaining.explanations import PluginVote
from pumice.framework.explaining.members import demanded
from pumice.framework.extensions import Vote
from pumice.framework.reasons import BeyondDue, Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.extensions import Extension
    from pumice.framework.session import Session
    from pumice.model.job import Job

QUEUE_POINTS = frozenset({"JobEnqueueable", "Overused", "Allocatable"})
EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim"})


def cast(session: Session, job: Job) -> tuple[PluginVote, ...]:
    """Ask every plugin that has a say about a job, where it has one; what they say beside their answer is taken back."""
    with session.statement().trial():
        return tuple(_cast(session, job))


def _cast(session: Session, job: Job) -> Iterable[PluginVote]:
    yield from _asked(session.job_valid, job)
    queue = session.queue_of(job)
    if queue is None:
        return
    if session.findings.phase(job) == names.PHASE_PENDING:
        if job.min_resources is not None:
            yield from _asked(session.job_enqueueable, job)
        return
    tasks = demanded(session, job)
    if tasks:
        yield from _asked(session.overused, queue, head=f"queue {queue.name} is overused: ")
        yield from _asked(session.allocatable, queue, subject.demand(tasks))
    yield from _asked(session.job_ready, job)
    if not job.pending:
        return
    yield from _asked(session.job_pipelined, job)
    if EVICTING.intersection(session.configuration.action_names):
        yield from _asked(session.job_starving, job)
    if tasks and {"reclaim", "gangreclaim"}.intersection(session.configuration.action_names):
        yield from _asked(session.preemptive, queue, subject.demand(tasks))


def _asked(extension: Extension[..., Any], *args: object, head: str = "") -> Iterable[PluginVote]:
    for plugin, answer in extension.opinions(*args):
        given, reason = _read(answer)
        told = f"{head}{reason}" if reason else ""
        yield PluginVote(point=extension.point.name, plugin=plugin, answer=given, reason=told)


def _read(answer: object) -> tuple[Literal["for", "against", "abstains"], str]:
    """Read an answer of any kind of point: a vote, a truth, or a reason against."""
    match answer:
        case None | True:
            return "for", ""
        case False:
            return "against", ""
        case Vote():
            return ("for" if answer.value > 0 else "against" if answer.value < 0 else "abstains"), answer.reason
        case Invalid():
            return "against", f"{answer.reason}: {answer.message}"
        case BeyondDue():
            # Which keeps nobody from idle room.
            return "abstains", f"{answer}; only room that nobody can use within his share is given beyond it"
        case Exception():
            return "against", f"broke down: {type(answer).__name__}: {answer}"
        case _:
            return "against", str(answer)
