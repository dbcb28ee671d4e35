"""headroom: keep part of every node's cpu free."""

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.session import Session
from pumice.framework.subject import Subject
from pumice.model.nodes import Nodes
from pumice.model.resources import CPU


class HeadroomSettings(Settings):
    """What a configuration may say."""

    percent = settings.whole("headroom.percent", 20, minimum=0, maximum=100, help="cpu to keep")


class Headroom(Plugin):
    """Keep part of every node's cpu free."""

    name = "headroom"
    points = frozenset({"Predicate"})
    reads = NODE_LOCAL  # answers depend on the node's own amounts only, so they are kept until these change
    settings = Configured(HeadroomSettings)

    def open(self, session: Session) -> None:
        """Register the filter."""
        self.full = session.reason(self.name, Code.UNSCHEDULABLE, "node(s) would keep too little cpu free")
        session.predicate.add(self.fits)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector:
        """Answer for all nodes of the view at once: 0 fits, otherwise the number of the reason."""
        after = nodes.used[:, CPU] + subject.request.vector[CPU]
        limit = nodes.allocatable[:, CPU] * (100 - self.settings.percent) // 100
        return np.where(after > limit, self.full, 0).astype(np.int16)
