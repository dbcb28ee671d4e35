"""The kubelets of all nodes: they start what is bound, end what has run its time, and finish what is terminating.

A pod's node need not exist: nobody collects pods whose node is missing, and their grace and run times pass like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, kinds, names, timestamp
from pumice.sim import deletion, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.sim.clock import VirtualClock
    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore

BAD_ANNOTATION = "BadAnnotation"

_Plan = tuple[Any, Any, Any]  # the annotations run-time, exit and exit-code, as written
_LARGEST_CODE = 255


class Kubelet:
    """Reacts to pods when told to; `warn` takes a pod, a reason and a message and records an event."""

    def __init__(
        self, store: ObjectStore, clock: VirtualClock, warn: Callable[[Key, Mapping[str, Any], str, str], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._warn = warn
        self._changed: dict[Key, None] = {}
        self._plans: dict[str, _Plan] = {}  # uid -> what its timer was set by
        store.observe(self._seen)

    def react(self) -> int:
        """Look at every bound pod that changed and give how many there were."""
        changed, self._changed = self._changed, {}
        for key in changed:
            pod = self._store.find(key)
            if pod is not None:
                self._react(key, pod)
        return len(changed)

    def _seen(self, key: Key, event_type: WatchEventType, pod: Mapping[str, Any]) -> None:
        if key.kind is not kinds.POD:
            return
        if event_type == "DELETED":
            self._plans.pop(pod["metadata"]["uid"], None)
        elif deletion.is_terminating(pod) or (deletion.is_bound(pod) and not deletion.is_finished(pod)):
            self._changed[key] = None

    def _react(self, key: Key, pod: Mapping[str, Any]) -> None:
        phase = structure.mapping(pod, "status").get("phase")
        if deletion.is_terminating(pod):
            self._terminate(key, pod)
        elif phase == names.PHASE_PENDING:
            self._start(key, pod)
        elif phase == names.PHASE_RUNNING:
            self._run(key, pod)

    def _start(self, key: Key, pod: Mapping[str, Any]) -> None:
        when = timestamp.format_timestamp(self._clock.now())
        conditions = [_condition(names.CONDITION_READY, "True", when)]
        if structure.condition(pod, names.CONDITION_POD_SCHEDULED) is None:
            conditions.insert(0, _condition(names.CONDITION_POD_SCHEDULED, "True", when))
        status = {"phase": names.PHASE_RUNNING, "startTime": when, "conditions": conditions}
        self._store.patch_status(key, {"status": status}, strategic=True)

    def _run(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Set the timer of a pod that says how long it runs; a value nobody can read is told once, and the pod runs on."""
        annotations, uid = structure.mapping(pod, "metadata", "annotations"), pod["metadata"]["uid"]
        plan = (annotations.get(names.RUN_TIME), annotations.get(names.EXIT), annotations.get(names.EXIT_CODE))
        if plan[0] is None or self._plans.get(uid) == plan:
            return
        self._plans[uid] = plan
        run_time, code, problems = read_plan(*plan)
        for problem in problems:
            self._warn(key, pod, BAD_ANNOTATION, problem)
        if run_time is not None:
            self._clock.call_at(self._started(pod) + run_time, lambda: self._finish(key, uid, plan, code))

    def _started(self, pod: Mapping[str, Any]) -> int:
        try:
            return timestamp.parse(structure.mapping(pod, "status").get("startTime", ""))
        except timestamp.TimestampError:
            return self._clock.now()

    def _finish(self, key: Key, uid: str, plan: _Plan, code: int) -> None:
        """End a pod by itself, unless its plan has changed or it is terminating and so keeps its phase."""
        pod = self._store.find(key)
        if pod is None or self._plans.get(uid) != plan or deletion.is_terminating(pod) or deletion.is_finished(pod):
            return
        when = timestamp.format_timestamp(self._clock.now())
        phase, reason = (names.PHASE_FAILED, "Failed") if code else (names.PHASE_SUCCEEDED, "Completed")
        ended = {**_condition(names.CONDITION_READY, "False", when), "reason": f"Pod{reason}"}
        containers = _terminated(pod, code, when)
        status = {"phase": phase, "conditions": [ended], **({"containerStatuses": containers} if containers else {})}
        self._store.patch_status(key, {"status": status}, strategic=True)

    def _terminate(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Set the timer of a terminating pod, once more whenever its grace was shortened."""
        uid = pod["metadata"]["uid"]
        try:
            end = timestamp.parse(pod["metadata"]["deletionTimestamp"])
        except timestamp.TimestampError:
            end = self._clock.now() + deletion.grace_of(pod)
        self._clock.call_at(end, lambda: self._gone(key, uid))

    def _gone(self, key: Key, uid: str) -> None:
        """Take a pod away; no controller lives here that would clear its finalizers."""
        pod = self._store.find(key)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._store.remove(key)


def _terminated(pod: Mapping[str, Any], code: int, when: str) -> list[Any]:
    """Give the statuses of containers that have ended; all else in them, such as counts of restarts, stays."""
    present = structure.mapping(pod, "status").get("containerStatuses")
    known = {structure.mapping(each).get("name"): each for each in present} if isinstance(present, list) else {}
    containers = structure.mapping(pod, "spec").get("containers")
    listed = [structure.mapping(each).get("name") for each in containers] if isinstance(containers, list) else []
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": when}
    return [
        {
            "restartCount": 0,
            **structure.mapping(known.get(name)),
            "name": name,
            "ready": False,
            "state": {"terminated": ended},
        }
        for name in listed
        if isinstance(name, str)
    ]


def read_plan(run_text: Any, exit_text: Any, code_text: Any = None) -> tuple[int | None, int, list[str]]:
    """Give how long a pod runs, the code its containers end with, and what is wrong with its annotations."""
    problems = []
    run_time: int | None = None
    try:
        run_time = duration.parse(run_text)
    except duration.DurationError as error:
        problems.append(f"annotation {names.RUN_TIME}: {error}; the pod runs without end")
    if run_time is not None and run_time < 0:
        problems.append(f"annotation {names.RUN_TIME}: {run_text!r} is negative; the pod runs without end")
        run_time = None
    if exit_text not in (None, "failed", "succeeded"):
        problems.append(f"annotation {names.EXIT}: {exit_text!r} is neither failed nor succeeded; the pod succeeds")
    code = int(exit_text == "failed")
    if code_text is not None:
        if str(code_text).isdecimal() and int(code_text) <= _LARGEST_CODE:
            code = int(code_text)
        else:
            problems.append(
                f"annotation {names.EXIT_CODE}: {code_text!r} is no exit code; write a number from 0 to 255"
            )
    return run_time, code, problems


def _condition(name: str, status: str, when: str) -> dict[str, Any]:
    return {"type": name, "status": status, "lastTransitionTime": when}
