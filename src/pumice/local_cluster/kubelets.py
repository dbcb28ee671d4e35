"""The kubelets of a local cluster: those of any store, with restarts, commands, failing nodes and logs, as people expect of real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names, timestamp
from pumice.controllers.queueing import observed
from pumice.local_cluster import resizing
from pumice.sim import deletion, errors, structure
from pumice.sim.identity import Key
from pumice.sim.kubelets import plans, pod_life, reports, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.local_cluster.clock import WallClock
    from pumice.sim.history import WatchEventType
    from pumice.sim.kubelets.pod_life import Next
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
STOPPING: Final = 1 * duration.SECOND  # how long a container takes to stop when it is told to
_MANNER: Final = pod_life.Manner(restarts=True, stopping=STOPPING)


class Kubelets(serving.Kubelets):
    """Serves the pods of every node that is well; those of a failing node are left as they are."""

    def __init__(
        self,
        store: ObjectStore,
        clock: WallClock,
        warn: Callable[[Key, Mapping[str, Any], str, str], None],
        tell: Callable[[Key, Mapping[str, Any], str, str], None],
        is_served: Callable[[str], bool],
    ) -> None:
        super().__init__(store, clock, warn, _MANNER)
        self._tell = tell
        self._is_served = is_served
        self._deferred: dict[str, dict[Key, None]] = {}  # node -> pods that wait there to be resized
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

    def _look(self, key: Key, pod: Mapping[str, Any]) -> None:
        if not self._is_served(structure.mapping(pod, "spec").get("nodeName", "")):
            return
        try:
            if resizing.is_wanted(pod):
                self._resize(key, pod)
            super()._look(key, pod)
        except (errors.ApiError, AttributeError, KeyError, TypeError, ValueError) as error:
            # one pod that nobody expected must not end the serving of all others
            self._warn(
                key, pod, "KubeletFailed", f"the simulated kubelet cannot serve it: {type(error).__name__}: {error}"
            )

    def _resize(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Grant a pod the amounts that it asks for now, or say what keeps its node from it, and look again when others there change."""
        name = pod["spec"]["nodeName"]
        node = self._store.find(Key(kinds.NODE, "", name)) or {}
        verdict = resizing.judge(pod, node, self._others(pod, name))
        status = resizing.report(pod, verdict, self._stamp())
        self._deferred.setdefault(name, {})[key] = None
        if not verdict.reason:
            self._deferred[name].pop(key)
        if status is None:
            return
        self._store.patch_status(key, {"status": status}, strategic=True)
        if verdict.reason:
            self._warn(key, pod, f"Resize{verdict.reason}", f"Pod resize {verdict.reason.lower()}: {verdict.message}")
        else:
            self._tell(key, pod, "ResizeCompleted", "Pod resize completed")

    def _others(self, pod: Mapping[str, Any], node: str) -> list[Mapping[str, Any]]:
        """Give the other pods that hold room on a node."""
        return [
            each
            for each in self._store.scan(kinds.POD)
            if structure.mapping(each, "spec").get("nodeName") == node
            and each["metadata"]["uid"] != pod["metadata"]["uid"]
            and not deletion.is_finished(each)
        ]

    def _seen(self, key: Key, event_type: WatchEventType, pod: Mapping[str, Any]) -> None:
        super()._seen(key, event_type, pod)
        if key.kind is kinds.POD and self._deferred:
            waiting = self._deferred.get(structure.mapping(pod, "spec").get("nodeName", ""), {})
            if event_type == "DELETED":
                waiting.pop(key, None)
            self._changed.update(waiting)

    def _perform(self, key: Key, pod: Mapping[str, Any], wanted: Next) -> None:
        if not self._is_served(structure.mapping(pod, "spec").get("nodeName", "")):
            self._planned.pop(pod["metadata"]["uid"], None)  # whoever looks again plans anew
            return
        super()._perform(key, pod, wanted)
        if wanted.act == "start":
            self.started += 1
            containers = structure.mapping(pod, "spec").get("containers") or [{}]
            self._tell(key, pod, "Started", f"Started container {containers[0].get('name', '')}")
        elif wanted.act == "end":
            self.ended += 1
        elif wanted.act == "back off":
            self._warn(key, pod, "BackOff", f"Back-off restarting failed container in pod {key.name}")

    def _plan(self, key: Key, pod: Mapping[str, Any]) -> tuple[plans.Plan, list[str]]:
        plan, problems = plans.of_pod(pod)
        return (plans.HOOK if plan.run_time is None and self._is_hook(key, pod) else plan), problems

    def _is_hook(self, key: Key, pod: Mapping[str, Any]) -> bool:
        """Tell whether helm waits for a pod to end: a hook such as that of `helm test`, or a pod of a Job that is one."""
        owner = observed.controller(pod)
        if owner is not None and owner.get("kind") == kinds.BATCH_JOB.name:
            job = self._store.find(Key(kinds.BATCH_JOB, key.namespace, str(owner.get("name"))))
            return plans.HELM_HOOK in structure.mapping(job, "metadata", "annotations")
        return plans.HELM_HOOK in structure.mapping(pod, "metadata", "annotations")

    def said(self, pod: Mapping[str, Any], container: str, previous: bool = False) -> list[tuple[int, str]]:
        """Give what a container has said so far, or before it was started again, each line with its time."""
        spec, status = structure.mapping(pod, "spec"), structure.mapping(pod, "status")
        if status.get("phase") in (None, names.PHASE_PENDING):
            return []
        containers: list[Document] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        plan = plans.of_container(next((each for each in containers if each.get("name") == container), {}), pod)
        speed: float = getattr(self._clock, "speed", 1.0)  # of the wall clock; that of the simulation has none
        until = self._clock.now()
        since = pod_life.running_since(pod, until, self.since)
        if previous:
            since, until = reports.previous_run(pod) or (since, since)
        lines = [(since + int(at / speed), text) for at, text in plan.lines]
        return [line for line in lines if line[0] <= until]

    def _host(self, pod: Mapping[str, Any]) -> str:
        node = self._store.find(Key(kinds.NODE, "", structure.mapping(pod, "spec").get("nodeName", "")))
        found = structure.mapping(node, "status").get("addresses") or ()
        return next((each["address"] for each in found if each.get("type") == "InternalIP"), "127.0.0.1")

    def _stamp(self) -> str:
        return timestamp.format_timestamp(self._clock.now() // duration.SECOND * duration.SECOND)
