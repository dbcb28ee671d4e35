"""What is measured of controllers: jobs, flows and groups by phase, requests by verb, and how long a job waits for its first pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import observed, requests
from pumice.controllers.workloads import manifests
from pumice.kube import reconciling
from pumice.server.logs import logs, write_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.engine import Engine
    from pumice.controllers.queueing.requests import Answer, Request
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.exposition import Exposition
    from pumice.server.metrics.series import Sample

MILLISECOND: Final = 1000
_JOB_ENDS: Final = {"Completed": "completed", "Failed": "failed"}
_FLOW_ENDS: Final = {"Succeed": "succeed", "Failed": "failed"}
_GROUP_PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")


class ControllersMeter(reconciling.Observer):
    """Counts what is heard and what is done, and logs one line per write."""

    def __init__(self, exposition: Exposition, log: Log, wall: Callable[[], int]) -> None:
        self._log = log
        self._wall = wall
        self._engine: Engine | None = None
        self._jobs: dict[str, str] = {}  # phase by uid
        self._job_ends: dict[tuple[str, str, str], int] = {}  # by end, job and queue
        self._flows: dict[str, str] = {}
        self._flow_ends: dict[tuple[str, str], int] = {}
        self._groups: dict[str, tuple[str, str]] = {}  # queue and phase by uid
        self._queues: dict[str, dict[str, int]] = {}
        self._requests: dict[tuple[str, str], int] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._begun: dict[str, None] = {}  # uids of jobs that have had their first pod
        self._latency = exposition.histogram("volcano_controller_job_to_pod_creation_latency_milliseconds").observe
        self.write_failures = write_failures.WriteFailures(log, "object")
        self.breakdowns = 0
        self.last_breakdown = ""
        self.leading: Callable[[], bool] = lambda: False

    def look_at(self, engine: Engine) -> None:
        """Name who takes the turns."""
        self._engine = engine

    def complain(self, problem: str) -> None:
        """Take note of a controller that broke down over an object."""
        self.breakdowns += 1
        self.last_breakdown = problem
        self._log.error("a controller broke down", problem=problem)

    # -- watches -----------------------------------------------------------------------------------------------

    def noticed(self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        """Take note of a change."""
        if kind is kinds.POD_GROUP:
            self._group(event_type, manifest)
        elif kind is kinds.JOB:
            self._job(event_type, manifest)
        elif kind is kinds.JOB_FLOW:
            self._flow(event_type, manifest)
        elif kind is kinds.QUEUE and event_type == "DELETED":
            self._queues.pop(manifests.name(manifest), None)

    def _job(self, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        uid, job = metadata.get("uid", ""), f"{metadata.get('namespace', '')}/{metadata['name']}"
        if event_type == "DELETED":
            self._jobs.pop(uid, None)
            self._begun.pop(uid, None)
            for key in [key for key in self._job_ends if key[1] == job]:
                del self._job_ends[key]
            return
        phase = str(manifests.mapping(manifest, "status", "state").get("phase", ""))
        if self._jobs.get(uid) != phase and phase in _JOB_ENDS:
            key = _JOB_ENDS[phase], job, str(manifests.mapping(manifest, "spec").get("queue") or "default")
            self._job_ends[key] = self._job_ends.get(key, 0) + 1
        self._jobs[uid] = phase

    def _flow(self, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        uid = manifest["metadata"].get("uid", "")
        if event_type == "DELETED":
            self._flows.pop(uid, None)
            return
        phase = str(manifests.mapping(manifest, "status", "state").get("phase", ""))
        known = self._flows.get(uid)
        if known is not None and known != phase and phase in _FLOW_ENDS:
            key = _FLOW_ENDS[phase], manifest["metadata"].get("namespace", "")
            self._flow_ends[key] = self._flow_ends.get(key, 0) + 1
        self._flows[uid] = phase

    def _group(self, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        uid = manifest["metadata"].get("uid", "")
        before = self._groups.pop(uid, None)
        if before is not None and before[0] in self._queues:
            self._queues[before[0]][before[1]] -= 1
        if event_type == "DELETED":
            return
        queue = str(manifests.mapping(manifest, "spec").get("queue") or "default")
        phase = str(manifests.mapping(manifest, "status").get("phase") or names.PHASE_PENDING).lower()
        if phase in _GROUP_PHASES:
            counts = self._queues.setdefault(queue, dict.fromkeys(_GROUP_PHASES, 0))
            counts[phase] += 1
            self._groups[uid] = queue, phase

    # -- requests ----------------------------------------------------------------------------------------------

    def performed(self, request: Request, answer: Answer, seconds: float) -> None:
        """Take note of a request that was answered."""
        verb, (kind, namespace, name) = _verb(request), requests.target(request)
        key = verb, kind.plural
        self._requests[key] = self._requests.get(key, 0) + 1
        if answer.code:
            self._failures[verb, answer.code] = self._failures.get((verb, answer.code), 0) + 1
        if answer.code in ("refused", "unavailable", "unknown"):
            failure = effects.Failure(answer.code, answer.message)
            self.write_failures.add(verb, f"{kind.name} {namespace}/{name}".replace(" /", " "), failure)
        elif self._log.shows(logs.DECISIONS) and verb != "get":
            # What was there already, as when another controller's place is taken, was not created.
            about = {"kind": kind.name, "object": f"{namespace}/{name}", "ms": round(seconds * 1000, 1)}
            self._log.detail(logs.DECISIONS, answer.code or verb, **about, **({"asked": verb} if answer.code else {}))
        if not answer.code and isinstance(request, effects.Create) and kind is kinds.POD:
            self._first_pod(request.manifest)

    def _first_pod(self, pod: Mapping[str, Any]) -> None:
        owner = observed.controller(pod)
        if owner is None or owner.get("kind") != kinds.JOB.name or self._engine is None or owner["uid"] in self._begun:
            return
        self._begun[owner["uid"]] = None
        job = self._engine.observed.find(kinds.JOB, pod["metadata"].get("namespace", ""), str(owner.get("name")))
        if job is not None and not manifests.mapping(job, "status").get("version"):
            self._latency((self._wall() - manifests.created(job)) / MILLISECOND)

    # -- samples -----------------------------------------------------------------------------------------------

    def samples(self) -> Iterator[Sample]:
        """Give everything that is counted."""
        for (end, job, queue), count in list(self._job_ends.items()):
            yield f"volcano_job_{end}_phase_count", (job, queue), count
        for (end, namespace), count in list(self._flow_ends.items()):
            yield f"volcano_jobflow_{end}_phase_count", (namespace,), count
        for queue, counts in list(self._queues.items()):
            for phase, count in counts.items():
                yield f"volcano_queue_pod_group_{phase}_count", (queue,), count
        yield "pumice_controllers_leading", (), int(self.leading())
        yield "pumice_controllers_breakdowns_total", (), self.breakdowns
        for key, count in list(self._requests.items()):
            yield "pumice_controllers_requests_total", key, count
        for key, count in list(self._failures.items()):
            yield "pumice_controllers_request_failures_total", key, count
        if self._engine is not None:
            yield "pumice_controllers_turns_total", (), self._engine.turns
            yield "pumice_controllers_waiting", (), len(self._engine.queue)


def _verb(request: Request) -> str:
    match request:
        case effects.Create():
            return "create"
        case effects.Patch():
            return "patch"
        case requests.Delete():
            return "delete"
        case requests.Apply():
            return "apply"
    return "get"
