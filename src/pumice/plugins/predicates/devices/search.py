"""The search for devices of one node: depth first, in the order of claims, requests and devices; the first complete solution wins.

Everything is told by places: of claims, of requests, of devices among those of the node. So nodes that are offered alike, and have the same places taken, get
one answer. The search ends after a number of steps, never by a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pumice.api import core
from pumice.cel import language
from pumice.model import tolerations
from pumice.model.devices import wanted
from pumice.model.devices.wanted import EXACT_COUNT, MOST_DEVICES, Need
from pumice.plugins.predicates.devices import capacity
from pumice.plugins.predicates.devices.attributes import Constraining

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.devices.wanted import Wanted
    from pumice.plugins.predicates.devices.pools import NodeOffer

MOST_IN_ALL = 256
BLOCKING = ("NoSchedule", "NoExecute")


class Taken(msgspec.Struct, frozen=True):
    """What is taken of a node's devices: places of those that somebody has for himself, what others have of those that are shared, and what is left of counters."""

    owned: int = 0  # a bit for each place
    shares: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ()  # place, capacity, amount
    counters: tuple[tuple[int, str, str, int], ...] = ()  # pool, set, counter, what is left


class Pick(msgspec.Struct, frozen=True):
    """A device that a claim gets: its place, for what, and what is taken of a shared one."""

    place: int
    need: Need
    consumed: dict[str, int]


