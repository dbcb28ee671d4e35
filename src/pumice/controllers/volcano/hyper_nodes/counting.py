"""How many nodes a HyperNode has: the distinct nodes that its members select; a HyperNode among them counts as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to
from pumice.model import pattern_parsing, patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled

_NODE: Final = "Node"


class HyperNodeCounts:
    """Reconciles the status of HyperNodes; as with the peer, whenever one of them changes, and not with each change of a node."""

    kind = kinds.HYPER_NODE
    watched = (kinds.NODE,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name nobody: nodes are only looked up."""
        del kind, manifest, observed
        return ()

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Write the number of nodes, if it is another one than before."""
        del moment
        found = observed.find(self.kind, namespace, name)
        if found is None or manifests.is_going(found):
            return requests.Reconciled()
        status = {**manifests.mapping(found, "status"), "nodeCount": count(found, observed)}
        return requests.Reconciled(steps=steps_to.write_status(self.kind, found, status))


def count(hyper_node: Mapping[str, Any], observed: Observed) -> int:
    """Count the distinct nodes that the members of a HyperNode select."""
    names: dict[tuple[str, str], None] = {}
    for member in manifests.items(hyper_node, "spec", "members"):
        kind = str(manifests.mapping(member).get("type"))
        for name in _selected(kind, manifests.mapping(member, "selector"), observed):
            names[kind, name] = None
    return len(names)


def _selected(kind: str, selector: Mapping[str, Any], observed: Observed) -> list[str]:
    """Name what a member selects; an exact name counts even if nothing has it, and HyperNodes are named exactly or not at all."""
    exact = manifests.mapping(selector, "exactMatch").get("name")
    if isinstance(exact, str) and exact:
        return [exact]
    if kind != _NODE:
        return []
    nodes = observed.all(kinds.NODE)
    pattern = manifests.mapping(selector, "regexMatch").get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            is_found = patterns.searcher(pattern)
        except pattern_parsing.PatternError:
            return []
        return [manifests.name(node) for node in nodes if is_found(manifests.name(node))]
    labels = selector.get("labelMatch")
    return [manifests.name(node) for node in nodes if manifests.selects(labels, manifests.labels(node))]
