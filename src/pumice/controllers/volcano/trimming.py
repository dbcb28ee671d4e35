"""What is kept of objects that there are many of: the fields that controllers read, equal texts once.

A pod of a Job is made of a template that its Job has too; of the pod itself its identity, its marks and how it is doing are enough. Nobody writes an object
back, so nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.controllers.queueing.observed import controller

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Manifest = dict[str, Any]
_OURS: Final = ("volcano.sh/", "scheduling.k8s.io/", "scheduling.volcano.sh/", "pumice.dev/")
_KEPT_METADATA: Final = frozenset(
    {"name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "finalizers"}
)
_KEPT_STATUSES: Final = ("name", "ready", "restartCount", "state")
_KEPT_ENDS: Final = ("exitCode", "finishedAt")
_KEPT_CONDITIONS: Final = ("Ready",)
# Whether one of that name is there is all that matters of those that are nobody's; of a Secret nobody reads more.
_MADE_BY_PLUGINS: Final = (kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY)
_MOST_TEXTS: Final = 65_536


def _is_of_job(manifest: Mapping[str, Any]) -> bool:
    owner = controller(manifest) or {}
    return (owner.get("apiVersion"), owner.get("kind")) == (kinds.JOB.api_version, kinds.JOB.name)


class Trimmer:
    """Gives what is kept; remembers texts, so that equal ones are the same object."""

    def __init__(self, whole: Collection[tuple[str, str]] = ()) -> None:
        """Begin; `whole` are the places of ConfigMaps that are kept as they are."""
        self._whole = frozenset(whole)
        self._texts: dict[str, str] = {}
        self._owners: dict[str, list[Any]] = {}

    def __call__(self, kind: kinds.Kind, manifest: Manifest) -> Manifest:
        """Give what is kept of an object."""
        metadata = manifest["metadata"]
        if kind is kinds.POD and isinstance(metadata, dict):
            return self._pod(manifest, metadata)
        if "managedFields" in metadata:
            metadata = {field: value for field, value in metadata.items() if field != "managedFields"}
        if kind is kinds.SECRET or (kind in _MADE_BY_PLUGINS and not self._matters(kind, manifest)):
            return {"metadata": metadata}
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and names.LAST_APPLIED in annotations:
            rest = {key: value for key, value in annotations.items() if key != names.LAST_APPLIED}
            metadata = {**metadata, "annotations": rest}
        return {**manifest, "metadata": metadata}

    def _matters(self, kind: kinds.Kind, manifest: Manifest) -> bool:
        metadata = manifest["metadata"]
        named = kind is kinds.CONFIG_MAP and (metadata.get("namespace"), metadata.get("name")) in self._whole
        return named or _is_of_job(manifest)

    def squeezed_pod(self, raw: bytes) -> bytes:
        """Give what is kept of a pod, as JSON."""
        return msgspec.json.encode(self(kinds.POD, msgspec.json.decode(raw)))

    def _pod(self, manifest: Manifest, metadata: Manifest) -> Manifest:
        own: Manifest = {field: value for field, value in metadata.items() if field in _KEPT_METADATA}
        own["namespace"] = self._shared(metadata.get("namespace", ""))
        for field in ("labels", "annotations"):
            if isinstance(found := metadata.get(field), dict):
                own[field] = {
                    self._shared(key): self._shared(value) for key, value in found.items() if key.startswith(_OURS)
                }
        if isinstance(owners := metadata.get("ownerReferences"), list):
            own["ownerReferences"] = self._owner(owners)
        spec, status = manifest.get("spec"), manifest.get("status")
        kept: Manifest = {"metadata": own}
        if isinstance(spec, dict) and spec.get("nodeName"):
            kept["spec"] = {"nodeName": self._shared(spec["nodeName"])}
        if isinstance(status, dict):
            kept["status"] = self._status(status)
        return kept

    def _status(self, status: Mapping[str, Any]) -> Manifest:
        kept: Manifest = {"phase": self._shared(status.get("phase", ""))}
        for field in ("initContainerStatuses", "containerStatuses"):
            if isinstance(found := status.get(field), list) and found:
                kept[field] = [self._container(each) for each in found if isinstance(each, dict)]
        if isinstance(conditions := status.get("conditions"), list):
            ready = [each for each in conditions if isinstance(each, dict) and each.get("type") in _KEPT_CONDITIONS]
            if ready:
                kept["conditions"] = [
                    {
                        field: self._shared(each[field])
                        for field in ("type", "status", "lastTransitionTime")
                        if field in each
                    }
                    for each in ready
                ]
        return kept

    def _container(self, found: Mapping[str, Any]) -> Manifest:
        kept = {field: self._shared(found[field]) for field in _KEPT_STATUSES if field in found}
        state = found.get("state")
        ended = state.get("terminated") if isinstance(state, dict) else None
        if isinstance(ended, dict):
            kept["state"] = {
                "terminated": {field: self._shared(ended[field]) for field in _KEPT_ENDS if field in ended}
            }
        elif isinstance(state, dict):
            kept["state"] = {phase: {} for phase in state}
        return kept

    def _owner(self, owners: list[Any]) -> list[Any]:
        """Give the same list to all who have the same one owner."""
        uid = owners[0].get("uid") if len(owners) == 1 and isinstance(owners[0], dict) else None
        if not isinstance(uid, str):
            return owners
        known = self._owners.get(uid)
        if known == owners:
            return known
        if len(self._owners) >= _MOST_TEXTS:
            self._owners.clear()
        self._owners[uid] = owners
        return owners

    def _shared(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        known = self._texts.get(text)
        if known is not None:
            return known
        if len(self._texts) >= _MOST_TEXTS:
            self._texts.clear()
        self._texts[text] = text
        return text
