"""The pools that a node draws devices from, in the order in which they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import affinity  # noqa: TC001  msgspec reads the annotations at run time
from pumice.model import selectors
from pumice.model.devices.offers import Device, Slice  # noqa: TC001  so it does here

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.api import resource

PoolName = tuple[str, str]


class Offered(msgspec.Struct, frozen=True):
    """A device as one node reaches it: its taints, rules included, and what of the node it ties its claim to."""

    device: Device
    pool: int  # place among the pools of the node
    taints: tuple[tuple[str, str, str], ...]  # key, value, effect
    local: bool  # whether it belongs to the node alone
    selector: affinity.NodeSelector | None  # else the nodes that reach it, None for all


class Pool(msgspec.Struct, frozen=True):
    """A pool for one node; one that is not whole gives no devices, and `problem` says what is the matter."""

    name: PoolName
    counters: dict[str, dict[str, int]]
    problem: str = ""
    invalid: bool = False


class NodeOffer(msgspec.Struct, frozen=True):
    """Everything that one node is offered; equal signatures mean that equal claims get equal answers, as far as equal places are taken."""

    pools: tuple[Pool, ...]
    devices: tuple[Offered, ...]
    signature: int


class Catalogue:
    """All slices, sorted by who reaches them; made anew when a slice, a rule or a node changes."""

    def __init__(self, slices: Iterable[Slice], rules: Iterable[resource.DeviceTaintRule]) -> None:
        self._rules = tuple(rules)
        self._local: dict[str, list[Slice]] = {}
        self._wide: list[Slice] = []
        self._counters: dict[PoolName, list[Slice]] = {}
        self._by_pool: dict[PoolName, list[Slice]] = {}
        self._signatures: dict[object, int] = {}
        for each in sorted(slices, key=lambda found: found.name):
            self._by_pool.setdefault(each.pool, []).append(each)
            if each.object.spec.shared_counters:
                self._counters.setdefault(each.pool, []).append(each)
            elif each.object.spec.node_name:
                self._local.setdefault(each.object.spec.node_name, []).append(each)
            else:
                self._wide.append(each)

    @property
    def is_local(self) -> bool:
        """Whether every device belongs to one node, so that what one node gives away is no other's."""
        return not self._wide and all(
            len({part.object.spec.node_name for part in self._by_pool[pool] if part.devices}) <= 1
            for pool in self._counters
        )

    def offer(self, name: str, labels: Mapping[str, str]) -> NodeOffer:
        """Work out what a node is offered."""
        relevant = [each for each in self._wide if self._is_relevant(each, name, labels)]
        by_pool: dict[PoolName, list[Slice]] = {}
        for each in sorted([*self._local.get(name, ()), *relevant], key=lambda found: found.name):
            by_pool.setdefault(each.pool, []).append(each)
        for pool, parts in by_pool.items():
            parts.extend(self._counters.get(pool, ()))
        pools: list[tuple[Pool, list[Slice]]] = []
        for pool, found in sorted(by_pool.items()):
            newest = max(each.object.spec.pool.generation for each in found)
            current = [each for each in found if each.object.spec.pool.generation == newest]
            made = self._pool(pool, newest, current)
            if made is not None:
                pools.append((made, [] if made.problem else current))
        # Pools with devices that something must become true of come after all others.
        pools.sort(key=lambda each: any(device.has_conditions for part in each[1] for device in part.devices))
        devices = tuple(
            offered
            for place, (_, parts) in enumerate(pools)
            for part in parts
            for device in part.devices
            if (offered := self._offered(part, device, place, name, labels)) is not None
        )
        return NodeOffer(tuple(pool for pool, _ in pools), devices, self._signature(pools, devices))

    def _is_relevant(self, found: Slice, name: str, labels: Mapping[str, str]) -> bool:
        spec = found.object.spec
        if spec.all_nodes:
            return True
        if spec.node_selector is not None:
            return _matches(spec.node_selector, name, labels)
        return bool(spec.per_device_node_selection) and any(
            _reaches(each.object, name, labels) for each in found.devices
        )

    def _pool(self, pool: PoolName, generation: int, current: Sequence[Slice]) -> Pool | None:
        """Judge a pool for a node; None if it is out of date."""
        wanted = max(each.object.spec.pool.resource_slice_count for each in current)
        if len(current) != wanted:
            generations = [each.object.spec.pool.generation for each in self._by_pool[pool]]
            if max(generations) > generation:
                return None
            if generations.count(generation) != wanted:
                return Pool(pool, {}, problem=f"resource pool {'/'.join(pool)} is currently being updated")
        counters = {name: counted for part in current for name, counted in part.counters.items()}
        wrong = _listed_twice(current) or _unknown_counter(current, counters)
        if wrong:
            problem = f"resource pool {'/'.join(pool)} is invalid: {wrong}"
            return Pool(pool, {}, problem=problem, invalid=True)
        return Pool(pool, counters)

    def _offered(self, part: Slice, device: Device, place: int, name: str, labels: Mapping[str, str]) -> Offered | None:
        """Return a device as a node reaches it, None if it does not."""
        spec, own = part.object.spec, device.object
        if spec.per_device_node_selection and not _reaches(own, name, labels):
            return None
        local = bool(own.binds_to_node or spec.node_name or (spec.per_device_node_selection and own.node_name))
        chosen = own.node_selector if spec.per_device_node_selection else spec.node_selector
        return Offered(device, place, self._taints(device), local, None if local else chosen)

    def _taints(self, device: Device) -> tuple[tuple[str, str, str], ...]:
        if not device.object.taints and not self._rules:
            return ()
        found = [*device.object.taints]
        for rule in self._rules:
            wanted = rule.spec.device_selector
            asked = () if wanted is None else (wanted.driver, wanted.pool, wanted.device)
            if all(each is None or each == mine for each, mine in zip(asked, device.id, strict=False)):
                found.append(rule.spec.taint)
        return tuple((each.key, each.value, each.effect) for each in found)

    def _signature(self, pools: Sequence[tuple[Pool, list[Slice]]], devices: tuple[Offered, ...]) -> int:
        key = (
            tuple((pool.problem != "", pool.invalid, str(pool.counters)) for pool, _ in pools),
            tuple(
                (each.device.content, each.pool, each.taints, each.device.counters, each.device.has_conditions)
                for each in devices
            ),
        )
        return self._signatures.setdefault(key, len(self._signatures))

    def pool_devices(self, pool: PoolName) -> Iterable[Device]:
        """Go through all devices of a pool, those of other nodes included."""
        return (device for part in self._by_pool.get(pool, ()) for device in part.devices)


