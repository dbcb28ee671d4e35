"""Why nobody goes for a job, in depth: everybody whom an action could think of, by the first thing that keeps them. Asked by explanations, never by a cycle."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from pumice.actions.eviction import votes
from pumice.framework.explaining.explanations import CandidateGroup, EvictionVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.actions.eviction.rules import Rules
    from pumice.model.job import Job
    from pumice.model.task import Task

LOOKED_AT = 5_000  # pods, of everybody an action could think of
_BUDGET = re.compile(r"(PodDisruptionBudget \S+) allows")
_COOLDOWN = re.compile(r" was scheduled less than its cooldown time ago.*")
OF_NO_HELP = "may go, but their room does not help"
REFUSED = "whose eviction was refused of late"


def verdict(rules: Rules, job: Job) -> EvictionVerdict | None:
    """Say of everybody whom an action could think of for a job what keeps them; None if none of its members asks."""
    claimant = _first_to_ask(job)
    if claimant is None:
        return None
    everybody = _everybody(rules, claimant)
    looked_at = list(itertools.islice(everybody, LOOKED_AT))
    kept: dict[str, list[Task]] = {}
    left: list[Task] = []
    for task in looked_at:
        reason = _reason(rules, claimant, task)
        if reason is None:
            left.append(task)
        else:
            kept.setdefault(reason, []).append(task)
    offered = {task.uid for task in votes.ask(rules, claimant, rules.in_order(claimant, left))} if left else set()
    for task in left:
        if task.uid not in offered:
            kept.setdefault(_by_rule(rules, claimant, task), []).append(task)
    groups = [CandidateGroup(reason=text, count=len(tasks), first=tasks[0].key) for text, tasks in kept.items()]
    groups.sort(key=lambda group: (-group.count, group.reason))
    if helpless := [task for task in left if task.uid in offered]:
        groups.append(CandidateGroup(reason=OF_NO_HELP, count=len(helpless), first=helpless[0].key, offered=True))
    unseen = sum(1 for _ in everybody)
    return EvictionVerdict(action=rules.name, candidates=len(looked_at), groups=tuple(groups), unseen=unseen)


def _first_to_ask(job: Job) -> Task | None:
    """Return the member that stands for the others: the first by name of those with requests, if there are any."""
    pending = sorted(job.pending.values(), key=lambda task: task.name)
    return next((task for task in pending if not task.best_effort), pending[0] if pending else None)


def _everybody(rules: Rules, claimant: Task) -> Iterator[Task]:
    """Give the pods that run where the action takes from, its own queue or the others, by name."""
    cluster, own = rules.session.cluster, claimant.job
    queues = [
        q for name, q in sorted(cluster.queues.items()) if (own is not None and name == own.queue) is rules.own_queue
    ]
    for key in sorted(key for queue in queues for key in queue.jobs if key in cluster.jobs):
        job = cluster.jobs[key]
        if job is not own:
            yield from sorted((t for t in job.tasks.values() if t.status in rules.statuses), key=lambda task: task.name)


def _reason(rules: Rules, claimant: Task, candidate: Task) -> str | None:
    """Say why the action does not take a candidate, whatever plugins offer; None if they are to be asked."""
    if claimant.best_effort and not candidate.best_effort:
        return "with requests, for a pod without"
    if rules.is_spared(candidate):
        return REFUSED
    if not rules.concerns(claimant, candidate):
        return _of_priority(claimant, candidate) or "out of reach"
    reason = rules.protection(claimant, candidate)
    return None if reason is None else _told(reason, candidate)


def _told(reason: str, task: Task) -> str:
    """Write a protection so that equal ones are equal: without the pod's name and the numbers of the moment."""
    if budget := _BUDGET.match(reason):
        return f"protected by {budget[1]}"
    reason = _COOLDOWN.sub(" within their cooldown time", reason)
    return reason.removeprefix(f"{task.key} ").removeprefix("is ").strip().replace(task.key, "the pod")


def _of_priority(claimant: Task, candidate: Task) -> str:
    own, other = claimant.job, candidate.job
    if own is None or other is None or other.priority < own.priority:
        return ""
    return "of equal priority" if other.priority == own.priority else "of higher priority"


def _by_rule(rules: Rules, claimant: Task, task: Task) -> str:
    """Say by whose rule a candidate stays: of which priority, or the plugins that would keep it if asked about it alone."""
    against = _against(rules, claimant, task)
    if "priority" in against and (told := _of_priority(claimant, task)):
        return told
    if against == ["gang"]:
        return "needed by their gang"
    if against:
        return f"kept by the rules of {', '.join(against)}"
    by = ", ".join(dict.fromkeys(each.plugin for each in rules.functions()))
    return f"kept by the rules of {by} once others are gone"


def _against(rules: Rules, claimant: Task, task: Task) -> list[str]:
    """Return the plugins that keep a candidate if asked about it alone; one that breaks down protects."""
    said = rules.extension().opinions(rules.asking(claimant), [task])
    refused = [
        plugin for plugin, answer in said if isinstance(answer, Exception) or (answer is not None and not answer)
    ]
    return list(dict.fromkeys(refused))
