"""nodeorder: prefer nodes as Kubernetes does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model import selectors, tolerations
from pumice.plugins.nodeorder import amounts, images
from pumice.plugins.sharing import interpod, scoring, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import core
    from pumice.framework.evaluation import Floats
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Nodes

OTHER_PODS = Reads.NODE | Reads.OTHER_NODES


def _weight(name: str, default: int, what: str) -> settings.Field[int]:
    return settings.whole(f"{name}.weight", default, help=f"weight of {what}; 0 switches it off")


class NodeOrderSettings(Settings):
    """The weights of the scores."""

    least_requested = _weight("leastrequested", 1, "free cpu and memory")
    most_requested = _weight("mostrequested", 0, "used cpu and memory")
    node_affinity = _weight("nodeaffinity", 2, "preferred node affinity")
    balanced_resource = _weight("balancedresource", 1, "evenly used resources")
    taint_toleration = _weight("tainttoleration", 3, "untolerated PreferNoSchedule taints")
    image_locality = _weight("imagelocality", 1, "images that the node has already")
    pod_affinity = _weight("podaffinity", 2, "preferred inter-pod affinity and anti-affinity")
    pod_topology_spread = _weight(
        "podtopologyspread", 2, "soft topology spread, and spreading of a service's or owner's pods by default"
    )


class NodeOrder(Plugin):
    """Score nodes by the rules of Kubernetes, each worth 0 to 100 times its weight.

    Least requested spreads pods, most requested packs them; balanced keeps cpu, memory and GPUs of a node equally used; node affinity
    honours preferences; taint toleration avoids nodes with `PreferNoSchedule` taints; pod affinity brings pods near those they prefer, and topology
    spread evens out the pods of a constraint, or by default those of a service or an owner; image locality prefers nodes that need not fetch
    the pod's images, the more so the larger they are and the more nodes have them.
    """

    name = "nodeorder"
    points = frozenset({"NodeOrder"})
    settings = Configured(NodeOrderSettings)

    def open(self, session: Session) -> None:
        """Register every score whose weight is not 0."""
        told = self.settings
        by_amounts = (
            (told.least_requested, amounts.least),
            (told.most_requested, amounts.most),
            (told.balanced_resource, amounts.balanced),
        )
        for weight, score in by_amounts:
            if weight:
                session.score.add(many=scoring.weighted(score, weight), reads=Reads.COLUMNS)
        if weight := told.image_locality:
            session.score.add(scoring.weighted(images.locality, weight), reads=Reads.NODE)
        if weight := told.node_affinity:
            session.score.add(preference, reads=Reads.NODE, normalise=scoring.normaliser(weight, reverse=False))
        if weight := told.taint_toleration:
            session.score.add(aversion, reads=Reads.NODE, normalise=scoring.normaliser(weight, reverse=True))
        if weight := told.pod_affinity:
            normalise = interpod.normaliser(weight)
            session.score.add(
                interpod.attraction,
                reads=OTHER_PODS,
                normalise=normalise,
                steady=interpod.indifferent,
                follow=interpod.drift(weight),
            )
        if weight := told.pod_topology_spread:
            session.score.add(spread.applies, reads=OTHER_PODS, follow=spread.evenness(weight))


def preference(subject: Subject, nodes: Nodes) -> Floats | None:
    """Add up the weights of the preferred node affinity terms that a node matches."""
    terms = preferred_terms(subject.constraints.affinity)
    if not terms:
        return None
    columns = nodes.table.attributes
    total = np.zeros(columns.count)
    for term in terms:
        if term.weight:
            total += term.weight * selectors.term_mask(term.preference, columns)
    chosen: Floats = total[nodes.index]
    return chosen


def preferred_terms(affinity: core.Affinity | None) -> Sequence[core.PreferredSchedulingTerm]:
    """Return the preferred node affinity terms of a pod."""
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def aversion(subject: Subject, nodes: Nodes) -> Floats | None:
    """Count the `PreferNoSchedule` taints that the pod does not tolerate."""
    sets, codes = nodes.table.attributes.taints
    soft = [[taint for taint in taints if taint.effect == names.TAINT_PREFER_NO_SCHEDULE] for taints in sets]
    if not any(soft):
        return None
    relevant = [t for t in subject.constraints.tolerations if t.effect in ("", names.TAINT_PREFER_NO_SCHEDULE)]
    counts = np.array(
        [sum(not tolerations.tolerates(relevant, taint) for taint in taints) for taints in soft], dtype=np.float64
    )
    chosen: Floats = counts[codes[nodes.index]]
    return chosen
