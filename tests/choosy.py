"""A plugin that tells pods apart which are equal in everything else."""

from __future__ import annotations

import numpy as np

from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code


def is_labelled(task):
    return bool(task.pod.metadata.labels)


class Choosy(Plugin):
    """Keeps pods away that have a label."""

    name = "choosy"
    points = frozenset({"Predicate"})

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNRESOLVABLE, "kept away")
        session.predicate.add(self.fits, reads=Reads.TASK)

    def fits(self, subject, nodes):
        return np.full(len(nodes), self.reason * is_labelled(subject.task), dtype=np.int16)
