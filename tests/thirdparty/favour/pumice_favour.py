"""A plugin in a package of its own: one class, found by its entry point."""

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads


class FavourSettings(Settings):
    label = settings.text("favour.label", "pool", help="the label of favoured nodes")
    points = settings.whole("favour.points", 1000, help="how much they are favoured")


class Favour(Plugin):
    """Prefer nodes that carry the label `favour.label`, whatever its value, by `favour.points` points."""

    name = "favour"
    points = frozenset({"NodeOrder"})
    reads = Reads.NODE  # what the Node objects say, so answers are kept until one of them changes
    settings = Configured(FavourSettings)

    def open(self, session):
        session.score.add(self.score)

    def score(self, subject, nodes):
        marked = nodes.table.attributes.mask(self.settings.label, lambda value: value is not None)
        return marked[nodes.index] * float(self.settings.points)
