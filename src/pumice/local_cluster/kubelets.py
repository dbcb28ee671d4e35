"""The kubelets of a local cluster: those of the simulation, with the statuses, restarts and logs that people expect of real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names, timestamp
from pumice.controllers.queueing import observed
from pumice.local_cluster import pod_reports, workloads
from pumice.sim import deletion, errors, kubelet, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.local_cluster.clock import WallClock
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
STOPPING: Final = 1 * duration.SECOND  # how long a container takes to stop when it is told to
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 10, 300


class Kubelets(kubelet.Kubelet):
    """Serves the pods of every node that is well; those of a failing node are left as they are."""

    def __init__(
        self,
        store: ObjectStore,
        clock: WallClock,
        warn: Callable[[Key, Mapping[str, Any], str, str], None],
        tell: Callable[[Key, Mapping[str, Any], str, str], None],
        is_served: Callable[[str], bool],
    ) -> None:
        super().__init__(store, clock, warn)
        self._tell = tell
        self._is_served = is_served
        self._timers: dict[str, workloads.Plan] = {}
        self.since = 0  # when a dump was loaded: what ran before goes on from there
        self.started = 0
        self.ended = 0

    def adopt(self) -> None:
        """Look at every pod that an earlier run has left."""
        for pod in self._store.scan(kinds.POD):
            self._seen(Key(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"]), "MODIFIED", pod)

    def look_again(self, node: str) -> None:
        """Look at the pods of a node that is well again."""
        for pod in self._store.scan(kinds.POD):
            if structure.mapping(pod, "spec").get("nodeName") == node:
                self._changed[Key(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"])] = None

    # ---- what the simulation's kubelets do, as real ones report it

    def _react(self, key: Key, pod: Mapping[str, Any]) -> None:
        if not self._is_served(structure.mapping(pod, "spec").get("nodeName", "")):
            return
        try:
            super()._react(key, pod)
        except (errors.ApiError, AttributeError, KeyError, TypeError, ValueError) as error:
            # one pod that nobody expected must not end the serving of all others
            self._warn(
                key, pod, "KubeletFailed", f"the simulated kubelet cannot serve it: {type(error).__name__}: {error}"
            )

    def _start(self, key: Key, pod: Mapping[str, Any]) -> None:
        self._report(key, pod_reports.running(pod, self._stamp(), self._host(pod)))
        self.started += 1
        containers = structure.mapping(pod, "spec").get("containers") or [{}]
        self._tell(key, pod, "Started", f"Started container {containers[0].get('name', '')}")

    def _run(self, key: Key, pod: Mapping[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        plan, problems = workloads.of_pod(pod)
        if plan.run_time is None and self._is_hook(key, pod):
            plan = workloads.HOOK
        if self._timers.get(uid) == plan:
            return
        self._timers[uid] = plan
        for problem in problems:
            self._warn(key, pod, kubelet.BAD_ANNOTATION, problem)
        if plan.run_time is not None:
            started = self._running_since(pod)
            self._clock.call_at(started + plan.run_time, lambda: self._container_ended(key, uid, plan))

    def _is_hook(self, key: Key, pod: Mapping[str, Any]) -> bool:
        """Tell whether helm waits for a pod to end: a hook such as that of `helm test`, or a pod of a Job that is one."""
        owner = observed.controller(pod)
        if owner is not None and owner.get("kind") == kinds.BATCH_JOB.name:
            job = self._store.find(Key(kinds.BATCH_JOB, key.namespace, str(owner.get("name"))))
            return workloads.HELM_HOOK in structure.mapping(job, "metadata", "annotations")
        return workloads.HELM_HOOK in structure.mapping(pod, "metadata", "annotations")

    def _seen(self, key: Key, event_type: Any, pod: Mapping[str, Any]) -> None:
        super()._seen(key, event_type, pod)
        if key.kind is kinds.POD and event_type == "DELETED":
            self._timers.pop(pod["metadata"]["uid"], None)

    def _container_ended(self, key: Key, uid: str, plan: workloads.Plan) -> None:
        """End a pod, or start its containers again if its restart policy says so; not if it has other plans by now."""
        pod = self._store.find(key)
        gone = pod is None or pod["metadata"]["uid"] != uid or self._timers.get(uid) != plan
        if pod is None or gone or deletion.is_terminating(pod) or deletion.is_finished(pod):
            return
        if not self._is_served(structure.mapping(pod, "spec").get("nodeName", "")):
            self._timers.pop(uid, None)
            return
        policy = structure.mapping(pod, "spec").get("restartPolicy", "Always")
        if policy == "Never" or (policy == "OnFailure" and plan.exit_code == 0):
            self._report(key, pod_reports.ended(pod, self._stamp(), plan.exit_code))
            self.ended += 1
            return
        pause = min(_LONGEST_BACK_OFF, _FIRST_BACK_OFF * 2 ** min(8, pod_reports.restart_count(pod)))
        self._report(key, pod_reports.waiting(pod, self._stamp(), plan.exit_code, pause))
        self._warn(key, pod, "BackOff", f"Back-off restarting failed container in pod {key.name}")
        self._clock.call_at(self._clock.now() + pause * duration.SECOND, lambda: self._restart(key, uid))

    def _restart(self, key: Key, uid: str) -> None:
        pod = self._store.find(key)
        if pod is None or pod["metadata"]["uid"] != uid or deletion.is_terminating(pod) or deletion.is_finished(pod):
            return
        found = structure.mapping(pod, "status").get("containerStatuses") or [{}]
        last = dict(structure.mapping(found[0], "lastState"))
        self._timers.pop(uid, None)
        restarts = pod_reports.restart_count(pod) + 1
        self._report(key, pod_reports.running(pod, self._stamp(), self._host(pod), restarts, last))

    def _terminate(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Stop a pod's containers: they heed the signal, so it takes a moment and never the whole grace."""
        uid = pod["metadata"]["uid"]
        try:
            end = timestamp.parse(pod["metadata"]["deletionTimestamp"])
        except timestamp.TimestampError:
            end = self._clock.now()
        self._clock.call_at(min(end, self._clock.now() + STOPPING), lambda: self._gone(key, uid))

    def _gone(self, key: Key, uid: str) -> None:
        """Let a stopped pod go; whoever put a finalizer on it is waited for."""
        pod = self._store.find(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if pod["metadata"].get("finalizers") and not deletion.is_finished(pod):
            self._report(key, pod_reports.ended(pod, self._stamp(), 0 if deletion.is_finished(pod) else 143))
        self._store.delete(key, grace=0)

    # ---- what a pod says

    def said(self, pod: Mapping[str, Any], container: str, previous: bool = False) -> list[tuple[int, str]]:
        """Give what a container has said so far, or before it was started again, each line with its time."""
        spec, status = structure.mapping(pod, "spec"), structure.mapping(pod, "status")
        if status.get("phase") in (None, names.PHASE_PENDING):
            return []
        containers: list[Document] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        plan = workloads.of_container(next((each for each in containers if each.get("name") == container), {}), pod)
        speed: float = getattr(self._clock, "speed", 1.0)  # of the wall clock; that of the simulation has none
        since, until = self._running_since(pod), self._clock.now()
        if previous:
            since, until = pod_reports.previous_run(pod) or (since, since)
        lines = [(since + int(at / speed), text) for at, text in plan.lines]
        return [line for line in lines if line[0] <= until]

    # ----

    def _report(self, key: Key, status: Document) -> None:
        self._store.patch_status(key, {"status": status}, strategic=True)

    def _host(self, pod: Mapping[str, Any]) -> str:
        node = self._store.find(Key(kinds.NODE, "", structure.mapping(pod, "spec").get("nodeName", "")))
        found = structure.mapping(node, "status").get("addresses") or ()
        return next((each["address"] for each in found if each.get("type") == "InternalIP"), "127.0.0.1")

    def _running_since(self, pod: Mapping[str, Any]) -> int:
        found = structure.mapping(pod, "status").get("containerStatuses") or [{}]
        text = structure.mapping(found[0], "state", "running").get("startedAt") or structure.mapping(pod, "status").get(
            "startTime", ""
        )
        try:
            return max(self.since, timestamp.parse(text))
        except timestamp.TimestampError:
            return self._clock.now()

    def _stamp(self) -> str:
        return timestamp.format_timestamp(self._clock.now() // duration.SECOND * duration.SECOND)
