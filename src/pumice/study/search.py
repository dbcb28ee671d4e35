"""The search for the smallest change that starts a job: the same future with one thing relaxed at a time, each time from the same state.

Enough is what starts the job: cycles are rehearsed, with what nodes and controllers do between them, until it has started or nothing more happens.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import timestamp
from pumice.model import task as tasks
from pumice.study import playing, quotas, staffing
from pumice.study.relaxing import (
    missing_pods,
    of_claims,
    of_groups,
    of_nodes,
    of_others,
    of_pods,
    of_queues,
    of_quotas,
    of_requests,
    relaxation,
)
from pumice.study.verdicts import Standing, Target, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pumice.api import core
    from pumice.model.task import Task
    from pumice.study.rehearsal import Rehearsal
    from pumice.study.relaxing.relaxation import Question, Relaxation
    from pumice.study.state import Manifest

__all__ = ["Search", "Standing", "Target", "Trial", "Verdict", "search"]

PAIRS: Final = 8
CURES: Final = 3
PATIENCE: Final = 20.0  # seconds of processor time; a policy that takes long over a cycle is not asked for ever
NAMED: Final = 3
_RANKS: Final = (
    "group",
    "pods",
    "gate",
    "statement",
    "queue",
    "claim",
    "label",
    "toleration",
    "selector",
    "affinity",
    "spread",
    "ports",
    "volumes",
    "topology",
    "size",
    "cordon",
    "quota",
    "capability",
    "deserved",
    "weight",
    "class",
    "priority",
    "budget",
    "minResources",
    "minimum",
    "request",
    "end",
    "together",
    "node",
    "larger",
    "ends",
)
"""Sorts of relaxations from the smallest to the largest: what somebody forgot to write, what a policy grants, what a job gives up, what others end, what costs money."""
_DEAR: Final = frozenset({"node", "larger", "ends"})
_CURES: Final = frozenset({"claim", "label", "toleration", "selector", "affinity", "size", "cordon"})
_LARGER: Final = {"larger": "node", "ends": "end"}
"""Sorts that are not looked at where a smaller one is enough."""
_EVICTING: Final = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"})


class Trial(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One relaxation, and what came of it; `chancy` is one with which the job starts only if its pods are made before those of other Jobs."""

    change: str
    sort: str
    enough: bool
    verdict: Verdict
    chancy: bool = False


