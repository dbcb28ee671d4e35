"""Who on a node could have to go, by which action and for whom of those who wait, as far as the rules in force let them; whether their room would help is not looked at."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.actions.eviction import gang_rules, rules, votes
from pumice.actions.gangpreempt import GangPreempt
from pumice.actions.gangreclaim import GangReclaim
from pumice.actions.preempt import Preempt
from pumice.actions.reclaim import Reclaim
from pumice.framework.explaining import members
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.plugin import Action
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.study.rehearsal import Rehearsal

MOST_KINDS: Final = 50
"""Of jobs that wait, by queue, priority and first member; more are not asked for."""


class Leaving(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that could have to go: by which action, for how many kinds of jobs that wait, and the first of these. One that goes in the next cycle is `decided`."""

    pod: str
    action: str
    claimant: str
    claimants: int
    decided: bool = False


def from_node(rehearsal: Rehearsal, name: str) -> list[Leaving]:
    """Say who on a node could have to go."""
    with rehearsal.cycle() as (session, outlet):
        record = session.cluster.nodes.by_name.get(name)
        if record is None:
            raise StudyError(f"there is no node {name}")
        found: dict[str, Leaving] = {}
        for task, reason in outlet.evicted.values():
            if task.node is record:
                found[task.key] = Leaving(pod=task.key, action=reason, claimant="", claimants=0, decided=True)
        for action in rehearsal.engine.actions:
            for job, task in _offered(_rules(session, action), record):
                known = found.get(task.key)
                if known is None:
                    found[task.key] = Leaving(pod=task.key, action=action.name, claimant=job.key, claimants=1)
                elif not known.decided:
                    found[task.key] = msgspec.structs.replace(known, claimants=known.claimants + 1)
        return [found[key] for key in sorted(found)]


def _rules(session: Session, action: Action) -> rules.Rules | None:
    """Give the rules by which an action evicts; None if it evicts nobody."""
    match action:
        case Preempt():
            return rules.Preempt(session, action.settings.asked)
        case Reclaim():
            return rules.Reclaim(session, action.settings.asked)
        case GangPreempt():
            return gang_rules.GangPreempt(session, action.settings.asked)
        case GangReclaim():
            return gang_rules.GangReclaim(session, action.settings.asked)
    return None


def _offered(asked: rules.Rules | None, record: NodeRecord) -> Iterator[tuple[Job, Task]]:
    """Ask the rules of an action about everybody on a node, for one job of each kind that waits."""
    if asked is None:
        return
    session, seen = asked.session, set[Hashable]()
    for _, job in sorted(session.cluster.pending_jobs.items()):
        waiting = [task for task in members.waiting(session, job) if not task.gated] if session.usable(job) else []
        queue = session.cluster.queues.get(job.queue)
        if not waiting or queue is None or not session.job_starving(job):
            continue
        claimant = waiting[0]
        kind = (job.queue, job.priority, claimant.likeness)
        if kind in seen or len(seen) >= MOST_KINDS:
            continue
        seen.add(kind)
        offered: list[Task] = []
        with session.attempt(job):
            if asked.may_ask(queue, claimant) is None:
                offered = votes.offered(asked, claimant, record)
        yield from ((job, task) for task in offered)
