"""Two protections of scarce devices: ordinary pods go elsewhere if they can, and leave cpu and memory for idle devices."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.framework.configuration import Settings, settings
from pumice.framework.reasons import Code
from pumice.model import resources
from pumice.model.resources import CPU, MEMORY
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.api import documents
    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Nodes
    from pumice.model.resources import Vector

MILLI = 1000
GIGABYTE = 10**9
LARGEST = 2**62

_ENABLE = "whether this is done"
_RESOURCES = "the scarce resources"


def _rate(name: str, what: str) -> settings.Field[Mapping[str, Fraction]]:
    return settings.each(
        settings.number(name, Fraction(1), minimum=0, replacement=Fraction(1), help=f"{what} for an idle one")
    )


class WeightSettings(Settings):
    """How scarce each resource is."""

    weights = settings.each(settings.whole("*", 1, minimum=0, replacement=1, help="1 if it is not listed"))


class RetainedSettings(Settings):
    """Which nodes are kept for those who ask for what they have."""

    enable = settings.truth("enable", default=False, help=_ENABLE)
    resources = settings.words("resources", help=_RESOURCES)
    weight = settings.whole("weight", 1, minimum=0, replacement=0, help="weight of this score")
    scarcity = settings.section("resourceWeight", WeightSettings, help="how scarce each of them is")


class RateSettings(Settings):
    """What an idle device needs."""

    cores = _rate("*.cpu", "cores")
    gigabytes = _rate("*.memory", "gigabytes")


class ProportionalSettings(Settings):
    """For which devices cpu and memory are kept."""

    enable = settings.truth("enable", default=False, help=_ENABLE)
    resources = settings.words("resources", help=_RESOURCES)
    rates = settings.section("resourceProportion", RateSettings, help="what each of them needs")


def objections(arguments: Mapping[str, Any]) -> Iterator[tuple[documents.Path, str]]:
    """Find resources that are mentioned and not listed, and protections of nothing."""
    sra, proportional = arguments["sra"], arguments["proportional"]
    for section, told in (("sra", sra), ("proportional", proportional)):
        if told["enable"] and not told["resources"]:
            yield (section, "enable"), f"is enabled, but {section}.resources names no resource"
    for name in sra["resourceWeight"]:
        if name not in sra["resources"]:
            yield ("sra", "resourceWeight", name), f"sra.resources does not list {name}"
    for key in proportional["resourceProportion"]:
        name = key.rpartition(".")[0]
        if name not in proportional["resources"]:
            yield ("proportional", "resourceProportion", key), f"proportional.resources does not list {name}"
    for name in proportional["resources"]:
        if name in ("cpu", "memory"):
            yield ("proportional", "resources"), f"{name} is what is kept for others; name the devices it is kept for"


class Retained:
    """The score that keeps nodes with scarce resources for those who ask for them."""

    def __init__(self, told: RetainedSettings) -> None:
        weights = {name: told.scarcity.weights.get(name, 1) for name in told.resources}
        self._weights = weights
        self._total = sum(weights.values())
        self.weight = told.weight if told.enable and self._total else 0

    def score(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score how few of the scarce resources a node has; one that lacks something the pod asks for scores 0."""
        request = subject.request
        if request.unoffered:
            return None
        columns = nodes.table.vocabulary.columns
        known = [(columns[name], weight) for name, weight in self._weights.items() if name in columns]
        has = nodes.allocatable[:, [column for column, _ in known]] > 0
        scarce = has @ np.array([weight for _, weight in known], dtype=np.float64)
        asked = [columns[name] for name, units in request.amounts.items() if units and name != "pods"]
        lacks = (nodes.allocatable[:, asked] == 0).any(axis=1)
        score: Floats = np.where(lacks, 0.0, MAX_SCORE * self.weight * (1 - scarce / self._total))
        return score


class Proportional:
    """The filter that leaves cpu and memory for devices that are idle."""

    def __init__(self, told: ProportionalSettings) -> None:
        self.enabled = told.enable
        cores, gigabytes = told.rates.cores, told.rates.gigabytes
        self._rates: dict[str, tuple[Fraction, Fraction]] = {
            name: (cores.get(name, Fraction(1)), gigabytes.get(name, Fraction(1))) for name in told.resources
        }
        self._reasons: dict[str, int] = {}

    def open(self, session: Session, plugin: str) -> None:
        """Give every resource its reason."""
        for name, (cpu, memory) in self._rates.items():
            kept = f"each idle one keeps {float(cpu):g} cores and {float(memory):g} GB"
            text = f"proportional of resource {name} check failed ({kept})"
            self._reasons[name] = session.reason(plugin, Code.UNRESOLVABLE, text)

    def refuse(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes on which a pod that asks for no device would leave too little for those that are idle."""
        request = subject.request
        if any(request.amounts.get(name) for name in self._rates):
            return None
        columns = nodes.table.vocabulary.columns
        known = [name for name in self._rates if name in columns]
        if not known:
            return None
        # What waits for room that is being released has taken it already.
        idle = nodes.future_idle if nodes.released else np.minimum(nodes.idle, nodes.future_idle)
        cpu, memory = idle[:, CPU] - request.vector[CPU], idle[:, MEMORY] - request.vector[MEMORY]
        verdict = np.zeros(len(nodes), dtype=np.int16)
        for name in known:
            free, (cores, gigabytes) = idle[:, columns[name]], self._rates[name]
            unit = resources.factor(name)
            fails = cpu < _kept(free, cores * MILLI / unit)
            fails |= memory < _kept(free, gigabytes * GIGABYTE / unit)
            verdict[(verdict == 0) & fails & (free > 0)] = self._reasons[name]
        return verdict


def _kept(idle: Vector, rate: Fraction) -> Vector:
    """Return how much has to stay for so many idle units, exactly, rounded up."""
    distinct, places = np.unique(np.maximum(idle, 0), return_inverse=True)
    needed = [min(LARGEST, -(-units * rate.numerator // rate.denominator)) for units in distinct.tolist()]
    kept: Vector = np.array(needed, dtype=np.int64)[places]
    return kept
