"""HyperNode objects: what they say becomes the tree of the model, and what is wrong with it is told on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import decoding, kinds, meta, topology
from pumice.model import hypertree, resources

if TYPE_CHECKING:
    from pumice.cache.mirror import Mirror


class HyperNodes:
    """Applies events of HyperNodes, and reports on the tree that they form."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._reviewed = -1
        self._told: dict[str, tuple[meta.ObjectMeta, str]] = {}

    def apply(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        """Apply one event; a HyperNode that makes no sense is left out, with the field named."""
        metadata, known = found.metadata, self._cluster.hyper_nodes
        if gone:
            known.remove(metadata.name)
            self._cache.enable(kinds.HYPER_NODE, metadata, "")
            self._told.pop(metadata.name, None)
            self._cluster.changed += 1
            return
        problem = found.message if isinstance(found, decoding.Malformed) else ""
        if isinstance(found, topology.HyperNode):
            try:
                hypertree.check(found)
            except resources.BadValueError as error:
                problem = str(error)
        if problem:
            known.spoil(metadata.name, problem)
            self._told.pop(metadata.name, None)
            self._cache.disable(kinds.HYPER_NODE, metadata, "", problem)
            self._cluster.changed += 1
        elif isinstance(found, topology.HyperNode) and known.put(found):
            self._cluster.changed += 1
            if metadata.name not in self._told:
                self._cache.enable(kinds.HYPER_NODE, metadata, "")

    def review(self) -> None:
        """Tell on each HyperNode what is wrong with it in the tree as it is now, and take back what no longer is."""
        tree = self._cluster.hyper_nodes.tree
        if tree.version == self._reviewed:
            return
        self._reviewed = tree.version
        for name in [name for name in self._told if name not in tree.problems]:
            metadata, _ = self._told.pop(name)
            self._cache.enable(kinds.HYPER_NODE, metadata, "")
        for name, problem in tree.problems.items():
            found = self._cluster.hyper_nodes.metadata(name)
            if found is not None and self._told.get(name, (found, ""))[1] != problem:
                self._told[name] = (found, problem)
                self._cache.disable(kinds.HYPER_NODE, found, "", problem)
