"""The search for the smallest change that starts a job: the same cycle with one thing relaxed at a time, each time from the same state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from pumice.api import names
from pumice.framework import closing
from pumice.model.statuses import Status
from pumice.study.relaxing import of_cluster, of_pods, relaxation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.study.rehearsal import Outlet, Rehearsal
    from pumice.study.relaxing.relaxation import Relaxation

PAIRS: Final = 24
PATIENCE: Final = 20.0  # seconds; a policy that takes long over a cycle is not asked for ever
_RANKS: Final = (
    "gate",
    "queue",
    "toleration",
    "selector",
    "affinity",
    "spread",
    "ports",
    "volumes",
    "topology",
    "minResources",
    "priority",
    "cordon",
    "capability",
    "deserved",
    "weight",
    "quota",
    "budget",
    "minimum",
    "request",
    "end",
    "node",
)
"""Sorts of relaxations from the smallest to the largest: what somebody forgot to write, what a policy grants, what a job gives up, what others end, what costs money."""
_EVICTING: Final = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"})
_GROWING: Final = frozenset({"capability", "deserved", "weight", "priority", "minimum"})
"""Sorts of which each relaxation goes further than the one before."""

Standing = Literal["starts", "starts after evictions", "is let in", "waits"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a cycle would do with a job: `placed` of its waiting pods find a node, `nodes` are the first of these, `evicted` would have to go."""

    standing: Standing
    placed: int = 0
    nodes: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    reason: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One relaxation, and what came of it."""

    change: str
    sort: str
    enough: bool
    verdict: Verdict


class Search(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was tried for a job, the smallest change first; `smallest` is the first that is enough, empty if none is."""

    smallest: str = ""
    enough: tuple[Trial, ...] = ()
    not_enough: tuple[Trial, ...] = ()
    untried: int = 0


class Target(msgspec.Struct, frozen=True):
    """Who should start: a job, or one pod of it."""

    job: str
    pod: str = ""  # its uid

    def verdict(self, session: Session, outlet: Outlet) -> Verdict:
        """Say what a cycle that is not over yet does with it."""
        job = session.cluster.jobs.get(self.job)
        if job is None:
            return Verdict(standing="waits", reason="it has neither group nor pods")
        if not job.tasks:
            return _of_empty_group(session, job)
        mine = [(task, node) for task, node in outlet.bound.values() if task.job_key == self.job]
        if self.pod:
            mine = [(task, node) for task, node in mine if task.uid == self.pod]
        nodes = tuple(sorted({node for _, node in mine}))
        if mine and (self.pod or session.job_ready(job)):
            return Verdict(standing="starts", placed=len(mine), nodes=nodes)
        held = [task for task in job.tasks.values() if task.status == Status.PIPELINED and task.node is not None]
        if self.pod:
            held = [task for task in held if task.uid == self.pod]
        if held and outlet.evicted and session.is_pipelined(job):
            places = tuple(sorted({task.node.name for task in held if task.node is not None}))
            victims = tuple(sorted(task.key for task, _ in outlet.evicted.values()))
            return Verdict(standing="starts after evictions", placed=len(held), nodes=places, evicted=victims)
        return Verdict(standing="waits", placed=closing.tentative(session, job), reason=_reason(session, job))


def _of_empty_group(session: Session, job: Job) -> Verdict:
    if session.findings.phase(job) == names.PHASE_INQUEUE:
        return Verdict(standing="is let in", reason="its pods are created once it is let in")
    return Verdict(standing="waits", reason=_reason(session, job))


def _reason(session: Session, job: Job) -> str:
    """Give the one reason that stands for the job: why a member found no node, else the last word about it."""
    for failure in session.findings.errors(job).values():
        return str(failure)
    said = [verdict.text for verdict in session.record.verdicts(job.key)]
    return said[-1] if said else job.bad or closing.reason(session, job)


