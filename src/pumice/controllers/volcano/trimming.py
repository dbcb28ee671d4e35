"""What is kept of objects that everybody has many of, whoever reads them: nothing that controllers do not look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.queueing.observed import controller

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Manifest = dict[str, Any]
# Whether one of that name is there is all that matters of those that are nobody's; of a Secret nobody reads more.
_MADE_BY_PLUGINS: Final = (kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY)


class Trimmer:
    """Gives what is kept of an object. Nobody writes one back, so nothing is lost."""

    def __init__(self, whole: Collection[tuple[str, str]] = ()) -> None:
        """Begin; `whole` are the places of ConfigMaps that are kept as they are."""
        self._whole = frozenset(whole)

    def __call__(self, kind: kinds.Kind, manifest: Manifest) -> Manifest:
        """Give what is kept."""
        metadata = manifest["metadata"]
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


def _is_of_job(manifest: Mapping[str, Any]) -> bool:
    owner = controller(manifest) or {}
    return (owner.get("apiVersion"), owner.get("kind")) == (kinds.JOB.api_version, kinds.JOB.name)
