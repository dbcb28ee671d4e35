"""What is measured while things happen: stages of cycles, effects that are sent, performed and answered, pods that appear.

Each hook costs one or two observations of histograms that were bound beforehand. Hooks of cycles and `sent` run in the deciding thread, the others in the
I/O thread; what both need is a dictionary by uid, written by one and emptied by the other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from pumice.api import core, kinds
from pumice.cache import effects
from pumice.framework import breakdowns, observing
from pumice.model.task import instant
from pumice.server.logs import logs, write_failures

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.effects import Answerable, Bind, Effect, Outcome, Verb, Work
    from pumice.cache.reflector import EventType
    from pumice.model.cluster import Cluster
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.exposition import Exposition

MILLISECOND: Final = 1000
MOST_CAUSES: Final = 100  # of retreats that are logged
_STAGES: Final = {"plugin open": "OnSessionOpen", "plugin close": "OnSessionClose"}
_SEARCH: Final = {"predicate": "Predicate", "scoring": "Scoring"}
_PREEMPTION: Final = ("preempt", "gangpreempt")


class Writes(msgspec.Struct):
    """How many effects of a verb were performed, and how many of them in vain."""

    total: int = 0
    failed: int = 0


class Meter(observing.Observer, effects.EffectObserver):
    """Measures, and logs one line per decision."""

    def __init__(self, exposition: Exposition, log: Log, wall: Callable[[], int]) -> None:
        self._exposition = exposition
        self._log = log
        self._wall = wall
        self.write_failures = write_failures.WriteFailures(log)
        self.attempts = 0
        self.victims = 0
        self.transactions: dict[str, int] = {}
        self.evictions: dict[tuple[str, str, str], int] = {}  # by action, queue and the claimant's queue
        self.retreats: dict[str, int] = {}  # by the fast way that was left
        self._retreats: dict[tuple[str, str], None] = {}  # those that were logged, with their cause
        self.placed: dict[str, tuple[float, float]] = {}  # by group: milliseconds it took, and when
        self.begun = False
        self.writes: dict[Verb, Writes] = {verb: Writes() for verb in get_args(effects.Verb)}
        self._cluster: Cluster | None = None
        self._sent: dict[str, int] = {}  # creation of pods whose bind is on its way, by uid
        self._binding: dict[str, int] = {}  # when a bind was handed over that waits for no volume, by uid
        self._stages: dict[tuple[str, str], Callable[[float], None]] = {}
        self.cycle = exposition.histogram("volcano_e2e_scheduling_latency_milliseconds").observe
        self._opening = exposition.histogram("volcano_open_session_duration_milliseconds").observe
        self._job = exposition.histogram("volcano_e2e_job_scheduling_latency_milliseconds").observe
        task, stage = "volcano_task_scheduling_latency_milliseconds", "volcano_scheduling_stage_duration_milliseconds"
        self._watched, self._assumed, self._pre_bound, self._bound = (
            exposition.histogram(task, name).observe for name in ("Watched", "Assumed", "PreBound", "Bound")
        )
        self._pre_bind, self._bind = (exposition.histogram(stage, name).observe for name in ("PreBind", "Bind"))

    # -- stages of a cycle -------------------------------------------------------------------------------------

    def mark(self) -> int:
        """Return a moment to measure from."""
        return time.perf_counter_ns()

    def spent(self, stage: str, label: str, since: int) -> None:
        """Take note of the time since a mark."""
        milliseconds = (time.perf_counter_ns() - since) / 1e6
        if stage == "open":
            self._opening(milliseconds)
            return
        observe = self._stages.get((stage, label))
        if observe is None:
            observe = self._stages[stage, label] = self._stage(stage, label)
        observe(milliseconds)

    def _stage(self, stage: str, label: str) -> Callable[[float], None]:
        if stage in _SEARCH:
            return self._exposition.histogram("volcano_scheduling_stage_duration_milliseconds", _SEARCH[stage]).observe
        if stage == "action":
            return self._exposition.histogram("volcano_action_scheduling_latency_milliseconds", label).observe
        name = "volcano_plugin_scheduling_latency_milliseconds"
        return self._exposition.histogram(name, label, _STAGES[stage]).observe

    def sought(self, action: str) -> None:
        """Count a search for victims."""
        self.attempts += action in _PREEMPTION

    def evicted(self, action: str, victims: int) -> None:
        """Count a plan."""
        self.transactions[action] = self.transactions.get(action, 0) + 1
        if action in _PREEMPTION:
            self.victims = victims

    def took(self, reason: str, queue: str, claimant_queue: str) -> None:
        """Count an eviction; what follows the name of the action says which plugin asked for it."""
        key = (reason.partition(" ")[0], queue, claimant_queue)
        self.evictions[key] = self.evictions.get(key, 0) + 1

    def retreated(self, way: str, error: Exception) -> None:
        """Count that a fast way was left, and log each cause once."""
        super().retreated(way, error)
        self.retreats[way] = self.retreats.get(way, 0) + 1
        cause = breakdowns.said(error)
        if (way, cause) not in self._retreats and len(self._retreats) < MOST_CAUSES:
            self._retreats[way, cause] = None
            self._log.warning(f"the fast way of {way} was left; what it is for is done one by one", cause=cause)

    # -- effects -----------------------------------------------------------------------------------------------

    def look_at(self, cluster: Cluster) -> None:
        """Name the model in which the pods of effects are found."""
        self._cluster = cluster

    def sent(self, effect: Effect, /) -> None:
        """Take note of an effect that is handed over, by the deciding thread."""
        if isinstance(effect, effects.Bind):
            self._log.detail(logs.DECISIONS, "bind", pod=f"{effect.namespace}/{effect.name}", node=effect.node)
            self._assume(effect)
        elif isinstance(effect, effects.Evict):
            self._log.detail(logs.DECISIONS, "evict", pod=f"{effect.namespace}/{effect.name}", reason=effect.reason)

    def _assume(self, effect: Bind) -> None:
        task = self._cluster.tasks.get(effect.uid) if self._cluster is not None else None
        if task is None:
            return
        now = self._wall()
        if not effect.volumes:
            self._binding[effect.uid] = now
        waited = (now - task.creation) / MILLISECOND
        self._assumed(waited)
        if not effect.volumes:
            self._pre_bound(waited)
        self._sent[effect.uid] = task.creation
        if task.job is not None and task.job.group is not None:
            taken = (now - task.job.creation) / MILLISECOND
            self._job(taken)
            self.placed[task.job.key] = (taken, now / 1e6)

    def performed(self, effect: Answerable, work: Work, seconds: float, *, failed: bool) -> None:
        """Take note of work that has ended: count the effect with its last one, measure binds."""
        if work == "request" or failed:
            writes = self.writes[effects.verb(effect)]
            writes.total += 1
            writes.failed += failed
        if not isinstance(effect, effects.Bind):
            return
        (self._pre_bind if work == "volumes" else self._bind)(seconds * 1000)
        created = self._sent.get(effect.uid) if work == "volumes" and not failed else None
        if created is not None:
            self._binding[effect.uid] = self._wall()
            self._pre_bound((self._wall() - created) / MILLISECOND)

    def answered(self, outcome: Outcome, /) -> None:
        """Take note of the answer to an effect."""
        effect = outcome.effect
        if not isinstance(effect, effects.Bind | effects.Evict):
            return
        pod = f"{effect.namespace}/{effect.name}"
        created = self._sent.pop(effect.uid, None) if isinstance(effect, effects.Bind) else None
        self._binding.pop(effect.uid, None)
        if outcome.failure is not None:
            verb = "bind" if isinstance(effect, effects.Bind) else "eviction"
            self.write_failures.add(verb, pod, outcome.failure)
        elif created is not None:
            self._bound((self._wall() - created) / MILLISECOND)

    # -- watches -----------------------------------------------------------------------------------------------

    def oldest_bind(self) -> float:
        """Return for how many seconds the oldest bind has waited that was not answered; those that wait for volumes do not count."""
        waiting = list(self._binding.values())
        return max(0.0, (self._wall() - min(waiting)) / 1e6) if waiting else 0.0

    def noticed(self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed) -> None:
        """Take note of a new pod; those that are listed at the start are not new."""
        if not self.begun or kind is not kinds.POD or event_type != "ADDED" or not isinstance(found, core.Pod):
            return
        if not found.spec.node_name:
            self._watched((self._wall() - instant(found.metadata.creation_timestamp)) / MILLISECOND)