def search(
    rehearsal: Rehearsal,
    target: Target,
    *,
    told: Callable[[str], None] = lambda _text: None,
    clock: Callable[[], float] = time.monotonic,
) -> Search:
    """Try one thing after the other; where no single one is enough, try two together."""
    question = question_of(rehearsal, target)
    if question is None:
        return Search()
    found = sorted(relaxations(question), key=lambda each: _RANKS.index(each.sort))
    end = clock() + PATIENCE
    trials, untried = _tried(rehearsal, target, found, told, lambda: clock() < end)
    enough = [trial for trial in trials if trial.enough]
    if not enough and not untried:
        pairs = list(_pairs(found, trials, question.base))[:PAIRS]
        together, untried = _tried(rehearsal, target, pairs, told, lambda: clock() < end, stop=True)
        enough = [trial for trial in together if trial.enough]
    return Search(
        smallest=enough[0].change if enough else "",
        enough=tuple(enough),
        not_enough=tuple(_strongest([trial for trial in trials if not trial.enough])),
        untried=untried,
    )


def _strongest(trials: list[Trial]) -> list[Trial]:
    """Leave out what is weaker than another of its sort that is not enough either."""
    last = {trial.sort: trial for trial in trials}
    return [trial for trial in trials if trial.sort not in _GROWING or last[trial.sort] is trial]


def question_of(rehearsal: Rehearsal, target: Target) -> relaxation.Question | None:
    """Say for whom relaxations are sought, and how far it comes without; None if there is no such job."""
    job = rehearsal.cluster.jobs.get(target.job)
    if job is None:
        return None
    with rehearsal.cycle() as (session, outlet):
        base = target.verdict(session, outlet)
    waiting = sorted(job.pending.values(), key=lambda task: (task.uid != target.pod, task.key))
    policy = rehearsal.configuration
    return relaxation.Question(
        cluster=rehearsal.cluster,
        job=job,
        waiting=tuple(waiting),
        plugins=frozenset(plugin.name for plugin in policy.plugins),
        evicts=bool(_EVICTING.intersection(policy.action_names)),
        fitting=base.placed,
        base=base.reason,
    )


def relaxations(question: relaxation.Question) -> Iterator[Relaxation]:
    """Walk over everything that is worth trying."""
    yield from of_pods.find(question)
    yield from of_cluster.find(question)


def _tried(
    rehearsal: Rehearsal,
    target: Target,
    found: list[Relaxation],
    told: Callable[[str], None],
    may_go_on: Callable[[], bool],
    *,
    stop: bool = False,
) -> tuple[list[Trial], int]:
    """Try relaxations as long as there is time, with `stop` to the first that is enough; the larger of a sort is not asked where a smaller one is enough."""
    trials: list[Trial] = []
    done: set[str] = set()
    for number, each in enumerate(found):
        if not may_go_on():
            return trials, len(found) - number
        if each.sort in done:
            continue
        told(f"trying {number + 1} of {len(found)}: {each.said}")
        trial = attempt(rehearsal, target, each)
        trials.append(trial)
        if trial.enough and each.sort != "together":
            done.add(each.sort)
        if trial.enough and stop:
            break
    return trials, 0


def attempt(rehearsal: Rehearsal, target: Target, tried: Relaxation) -> Trial:
    """Run a cycle with one relaxation in force, and leave everything as it was."""
    forth, back = relaxation.effect(tried.edits)
    with rehearsal.changed(forth, back), rehearsal.cycle() as (session, outlet):
        verdict = target.verdict(session, outlet)
    return Trial(change=tried.said, sort=tried.sort, enough=verdict.standing != "waits", verdict=verdict)


def _pairs(found: list[Relaxation], trials: list[Trial], base: str) -> Iterator[Relaxation]:
    """Walk over two relaxations of different sorts: first those of which one alone lets the job meet another obstacle than before."""
    last = {each.sort: each for each in found}  # of each sort the one that goes furthest
    listed = list(last.values())
    cured = {trial.change for trial in trials if trial.verdict.reason != base}
    numbers = range(len(listed))
    ranked = sorted(
        (-((listed[i].said in cured) + (listed[j].said in cured)), i + j, i, j)
        for i in numbers
        for j in numbers[i + 1 :]
    )
    for _, _, i, j in ranked:
        yield relaxation.joined((listed[i], listed[j]))
