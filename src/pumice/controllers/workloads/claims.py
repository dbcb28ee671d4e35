"""Who belongs to whom: objects are owned by uid, orphans that a selector matches are adopted, and those it no longer matches are let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import manifests, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pumice.api import kinds
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]


def claim(
    owner: Mapping[str, Any],
    owner_kind: kinds.Kind,
    kind: kinds.Kind,
    observed: Observed,
    fits: Callable[[Mapping[str, Any]], bool],
    *,
    finalizer: str = "",
) -> tuple[list[Manifest], list[Step]]:
    """Give what an owner has of a kind, what it adopts now included, and the writes that make it so. What another controller owns is left alone."""
    found: list[Manifest] = []
    steps: list[Step] = []
    going = manifests.is_going(owner)
    for each in observed.owned(kind, manifests.uid(owner)):
        if fits(each) or going:
            found.append(each)
        elif not manifests.is_going(each):
            steps.append(_patch(each, kind, _without(each, manifests.uid(owner))))
    if going:
        return found, []
    adopted = [
        each
        for each in observed.orphans(kind, owner["metadata"].get("namespace", ""))
        if fits(each) and not manifests.is_going(each)
    ]
    if adopted:
        namespace, name = owner["metadata"].get("namespace", ""), manifests.name(owner)
        # The owner may be gone, and known only to a late watch: whoever is given a dead owner is collected.
        confirmation = requests.Confirm(kind=owner_kind, namespace=namespace, name=name, uid=manifests.uid(owner))
        steps.append(requests.Step(request=confirmation))
        reference = pods.controller_reference(owner, owner_kind)
        steps += [_patch(each, kind, [*_others(each), reference], finalizer) for each in adopted]
    return found + adopted, steps


def owner_of(manifest: Mapping[str, Any], observed: Observed, *, of: kinds.Kind) -> Iterable[tuple[str, str]]:
    """Name the object of a kind that controls another one; of an orphan, those that might adopt it."""
    reference, namespace = controller(manifest), manifest["metadata"].get("namespace", "")
    if reference is not None:
        if reference.get("kind") == of.name and reference.get("apiVersion") == of.api_version:
            yield namespace, str(reference.get("name"))
        return
    for each in observed.inside(of, namespace):
        if manifests.selects(manifests.selector(each), manifests.labels(manifest)):
            yield namespace, manifests.name(each)


def _patch(each: Manifest, kind: kinds.Kind, references: list[Any], finalizer: str = "") -> Step:
    body: Manifest = {"metadata": {"ownerReferences": references or None}}
    present = manifests.items(each, "metadata", "finalizers")
    if finalizer and finalizer not in present:
        body["metadata"]["finalizers"] = [*present, finalizer]
    return steps_to.patch(
        kind, each, body, exact=True
    )  # lists are replaced whole, so they must be those that we have seen


def _others(each: Manifest) -> list[Any]:
    return list(manifests.items(each, "metadata", "ownerReferences"))


def _without(each: Manifest, uid: str) -> list[Any]:
    return [reference for reference in _others(each) if manifests.mapping(reference).get("uid") != uid]
