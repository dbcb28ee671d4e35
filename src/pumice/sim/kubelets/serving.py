"""The kubelets of all nodes of a store: they look at what changed, and carry out what is due at its time.

A pod's node need not exist: nobody collects pods whose node is missing, and their grace and run times pass like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, timestamp
from pumice.sim import deletion
from pumice.sim.kubelets import plans
from pumice.sim.kubelets.pod_life import Manner, next_action, report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.sim.clock import VirtualClock
    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.kubelets.pod_life import Next
    from pumice.sim.store import ObjectStore

BAD_ANNOTATION: Final = "BadAnnotation"
IN_SHORT: Final = Manner(brief=True, heeds_finalizers=False)
"""As scenarios have it: no controller lives there that would clear finalizers of pods."""


class Kubelets:
    """Reacts to pods when told to; `warn` takes a pod, a reason and a message and records an event."""

    def __init__(
        self,
        store: ObjectStore,
        clock: VirtualClock,
        warn: Callable[[Key, Mapping[str, Any], str, str], None],
        manner: Manner = IN_SHORT,
    ) -> None:
        self.since = 0  # nothing has run since before
        self._store = store
        self._clock = clock
        self._warn = warn
        self._manner = manner
        self._changed: dict[Key, None] = {}
        self._planned: dict[str, Any] = {}  # uid -> why what comes next is done
        store.observe(self._seen)

    def react(self) -> int:
        """Look at every bound pod that changed and give how many there were."""
        changed, self._changed = self._changed, {}
        for key in changed:
            pod = self._store.find(key)
            if pod is not None:
                self._look(key, pod)
        return len(changed)

    def _seen(self, key: Key, event_type: WatchEventType, pod: Mapping[str, Any]) -> None:
        if key.kind is not kinds.POD:
            return
        if event_type == "DELETED":
            self._planned.pop(pod["metadata"]["uid"], None)
        elif deletion.is_terminating(pod) or (deletion.is_bound(pod) and not deletion.is_finished(pod)):
            self._changed[key] = None

    def _look(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Start a pod, or set the timer of what comes next; a value nobody can read is told once, and the pod runs on."""
        wanted, uid = self._next(key, pod), pod["metadata"]["uid"]
        if wanted.act != "start" and self._planned.get(uid) == wanted.cause:
            return
        self._planned[uid] = wanted.cause
        for problem in wanted.problems:
            self._warn(key, pod, BAD_ANNOTATION, problem)
        if wanted.act == "start":
            self._perform(key, pod, wanted)
        elif wanted.act:
            self._clock.call_at(wanted.at, lambda: self._due(key, uid, wanted.cause))

    def _due(self, key: Key, uid: str, cause: Any) -> None:
        """Do what was planned for a pod, unless something else is to be done by now."""
        pod = self._store.find(key)
        if pod is None or pod["metadata"]["uid"] != uid or self._planned.get(uid) != cause:
            return
        wanted = self._next(key, pod)
        if wanted.cause == cause:
            self._perform(key, pod, wanted)

    def _next(self, key: Key, pod: Mapping[str, Any]) -> Next:
        return next_action(pod, self._clock.now(), self._manner, lambda pod: self._plan(key, pod), self.since)

    def _plan(self, _: Key, pod: Mapping[str, Any]) -> tuple[plans.Plan, list[str]]:
        return plans.annotated(pod)

    def _perform(self, key: Key, pod: Mapping[str, Any], wanted: Next) -> None:
        status = report(wanted, pod, self._stamp(), self._host(pod), brief=self._manner.brief)
        if status is not None:
            self._store.patch_status(key, {"status": status}, strategic=True)
        elif self._manner.heeds_finalizers:
            self._store.delete(key, grace=0)
        else:
            self._store.remove(key)

    def _host(self, _: Mapping[str, Any]) -> str:
        """Give the address of a pod's node."""
        return ""

    def _stamp(self) -> str:
        return timestamp.format_timestamp(self._clock.now())
