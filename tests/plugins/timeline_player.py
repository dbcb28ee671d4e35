"""Jobs that run for a known time on nodes of cpu, played from event to event, and the textbook's backfill to compare with."""

from __future__ import annotations

import datetime as dt
import heapq
from dataclasses import dataclass

import builders
from builders import NOW, SECOND, Bind, Desk, Patch

ENDLESS = 10**9


@dataclass
class Job:
    """A job: its pods of so much cpu each, how long it runs, when it is submitted, how long it says it runs, and how many pods it has beyond its minimum."""

    size: int
    run: int
    submit: int = 0
    estimate: int | None = -1
    pods: int = 1
    beyond: int = 0

    def __post_init__(self):
        if self.estimate == -1:
            self.estimate = self.run


def policy(name="easy", more="", actions="allocate"):
    arguments = f'{{timeline.policy: "{name}"{more}}}'
    return f'actions: "{actions}"\ntiers:\n- plugins:\n  - {{name: gang}}\n  - {{name: timeline, arguments: {arguments}}}\n'


def at(second):
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Player:
    """Plays jobs, and remembers when each started, where, and what was forecast first."""

    def __init__(self, jobs, text, nodes=(10,), objects=(), **spec):
        self.jobs = jobs
        self.desk = Desk(text)
        self.desk.feed(*objects)
        self._spec = spec
        self.nodes = {}
        self.desk.feed(*(builders.node(f"n{i}", cpu=str(cpu), memory="1000Gi") for i, cpu in enumerate(nodes)))
        self.starts, self.forecasts, self.messages, self.told = {}, {}, {}, {}
        self._pods, self._left = {}, {}
        self._events = [(job.submit, 1, number) for number, job in enumerate(jobs)]
        heapq.heapify(self._events)

    def play(self):
        while self._events:
            now = self._events[0][0]
            self.desk.now = NOW + int(now * SECOND)
            while self._events and self._events[0][0] == now:
                _, kind, number = heapq.heappop(self._events)
                (self._end, self._submit, lambda _: None)[kind](number)
            self._settle(now)
            wake = self.desk.scheduler.wake
            if wake is not None and len(self.starts) < len(self.jobs):
                heapq.heappush(self._events, (max(now + 1, (wake - NOW) // SECOND), 2, 0))
        return [self.starts.get(number) for number in range(len(self.jobs))]

    def start(self):
        """Play what happens at once alone."""
        self.desk.now = NOW
        for number in range(len(self.jobs)):
            self._submit(number)
        self._settle(0)

    def _submit(self, number):
        job = self.jobs[number]
        notes = {} if job.estimate is None else {"pumice.dev/estimate": f"{job.estimate}s"}
        group = builders.group(f"j{number:03}", job.pods - job.beyond, annotations=notes, **self._spec)
        group["metadata"]["creationTimestamp"] = at(job.submit)
        self._left[number] = job.pods
        self.desk.feed(group, *(self._pod(number, i) for i in range(job.pods)))

    def _pod(self, number, i, node="", start=None):
        job = self.jobs[number]
        pod = builders.pod(f"j{number:03}-{i}", f"j{number:03}", cpu=str(job.size), node=node)
        pod["metadata"]["creationTimestamp"] = at(job.submit)
        if start is not None:
            pod["status"]["startTime"] = at(start)
        return pod

    def _end(self, number):
        for pod in self._pods.pop(number):
            self.desk.delete(pod)
        self.desk.delete(builders.group(f"j{number:03}", self.jobs[number].pods))

    def _settle(self, now):
        while True:
            self.desk.world.effects.clear()
            record = self.desk.cycle(0)
            assert not self.desk.scheduler.failures, self.desk.scheduler.failures
            for effect in list(self.desk.world.effects):
                if isinstance(effect, Bind):
                    self._bound(effect, now)
                elif isinstance(effect, Patch):
                    self._read(effect)
            if record.skipped:
                return

    def _bound(self, effect, now):
        number, i = map(int, effect.name[1:].split("-"))
        self.nodes.setdefault(number, []).append(effect.node)
        pod = self._pod(number, i, effect.node, now)
        self._pods.setdefault(number, []).append(pod)
        self.desk.settle(effect).modify(pod)
        if len(self._pods[number]) == self.jobs[number].pods - self.jobs[number].beyond:
            self.starts[number] = now
            heapq.heappush(self._events, (now + self.jobs[number].run, 0, number))

    def _read(self, effect):
        self.desk.settle(effect)
        if effect.kind.name != "PodGroup":
            return
        number = int(effect.name[1:])
        for each in effect.body.get("status", {}).get("conditions", ()):
            if each["type"] == "StartForecast" and each["status"] == "True":
                self.messages[number] = each["message"]
                self.told.setdefault(number, []).append(each["message"])
        for condition in effect.body.get("status", {}).get("conditions", ()):
            if condition["type"] == "StartForecast" and condition["message"].startswith("expected at "):
                told = (condition["reason"], expected(condition["message"]))
                self.forecasts.setdefault(number, []).append(told)


def expected(message):
    """Read the second that a forecast names."""
    words = message.removeprefix("expected at ").partition(" on ")[0].split()
    day, clock = words if len(words) == 2 else ("2026-01-01", words[0])
    clock = clock if clock.count(":") == 2 else f"{clock}:00"
    moment = dt.datetime.fromisoformat(f"{day}T{clock}+00:00") - dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return int(moment.total_seconds())


# ---- the textbook, by counting processors


def easy(jobs, processors):
    """Backfill with a reservation for the first job alone: nobody starts who would delay that."""
    events = [(job.submit, 1, number) for number, job in enumerate(jobs)]
    heapq.heapify(events)
    free, running, starts, queue = processors, {}, {}, []

    def start(number, now):
        nonlocal free
        free -= jobs[number].size
        starts[number] = running[number] = now
        heapq.heappush(events, (now + jobs[number].run, 0, number))

    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, kind, number = heapq.heappop(events)
            if kind:
                queue.append(number)
            else:
                free += jobs[number].size
                del running[number]
        while queue and jobs[queue[0]].size <= free:
            start(queue.pop(0), now)
        if not queue:
            continue
        shadow, extra = _shadow(jobs, running, free, jobs[queue[0]].size)
        for number in queue[1:]:
            job = jobs[number]
            ends = ENDLESS if job.estimate is None else now + job.estimate
            if job.size > free or (ends > shadow and job.size > extra):
                continue
            extra -= job.size if ends > shadow else 0
            queue.remove(number)
            start(number, now)
    return [starts[number] for number in range(len(jobs))]


def _shadow(jobs, running, free, size):
    """Return when the first job can start, and how many processors are left then."""
    ends = sorted((ENDLESS if jobs[n].estimate is None else running[n] + jobs[n].estimate, n) for n in running)
    for position, (end, number) in enumerate(ends):
        free += jobs[number].size
        last = position + 1 == len(ends) or ends[position + 1][0] > end
        if end >= ENDLESS:
            break
        if last and free >= size:
            return end, free - size
    return ENDLESS + 1, 0


def conservative(jobs, processors):
    """Backfill with a reservation for everybody, where every estimate is exact: each starts when it was first planned."""
    planned = []
    for number in sorted(range(len(jobs)), key=lambda n: (jobs[n].submit, n)):
        job = jobs[number]
        times = sorted({job.submit, *(s + jobs[n].run for n, s in planned if s + jobs[n].run > job.submit)})

        def used(moment):
            return sum(jobs[n].size for n, s in planned if s <= moment < s + jobs[n].run)

        for begin in times:
            moments = [begin, *(s for _, s in planned if begin < s < begin + job.run)]
            if all(used(moment) + job.size <= processors for moment in moments):
                planned.append((number, begin))
                break
    return [start for _, start in sorted(planned)]


def earliest(taken, size, length, processors, since=0):
    """Return the first time at which so many processors stay free for so long; `taken` lists what is: from when, until when, how many."""
    for begin in sorted({since, *(stop for _, stop, _ in taken if stop > since)}):
        moments = [begin, *(start for start, _, _ in taken if begin < start < begin + length)]
        if all(sum(s for b, e, s in taken if b <= m < e) + size <= processors for m in moments):
            return begin
    raise AssertionError


def after(jobs, bound, limit):
    """Plan members beyond the minimum that wait, job by job and one by one, beside what was bound at once; `limit` is what all pods together may have when one starts. By job the times."""
    taken = [(0, jobs[n].run, jobs[n].size) for n, nodes in bound.items() for _ in nodes]
    found = {}
    for number, nodes in sorted(bound.items()):
        job = jobs[number]
        for _ in range(job.pods - len(nodes)):
            begin = earliest(taken, job.size, 0, limit)
            taken.append((begin, begin + job.run, job.size))
            found.setdefault(number, []).append(begin)
    return found


def beyond(jobs, processors):
    """Plan jobs that come at once, conservatively, then members beyond the minimum of those that start now, one by one: first who starts now too, then who has to wait; by job the times of the latter."""
    taken, started = [], []
    for number, job in enumerate(jobs):
        size = (job.pods - job.beyond) * job.size
        begin = earliest(taken, size, job.run, processors)
        taken.append((begin, begin + job.run, size))
        started += [number] if begin == 0 else []
    left = {}
    for number in started:
        job = jobs[number]
        left[number] = job.beyond
        while left[number] and earliest(taken, job.size, job.run, processors) == 0:
            taken.append((0, job.run, job.size))
            left[number] -= 1
    found = {}
    for number, count in left.items():
        job = jobs[number]
        for _ in range(count):
            begin = earliest(taken, job.size, job.run, processors)
            taken.append((begin, begin + job.run, job.size))
            found.setdefault(number, []).append(begin)
    return found