class Search(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was tried for a job, the smallest change first; `smallest` is the first that is enough, empty if none is.

    Of a job that starts by itself `nothing_to_change` says when, and nothing is tried. `together` is how many changes at once were tried last.
    """

    smallest: str = ""
    enough: tuple[Trial, ...] = ()
    not_enough: tuple[Trial, ...] = ()
    untried: int = 0
    nothing_to_change: str = ""
    together: int = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a search came to, with the relaxation that is the smallest."""

    search: Search
    smallest: Relaxation | None = None
    trials: tuple[tuple[Relaxation, Trial], ...] = ()


def search(
    rehearsal: Rehearsal,
    target: Target,
    *,
    told: Callable[[str], None] = lambda _text: None,
    clock: Callable[[], float] = time.process_time,
) -> Search:
    """Try one thing after the other; where no single one is enough, try several together."""
    return find(rehearsal, target, told=told, clock=clock).search


def find(
    rehearsal: Rehearsal,
    target: Target,
    *,
    told: Callable[[str], None] = lambda _text: None,
    clock: Callable[[], float] = time.process_time,
) -> Found:
    """Search, and return the relaxations themselves, too."""
    if target.job not in rehearsal.cluster.jobs:
        return Found(search=Search())
    base = attempt(rehearsal, target, None, imagine=False).verdict
    if base.starts:
        return Found(search=Search(nothing_to_change=_by_itself(rehearsal, base)))
    end = clock() + PATIENCE
    return _Search(rehearsal, target, question_of(rehearsal, target, base), told, lambda: clock() < end).run()


def _by_itself(rehearsal: Rehearsal, verdict: Verdict) -> str:
    """Say of a job that starts without a change what comes first, and until when."""
    when = timestamp.format_timestamp(rehearsal.now // 1_000_000 * 1_000_000 + verdict.seconds * 1_000_000)
    going = sorted(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod, _ in playing.going(rehearsal))
    first = []
    if verdict.created:
        first.append(f"its controller makes {relaxation.pods(verdict.created)}")
    if verdict.evicted:
        first.append(f"{_listed(verdict.evicted)} {'is' if len(verdict.evicted) == 1 else 'are'} evicted")
    elif going and verdict.seconds:
        first.append(f"{_listed(going)} {'is' if len(going) == 1 else 'are'} gone")
    if not verdict.seconds and not first:
        return "the next cycle starts it"
    return f"it starts by {when}{', once ' if first else ''}{' and '.join(first)}"


def _listed(named: Sequence[str]) -> str:
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more


def question_of(rehearsal: Rehearsal, target: Target, base: Verdict) -> Question:
    """Say for whom relaxations are sought, and how far it comes without."""
    job = rehearsal.cluster.jobs[target.job]
    waiting = sorted(job.pending.values(), key=lambda task: (task.uid != target.pod, task.key))
    policy, scheduler = rehearsal.configuration, rehearsal.cache.options.scheduler_name[0]
    owner = staffing.job_of(rehearsal, job)
    to_be_made = _staff(rehearsal, target, owner, imagine=base.standing == "waits")
    backfills = "backfill" in policy.action_names
    missing: list[core.Pod] = []
    if owner is None and to_be_made is None:
        missing = missing_pods.find(rehearsal.cluster, job, rehearsal.now, scheduler, backfills=backfills)
    return relaxation.Question(
        cluster=rehearsal.cluster,
        job=job,
        waiting=tuple(waiting),
        plugins=frozenset(plugin.name for plugin in policy.plugins),
        evicts=bool(_EVICTING.intersection(policy.action_names)),
        fitting=base.placed,
        base=base.reason,
        backfills=backfills,
        to_be_made=_nowhere(rehearsal, to_be_made.preview() if to_be_made is not None else ()),
        missing=_nowhere(rehearsal, missing),
        rivals=tuple(_rivals(rehearsal, target)),
        owner=owner,
        now=rehearsal.now,
    )


def _nowhere(rehearsal: Rehearsal, pods: Iterable[core.Pod]) -> tuple[Task, ...]:
    """Return pods that are yet to be made as tasks that are nowhere."""
    found = tuple(tasks.build(pod, rehearsal.cluster.shapes) for pod in pods)
    for each in found:
        each.shape.request.lay(rehearsal.cluster.vocabulary)
    return found


def _rivals(rehearsal: Rehearsal, target: Target) -> list[Task]:
    """Return the pods that other Jobs of the namespace lack, where a quota may keep them from being made."""
    namespace = target.job.partition("/")[0]
    if not quotas.Quotas(rehearsal.cluster).of(namespace):
        return []
    jobs = [rehearsal.cluster.jobs[key] for key in staffing.lacking(rehearsal) if key != target.job]
    owners = [(job.key, staffing.job_of(rehearsal, job)) for job in jobs if job.namespace == namespace]
    makers = [staffing.Controller(rehearsal, key, owner) for key, owner in owners if owner is not None]
    return [task for maker in makers[: staffing.MOST_OTHERS] for task in _nowhere(rehearsal, maker.preview())]


def _staff(rehearsal: Rehearsal, target: Target, owner: Manifest | None, *, imagine: bool) -> staffing.Staff | None:
    """Return who makes the pods that a job lacks; None if it lacks none, or if nobody is going to make them.

    Of a group that is not let in, and of which nobody knows who makes its pods, they may be imagined.
    """
    job = rehearsal.cluster.jobs.get(target.job)
    if job is None or job.group is None:
        return None
    if owner is not None:
        return staffing.Controller(rehearsal, target.job, owner)
    if imagine and not job.tasks and not staffing.is_let_in(job):
        return staffing.Founder(rehearsal, target.job)
    return None


def relaxations(question: Question) -> Iterator[Relaxation]:
    """Walk over everything that is worth trying: what would change nothing, since no pod is there yet, is not."""
    for each in (of_groups, of_pods, of_claims, of_queues, of_quotas, of_others, of_nodes, of_requests):
        yield from (found for found in each.find(question) if found.edits or found.job is not None)


def attempt(rehearsal: Rehearsal, target: Target, tried: Relaxation | None, *, imagine: bool = True) -> Trial:
    """See what becomes of a job with a relaxation in force, and leave everything as it was."""
    changes = relaxation.replaced(tried.edits) if tried is not None else ()
    play = playing.Play(rehearsal, target, _maker(rehearsal, target, tried, imagine=imagine))
    verdict = play.run(changes)
    said, sort = (tried.said, tried.sort) if tried is not None else ("", "")
    if not (verdict.starts and play.races):
        return Trial(change=said, sort=sort, enough=verdict.starts, verdict=verdict)
    late = playing.Play(rehearsal, target, _maker(rehearsal, target, tried, imagine=imagine), last=True).run(changes)
    return Trial(change=said, sort=sort, enough=late.starts, chancy=not late.starts, verdict=late)


def _maker(rehearsal: Rehearsal, target: Target, tried: Relaxation | None, *, imagine: bool) -> staffing.Staff | None:
    """Return who makes the pods that a job lacks with a relaxation in force."""
    job = rehearsal.cluster.jobs.get(target.job)
    owner = staffing.job_of(rehearsal, job)
    if owner is not None and tried is not None and tried.job is not None:
        return _staff(rehearsal, target, tried.job(owner), imagine=False)
    complete = owner is not None and job is not None and len(job.tasks) >= staffing.replicas(owner)
    return None if complete else _staff(rehearsal, target, owner, imagine=imagine)


class _Search:
    """One search, with what was tried so far."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        target: Target,
        question: Question,
        told: Callable[[str], None],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._rehearsal, self._target, self._question = rehearsal, target, question
        self._told, self._may_go_on = told, may_go_on
        self._trials: list[tuple[Relaxation, Trial]] = []
        self._untried = 0
        self._together = 0
        self._imagine = bool(question.to_be_made)

    def run(self) -> Found:
        """Try everything that is worth trying."""
        found = sorted(relaxations(self._question), key=lambda each: _RANKS.index(each.sort))  # as they go furthest
        done: set[str] = set()
        for number, each in enumerate(found):
            if each.sort in done or _LARGER.get(each.sort) in done:
                continue
            if not self._may_go_on():
                self._untried += sum(1 for left in found[number:] if left.sort not in done)
                break
            self._told(f"trying {number + 1} of {len(found)}: {each.said}")
            if self._single(each):
                done.add(each.sort)
        enough = [each for each, trial in self._trials if trial.enough]
        if all(each.drastic or each.sort in _DEAR for each in enough) and not self._untried:
            self._once_others_end(found)
        if not any(trial.enough for _, trial in self._trials) and not self._untried:
            self._several(found)
        return self._found()

    def _once_others_end(self, found: Sequence[Relaxation]) -> None:
        """Where nothing but new nodes would do, look for what would once another job ends: the cure of what keeps the job off nodes that are full."""
        cured = [each for each, trial in self._trials if each.sort in _CURES and not trial.enough]
        ends = [each for each in found if each.sort == "end"]
        self._first_enough([(each, end) for each in cured[:CURES] for end in ends[:CURES]])

    def _attempt(self, tried: Relaxation) -> Trial:
        return attempt(self._rehearsal, self._target, tried, imagine=self._imagine)

    def _found(self) -> Found:
        enough = [(each, trial) for each, trial in self._trials if trial.enough]
        enough.sort(key=lambda entry: _rank(entry[0]))
        return Found(
            search=Search(
                smallest=enough[0][1].change if enough else "",
                enough=tuple(trial for _, trial in enough),
                not_enough=tuple(trial for _, trial in self._trials if not trial.enough and not trial.chancy),
                untried=self._untried,
                together=self._together,
            ),
            smallest=enough[0][0] if enough else None,
            trials=tuple((each, trial) for each, trial in self._trials if not trial.chancy),
        )

    def _single(self, tried: Relaxation) -> bool:
        """Try a relaxation, and where it is enough how little of it is."""
        trial = self._attempt(tried)
        if trial.enough and tried.at is not None:
            tried, trial = self._least(tried, trial)
        self._trials.append((tried, trial))
        return trial.enough

    def _least(self, tried: Relaxation, trial: Trial, others: Sequence[Relaxation] = ()) -> tuple[Relaxation, Trial]:
        """Return the least of a relaxation that is enough, beside others: the smallest of all first, since with more of it others who go first may start instead."""
        best, low, high, middle = (tried, trial), 1, tried.most, 1
        while low < high and tried.at is not None and self._may_go_on():
            less = tried.at(middle)
            found = self._attempt(relaxation.joined([*others, less]) if others else less)
            if found.enough:
                best, high = (less, found), middle
            else:
                low = middle + 1
            middle = (low + high) // 2
        return best

    # -- several together --------------------------------------------------------------------------------------

    def _several(self, found: Sequence[Relaxation]) -> None:
        """Try everything at once, then leave out what is not needed, the largest first; where that is not enough, try two together."""
        last = {each.sort: each for each in found}
        kept = sorted(last.values(), key=_rank)
        self._together = len(kept)
        if len(kept) < 2:
            return
        if not self._first_enough([kept]):
            self._first_enough(list(self._pairs(kept))[:PAIRS])

    def _first_enough(self, combined: Sequence[Sequence[Relaxation]]) -> bool:
        """Try combinations until one is enough, and keep what is needed of it; what there is no time for is counted."""
        for number, parts in enumerate(combined):
            if not self._may_go_on():
                self._untried += len(combined) - number
                return False
            self._told(
                "trying " + (" and ".join(each.said for each in parts) if len(parts) < 3 else "everything together")
            )
            if self._is_enough(parts):
                self._keep(self._needed(parts))
                return True
        return False

    def _needed(self, parts: Sequence[Relaxation]) -> list[Relaxation]:
        """Leave out what is not needed, the largest first."""
        kept = list(parts)
        for each in reversed(parts if len(parts) > 2 else ()):  # what either of two does alone was tried
            without = [other for other in kept if other is not each]
            if without and self._may_go_on() and self._is_enough(without):
                kept = without
        return kept

    def _is_enough(self, parts: Sequence[Relaxation]) -> bool:
        return self._attempt(relaxation.joined(parts)).enough

    def _pairs(self, listed: Sequence[Relaxation]) -> Iterator[tuple[Relaxation, Relaxation]]:
        """Walk over two relaxations of different sorts, first those of which one alone lets the job meet another obstacle."""
        base = self._question.base
        cured = {trial.sort for _, trial in self._trials if trial.verdict.reason != base}
        numbers = range(len(listed))
        ranked = sorted(
            (-((listed[i].sort in cured) + (listed[j].sort in cured)), i + j, i, j)
            for i in numbers
            for j in numbers[i + 1 :]
        )
        for _, _, i, j in ranked:
            yield listed[i], listed[j]

    def _keep(self, parts: list[Relaxation]) -> None:
        """Take changes that are enough together, each as small as the others allow."""
        for index, each in enumerate(parts):
            if each.at is not None:
                others = parts[:index] + parts[index + 1 :]
                trial = self._attempt(relaxation.joined(parts))
                parts[index], _ = self._least(each, trial, others)
        whole = relaxation.joined(parts)
        self._trials.append((whole, self._attempt(whole)))


def _rank(tried: Relaxation) -> tuple[bool, int]:
    """Order what is enough, the smallest first; what is enough together with the end of another job comes before new nodes."""
    return tried.drastic, _RANKS.index(tried.sort)
