"""The network topology that jobs, pod groups and parts of them may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.admission import laws
from pumice.api import documents, names

if TYPE_CHECKING:
    from pumice.admission.parts import Part


def judge(owner: Part) -> None:
    """Judge the field `networkTopology` of a part."""
    topology = owner.record("networkTopology")
    topology.among("mode", (names.TOPOLOGY_HARD, names.TOPOLOGY_SOFT))
    tier = topology.whole("highestTierAllowed", least=0)
    called = topology.text("highestTierName")
    if tier is not None and called:
        topology.breaks(
            laws.TOPOLOGY,
            f"is {documents.quoted(called)}, and highestTierAllowed is {tier}: only one of the two may be given",
            "highestTierName",
        )