def _listed_twice(parts: Sequence[Slice]) -> str:
    """Say which device or set of counters several parts of a pool, or one of them twice, have; empty if none."""
    names: set[str] = set()
    groups: set[str] = set()
    for part in parts:
        if part.twice:
            return f"{part.twice} is listed twice"
        mine = {device.id[2] for device in part.devices}
        again = (names & mine) or (groups & part.counters.keys())
        if again:
            return f"{min(again)} is listed twice"
        names |= mine
        groups |= part.counters.keys()
    return ""


def _unknown_counter(parts: Sequence[Slice], counters: Mapping[str, Mapping[str, int]]) -> str:
    """Say which device consumes a counter that the pool does not have; empty if none does."""
    for part in parts:
        for device in part.devices:
            for group, counter, _ in device.counters:
                if counter not in counters.get(group, {}):
                    return f"the device {device.id[2]} consumes {group}/{counter}, which is not there"
    return ""


def _matches(selector: affinity.NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    return any(selectors.term_matches(term, labels, name) for term in selector.node_selector_terms)


def _reaches(device: resource.Device, name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a device that says itself which nodes reach it is reached by one."""
    if device.node_name is not None:
        return device.node_name == name
    if device.all_nodes:
        return True
    return device.node_selector is not None and _matches(device.node_selector, name, labels)
