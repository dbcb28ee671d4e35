"""What a pod asks for by claims, and what must be true of these before nodes are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import affinity, resource
from pumice.model.devices import decisions, extended, wanted
from pumice.model.devices.mapped import NOTHING
from pumice.model.devices.wanted import ClaimUse, Wanted  # noqa: TC001  msgspec reads the annotations at run time
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.model.cluster import Cluster
    from pumice.model.task import Task

MOST_CONSUMERS: Final = 256
_SPARE: Final = 1000  # claims that are gone, and yet remembered


class Asked(msgspec.Struct, frozen=True):
    """What a pod asks for by claims: what is to be found, and where what others found for it can be used."""

    uses: tuple[ClaimUse, ...] = ()
    open: tuple[str, ...] = ()  # keys of the claims that have nothing yet
    wanted: tuple[Wanted, ...] = ()  # what these ask for
    selectors: tuple[affinity.NodeSelector, ...] = ()
    problem: str = ""
    shared: bool = False  # whether a claim without devices may be somebody else's, too

    @property
    def key(self) -> Hashable:
        """What nodes can tell pods with claims apart by."""
        return tuple([each.content for each in self.wanted]), self.selectors, self.problem


class Asking:
    """What pods ask for, as long as the configuration lasts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._devices = cluster.devices
        self._read: dict[str, tuple[resource.ResourceClaim, Wanted]] = {}
        self._offered = -1
        self.errors: dict[
            tuple[bytes, ...], str
        ] = {}  # by what claims ask for, what the search for it found to be wrong

    def begin(self) -> None:
        """Begin a cycle: what was wrong is asked again where slices or classes are others."""
        if self._offered != self._devices.offered:
            self._offered, self.errors = self._devices.offered, {}
        if len(self._read) > 2 * len(self._devices.claims) + _SPARE:
            self._read.clear()

    def asked(self, task: Task, natives: frozenset[str] = NOTHING) -> Asked | None:
        """Collect what a pod asks for of nodes that offer some resources themselves; None if it has no claims."""
        if not task.shape.constraint_class.has_device_claims:
            return None
        uses = self._devices.uses_of(task.pod, natives)
        keys: list[str] = []
        needs: list[Wanted] = []
        chosen: list[affinity.NodeSelector] = []
        shared = False
        for use in uses:
            problem = self._unusable(use, task, natives)
            if problem:
                return Asked(problem=problem)
            allocation = self._devices.allocation(use.key)
            if allocation is None or self._was_given(task, use):
                need = self._need(use)
                problem = need.problem or self._classless(need) or self._error((need,))
                if problem:
                    return Asked(problem=f"claim {use.key}: {problem}")
                keys.append(use.key)
                needs.append(need)
                shared = shared or not use.owner
            elif allocation.node_selector is not None:
                chosen.append(allocation.node_selector)
        found = Asked(uses, tuple(keys), tuple(needs), tuple(chosen), shared=shared)
        problem = self._error(found.wanted)
        return Asked(problem=problem) if problem else found

    def _was_given(self, task: Task, use: ClaimUse) -> bool:
        """Tell whether a claim of a pod has devices because the pod was placed: whoever asks nodes about that one still means its equals, which have none yet."""
        claim = self._devices.claims.get(use.key)
        stands = claim is not None and claim.status.allocation is not None
        return task.status is not Status.PENDING and bool(use.owner) and not stands

    def _need(self, use: ClaimUse) -> Wanted:
        key, claim = use.key, self._devices.claims.get(use.key)
        if claim is None:
            return wanted.read(use.special.spec if use.special is not None else resource.ResourceClaimSpec())
        known = self._read.get(key)
        if known is None or known[0] is not claim:
            known = self._read[key] = (claim, wanted.read(claim.spec))
        return known[1]

    def _unusable(self, use: ClaimUse, task: Task, natives: frozenset[str]) -> str:
        """Say why a claim cannot be used by a pod, whatever it asks for."""
        if not use.key:
            return f"pod claim {use.name}: ResourceClaim not created yet"
        name = use.key.partition("/")[2]
        claim = self._devices.claims.get(use.key)
        if claim is None:
            return "" if use.special is not None else f'resourceclaim "{name}" not found'
        if use.key in self._devices.unreadable:
            return self._devices.unreadable[use.key]
        if claim.metadata.deletion_timestamp:
            return f'resourceclaim "{name}" is being deleted'
        if problem := self._misfit(use, claim, task, natives):
            return problem
        if len(claim.status.reserved_for) >= MOST_CONSUMERS and not decisions.is_reserved(claim, task.uid):
            return f'resourceclaim "{name}" is used by {len(claim.status.reserved_for)} pods; no more may'
        if use.key in self._devices.in_flight and claim.status.allocation is None:
            tasks = self._cluster.tasks
            jobs = {tasks[uid].job_key for uid in self._devices.relying(use.key) if uid in tasks}
            if jobs != {task.job_key} and task.uid not in self._devices.relying(use.key):
                return f"resource claim {use.key} is in the process of being allocated"
        return ""

    def _misfit(self, use: ClaimUse, claim: resource.ResourceClaim, task: Task, natives: frozenset[str]) -> str:
        """Say why a claim is not the one that is meant."""
        name = claim.metadata.name
        if use.owner and not any(each.controller and each.uid == use.owner for each in claim.metadata.owner_references):
            return f'resourceclaim "{name}" was not created for pod {task.key}: the pod is not its owner'
        if use.special is not None and not extended.is_for(claim.spec, use.special):
            if not natives:
                self._devices.to_delete[use.key] = task.uid
            return f'resourceclaim "{name}" was made for the pod and asks for something else; it is deleted first'
        return ""

    def _classless(self, need: Wanted) -> str:
        for request in need.requests:
            for option in request.options:
                if option.device_class not in self._devices.classes:
                    return f"request {option.name}: device class {option.device_class} does not exist"
        return ""

    def _error(self, needs: tuple[Wanted, ...]) -> str:
        return self.errors.get(tuple([each.content for each in needs]), "") if self.errors else ""
