"""A cluster at one moment, as it was read, before anything is decided about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import core, decoding, kinds, names
from pumice.api.meta import KubeObject
from pumice.model import native_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.framework.configuration import Configuration

Manifest = dict[str, Any]
Found = KubeObject | decoding.Malformed

LEFT_OUT = ("kubectl.kubernetes.io/last-applied-configuration",)


class StudyError(Exception):
    """Something that cannot be studied; the message says what, and what to do about it."""


class Denied(msgspec.Struct, frozen=True):
    """A kind that the user may not list, or objects of it that may not be read; `read_in` is the namespace in which it could be listed after all."""

    kind: kinds.Kind
    message: str
    read_in: str = ""
    verbs: tuple[str, ...] = ("list",)
    names: tuple[str, ...] = ()

    @property
    def right(self) -> str:
        """The right that is missing, as `kubectl auth can-i` names it."""
        resource = f"{self.kind.plural}{'.' + self.kind.group if self.kind.group else ''}"
        return f"{self.verbs[0]} {resource}" + (f" {' '.join(self.names)}" if self.names else "")


class State(msgspec.Struct, kw_only=True):
    """Objects with the moment they were read at, and the configuration and flags that came with them, if any did."""

    source: str
    now: int
    objects: list[tuple[kinds.Kind, Found]]
    configuration: Configuration | None = None
    text: str | None = None  # of a configuration that is not loaded yet
    configuration_source: str = ""
    flags: dict[str, Any] = {}
    served: tuple[tuple[str, ...], ...] = ()  # the scheduler names that each scheduler of the cluster says it serves
    jobs: dict[str, Manifest] = {}  # those of Volcano by uid, whole: what their controller makes of them
    denied: tuple[Denied, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Say it in a few words: asyncio writes down what a task has returned, and that would be the whole cluster."""
        return f"State({self.source}, {len(self.objects)} objects)"

    def of(self, kind: kinds.Kind) -> Iterator[KubeObject]:
        """Walk over the readable objects of a kind, of every group that has one of its name."""
        for found_kind, found in self.objects:
            if found_kind.name == kind.name and not isinstance(found, decoding.Malformed):
                yield found

    def pods(self) -> Iterator[core.Pod]:
        """Walk over the pods."""
        for found in self.of(kinds.POD):
            if isinstance(found, core.Pod):
                yield found

    def manifests(self) -> list[Manifest]:
        """Give every readable object as a manifest, with what a scheduler reads of it."""
        readable = [(kind, found) for kind, found in self.objects if not isinstance(found, decoding.Malformed)]
        return [self.jobs.get(found.metadata.uid) or manifest(kind, found) for kind, found in readable]

    def scheduler_names(self, pods: Iterable[core.Pod] = ()) -> tuple[str, ...]:
        """Return whom some pods name as their scheduler; where they name none, whom all Jobs and the pods of all groups do. Who serves one of them says which others it serves."""
        named = {pod.spec.scheduler_name for pod in pods}
        if not named:
            named = {pod.spec.scheduler_name for pod in self.pods() if native_groups.job_key(pod)}
            named |= {str((job.get("spec") or {}).get("schedulerName") or "") for job in self.jobs.values()}
        named = set(filter(None, named)) or {names.SCHEDULER}
        return next((serves for serves in self.served if named.intersection(serves)), tuple(sorted(named)))


def manifest(kind: kinds.Kind, found: KubeObject) -> Manifest:
    """Give an object as a manifest, without the copy of itself that kubectl leaves on it."""
    body: Manifest = msgspec.json.decode(msgspec.json.encode(found))  # lists, as JSON has them, and no tuples
    metadata = body.get("metadata", {})
    annotations = metadata.get("annotations", {})
    for name in LEFT_OUT:
        annotations.pop(name, None)
    metadata.pop("resourceVersion", None)
    if isinstance(found, decoding.Opaque):
        body.pop("identity", None)
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}
