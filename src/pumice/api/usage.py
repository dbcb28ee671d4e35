"""What is known of a cluster beside its objects, as objects that are fed, kept, recorded and dumped like any other: how busy nodes were measured to be, into what cards can be cut, what is not served."""

import msgspec

from pumice.api.meta import KubeObject, Wire


class NodeLoad(Wire, frozen=True, kw_only=True):
    """The averages of one node in percent, and when they were measured if that is not when the rest was."""

    cpu: str | int | float = 0
    memory: str | int | float = 0
    time: str = ""


class NodeUsage(KubeObject, frozen=True, kw_only=True):
    """The averages of all nodes at a time, by the names of the nodes; `interval` is how often they are asked for."""

    time: str = ""
    interval: str = "30s"
    nodes: dict[str, NodeLoad] = msgspec.field(default_factory=dict)


class CardGeometries(KubeObject, frozen=True, kw_only=True):
    """The text of the ConfigMap in which the vGPU device plugin says into which MIG instances cards can be cut."""

    text: str = ""


class UnservedKind(KubeObject, frozen=True, kw_only=True):
    """A kind that an API server was asked for and does not serve, named like `podgroups.scheduling.k8s.io`."""
