"""fence: keep nodes with GPUs for pods that ask for GPUs. A filter."""

import numpy as np

from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.session import Session
from pumice.framework.subject import Subject
from pumice.model.nodes import Nodes

GPU = "nvidia.com/gpu"


class Fence(Plugin):
    """Keep nodes with GPUs for pods that ask for GPUs."""

    name = "fence"
    points = frozenset({"Predicate"})
    reads = Reads.COLUMNS  # of a node nothing but its amounts

    def open(self, session: Session) -> None:
        """Register the filter; no eviction would help against its refusal, so it is unresolvable."""
        self.fenced = session.reason(self.name, Code.UNRESOLVABLE, "node(s) are kept for pods with GPUs")
        session.predicate.add(self.fits)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that offer GPUs; None means that there is nothing to say about this pod."""
        column = nodes.table.vocabulary.columns.get(GPU)
        if column is None or subject.request.amounts.get(GPU):
            return None
        return np.where(nodes.allocatable[:, column] > 0, self.fenced, 0).astype(np.int16)