class Solution(msgspec.Struct, frozen=True):
    """Devices for each claim, in the order of the claims, and the sum of what firstAvailable requests score."""

    picks: tuple[tuple[Pick, ...], ...]
    score: int = 0


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no solution: `error` if the claims, not the devices, are the matter; else how the devices of the first request that failed stand."""

    request: str = ""
    claim: int = 0
    matching: int = 0
    in_use: int = 0
    tainted: int = 0
    own: int = 0  # of those in use, what other requests of the pod itself had
    error: str = ""
    gave_up: bool = False

    @property
    def stand(self) -> str:
        """Say how these devices stand."""
        own = f" ({self.own} for other requests of the pod)" if self.own else ""
        return f"{self.matching} match, {self.in_use} in use{own}, {self.tainted} tainted"


class Matching(Protocol):
    """Who knows what selectors say."""

    def places(self, need: Need, offer: NodeOffer) -> Sequence[int]:
        """Return the places of devices that pass all selectors of a request; raises a `CelError`."""


class _SearchError(Exception):
    """An error that ends a search."""


class _GaveUpError(Exception):
    """The search has taken all its steps."""


class Search:
    """One search."""

    def __init__(
        self, offer: NodeOffer, taken: Taken, claims: Sequence[Wanted], matching: Matching, most_steps: int
    ) -> None:
        self._offer = offer
        self._claims = claims
        self._matching = matching
        self._left = most_steps
        self._owned = taken.owned
        self._shares: dict[int, dict[str, int]] = {}
        for place, amounts in taken.shares:
            self._shares[place] = dict(amounts)
        self._counters = {(pool, group, name): left for pool, group, name, left in taken.counters}
        self._in_use_counting = {place for place, _ in taken.shares}
        self._mine: list[dict[int, int]] = [{} for _ in claims]  # how often each claim has picked a place
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._chosen: dict[tuple[int, int], int] = {}
        self._constraining = [Constraining(each.constraints) for each in claims]
        self._known: dict[int, list[tuple[int, dict[str, int]]]] = {}
        self._refusal: Refusal | None = None
        self._deepest = (-1, -1)

    def run(self) -> Solution | Refusal:
        """Search."""
        error = too_many(self._claims) or _unknown(self._claims)
        if error:
            return Refusal(error=error)
        try:
            if self._is_possible() and self._request(0, 0):
                score = sum(8 - option for option in self._chosen.values())
                return Solution(tuple(tuple(each) for each in self._picks), score)
        except (_SearchError, language.CelError) as found:
            return Refusal(error=str(found))
        except _GaveUpError:
            return Refusal(gave_up=True)
        return self._refusal or Refusal()

    def _is_possible(self) -> bool:
        """Tell whether each request by itself has an option with enough devices; none has more once others have picked, so no search would find them."""
        for claim, about in enumerate(self._claims):
            for request, each in enumerate(about.requests):
                if not any(self._has_enough(claim, need) for need in each.options):
                    self._note(claim, request, each.options[-1], self._candidates(each.options[-1]))
                    return False
        return True

    def _has_enough(self, claim: int, need: Need) -> bool:
        candidates = self._candidates(need)
        if need.mode != EXACT_COUNT:
            return True  # also where pools are incomplete, which is an error to whoever asks for all
        usable = sum(1 for place, consumed in candidates if self._is_usable(claim, need, place, consumed))
        return usable >= need.count

    def _request(self, claim: int, request: int) -> bool:
        """Satisfy a request and everything after it."""
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if request == len(requests):
            return self._request(claim + 1, 0)
        for option, need in enumerate(requests[request].options):
            if requests[request].is_list:
                self._chosen[claim, request] = option
            if self._option(claim, request, need):
                return True
        self._chosen.pop((claim, request), None)
        return False

    def _option(self, claim: int, request: int, need: Need) -> bool:
        candidates = self._candidates(need)
        if need.mode == EXACT_COUNT:
            if self._some(claim, request, need, need.count, 0):
                return True
        elif self._all(claim, request, need):
            return True
        self._note(claim, request, need, candidates)
        return False

    def _some(self, claim: int, request: int, need: Need, left: int, start: int) -> bool:
        """Pick so many more devices, ascending."""
        if left == 0:
            return self._request(claim, request + 1)
        candidates = self._candidates(need)
        if len(self._picks[claim]) + left > MOST_DEVICES:
            return False
        for position in range(start, len(candidates) - left + 1):
            self._step()
            place, consumed = candidates[position]
            if not self._is_usable(claim, need, place, consumed) or not self._constraining[claim].add(
                need.name, self._offer.devices[place].device
            ):
                continue
            self._take(claim, need, place, consumed, 1)
            if self._some(claim, request, need, left - 1, position + 1):
                return True
            self._take(claim, need, place, consumed, -1)
            self._constraining[claim].remove(need.name)
        return False

    def _all(self, claim: int, request: int, need: Need) -> bool:
        """Pick every device that the request is about."""
        for pool in self._offer.pools:
            if pool.problem:
                raise _SearchError(f"request {need.name}: asks for all devices, but {pool.problem}")
        candidates = self._candidates(need)
        if not candidates or len(self._picks[claim]) + len(candidates) > MOST_DEVICES:
            return False
        done: list[tuple[int, dict[str, int]]] = []
        for place, consumed in candidates:
            self._step()
            if not self._is_usable(claim, need, place, consumed):
                break
            if not self._constraining[claim].add(need.name, self._offer.devices[place].device):
                raise _SearchError(
                    f"request {need.name}: asks for all devices, which a constraint of the claim excludes"
                )
            self._take(claim, need, place, consumed, 1)
            done.append((place, consumed))
        else:
            if self._request(claim, request + 1):
                return True
        for place, consumed in reversed(done):
            self._take(claim, need, place, consumed, -1)
            self._constraining[claim].remove(need.name)
        return False

    # -- one device --------------------------------------------------------------------------------------------

    def _candidates(self, need: Need) -> list[tuple[int, dict[str, int]]]:
        """List the devices that pass selectors and have the capacity, with what is taken of each."""
        found = self._known.get(id(need))
        if found is None:
            found = self._known[id(need)] = [
                (place, consumed)
                for place in self._matching.places(need, self._offer)
                if (consumed := capacity.consumed(self._offer.devices[place].device, need.capacity)) is not None
            ]
        return found

    def _is_usable(self, claim: int, need: Need, place: int, consumed: dict[str, int]) -> bool:
        """Judge a device for a request, constraints aside."""
        if self._is_in_use(claim, need, place):
            return False
        offered = self._offer.devices[place]
        device = offered.device
        if device.shared and not need.admin:
            held = self._shares.get(place, {})
            if any(held.get(name, 0) + units > device.capacity[name].value for name, units in consumed.items()):
                return False
        if device.counters and not (device.shared and place in self._shares) and not self._counts(place):
            return False
        return not self._is_tainted(need, place)

    def _is_in_use(self, claim: int, need: Need, place: int) -> bool:
        if need.admin:
            return place in self._mine[claim]
        return bool(self._owned >> place & 1)

    def _is_tainted(self, need: Need, place: int) -> bool:
        return any(
            effect in BLOCKING
            and not tolerations.tolerates(need.tolerations, core.Taint(key=key, value=value, effect=effect))
            for key, value, effect in self._offer.devices[place].taints
        )

    def _counts(self, place: int) -> bool:
        """Tell whether the counters of a pool allow a device; one that is below nothing allows none."""
        offered = self._offer.devices[place]
        needed = {(offered.pool, group, name): units for group, name, units in offered.device.counters}
        return all(left - needed.get(key, 0) >= 0 for key, left in self._counters.items() if key[0] == offered.pool)

    def _take(self, claim: int, need: Need, place: int, consumed: dict[str, int], sign: int) -> None:
        """Pick a device, or give it back."""
        offered = self._offer.devices[place]
        device = offered.device
        mine = self._mine[claim]
        if sign > 0:
            self._picks[claim].append(Pick(place, need, consumed))
            mine[place] = mine.get(place, 0) + 1
        else:
            self._picks[claim].pop()
            mine[place] -= 1
            if not mine[place]:
                del mine[place]
        if need.admin:
            return
        if device.shared:
            first = self._share(place, consumed, sign)
        else:
            self._owned ^= 1 << place
            first = True
        if first:
            for group, name, units in device.counters:
                self._counters[offered.pool, group, name] -= sign * units

    def _share(self, place: int, consumed: dict[str, int], sign: int) -> bool:
        """Count a share of a device; tells whether it is the first, or was the last."""
        held = self._shares.get(place)
        users = f"\0{place}"
        if sign > 0:
            first = held is None
            held = self._shares.setdefault(place, {})
            held[users] = held.get(users, 0) + 1
        for name, units in consumed.items():
            self._shares[place][name] = self._shares[place].get(name, 0) + sign * units
        if sign < 0:
            self._shares[place][users] -= 1
            first = not self._shares[place][users] and place not in self._in_use_counting
            if first:
                del self._shares[place]
        return first

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _GaveUpError

    def _note(self, claim: int, request: int, need: Need, candidates: list[tuple[int, dict[str, int]]]) -> None:
        """Remember of the request that the search got furthest with how its devices stood."""
        if (claim, request) > self._deepest:
            self._deepest = (claim, request)
            used = [place for place, _ in candidates if self._is_in_use(claim, need, place)]
            tainted = [place for place, _ in candidates if place not in used and self._is_tainted(need, place)]
            picked = {pick.place for picks in self._picks for pick in picks}
            self._refusal = Refusal(
                need.name, claim, len(candidates), len(used), len(tainted), len(picked.intersection(used))
            )


def too_many(claims: Sequence[Wanted]) -> str:
    """Say which claim asks for more devices than it may have; empty if none does."""
    in_all = 0
    for claim in claims:
        least = sum(min(need.least for need in request.options) for request in claim.requests)
        if least > wanted.MOST_DEVICES:
            return f"number of requested devices {least} exceeds the claim limit of {wanted.MOST_DEVICES}"
        in_all += least
    return f"{in_all} devices are requested; a pod gets at most {MOST_IN_ALL}" if in_all > MOST_IN_ALL else ""


def _unknown(claims: Sequence[Wanted]) -> str:
    """Say what of the claims is of a form that is not known."""
    for claim in claims:
        for request in claim.requests:
            for need in request.options:
                if need.mode not in wanted.MODES:
                    return f"request {need.name}: the allocation mode {need.mode} is not known"
        if any(not constraint.attribute for constraint in claim.constraints):
            return "it has a constraint of a form that is not known"
    return ""
