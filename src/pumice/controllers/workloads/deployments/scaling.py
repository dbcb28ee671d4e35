"""How many replicas each set of a Deployment has next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
HASH: Final = "pod-template-hash"


class Sets:
    """A Deployment with its ReplicaSets: the new one, if it is there, and the old ones, oldest first."""

    def __init__(self, deployment: Manifest, owned: Sequence[Manifest]) -> None:
        self.deployment = deployment
        self.spec = manifests.mapping(deployment, "spec")
        template = self.spec.get("template")
        ordered = sorted(owned, key=lambda each: (manifests.created(each), manifests.name(each)))
        # Of several with the same template, which only a race can make, the oldest is the new one.
        self.new = next((each for each in ordered if same_template(each, template)), None)
        self.old = [each for each in ordered if each is not self.new]
        self.all = ordered
        self.replicas = manifests.number(self.spec, "replicas", 1)
        self.surge, self.unavailable = self._bounds()

    def _bounds(self) -> tuple[int, int]:
        strategy = manifests.mapping(self.spec, "strategy")
        if strategy.get("type") == "Recreate":
            return 0, 0
        rolling = manifests.mapping(strategy, "rollingUpdate")
        surge = manifests.scaled(rolling.get("maxSurge", "25%"), self.replicas, up=True)
        unavailable = manifests.scaled(rolling.get("maxUnavailable", "25%"), self.replicas, up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return surge, min(unavailable, self.replicas)

    @property
    def most(self) -> int:
        """How many pods there may be during a roll-out."""
        return self.replicas + self.surge

    def total(self) -> int:
        """Count what all sets want."""
        return sum(wanted(each) for each in self.all)

    def is_scaling_event(self) -> bool:
        """Tell whether the number of replicas was changed since a set was last scaled."""
        for each in self.all:
            text = manifests.mapping(each, "metadata", "annotations").get(DESIRED)
            if wanted(each) > 0 and manifests.written_number(text, self.replicas) != self.replicas:
                return True
        return False

    # ---- scaling without a roll-out

    def proportional(self) -> list[Step]:
        """Spread a change of the number of replicas over the sets that have some, by their sizes."""
        active = [each for each in self.all if wanted(each) > 0]
        only = active[0] if len(active) == 1 else self.new if not active else None
        if len(active) <= 1:
            return self.scale(only, self.replicas) if only is not None else []
        if self.new is not None and is_saturated(self.new, self.replicas):
            return [step for each in self.old for step in self.scale(each, 0)]
        if manifests.mapping(self.spec, "strategy").get("type") == "Recreate":
            return []
        allowed = self.most if self.replicas > 0 else 0
        return self._spread(active, allowed)

    def _spread(self, active: list[Manifest], allowed: int) -> list[Step]:
        change = allowed - self.total()
        up = change > 0
        ordered = sorted(
            active, key=lambda each: (-wanted(each), -manifests.created(each) if up else manifests.created(each))
        )
        left, sizes = change, {}
        for each in ordered:
            share = self._share(each, allowed) if change else 0
            share = min(share, left) if up else max(share, left)
            sizes[manifests.name(each)] = wanted(each) + share
            left -= share
        steps: list[Step] = []
        for place, each in enumerate(ordered):
            size = sizes[manifests.name(each)] + (left if place == 0 else 0)
            steps += self.scale(each, max(0, size))
        return steps

    def _share(self, each: Manifest, allowed: int) -> int:
        """Give how much a set of its size grows or shrinks when all may have so many in place of what they might have before; halves are rounded up."""
        text = manifests.mapping(each, "metadata", "annotations").get(MOST)
        before = manifests.written_number(text) or self.total()
        return (2 * wanted(each) * allowed + before) // (2 * before) - wanted(each)

    # ---- rolling

    def rolling(self) -> list[Step]:
        """Grow the new set as far as the surge allows; if it cannot, shrink old ones as far as enough pods stay available."""
        if self.new is None:
            return []
        return self._new_grown(self.new) or self._old_shrunk(self.new)

    def new_to_full(self) -> list[Step]:
        """Give the new set all replicas."""
        return self.scale(self.new, self.replicas) if self.new is not None else []

    def all_old_down(self) -> list[Step]:
        """Give the old sets none."""
        return [step for each in self.old for step in self.scale(each, 0)]

    def first_size(self) -> int:
        """Give the size with which a new set begins."""
        if manifests.mapping(self.spec, "strategy").get("type") == "Recreate":
            return self.replicas
        return max(0, min(self.most - self.total(), self.replicas))

    def _new_grown(self, new: Manifest) -> list[Step]:
        if wanted(new) > self.replicas:
            return self.scale(new, self.replicas)
        room = min(self.most - self.total(), self.replicas - wanted(new))
        return self.scale(new, wanted(new) + room) if room > 0 else []

    def _old_shrunk(self, new: Manifest) -> list[Step]:
        """Take away old pods that are not available first, then available ones beyond the fewest there must be."""
        least = self.replicas - self.unavailable
        room = self.total() - least - max(0, wanted(new) - available(new))
        if room <= 0 or not any(wanted(each) for each in self.old):
            return []
        sizes = {manifests.name(each): wanted(each) for each in self.old}
        for each in self.old:
            sick = min(max(0, wanted(each) - available(each)), room)
            sizes[manifests.name(each)] -= sick
            room -= sick
        # What is left of it are available pods beyond the fewest.
        for each in self.old:
            healthy = min(sizes[manifests.name(each)], room)
            sizes[manifests.name(each)] -= healthy
            room -= healthy
        return [step for each in self.old for step in self.scale(each, sizes[manifests.name(each)])]

    # ----

    def scale(self, each: Manifest, size: int) -> list[Step]:
        """Write a set's size, with what it was computed from."""
        notes = {DESIRED: str(self.replicas), MOST: str(self.most)}
        present = manifests.mapping(each, "metadata", "annotations")
        stale = {key: value for key, value in notes.items() if present.get(key) != value}
        if size == wanted(each) and (not stale or not size):
            return []
        body: Manifest = {"metadata": {"annotations": notes}} if stale else {}
        if size == wanted(each):
            return [steps_to.patch(kinds.REPLICA_SET, each, body)]
        body["spec"] = {"replicas": size}
        # Against the version that was read: a size that somebody has changed since was not reckoned with.
        step = steps_to.patch(kinds.REPLICA_SET, each, body, exact=True)
        direction = "up" if size > wanted(each) else "down"
        message = f"Scaled {direction} replica set {manifests.name(each)} from {wanted(each)} to {size}"
        return [requests.Step(request=step.request, said=("ScalingReplicaSet", message))]


