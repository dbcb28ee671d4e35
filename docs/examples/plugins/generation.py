"""generation: prefer newer machines. A score."""

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.evaluation import Floats
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.session import Session
from pumice.framework.subject import Subject
from pumice.model.nodes import Nodes

LABEL = "example.com/generation"


class GenerationSettings(Settings):
    """What a configuration may say."""

    weight = settings.whole("generation.weight", 1, minimum=0, help="how much a generation counts")


class Generation(Plugin):
    """Prefer nodes with a higher number in the label `example.com/generation`."""

    name = "generation"
    points = frozenset({"NodeOrder"})
    reads = Reads.NODE  # what Node objects say, so no placement changes an answer
    settings = Configured(GenerationSettings)

    def open(self, session: Session) -> None:
        """Register the score, which is brought to 0 to 100 over the nodes that a pod may choose from."""
        session.score.add(self.raw, normalise=self.scaled)

    def raw(self, subject: Subject, nodes: Nodes) -> Floats:
        """Give each node its number: the label is read once per value, not once per node."""
        codes, values = nodes.table.attributes.codes(LABEL)
        numbers = np.array([*(float(value) if value.isdecimal() else 0.0 for value in values), 0.0])
        return numbers[codes[nodes.index]]  # the code of a node without the label is -1, the last number

    def scaled(self, raw: Floats) -> Floats:
        """Let the newest candidate have 100 times the weight."""
        return raw / max(1.0, float(raw.max(initial=0.0))) * 100 * self.settings.weight
