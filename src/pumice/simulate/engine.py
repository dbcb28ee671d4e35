"""A trace under one policy, in virtual time from event to event.

```
  ends, ends of grace ─┐                       ┌──▶ what is sent is performed at once: bound pods run
  arrivals ────────────┼─▶ cache ─▶ a cycle ───┤
  wake-ups ────────────┘             ▲         └──▶ events of that ─┐
                                     └──── while it made progress ◀─┘
```

At one instant: ends, then arrivals in the order of the trace, then cycles until one makes no progress, or it is known that the next would not. With a period, cycles stay on the scheduler's grid instead.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Final

from pumice.api import core, kinds, names, timestamp
from pumice.cache import effects
from pumice.cache.cache import Cache
from pumice.cache.options import Options
from pumice.framework import registry
from pumice.model import shape, task
from pumice.scheduler.loop import Scheduler
from pumice.simulate import forecasts
from pumice.simulate.population import START, Population, Slot
from pumice.simulate.results import JobResult, PodRun, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.api import scheduling
    from pumice.cache.reflector import EventType
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.simulate.trace import Given, Trace

_ROUNDS: Final = 1000
"""Cycles at one instant, beyond which a policy is taken to go round in circles."""
_END, _GONE = 0, 1
DEFAULT_GRACE: Final = 30


class CircularPolicyError(Exception):
    """A policy that goes on deciding at one instant."""


class Simulation:
    """One scheduler with its world, and the trace that runs through it."""

    def __init__(
        self,
        trace: Trace,
        cluster: Sequence[Given],
        configuration: Configuration,
        *,
        policy: str = "",
        known: Registry | None = None,
        period: int = 0,
        progress: Callable[[int, int], None] = lambda _time, _arrived: None,
        plain: bool = False,
    ) -> None:
        self.trace = trace
        # What nobody reads here is not written. Of a job that may start with any of its pods, only they say why it waits.
        told = any(job.min_member == 0 for job in trace.jobs)
        self.cache = Cache(self, Options(queue_statuses=False, pod_reasons=told, latest_reasons=False, plain=plain))
        self.time = START
        self._period = period
        self._progress = progress
        self._given = list(cluster)
        self._sent: list[effects.Effect] = []
        self._population = Population(_priorities(cluster))
        self._slots: dict[str, Slot] = {}  # by the uid of the pod
        self._groups: dict[str, scheduling.PodGroup] = {}
        self._jobs = {job.key: index for index, job in enumerate(trace.jobs)}
        self._due: list[tuple[int, int, int, str]] = []
        self._count = 0
        self._going: list[tuple[kinds.Kind, core.Pod | scheduling.PodGroup]] = []
        self._running = [0] * len(trace.jobs)
        self._left = [job.size for job in trace.jobs]
        self.results = [JobResult(job=index, submit=job.submit) for index, job in enumerate(trace.jobs)]
        self._arrived = self._changed = 0
        self._events = 0
        self._failures: dict[str, None] = {}
        self.scheduler = Scheduler(self.cache, configuration, lambda: self.time, known=known or registry.installed())
        self._policy = policy
        self._votes = "enqueue" in configuration.action_names
        self._as_decided = True  # whether what was sent last placed pods and did nothing else

    # -- the world ---------------------------------------------------------------------------------------------

    def send(self, effect: effects.Effect, /) -> None:
        """Take an effect over, to be performed when the cycle is over; nobody reads events."""
        if not isinstance(effect, effects.Note):
            self._sent.append(effect)

    def _feed(self, kind: kinds.Kind, event: EventType, found: core.Pod | scheduling.PodGroup) -> None:
        self._events += 1
        self.cache.feed(kind, event, found)

    def _perform(self) -> bool:
        """Perform what was sent; tells whether any of it moves a pod."""
        sent, self._sent = self._sent, []
        moved, self._as_decided = False, True
        for effect in sent:
            match effect:
                case effects.Bind():
                    failure = self._bind(effect)
                case effects.Evict():
                    failure = self._evict(effect)
                case effects.Patch():
                    failure = self._patch(effect)
                case effects.Create():
                    self.cache.feed(effect.kind, "ADDED", effect.manifest)
                    failure = None
                case effects.Note():
                    continue
                case _:
                    failure = effects.Failure(
                        "refused", f"{effects.verb(effect)}: volumes and devices are not simulated"
                    )
            moved = moved or not isinstance(effect, effects.Patch)
            if failure is not None or not isinstance(effect, (effects.Bind, effects.Patch)):
                self._as_decided = False
            self.cache.settled(effects.Outcome(effect=effect, failure=failure))
        return moved

    def _bind(self, effect: effects.Bind) -> effects.Failure | None:
        slot = self._slots.get(effect.uid)
        if slot is None:
            return effects.Failure("notfound", f"pod {effect.namespace}/{effect.name} is no pod of the trace")
        if effect.volumes:
            return effects.Failure("refused", "volumes are not simulated")
        slot.node, slot.started = self.trace.shown.get(effect.node, effect.node), self.time
        slot.cards = _cards(effect.annotations)
        slot.pod = self._population.running(
            slot.pod, effect.node, timestamp.format_timestamp(self.time), effect.annotations
        )
        self._feed(kinds.POD, "MODIFIED", slot.pod)
        if slot.left is not None:
            self._schedule(self.time + slot.left, _END, effect.uid)
        job = slot.job
        self._running[job] += 1
        result = self.results[job]
        if result.start is None and self._running[job] >= self.trace.jobs[job].min_member:
            result.start = self.time - START
        return None

    def _evict(self, effect: effects.Evict) -> effects.Failure | None:
        slot = self._slots.get(effect.uid)
        if slot is None or slot.started < 0:
            return effects.Failure("notfound", f"pod {effect.namespace}/{effect.name} does not run")
        grace = effect.grace_seconds
        if grace is None:
            grace = slot.pod.spec.termination_grace_period_seconds
        grace = DEFAULT_GRACE if grace is None else grace
        gone = self.time + grace * 1_000_000
        self._stop(slot, evicted=True)
        slot.pod = self._population.leaving(slot.pod, gone, grace)
        self._feed(kinds.POD, "MODIFIED", slot.pod)
        self._schedule(gone, _GONE, effect.uid)
        return None

    def _patch(self, effect: effects.Patch) -> effects.Failure | None:
        """Keep what is said about a group, and what a pod is nominated for; the scheduler knows what it has written."""
        if effect.kind.name == kinds.POD_GROUP.name:
            job = self._jobs.get(f"{effect.namespace}/{effect.name}")
            if job is not None:
                self._hear(self.results[job], effect.body.get("status", {}).get("conditions", ()))
        elif effect.kind is kinds.POD and (slot := self._slots.get(effect.uid)) is not None:
            result = self.results[slot.job]
            for condition in effect.body.get("status", {}).get("conditions", ()):
                # Of a job that may start with any of its pods, only these say why it waits.
                if condition["type"] == names.CONDITION_POD_SCHEDULED and result.start is None and not result.reason:
                    result.reason = condition.get("message", "")
        return None

    def _hear(self, result: JobResult, conditions: Sequence[Mapping[str, str]]) -> None:
        for condition in conditions:
            if condition["type"] == names.CONDITION_UNSCHEDULABLE and condition["status"] == "True":
                if result.start is None:
                    result.reason = condition["message"]
            elif condition["type"] == forecasts.CONDITION and result.start is None:
                forecasts.note(result.forecasts, condition, self.time, START)

    def _schedule(self, at: int, what: int, uid: str) -> None:
        self._count += 1
        heapq.heappush(self._due, (at, what, self._count, uid))

    # -- time --------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run until every job has ended or nothing is left that could happen; an interruption leaves what came of it so far."""
        began = time.process_time()
        interrupted = False
        try:
            self._furnish()
            while (moment := self._next()) is not None:
                self.time = moment
                self._end()
                self._change()
                self._arrive()
                self._decide()
                if self.trace.stays:
                    self._turn_away()
                self._progress(self.time - START, self._arrived)
            self._tell()
        except KeyboardInterrupt:
            interrupted = True
        self._stop_all()
        return Result(
            policy=self._policy,
            jobs=self.results,
            stopped=self.time - START,
            interrupted=interrupted,
            cycles=self.scheduler.cycles,
            events=self._events,
            seconds=time.process_time() - began,
            failures=list(self._failures),
        )

    def _tell(self) -> None:
        """Let those who never started be told why, as everything is in the end."""
        if any(result.start is None for result in self.results):
            self.scheduler.cycle(lambda _: None)
            self._perform()

    def _furnish(self) -> None:
        if self.trace.history is not None:
            self.cache.cluster.arrivals.given = _shapes(self.trace.history)
        for kind, found in self._given:
            self.cache.feed(kind, "ADDED", found)

    def _next(self) -> int | None:
        """Return when something happens next; None if nothing will."""
        jobs = self.trace.jobs
        times = [self._due[0][0]] if self._due else []
        if self._arrived < len(jobs):
            times.append(START + jobs[self._arrived].submit)
        if self._changed < len(self.trace.changes):
            times.append(START + self.trace.changes[self._changed].at)
        if not times and (self.trace.stays or not self._slots):
            return None
        wake = self.scheduler.wake
        if wake is not None and not self.trace.stays:
            times.append(max(wake, self.time + 1))
        if not times:
            return None
        earliest = min(times)
        if self._period:
            grid = START + -(-(earliest - START) // self._period) * self._period
            return grid if grid > self.time or not self.scheduler.cycles else grid + self._period
        return earliest

    def _end(self) -> None:
        """Let pods end whose time has come, and those go whose grace is over; what ended before this instant is cleaned away."""
        for kind, found in self._going:
            self._feed(kind, "DELETED", found)
        self._going.clear()
        due = self._due
        while due and due[0][0] <= self.time:
            at, what, _, uid = heapq.heappop(due)
            slot = self._slots.get(uid)
            if slot is None or (what == _END and (slot.started < 0 or slot.left is None)):
                continue
            if what == _GONE:
                self._replace(uid, slot)
            elif slot.started + slot.left == at:  # type: ignore[operator]  # one that runs for ever is due never
                self._finish(uid, slot, at)

    def _change(self) -> None:
        """Let happen to the cluster what the trace says."""
        changes = self.trace.changes
        while self._changed < len(changes) and START + changes[self._changed].at <= self.time:
            each = changes[self._changed]
            self._changed += 1
            if each.kind is kinds.NODE and each.event == "DELETED":
                self._lose(each.object.metadata.name)
            self.cache.feed(each.kind, each.event, each.object)

    def _lose(self, node: str) -> None:
        """Let the pods of a node that is gone be gone with it."""
        for uid, slot in [(uid, slot) for uid, slot in self._slots.items() if slot.started >= 0 and slot.node == node]:
            self._stop(slot, evicted=True)
            self._replace(uid, slot)

    def _finish(self, uid: str, slot: Slot, at: int) -> None:
        job, result = self.trace.jobs[slot.job], self.results[slot.job]
        result.runs.append(PodRun(slot.member, slot.node, slot.started - START, at - START, cards=slot.cards))
        self._running[slot.job] -= 1
        pod = self._population.ended(slot.pod, failed=job.failed)
        self._feed(kinds.POD, "MODIFIED", pod)
        self._going.append((kinds.POD, pod))
        del self._slots[uid]
        self._left[slot.job] -= 1
        if not self._left[slot.job]:
            result.end = at - START
            self._going.append((kinds.POD_GROUP, self._groups.pop(job.key)))

    def _stop(self, slot: Slot, *, evicted: bool) -> None:
        """End what a pod did so far; of one that was evicted, what its last checkpoint holds stays done."""
        now, job = self.time, self.trace.jobs[slot.job]
        self.results[slot.job].runs.append(
            PodRun(slot.member, slot.node, slot.started - START, now - START if evicted else None, evicted, slot.cards)
        )
        if evicted:
            self._running[slot.job] -= 1
            if slot.left is not None and job.checkpoint:
                slot.left -= (now - slot.started) // job.checkpoint * job.checkpoint
            slot.started = -1

    def _replace(self, uid: str, slot: Slot) -> None:
        """Put another pod in the place of one that was evicted, as its controller does."""
        self._feed(kinds.POD, "DELETED", slot.pod)
        del self._slots[uid]
        slot.times += 1
        job = self.trace.jobs[slot.job]
        slot.pod = self._population.pod(job, slot, self._population.shared_metadata(job, self.time))
        self._slots[slot.pod.metadata.uid] = slot
        self._feed(kinds.POD, "ADDED", slot.pod)

    def _arrive(self) -> None:
        """Create what arrives; of jobs of one instant the first is a microsecond older than the next, since age decides among equals."""
        jobs, made = self.trace.jobs, self._population
        before, rank = -1, 0
        while self._arrived < len(jobs) and START + jobs[self._arrived].submit <= self.time:
            index = self._arrived
            self._arrived += 1
            job = jobs[index]
            rank = rank + 1 if job.submit == before else 0
            before = job.submit
            created = START + job.submit + rank
            group = self._groups[job.key] = made.group(job, created)
            self._feed(kinds.POD_GROUP, "ADDED", group)
            shared = made.shared_metadata(job, created)
            number = 0
            for member, members in enumerate(job.members):
                for _ in range(members.count):
                    slot = Slot(index, member, number, members.run_time)
                    number += 1
                    slot.pod = made.pod(job, slot, shared)
                    self._slots[slot.pod.metadata.uid] = slot
                    self._feed(kinds.POD, "ADDED", slot.pod)

    def _decide(self) -> None:
        """Run cycles until one makes no progress, or could make none; on a grid, one; where pods stay, until the one that arrived has a node."""
        for _ in range(_ROUNDS):
            self.scheduler.cycle()
            for error in self.scheduler.failures:
                self._failures.setdefault(f"{type(error).__name__}: {error}")
            moved = self._perform()
            # Without enqueue nobody counts groups by their phase, so that a change of phase alone gives nobody room.
            if self._period or not (moved or (self._votes and self.scheduler.progressed)):
                return
            if self.scheduler.is_settled and self._as_decided:
                return
            if self.trace.stays and self.results[self._arrived - 1].start is not None:
                return
        moment = timestamp.format_timestamp(self.time)
        raise CircularPolicyError(
            f"{self._policy}: after {_ROUNDS} cycles at {moment} the policy still decides something anew"
        )

    def _turn_away(self) -> None:
        """Let the job that arrived last go if it has not started: it was decided about, and nothing will make room for it."""
        job = self.trace.jobs[self._arrived - 1]
        if self.results[self._arrived - 1].start is None and job.key in self._groups:
            self._feed(kinds.POD_GROUP, "DELETED", self._groups.pop(job.key))
            _, slot = self._slots.popitem()  # it has one pod, the last that was made
            self._feed(kinds.POD, "DELETED", slot.pod)

    def _stop_all(self) -> None:
        """Keep what still runs when nothing more happens."""
        for slot in self._slots.values():
            if slot.started >= 0:
                self._stop(slot, evicted=False)


def _cards(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Read which cards a pod was given."""
    return tuple(int(each) for each in annotations.get(names.CARD_INDEX, "").split(",") if each.isdecimal())


def _shapes(specs: Sequence[core.PodSpec]) -> list[shape.Shape]:
    """Return the shapes of pods with these specs, each worked out once."""
    known: dict[int, shape.Shape] = {}
    shapes = shape.Shapes()
    for spec in specs:
        if id(spec) not in known:
            known[id(spec)] = task.build(core.Pod(spec=spec), shapes).shape
    return [known[id(spec)] for spec in specs]


def _priorities(cluster: Sequence[Given]) -> dict[str, int]:
    return {found.metadata.name: getattr(found, "value", 0) for kind, found in cluster if kind is kinds.PRIORITY_CLASS}