def wanted(replica_set: Manifest) -> int:
    """Give how many pods a set is to have."""
    return manifests.number(manifests.mapping(replica_set, "spec"), "replicas", 1)


def available(replica_set: Manifest) -> int:
    """Give how many of its pods are available."""
    return manifests.number(manifests.mapping(replica_set, "status"), "availableReplicas")


def is_saturated(replica_set: Manifest, replicas: int) -> bool:
    """Tell whether a set has all replicas of a Deployment, and all are available."""
    text = manifests.mapping(replica_set, "metadata", "annotations").get(DESIRED)
    return wanted(replica_set) == replicas and text == str(replicas) and available(replica_set) == replicas


def same_template(replica_set: Manifest, template: Any) -> bool:
    """Tell whether a set is of a template; the label that its hash adds does not count."""
    own = manifests.mapping(replica_set, "spec", "template")
    return bool(_plain(own) == _plain(template))


def _plain(template: Any) -> Any:
    stated = manifests.mapping(template, "metadata")
    metadata = {key: value for key, value in stated.items() if value not in (None, {}, [])}
    labels = {key: value for key, value in manifests.mapping(stated, "labels").items() if key != HASH}
    metadata = {**metadata, "labels": labels} if labels else {k: v for k, v in metadata.items() if k != "labels"}
    return metadata, manifests.mapping(template, "spec")
