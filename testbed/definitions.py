"""See whether the custom resource definitions of a server are those that were there before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.calling import Caller

COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_KEPT = "uid", "generation", "labels", "annotations", "deletionTimestamp"
PATIENCE = 30.0


def standing(caller: Caller) -> dict[str, list[Any]]:
    """Return, for each definition, what cannot stay the same if somebody makes it anew, changes or deletes it."""
    found = [item["metadata"] for item in caller.call("GET", COLLECTION, accept=METADATA)["items"] or ()]
    return {metadata["name"]: [metadata.get(field) for field in _KEPT] for metadata in found}


def let_go(caller: Caller) -> None:
    """Return when no definition is being deleted: what is applied to one that is goes with it."""
    deadline = time.monotonic() + PATIENCE
    while going := [name for name, kept in standing(caller).items() if kept[-1] is not None]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"still being deleted after {PATIENCE:.0f} s: {', '.join(going)}")
        time.sleep(0.05)
