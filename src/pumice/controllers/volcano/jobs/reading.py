"""A Job of Volcano as its controller reads it: what its spec asks for and what its status says.

What the project calls a role is a task of the Job's spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, names
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]
_DEFAULT_RETRIES: Final = 3
_LARGEST: Final = 2**31 - 1

PENDING: Final = "Pending"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
ABORTING: Final = "Aborting"
ABORTED: Final = "Aborted"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"
TERMINATING: Final = "Terminating"
TERMINATED: Final = "Terminated"
FAILED: Final = "Failed"
FINISHED: Final = (COMPLETED, FAILED, TERMINATED)


class LifecyclePolicy(msgspec.Struct, frozen=True):
    """What is done when something happens: on one of some events, or on an exit code, perhaps after a while (microseconds)."""

    action: str
    events: tuple[str, ...]
    exit_code: int | None
    timeout: int | None


class Partition(msgspec.Struct, frozen=True):
    """How the pods of a role are split."""

    size: int
    minimum: int
    topology: Mapping[str, Any]


class Role(msgspec.Struct, frozen=True):
    """One task of a Job's spec."""

    place: int
    name: str
    replicas: int
    min_available: int | None
    template: Mapping[str, Any]
    policies: tuple[LifecyclePolicy, ...]
    max_retry: int
    depends_on: tuple[str, ...]
    any_dependency: bool
    topology_policy: str
    partition: Partition | None

    @property
    def least(self) -> int:
        """How many of its pods a Job wants at least, as far as sums over roles go."""
        return self.replicas if self.min_available is None else self.min_available

    @property
    def gang_minimum(self) -> int:
        """How many of its pods its group wants at least."""
        if self.min_available is None and self.partition is not None and self.partition.minimum:
            return self.partition.minimum * self.partition.size
        return self.least


class Spec:
    """What a Job asks for. It is the same as long as the Job's generation is, so what is made of it can be kept (`kept`)."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        listed = [_role(place, manifests.mapping(each)) for place, each in enumerate(_list(spec, "tasks"))]
        self.by_name: dict[str, Role] = {}
        for role in listed:
            self.by_name.setdefault(role.name, role)  # of two with one name only the first can have pods
        self.roles = tuple(role for role in listed if self.by_name[role.name] is role)
        self.policies = _policies(spec)
        policies = [*self.policies, *(each for role in self.roles for each in role.policies)]
        self.heard = frozenset(event for each in policies for event in each.events)
        """The events that some policy speaks of."""
        self.hears_codes = any(each.exit_code is not None for each in policies)
        self.min_available = _count(spec, "minAvailable")
        self.min_success = _optional(spec, "minSuccess")
        self.max_retry = _count(spec, "maxRetry", _DEFAULT_RETRIES)
        self.queue = _text(spec, "queue") or names.DEFAULT_QUEUE
        self.replicas = sum(role.replicas for role in self.roles)
        found = manifests.mapping(spec, "plugins")
        self.plugins = {
            str(name): tuple(map(str, each)) if isinstance(each, list) else () for name, each in found.items()
        }
        self.kept: dict[Any, Any] = {}


class Job:
    """One Job; `manifest` is what was observed, to be read and never changed."""

    def __init__(self, manifest: Manifest, asked: Spec | None = None) -> None:
        status = manifests.mapping(manifest, "status")
        self.manifest = manifest
        self.spec, self.status = manifests.mapping(manifest, "spec"), status
        self.asked = asked = asked or Spec(self.spec)
        self.roles, self.by_name, self.policies = asked.roles, asked.by_name, asked.policies
        self.min_available, self.min_success = asked.min_available, asked.min_success
        self.max_retry, self.queue, self.replicas = asked.max_retry, asked.queue, asked.replicas
        self.plugins = asked.plugins
        self.namespace: str = manifest["metadata"].get("namespace", "")
        self.name = manifests.name(manifest)
        self.uid = manifests.uid(manifest)
        state = manifests.mapping(status, "state")
        self.phase = _text(state, "phase")
        self.reason = _text(state, "reason")
        self.message = _text(state, "message")
        self.version = _count(status, "version")
        self.retry_count = _count(status, "retryCount")
        self.controlled = manifests.mapping(status, "controlledResources")

    @property
    def written(self) -> int | None:
        """When its status was last written."""
        return manifests.moment_of(manifests.mapping(self.status, "state").get("lastTransitionTime"))

    @property
    def is_at_its_last(self) -> bool:
        """Whether its restarts are used up: what has ended by itself stays then, for people to look at."""
        return self.retry_count >= self.max_retry

    def annotation(self, key: str) -> str:
        """Give an annotation of its own."""
        return _text(manifests.mapping(self.manifest, "metadata", "annotations"), key)


class Reader:
    """Reads Jobs, the spec of each generation once; what was not asked for lately is read again."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._specs: dict[tuple[str, int], Spec] = {}

    def read(self, manifest: Manifest) -> Job:
        """Read a Job."""
        metadata = manifest["metadata"]
        uid, generation = metadata.get("uid"), metadata.get("generation")
        if not uid or not isinstance(generation, int):
            return Job(manifest)
        known = self._specs.get((uid, generation))
        if known is None:
            known = self._specs[uid, generation] = Spec(manifests.mapping(manifest, "spec"))
            if len(self._specs) > self._most:
                del self._specs[next(iter(self._specs))]
        return Job(manifest, known)


