"""Constraints: everything of a pod spec that a filter or a score may read, apart from amounts."""

from __future__ import annotations

import msgspec

from pumice.api import core  # noqa: TC001  msgspec reads the annotations at run time
from pumice.model.volumes import ClaimUse, Disk  # noqa: TC001  so it does here


class HostPort(msgspec.Struct, frozen=True, order=True):
    """A port that a pod takes on its node."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Tell whether both cannot be on one node."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address == other.address or "0.0.0.0" in (self.address, other.address)  # noqa: S104  compared, not bound


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a pod spec that a filter or a score may read, apart from amounts."""

    node_selector: dict[str, str] = {}
    affinity: core.Affinity | None = None
    tolerations: tuple[core.Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    image_count: int = 0
    spread: tuple[core.TopologySpreadConstraint, ...] = ()
    namespace: str = ""
    labels: dict[str, str] = {}
    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[Disk, ...] = ()
    resource_claims: tuple[str, ...] = ()
    strategy: tuple[str, ...] = ()  # how the pod wants its resources scored: a type, and weights as written
    # Of a guaranteed pod: how its CPUs are to be aligned, then how many whole ones each container asks for.
    numa: tuple[str, ...] = ()
    # What containers ask for of shared cards, and which cards the pod will have or not, as written.
    devices: tuple[str, ...] = ()
    features: tuple[str, ...] = ()  # what the kubelet of its node must be able to do
    revocable: bool = False  # whether the pod may be on nodes that are taken back in given hours

    @property
    def has_volumes(self) -> bool:
        """Tell whether the pod uses volumes that some filter asks about."""
        return bool(self.claims or self.disks)
