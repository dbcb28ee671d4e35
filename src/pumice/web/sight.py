"""What somebody may see: kinds of the whole cluster, and namespaces of it."""

from __future__ import annotations

from typing import Final

import msgspec

from pumice.model import native_groups

Namespaces = frozenset[str] | None
"""None stands for all of them."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What may be listed: nodes, queues and the policy or not, and of groups, groups of Kubernetes' own and pods in which namespaces."""

    nodes: bool = False
    queues: bool = False
    policy: bool = False
    groups: Namespaces = frozenset()
    native_groups: Namespaces = frozenset()
    pods: Namespaces = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be hidden."""
        return self == EVERYTHING

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to be seen at all."""
        return self == NOTHING

    def job(self, namespace: str, name: str) -> bool:
        """Tell whether a job may be seen."""
        return _in(self.native_groups if native_groups.is_native(name) else self.groups, namespace)

    def pod(self, namespace: str) -> bool:
        """Tell whether the pods of a namespace may be seen."""
        return _in(self.pods, namespace)

    def names(self, namespace: str) -> bool:
        """Tell whether names of a namespace may be read."""
        return any(_in(each, namespace) for each in (self.groups, self.native_groups, self.pods))

    def about(self, what: str, name: str) -> bool:
        """Tell whether something that `explain` is asked about may be seen."""
        namespace, slash, rest = name.partition("/")
        match what:
            case "queue":
                return self.queues
            case "node":
                return self.nodes
            case "pod":
                return bool(slash) and self.pod(namespace)
        return bool(slash) and self.job(namespace, rest) and self.pod(namespace)  # an explanation names its pods


def _in(namespaces: Namespaces, namespace: str) -> bool:
    return namespaces is None or namespace in namespaces


EVERYTHING: Final = Sight(nodes=True, queues=True, policy=True, groups=None, native_groups=None, pods=None)
NOTHING: Final = Sight()
