"""What an API server does about Kubernetes' own gangs beside looking at each object by itself.

A group is protected by a finalizer from the first moment on, has a priority, and its template must exist. A Job whose pods belong to a gang keeps its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.apiserver import statuses
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_PLURAL: Final = kinds.NATIVE_POD_GROUP.plural
_GROUP: Final = kinds.NATIVE_POD_GROUP.group


class Gangs:
    """Judges groups and Jobs by what the store holds."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def admit(self, manifest: Document, namespace: str) -> None:
        """Complete a new group, or refuse it."""
        metadata, spec = manifest["metadata"], manifest["spec"]
        self._template(metadata, spec, namespace)
        self._priority(metadata, spec)
        finalizers = metadata.setdefault("finalizers", [])
        if names.GROUP_PROTECTION not in finalizers:
            finalizers.append(names.GROUP_PROTECTION)

    def _template(self, metadata: Document, spec: Document, namespace: str) -> None:
        reference = structure.mapping(spec, "podGroupTemplateRef", "workload")
        if not reference:
            return
        name, template = str(reference.get("workloadName")), reference.get("podGroupTemplateName")
        workload = self._store.find(Key(kinds.WORKLOAD, namespace, name))
        if workload is None:
            raise _forbidden(metadata, f'PodGroup rejected: Workload "{name}" not found')
        known = structure.mapping(workload, "spec").get("podGroupTemplates") or ()
        if not any(each.get("name") == template for each in known):
            raise _forbidden(
                metadata, f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"'
            )

    def _priority(self, metadata: Document, spec: Document) -> None:
        name, stated = spec.get("priorityClassName"), spec.get("priority")
        found = self._store.find(Key(kinds.PRIORITY_CLASS, "", str(name))) if name else self._default_class()
        if name and found is None:
            raise _forbidden(metadata, f"no PriorityClass with name {name} was found")
        value = 0 if found is None else found.get("value", 0)
        if stated is not None and stated != value:
            raise _forbidden(
                metadata,
                f"priority set in the pod group ({stated}) must match the priority computed ({value}) based on the priority class set in the spec",
            )
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = value

    def _default_class(self) -> Mapping[str, Any] | None:
        defaults = [each for each in self._store.scan(kinds.PRIORITY_CLASS) if each.get("globalDefault") is True]
        return min(defaults, key=lambda each: each.get("value", 0), default=None)

    def check_job(self, new: Document, old: Mapping[str, Any] | None) -> None:
        """Refuse another parallelism for a Job whose pods belong to a gang: the gang could never be complete, or never be all of them."""
        if old is None or _parallelism(new) == _parallelism(old):
            return
        metadata = new["metadata"]
        named = structure.mapping(new, "spec", "template", "spec", "schedulingGroup").get("podGroupName")
        for group in self._store.scan(kinds.NATIVE_POD_GROUP):
            owners = group["metadata"].get("ownerReferences") or ()
            mine = group["metadata"]["name"] == named or any(
                each.get("controller") and each.get("uid") == metadata.get("uid") for each in owners
            )
            if group["metadata"].get("namespace") != metadata.get("namespace") or not mine:
                continue
            if structure.mapping(group, "spec", "schedulingPolicy").get("gang"):
                name = group["metadata"]["name"]
                why = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{name}"'
                raise statuses.forbidden("jobs", "batch", metadata.get("name", ""), why)


def _parallelism(job: Mapping[str, Any]) -> object:
    return structure.mapping(job, "spec").get("parallelism", 1)


def _forbidden(metadata: Document, why: str) -> statuses.Problem:
    return statuses.forbidden(_PLURAL, _GROUP, metadata.get("name", ""), why)