def command_target(command: Mapping[str, Any]) -> tuple[str, str] | None:
    """Give the Job that a Command is for, None if it is for something else."""
    target = manifests.mapping(command, "target")
    if (target.get("kind"), target.get("apiVersion")) != (kinds.JOB.name, kinds.JOB.api_version):
        return None
    return command["metadata"].get("namespace", ""), _text(target, "name")


def _role(place: int, task: Mapping[str, Any]) -> Role:
    depends, partition = manifests.mapping(task, "dependsOn"), manifests.mapping(task, "partitionPolicy")
    size = _count(partition, "partitionSize")
    return Role(
        place=place,
        name=_text(task, "name") or f"default{place}",
        replicas=_count(task, "replicas"),
        min_available=_optional(task, "minAvailable"),
        template=manifests.mapping(task, "template"),
        policies=_policies(task),
        max_retry=manifests.number(task, "maxRetry"),
        depends_on=tuple(map(str, _list(depends, "name"))),
        any_dependency=depends.get("iteration") == "any",
        topology_policy=_text(task, "topologyPolicy"),
        partition=Partition(size, _count(partition, "minPartitions"), manifests.mapping(partition, "networkTopology"))
        if size
        else None,
    )


def _policies(where: Mapping[str, Any]) -> tuple[LifecyclePolicy, ...]:
    if not where.get("policies"):
        return ()
    return tuple(_policy(manifests.mapping(each)) for each in _list(where, "policies"))


def _policy(each: Mapping[str, Any]) -> LifecyclePolicy:
    single = _text(each, "event")
    events = (*map(str, _list(each, "events")), *((single,) if single else ()))
    try:
        timeout = duration.parse(each["timeout"]) if each.get("timeout") is not None else None
    except duration.DurationError:
        timeout = None
    return LifecyclePolicy(_text(each, "action"), events, _optional(each, "exitCode"), timeout)


def _list(where: Mapping[str, Any], field: str) -> list[Any]:
    found = where.get(field)
    return found if isinstance(found, list) else []


def _text(where: Mapping[str, Any], field: str) -> str:
    found = where.get(field)
    return found if isinstance(found, str) else ""


def _count(where: Mapping[str, Any], field: str, default: int = 0) -> int:
    return max(0, min(_LARGEST, manifests.number(where, field, default)))


def _optional(where: Mapping[str, Any], field: str) -> int | None:
    return _count(where, field) if where.get(field) is not None else None
