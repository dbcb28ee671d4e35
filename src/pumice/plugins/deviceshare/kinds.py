"""The kinds of cards that pods can share, each as the table of holdings asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from pumice.api import names
from pumice.model import marks
from pumice.plugins.deviceshare import cards, geometries, gpus, vgpus

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from pumice.api import core
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.plugins.deviceshare.cards import Card, Choice, Held, Rate, Share, State

SPREAD = "spread"


class Gpus:
    """GPUs by memory, or by number."""

    annotations = marks.CARDS

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._resource = names.GPU_NUMBER if whole else names.GPU_MEMORY

    def offer(self, node: core.Node) -> tuple[tuple[Card, ...], Hashable]:
        """Return the cards of a node."""
        return gpus.cards_of(node), None

    def request(self, task: Task) -> int | None:
        """Return how much memory, or how many cards, a pod asks for."""
        return gpus.asked_of(task, self._resource) or None

    def choose(
        self, of: tuple[Card, ...], about: Hashable, state: State, request: Hashable, rate: Rate | None = None
    ) -> Choice:
        """Choose the best that will do, the first where nobody rates them."""
        del about
        need = cast("int", request)
        return gpus.by_number(of, state, need) if self._whole else gpus.by_memory(of, state, need, rate)

    def left(self, card: Card, held: Held) -> int:
        """Return how much of a card is left, in thousandths."""
        if not card.well or (self._whole and held.users):
            return 0
        return cards.milli(max(0, card.memory - held.memory), card.memory)

    def held(self, cluster: Cluster, task: Task, of: tuple[Card, ...]) -> tuple[Share, ...]:
        """Return the cards whose index a pod carries."""
        need = 0 if self._whole else self.request(task) or 0
        return gpus.held_by(of, cluster.with_bind.stamped(task, names.GPU_INDEX), need)

    def listed(self, cluster: Cluster, task: Task) -> tuple[str, ...]:
        """Return the index that a pod carries."""
        return tuple(
            part.strip() for part in cluster.with_bind.stamped(task, names.GPU_INDEX).split(",") if part.strip()
        )

    def stamps(
        self, record: NodeRecord, of: tuple[Card, ...], task: Task, choice: Choice, now: int
    ) -> Mapping[str, str]:
        """Return the index of the cards."""
        del record, task
        return gpus.stamps(of, choice, now)


class VirtualGpus:
    """Virtual GPUs; rules are maps of labels, of which pods that have all of one keep off each other's cards."""

    annotations = marks.CARDS

    def __init__(self, policy: str, rules: Sequence[Mapping[str, str]]) -> None:
        self._policy = policy
        self._rules = rules
        self._known: dict[tuple[str, ...], vgpus.Request] = {}
        self.geometries = geometries.NONE

    def offer(self, node: core.Node) -> tuple[tuple[Card, ...], Hashable]:
        """Return the cards of a node, and how they are shared."""
        register = vgpus.register_of(node, self.geometries)
        return register.cards, (register.mode, register.factor)

    def request(self, task: Task) -> vgpus.Request | None:
        """Return what a pod asks for, worked out once for each shape."""
        written = task.shape.constraints.devices
        if not written:
            return None
        known = self._known.get(written)
        if known is None:
            if len(self._known) > 1000:
                self._known.clear()
            known = self._known[written] = vgpus.request_of(task.pod)
        named = self.names(task)
        return msgspec.structs.replace(known, named=named) if named else known

    def names(self, task: Task) -> tuple[str, ...]:
        """Return the names that a pod brings to its cards, and keeps off: rules that it is under, and its group where that spreads."""
        labels, notes = task.pod.metadata.labels, task.pod.metadata.annotations
        if not self._rules and names.VGPU_POD_GROUP_POLICY not in notes:
            return ()
        rules = tuple(
            f"{vgpus.RULE}{index}"
            for index, rule in enumerate(self._rules)
            if rule and all(labels.get(key) == value for key, value in rule.items())
        )
        spreads = task.job_key and notes.get(names.VGPU_POD_GROUP_POLICY) == SPREAD
        return (*rules, f"group {task.job_key}") if spreads else rules

    def choose(
        self, of: tuple[Card, ...], about: Hashable, state: State, request: Hashable, rate: Rate | None = None
    ) -> Choice:
        """Choose cards by how they are rated, or by the policy where nobody rates them, or what is best for one container leaves none for another."""
        register = vgpus.Register(of, *cast("tuple[str, int]", about))
        choice = vgpus.choose(register, state, cast("Any", request), self._policy, rate)
        return choice if choice.shares or rate is None else self.choose(of, about, state, request)

    def left(self, card: Card, held: Held) -> int:
        """Return how much of a card is left, in thousandths: of its memory or its cores, whichever is less."""
        if not card.well or held.users >= card.slots:
            return 0
        memory = cards.milli(max(0, card.memory - held.memory), card.memory)
        return min(memory, cards.milli(max(0, vgpus.ALL_CORES - held.cores), vgpus.ALL_CORES))

    def held(self, cluster: Cluster, task: Task, of: tuple[Card, ...]) -> tuple[Share, ...]:
        """Return what a pod holds by its annotation."""
        text = cluster.with_bind.stamped(task, names.VGPU_IDS)
        return vgpus.held_by(text, of, self.names(task)) if text else ()

    def listed(self, cluster: Cluster, task: Task) -> tuple[str, ...]:
        """Return the cards that its annotation names."""
        text = cluster.with_bind.stamped(task, names.VGPU_IDS).replace(";", ":")
        return tuple(part.partition(",")[0].partition("[")[0] for part in text.split(":") if part)

    def stamps(
        self, record: NodeRecord, of: tuple[Card, ...], task: Task, choice: Choice, now: int
    ) -> Mapping[str, str]:
        """Return what a pod has of which card."""
        return vgpus.stamps(record.name, of, choice, len(task.pod.spec.containers), now)
