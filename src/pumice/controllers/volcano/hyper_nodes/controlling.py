"""Discovery of network topology: the HyperNodes of each source that a ConfigMap enables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.hyper_nodes import aligning, labels, settings, ufm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

_ANSWER_PAUSE: Final = 10 * duration.SECOND  # between two looks at what a fabric manager has answered
_SHOWN: Final = 3


def _silent() -> ufm.Links | None:
    return None


class Discovery:
    """Reconciles the ConfigMap that says which sources there are; `links` gives the last answer of the fabric manager, None before the first."""

    kind = kinds.CONFIG_MAP
    watched = (kinds.NODE, kinds.HYPER_NODE)

    def __init__(self, place: tuple[str, str] | None = None, links: Callable[[], ufm.Links | None] = _silent) -> None:
        self.place = settings.place({}) if place is None else place
        self._links = links

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the ConfigMap, where there is one."""
        del kind, manifest
        return [self.place] if observed.find(self.kind, *self.place) is not None else []

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Make HyperNodes as the sources say; those of a source that is not enabled are left as they are."""
        config_map = observed.find(self.kind, namespace, name)
        if (namespace, name) != self.place or config_map is None:
            return requests.Reconciled()
        found = settings.read(config_map)
        notes = [("Warning", "InvalidConfiguration", problem) for problem in found.problems]
        steps: list[Step] = []
        size = 0
        if found.labels is not None:
            wanted, problems = labels.wanted(found.labels, observed)
            notes += [("Warning", "AmbiguousTopology", problem) for problem in problems[:_SHOWN]]
            made, told = aligning.steps(settings.LABEL, wanted, observed)
            steps, notes, size = steps + made, notes + told, sum(1 for _ in observed.all(kinds.NODE))
        if found.ufm is not None:
            made, told = self._of_ufm(found.ufm, observed)
            steps, notes = steps + made, notes + told
        again = moment.now + _ANSWER_PAUSE if found.ufm is not None else None
        # Every write is followed by another look, which says the same.
        return requests.Reconciled(steps=steps, notes=notes if not steps else [], again=again, size=size)

    def _of_ufm(self, source: settings.UfmSource, observed: Observed) -> tuple[list[Step], list[aligning.Note]]:
        links = self._links()
        if links is None or links.endpoint != source.endpoint:
            return [], []
        steps, notes = aligning.steps(settings.UFM, ufm.wanted(links, observed), observed)
        if links.left_out:
            told = f"{links.left_out} hosts of {links.endpoint} have names that no node can have; they are left out"
            notes = [*notes, ("Warning", "InvalidHostNames", told)]
        return steps, notes
