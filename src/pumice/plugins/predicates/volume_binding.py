"""Volumes that come with the node: bound ones must be reachable there, unbound ones are chosen, or made, for it.

Claims of a class that waits for its first consumer are decided together with the pod's node. The filter finds for every node at once what each
claim would get there; when the pod is placed, that choice is reserved, so that nobody else takes the volume; the decisions leave with the bind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.api import names
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.runs import Step
from pumice.model.volumes import ClaimUse, Reservation, VolumeDecision
from pumice.plugins.predicates import claims, selected_rows
from pumice.plugins.predicates.volume_capacity import Provisioning
from pumice.plugins.predicates.volume_catalogue import NONE, Catalogue, ClassVolumes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import volumes
    from pumice.framework.runs import Run
    from pumice.framework.subject import Subject
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.plugins.predicates.volume_catalogue import Ints

MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"


class Choice(msgspec.Struct, frozen=True):
    """What one claim gets on each node: a place among the volumes of its class, `NONE` where a volume is to be made."""

    claim: volumes.PersistentVolumeClaim
    candidates: ClassVolumes | None = None
    places: Ints | None = None

    def volume(self, row: int) -> str:
        """Return the name of the volume on one node, empty if it is to be made."""
        if self.candidates is None or self.places is None or self.places[row] == NONE:
            return ""
        return self.candidates.entries[int(self.places[row])].name


class Matching(msgspec.Struct, frozen=True):
    """What unbound claims get on each node, and the reason where they get nothing."""

    refused: ReasonVector
    choices: tuple[Choice, ...]


class VolumeBinding:
    """The filters, and the handler that reserves what was chosen."""

    def __init__(
        self, cluster: Cluster, objects: claims.StorageObjects, reason: Callable[[Code, str], int], patience: int
    ) -> None:
        self._nodes = cluster.nodes
        self._decided = cluster.volumes
        self._objects = objects
        self._patience = patience
        self._catalogue = Catalogue(objects, cluster.volumes)
        self._provisioning = Provisioning(objects, cluster.volumes)
        self._missing = reason(Code.UNRESOLVABLE, MISSING)
        self._unreachable = reason(Code.UNRESOLVABLE, UNREACHABLE)
        self._no_volume = reason(Code.UNRESOLVABLE, NO_VOLUME)
        self._no_room = reason(Code.UNRESOLVABLE, NO_ROOM)
        self._last: tuple[tuple[object, ...], Matching] | None = None

    # -- bound claims ------------------------------------------------------------------------------------------

    def bound(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that cannot reach a volume which the pod's claims are bound to."""
        uses = subject.constraints.claims
        found = [
            claim for use in uses if (claim := self._objects.claim(use.key)) is not None and claims.is_bound(claim)
        ]
        if not found:
            return None
        answer = np.zeros(nodes.table.count, dtype=np.int16)
        for claim in found:
            volume = self._objects.volume(claim.spec.volume_name)
            if volume is None:
                answer[:] = self._missing
            elif volume.spec.node_affinity is not None:
                reached = np.zeros(len(answer), dtype=np.bool_)
                reached[selected_rows.rows(volume.spec.node_affinity.required, nodes.table.attributes)] = True
                answer[~reached & (answer == 0)] = self._unreachable
        chosen: ReasonVector = answer[nodes.index]
        return chosen

    # -- unbound claims ----------------------------------------------------------------------------------------

    def unbound(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes for which the pod's unbound claims find no volume and none can be made."""
        matching = self._matching(subject.constraints.claims)
        if matching is None:
            return None
        chosen: ReasonVector = matching.refused[nodes.index]
        return chosen

    def _matching(self, uses: tuple[ClaimUse, ...]) -> Matching | None:
        """Find what the unbound claims get on each node; kept until something it rests on changes."""
        waiting = [
            claim
            for use in uses
            if (claim := self._objects.claim(use.key)) is not None and self._objects.is_delayed(claim)
        ]
        if not waiting:
            return None
        nodes = self._nodes
        state = (uses, self._decided.decided, nodes.claims, nodes.structure, nodes.static)
        if self._last is None or self._last[0] != state:
            self._last = (state, self._match(waiting))
        return self._last[1]

    def _match(self, waiting: list[volumes.PersistentVolumeClaim]) -> Matching:
        columns = self._nodes.attributes
        refused = np.zeros(columns.count, dtype=np.int16)
        pinned: list[Choice] = []
        free: list[volumes.PersistentVolumeClaim] = []
        for claim in waiting:
            selected = self._selected(claim)
            if selected is None:
                free.append(claim)
            else:
                refused[~columns.named(selected)] = self._no_volume
                pinned.append(Choice(claim))
        free.sort(key=lambda claim: (claims.requested(claim), claim.metadata.name))
        choices = [*pinned, *self._from_classes(free)]
        for choice in choices:
            self._provide(choice, refused)
        return Matching(refused, tuple(choices))

    def _selected(self, claim: volumes.PersistentVolumeClaim) -> str | None:
        """Return the node that a volume of the claim is being made for, by the cluster or by a decision on its way."""
        volume, node = self._decided.chosen.get(f"{claim.metadata.namespace}/{claim.metadata.name}", ("", ""))
        if node and not volume:
            return node
        return claim.metadata.annotations.get(names.SELECTED_NODE)

    def _from_classes(self, free: list[volumes.PersistentVolumeClaim]) -> list[Choice]:
        """Give each claim, the smallest first, the smallest volume that is left for it on each node."""
        given: dict[str, list[Ints]] = {}
        choices: list[Choice] = []
        for claim in free:
            name = claims.class_of(claim)
            candidates = self._catalogue.of_class(name)
            earlier = given.setdefault(name, [])
            places = candidates.match(claim, claims.requested(claim), earlier, self._decided, self._nodes.attributes)
            earlier.append(places)
            choices.append(Choice(claim, candidates, places))
        return choices

    def _provide(self, choice: Choice, refused: ReasonVector) -> None:
        """Refuse the nodes on which a claim has no volume and none can be made for it."""
        lacking = refused == 0
        if choice.places is not None:
            lacking &= choice.places == NONE
        if not lacking.any():
            return
        possible = self._provisioning.possible(choice.claim, self._nodes.attributes)
        refused[lacking & ~possible] = self._no_volume
        enough = self._provisioning.enough(choice.claim, claims.requested(choice.claim), self._nodes)
        if enough is not None:
            refused[lacking & possible & ~enough] = self._no_room

    # -- reserving ---------------------------------------------------------------------------------------------

    def follow(self, runs: Sequence[Run], sign: int) -> None:
        """Reserve what pods get that were just placed; it ends by itself when they leave their node."""
        if sign < 0 or runs[0].step is Step.EVICT:
            return
        for run in runs:
            uses = run.tasks[0].shape.constraints.claims
            if not uses:
                continue
            for task, record in zip(run.tasks, run.targets, strict=True):
                if record is not None and (reservation := self.reservation(uses, record)) is not None:
                    self._decided.reserve(task.uid, reservation)

    def reservation(self, uses: tuple[ClaimUse, ...], record: NodeRecord) -> Reservation | None:
        """Decide which volumes claims get on a node; None if there is nothing to be decided."""
        matching = self._matching(uses)
        if matching is None:
            return None
        if matching.refused[record.row]:
            claim = matching.choices[0].claim.metadata.name
            return Reservation(
                record.name, problem=f'persistentvolumeclaim "{claim}" gets no volume on node {record.name}'
            )
        decisions = tuple(
            VolumeDecision(
                namespace=choice.claim.metadata.namespace,
                claim=choice.claim.metadata.name,
                uid=choice.claim.metadata.uid,
                volume=choice.volume(record.row),
            )
            for choice in matching.choices
        )
        return Reservation(record.name, decisions, self._patience)
