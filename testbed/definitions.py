"""See whether the custom resource definitions of a server are those that were there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed import waiting

if TYPE_CHECKING:
    from testbed.calling import Caller

COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_KEPT = "uid", "generation", "labels", "annotations", "deletionTimestamp"


def standing(caller: Caller) -> dict[str, list[Any]]:
    """Return, for each definition, what cannot stay the same if somebody makes it anew, changes or deletes it."""
    found = [item["metadata"] for item in caller.call("GET", COLLECTION, accept=METADATA)["items"] or ()]
    return {metadata["name"]: [metadata.get(field) for field in _KEPT] for metadata in found}


def let_go(caller: Caller) -> None:
    """Return when no definition is being deleted: what is applied to one that is goes with it."""

    def going() -> list[str]:
        return [name for name, kept in standing(caller).items() if kept[-1] is not None]

    waiting.until(lambda: not going(), lambda: f"still being deleted: {', '.join(going())}")
