"""What each node would give to claims: offers and what is taken of them, row by row, and answers that nodes in the same state share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.cel import language
from pumice.model import statuses
from pumice.model.devices.registry import WHOLE
from pumice.plugins.predicates.devices.expressions import Expressions
from pumice.plugins.predicates.devices.pools import Catalogue, NodeOffer
from pumice.plugins.predicates.devices.search import Refusal, Search, Solution, Taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.devices.offers import DeviceId
    from pumice.model.devices.registry import Use
    from pumice.model.devices.wanted import Need, Wanted
    from pumice.model.task import Task
    from pumice.plugins.predicates.devices.pools import PoolName

_REMEMBERED: Final = 50_000
_MOST_GIVEN_UP: Final = 10
"""After so many searches without an end for equal claims no other node is searched in the cycle."""
Answer = Solution | Refusal


class Answers:
    """Answers about claims, kept as long as slices, classes and nodes stay as they are."""

    def __init__(self, cluster: Cluster, most_steps: int) -> None:
        self._cluster = cluster
        self._devices = cluster.devices
        self._most_steps = most_steps
        self._expressions = Expressions()
        self._state: tuple[int, int, int, int] = (-1, -1, -1, -1)
        self.catalogue = Catalogue((), ())
        self._offers: list[NodeOffer | None] = []
        self._taken: list[Taken | None] = []
        self._rows_of: dict[DeviceId, list[int]] = {}
        self._rows_of_pool: dict[PoolName, list[int]] = {}
        self._places: dict[tuple[object, ...], Sequence[int]] = {}
        self._answers: dict[tuple[object, ...], Answer] = {}
        self._repeats: dict[tuple[object, ...], int] = {}
        self._given_up: dict[
            tuple[bytes, ...], int
        ] = {}  # by what claims ask for, how many searches of this cycle had no end

    def begin(self) -> None:
        """Begin a cycle."""
        self._given_up.clear()

    # -- keeping up --------------------------------------------------------------------------------------------

    def update(self) -> None:
        """Bring everything up to date with slices, classes, nodes and claims."""
        nodes, devices = self._cluster.nodes, self._devices
        state = (devices.offered, devices.overflows, nodes.structure, nodes.static)
        if state != self._state:
            self._state = state
            self.catalogue = Catalogue(devices.slices.values(), devices.rules.values())
            self._offers, self._taken = [None] * nodes.count, [None] * nodes.count
            self._rows_of, self._rows_of_pool = {}, {}
            self._places, self._answers, self._repeats = {}, {}, {}
            devices.changes.clear()
        elif devices.changes:
            for device in devices.changes:
                for row in (*self._rows_of.get(device, ()), *self._rows_of_pool.get(device[:2], ())):
                    self._taken[row] = None
            devices.changes.clear()

    def offer(self, row: int) -> NodeOffer:
        """Return what a node is offered."""
        found = self._offers[row]
        if found is None:
            record = self._cluster.nodes.records[row]
            found = self._offers[row] = self.catalogue.offer(record.name, record.labels)
            for each in found.devices:
                self._rows_of.setdefault(each.device.id, []).append(row)
            for pool in found.pools:
                if pool.counters:
                    self._rows_of_pool.setdefault(pool.name, []).append(row)
        return found

    def taken(self, row: int, *, released: bool) -> Taken:
        """Return what is taken of a node's devices now, or will be once those that are going are gone."""
        if released:
            return self._count(self.offer(row), released=True)
        found = self._taken[row]
        if found is None:
            found = self._taken[row] = self._count(self.offer(row), released=False)
        return found

    def _count(self, offer: NodeOffer, *, released: bool) -> Taken:
        owned = 0
        shares: list[tuple[int, tuple[tuple[str, int], ...]]] = []
        for place, each in enumerate(offer.devices):
            use = self._devices.uses.get(each.device.id)
            if use is None:
                continue
            if any(not self._is_free(claim, released=released) for claim in use.owners):
                owned |= 1 << place
            held: dict[str, int] = {}
            stays = False
            for (claim, _), consumed in use.shares.items():
                if self._is_free(claim, released=released):
                    continue
                stays = True
                for name, units in consumed.items():
                    value = each.device.capacity[name].value if name in each.device.capacity else 0
                    held[name] = held.get(name, 0) + (value if units == WHOLE else units)
            if stays:
                shares.append((place, tuple(sorted(held.items()))))
        return Taken(owned, tuple(shares), self._counters(offer, released=released))

    def _counters(self, offer: NodeOffer, *, released: bool) -> tuple[tuple[int, str, str, int], ...]:
        found: list[tuple[int, str, str, int]] = []
        for place, pool in enumerate(offer.pools):
            if not pool.counters:
                continue
            left = {(group, name): units for group, named in pool.counters.items() for name, units in named.items()}
            for device in {each.id: each for each in self.catalogue.pool_devices(pool.name)}.values():
                use = self._devices.uses.get(device.id)
                if use is None or not device.counters or not self._counts(use, released=released):
                    continue
                for group, name, units in device.counters:
                    if (group, name) in left:
                        left[group, name] -= units
            found += [(place, group, name, units) for (group, name), units in left.items()]
        return tuple(found)

    def _counts(self, use: Use, *, released: bool) -> bool:
        claims = [*use.owners, *(claim for claim, _ in use.shares)]
        return any(not self._is_free(claim, released=released) for claim in claims)

    def _is_free(self, claim: str, *, released: bool) -> bool:
        """Tell whether everybody who uses a claim is supposed to be gone, or, once what is being released is gone, on the way out."""
        consumers = self._devices.consumers(claim)
        tasks = self._cluster.tasks
        return bool(consumers) and all(
            (task := tasks.get(uid)) is not None and _is_gone(task, released=released) for uid in consumers
        )

    def repeats(self, row: int, claims: tuple[Wanted, ...], most: int) -> int:
        """Return how often in a row a node could give devices to such claims if nobody had any, up to so often."""
        offer = self.offer(row)
        key = (tuple([claim.content for claim in claims]), offer.signature, most)
        found = self._repeats.get(key)
        if found is None:
            found = 0
            if len(self._repeats) >= _REMEMBERED:
                self._repeats.clear()
            while found < most:
                search = Search(offer, _untouched(offer), claims * (found + 1), self, self._most_steps)
                if isinstance(search.run(), Refusal):
                    break
                found += 1
            self._repeats[key] = found
        return found

    # -- answers -----------------------------------------------------------------------------------------------

    def answer(self, row: int, claims: tuple[Wanted, ...], *, released: bool) -> Answer:
        """Say what a node would give to claims; nodes that are offered alike and have the same places taken are searched once."""
        offer = self.offer(row)
        contents = tuple([claim.content for claim in claims])
        key = (contents, offer.signature, self.taken(row, released=released))
        found = self._answers.get(key)
        if found is not None:
            return found
        if self._given_up.get(contents, 0) >= _MOST_GIVEN_UP:
            return Refusal(gave_up=True)
        if len(self._answers) >= _REMEMBERED:
            self._answers.clear()
        found = self._answers[key] = Search(offer, key[2], claims, self, self._most_steps).run()
        if isinstance(found, Refusal) and found.gave_up:
            self._given_up[contents] = self._given_up.get(contents, 0) + 1
        return found

    def places(self, need: Need, offer: NodeOffer) -> Sequence[int]:
        """Return the places of devices that pass all selectors of a request's class and then its own."""
        key = (need.device_class, need.selectors, offer.signature)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = [
                place
                for place in range(len(offer.devices))
                if self._passes(need, offer.devices[place].device.id, offer, place)
            ]
        return found

    def _passes(self, need: Need, name: DeviceId, offer: NodeOffer, place: int) -> bool:
        device = offer.devices[place].device
        known = self._devices.classes.get(need.device_class)
        asked: list[tuple[str, str | None]] = [
            (f"class {need.device_class}: selector #{index}", each.cel.expression if each.cel is not None else None)
            for index, each in enumerate(known.spec.selectors if known is not None else ())
        ]
        asked += [(f"request {need.name}: selector #{index}", each) for index, each in enumerate(need.selectors)]
        for where, expression in asked:
            try:
                if not self._expressions.holds(expression, device):
                    return False
            except language.MissingError:
                raise
            except language.CelError as error:
                raise language.CelError(f"{where}: {error} ({expression!s:.200} of device {'/'.join(name)})") from None
        return True


def _untouched(offer: NodeOffer) -> Taken:
    """Say what is taken where nobody has anything."""
    counters = [
        (place, group, name, units)
        for place, pool in enumerate(offer.pools)
        for group, named in pool.counters.items()
        for name, units in named.items()
    ]
    return Taken(counters=tuple(counters))


def _is_gone(task: Task, *, released: bool) -> bool:
    """Tell whether a pod is on the way out, or is bound and yet on no node: then a plan is tried out in which it is gone."""
    if task.status in statuses.GOING:
        return released
    return task.status is statuses.Status.PENDING and bool(task.pod.spec.node_name)
