"""What is filled into a queue before it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.admission import patches
from pumice.api import names

if TYPE_CHECKING:
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

Document = dict[str, Any]


def complete(request: Request, _: Surroundings, __: RuleSettings) -> Document:
    """Give a queue with everything that its author left to us."""
    queue: Document = patches.copied(request.object)
    spec = queue.setdefault("spec", {})
    if isinstance(spec, dict):
        if spec.get("reclaimable") is None:
            spec["reclaimable"] = True
        if spec.get("weight") is None or spec["weight"] == 0:
            spec["weight"] = 1
    metadata = queue.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        _root(annotations)
    return queue


def _root(annotations: Document) -> None:
    """Let a hierarchy begin at the root."""
    path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS)
    if isinstance(path, str) and path and path.split("/")[0] != names.ROOT_QUEUE:
        annotations[names.HIERARCHY] = f"{names.ROOT_QUEUE}/{path}"
        if isinstance(weights, str):
            annotations[names.HIERARCHY_WEIGHTS] = f"1/{weights}" if weights else "1"
