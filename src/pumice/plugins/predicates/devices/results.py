"""What is written of devices that were found: the allocation of a claim, by names."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING

from pumice.api import affinity, resource
from pumice.model.devices import amounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.model.devices.wanted import Wanted
    from pumice.plugins.predicates.devices.pools import NodeOffer
    from pumice.plugins.predicates.devices.search import Pick

NODE_NAME = "metadata.name"


def allocation(
    uid: str,
    wanted: Wanted,
    picks: Sequence[Pick],
    *,
    offer: NodeOffer,
    node: str,
    classes: Mapping[str, resource.DeviceClass],
) -> resource.Allocation:
    """Write down what a claim gets on a node."""
    results = tuple(_result(uid, index, pick, offer) for index, pick in enumerate(picks))
    config = _config(wanted, picks, classes)
    return resource.Allocation(
        devices=resource.DeviceAllocation(results=results, config=config),
        node_selector=_node_selector(picks, offer, node),
    )


def _result(uid: str, index: int, pick: Pick, offer: NodeOffer) -> resource.DeviceResult:
    device = offer.devices[pick.place].device
    driver, pool, name = device.id
    shared = device.shared and not pick.need.admin
    return resource.DeviceResult(
        request=pick.need.name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if pick.need.admin else None,
        tolerations=pick.need.tolerations,
        binding_conditions=device.object.binding_conditions,
        binding_failure_conditions=device.object.binding_failure_conditions,
        share_id=share_id(uid, pick.need.name, index) if shared else None,
        consumed_capacity={
            name: amounts.written(units, device.capacity[name].text) for name, units in pick.consumed.items()
        }
        if shared
        else {},
    )


def share_id(uid: str, request: str, index: int) -> str:
    """Derive the id of a share from the claim, the request and the place of the result: the same decision has the same ids."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{uid}/{request}/{index}".encode()).digest()[:16], version=4))


def _config(
    wanted: Wanted, picks: Sequence[Pick], classes: Mapping[str, resource.DeviceClass]
) -> tuple[resource.AllocatedConfiguration, ...]:
    """List what drivers are told: first by the classes, once each, then by the claim as far as it applies."""
    by_class: dict[str, dict[str, None]] = {}
    for pick in picks:
        by_class.setdefault(pick.need.device_class, {})[pick.need.name] = None
    found = [
        resource.AllocatedConfiguration(source="FromClass", requests=tuple(names), opaque=config.opaque)
        for name, names in by_class.items()
        if name in classes
        for config in classes[name].spec.config
    ]
    given = {pick.need.name for pick in picks}
    given |= {name.partition("/")[0] for name in given}
    found += [
        resource.AllocatedConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        for config in wanted.config
        if not config.requests or given & set(config.requests)
    ]
    return tuple(found)


def _node_selector(picks: Sequence[Pick], offer: NodeOffer, node: str) -> affinity.NodeSelector | None:
    """Say which nodes reach all devices: this one alone, those that all selectors choose, or None for all."""
    offered = [offer.devices[pick.place] for pick in picks]
    if any(each.local for each in offered):
        named = affinity.NodeSelectorRequirement(key=NODE_NAME, operator="In", values=(node,))
        return _selector((), (named,))
    expressions: dict[affinity.NodeSelectorRequirement, None] = {}
    fields: dict[affinity.NodeSelectorRequirement, None] = {}
    for each in offered:
        for term in each.selector.node_selector_terms if each.selector is not None else ():
            expressions.update(dict.fromkeys(term.match_expressions))
            fields.update(dict.fromkeys(term.match_fields))
    return _selector(tuple(expressions), tuple(fields)) if expressions or fields else None


def _selector(
    expressions: tuple[affinity.NodeSelectorRequirement, ...], fields: tuple[affinity.NodeSelectorRequirement, ...]
) -> affinity.NodeSelector:
    term = affinity.NodeSelectorTerm(match_expressions=expressions, match_fields=fields)
    return affinity.NodeSelector(node_selector_terms=(term,))
