"""From what happened to figures: the results of one policy, judged by the definitions of `metrics`, as nested maps of numbers by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, kinds, scheduling
from pumice.model import resources
from pumice.simulate import gpu_fragments, gpus, metrics
from pumice.simulate.cases import Case
from pumice.simulate.results import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.loading import Loaded
    from pumice.simulate.results import JobResult
    from pumice.simulate.trace import TraceJob

Figures = dict[str, Any]


def judge(case: Case) -> Figures:
    """Work out every figure."""
    found: Figures = {"jobs": _jobs(case)}
    found |= _times(case)
    found |= _use(case)
    if cards := _gpu_figures(case):
        found["gpu"] = cards
    found |= _queues(case)
    found["forecast"] = _forecasts(case)
    found["cycles"] = case.result.cycles
    found["seconds"] = round(case.result.seconds, 3)
    return found


def seconds(value: float | None) -> float | None:
    """Turn microseconds into seconds."""
    return None if value is None else value / duration.SECOND


def never_fitting(case: Case) -> list[JobResult]:
    """Return the jobs that did not start though nothing else was left that could end."""
    if case.result.interrupted or any(run.end is None for _, run, _ in case.runs()):
        return []
    return [each for each in case.result.jobs if each.start is None]


def _jobs(case: Case) -> Figures:
    done, never = len(case.finished), len(never_fitting(case))
    total = len(case.result.jobs)
    return {
        "total": total,
        "done": done,
        "unfinished": total - done - never,
        "neverFitting": never,
        "skipped": case.trace.skipped,
    }


def _times(case: Case) -> Figures:
    finished = case.finished
    waits = [each.start - each.submit for each in finished if each.start is not None]
    wide = [
        each.start - each.submit for each in finished if each.start is not None and case.share(case.job(each)) > 0.5
    ]
    completions = [each.end - each.submit for each in finished if each.end is not None]
    slow = [
        metrics.slowdown(completion, case.job(each).run_time or 0)
        for each, completion in zip(finished, completions, strict=True)
    ]
    return {
        "wait": {
            "mean": seconds(metrics.mean(waits)),
            "p50": seconds(metrics.nearest_rank(waits, 50)),
            "p95": seconds(metrics.nearest_rank(waits, 95)),
            "max": seconds(max(waits, default=None)),
            "wide": seconds(metrics.mean(wide)),
        },
        "completion": {
            "mean": seconds(metrics.mean(completions)),
            "p95": seconds(metrics.nearest_rank(completions, 95)),
        },
        "slowdown": {"mean": metrics.mean(slow), "p95": metrics.nearest_rank(slow, 95)},
        "makespan": seconds(_makespan(case)),
    }


def _makespan(case: Case) -> int | None:
    ends = [each.end for each in case.result.jobs if each.end is not None]
    return max(ends) - case.result.jobs[0].submit if ends else None


def _use(case: Case) -> Figures:
    """Judge what was used of each resource, and what of that was for nothing."""
    span = _makespan(case) or case.result.stopped - (case.result.jobs[0].submit if case.result.jobs else 0)
    used, wasted = dict.fromkeys(case.capacity, 0), dict.fromkeys(case.capacity, 0)
    evictions = 0
    for job, run, end in case.runs():
        evictions += run.evicted
        for name, units in case.amounts(job.members[run.member].spec).items():
            if name not in used:
                continue
            used[name] += units * (end - run.start)
            if run.evicted:
                wasted[name] += metrics.lost(units, run.start, end, job.checkpoint)
    return {
        "utilisation": {name: metrics.utilisation(used[name], units, span) for name, units in case.capacity.items()},
        "goodput": {
            name: metrics.utilisation(used[name] - wasted[name], units, span) for name, units in case.capacity.items()
        },
        "evictions": evictions,
        "lostWork": {name: units / resources.factor(name) / duration.SECOND for name, units in wasted.items() if units},
    }


def _forecasts(case: Case) -> Figures:
    found = metrics.forecast_error(
        [
            (each.start, next((told.expected for told in each.forecasts if told.expected is not None), None))
            for each in case.result.jobs
            if each.start is not None
        ]
    )
    return {
        "mean": seconds(found.mean),
        "absolute": seconds(found.absolute),
        "p95": seconds(found.p95),
        "late": found.late,
        "without": found.without,
    }


class QueueView:
    """Who is in a queue, and what it deserves of the resource that its jobs want most of."""

    def __init__(self, case: Case, name: str, weights: dict[str, int]) -> None:
        self.name = name
        self._case = case
        asked = dict.fromkeys(case.capacity, 0)
        for job in case.trace.jobs:
            if self.holds(job):
                for resource, units in case.size(job).items():
                    if resource in asked:
                        asked[resource] += units * (job.run_time or 1)
        self.resource = max(asked, key=lambda each: asked[each] / case.capacity[each], default="")
        stated = _stated(case, name).get(self.resource)
        self.deserved = metrics.deserved(
            weights, {} if stated is None else {name: stated}, case.capacity.get(self.resource, 0)
        )[name]

    def holds(self, job: TraceJob) -> bool:
        """Tell whether a job is in this queue."""
        return job.queue == self.name

    def allocated(self) -> list[tuple[int, int]]:
        """Return how much its pods held, from each time on."""
        return metrics.steps(self._case.intervals(self.resource, self.holds))

    def wanted(self) -> list[tuple[int, int]]:
        """Return how much its jobs wanted, from each time on."""
        return metrics.steps(self._case.demand(self.resource, self.holds))


def queues_of(case: Case) -> list[QueueView]:
    """Return the queues that jobs of the trace are in, by name."""
    names = sorted({job.queue for job in case.trace.jobs})
    weights = dict.fromkeys(names, 1)
    for kind, found in case.cluster:
        if kind is kinds.QUEUE and isinstance(found, scheduling.Queue) and found.metadata.name in weights:
            weights[found.metadata.name] = max(1, found.spec.weight)
    return [QueueView(case, name, weights) for name in names]


def shares(loaded: Loaded) -> dict[str, float]:
    """Return which part of the cluster each queue deserves."""
    case = Case(loaded, Result(policy="", jobs=[], stopped=0))
    return {
        view.name: view.deserved / case.capacity[view.resource] if view.resource else 1.0 for view in queues_of(case)
    }


def _stated(case: Case, name: str) -> resources.Amounts:
    for kind, found in case.cluster:
        if kind is kinds.QUEUE and isinstance(found, scheduling.Queue) and found.metadata.name == name:
            return resources.parse(found.spec.deserved, "deserved")
    return {}


def _queues(case: Case) -> Figures:
    found: Figures = {}
    shares: list[float] = []
    for view in queues_of(case):
        due = metrics.capped(view.wanted(), view.deserved)
        got = metrics.capped(view.allocated(), view.deserved)
        finished = [each for each in case.finished if view.holds(case.job(each))]
        unit = resources.factor(view.resource) * duration.SECOND if view.resource else 1
        found[view.name] = {
            "resource": view.resource,
            "deserved": view.deserved / resources.factor(view.resource) if view.resource else 0,
            "due": due / unit,
            "got": got / unit,
            "share": got / due if due else None,
            "wait": seconds(metrics.mean([(each.start or 0) - each.submit for each in finished])),
            "completion": seconds(metrics.mean([(each.end or 0) - each.submit for each in finished])),
            "jobs": sum(view.holds(job) for job in case.trace.jobs),
        }
        if due:
            shares.append(got / due)
    return {"queues": found, "fairness": {"jain": metrics.jain(shares), "least": min(shares, default=None)}}


def order_of_size(shares: Sequence[float]) -> list[int]:
    """Sort jobs into classes by the part of the cluster that they ask for: up to 1 %, 5 %, 25 %, 50 %, and wide."""
    return [sum(share > bound for bound in (0.01, 0.05, 0.25, 0.5)) for share in shares]


def _gpu_figures(case: Case) -> dict[str, Any]:
    """Judge how much of the GPUs was allocated, and how much of the rest was of no use, over the makespan; nothing where there are none."""
    capacity = gpus.milli(case.capacity)
    if not capacity:
        return {}
    first = case.result.jobs[0].submit if case.result.jobs else 0
    last = max((end for _, _, end in case.runs()), default=first)
    used = sum(
        gpus.milli(case.amounts(job.members[run.member].spec)) * (end - run.start) for job, run, end in case.runs()
    )
    found = {"allocation": metrics.utilisation(used, capacity, last - first), "cards": capacity / gpus.CARD}
    if levels := case.fragments():
        found["fragments"], found["fragmentsOfIdle"] = gpu_fragments.means(levels, last)
    if case.trace.stays:
        found["allocationAtLoad"] = gpus.allocation_at_load(case.trace, case.result.jobs, capacity)
    return found
