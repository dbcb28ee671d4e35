"""Volcano's controllers on the simulated cluster: each group of them begins with the first object that it is for.

Until then nothing is recomputed, so that a status which somebody states stays as it is stated. The Queue controller begins with the first Command for a
Queue: states of queues are otherwise whatever the manifests say. That of HyperNodes begins with the ConfigMap that enables discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.volcano.hyper_nodes import settings
from pumice.sim import reconciling, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.cache import effects
    from pumice.controllers.queueing.controller import Controller
    from pumice.sim.clock import VirtualClock
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

_QUEUES: Final = "queue-controller"
_HYPER_NODES: Final = "hyperNode-controller"
_DISCOVERY: Final = Key(kinds.CONFIG_MAP, *settings.place({}))
_WORKLOADS: Final = frozenset({kinds.JOB, kinds.CRON_JOB, kinds.JOB_FLOW, kinds.JOB_TEMPLATE, kinds.COMMAND})


class VolcanoControllers:
    """Runs the registered controllers, those of workloads and that of queues apart, once there is something for them."""

    def __init__(
        self,
        store: ObjectStore,
        clock: VirtualClock,
        registered: Mapping[str, Callable[[], Sequence[Controller]]],
        *,
        create: Callable[[Mapping[str, Any]], object],
        tell: Callable[[effects.Note], None],
    ) -> None:
        self._store, self._clock = store, clock
        self._registered = registered
        self._create, self._tell = create, tell
        self._broken: list[str] = []
        self._running: dict[str, reconciling.Reconciler] = {}
        self._wanted: dict[str, tuple[str, ...]] = {}
        store.observe(self._seen)

    @property
    def begun(self) -> bool:
        """Tell whether any of them runs, so that time has to pass step by step."""
        return bool(self._wanted)

    def react(self) -> int:
        """Let them do what is due, and give how many requests there were."""
        for group, chosen in self._wanted.items():
            if group not in self._running:
                self._running[group] = self._started(chosen)
        count = sum(each.react() for each in self._running.values())
        if self._broken:
            # On a real cluster a controller that breaks costs one object its turn; a test must not pass over it.
            raise RuntimeError(f"a controller broke down: {self._broken[0]}")
        return count

    def _started(self, chosen: tuple[str, ...]) -> reconciling.Reconciler:
        controllers = [each for name in chosen for each in self._registered[name]()]
        return reconciling.Reconciler(
            self._store,
            self._clock,
            controllers,
            create=self._create,
            tell=self._tell,
            complain=self._broken.append,
        )

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if event_type == "DELETED":
            return
        if key == _DISCOVERY:
            self._want("hyper-nodes", [name for name in self._registered if name == _HYPER_NODES])
        if key.kind not in _WORKLOADS:
            return
        self._want("workloads", [name for name in self._registered if name not in (_QUEUES, _HYPER_NODES)])
        if key.kind is kinds.COMMAND and structure.mapping(manifest, "target").get("kind") == kinds.QUEUE.name:
            self._want("queues", [name for name in self._registered if name == _QUEUES])

    def _want(self, group: str, chosen: list[str]) -> None:
        if chosen:
            self._wanted.setdefault(group, tuple(chosen))


def targeted(store: ObjectStore, key: Key) -> Mapping[str, Any] | None:
    """Give a Command with the uid of the object that it names, None if it states one or names nothing that is there."""
    command = store.find(key)
    target = structure.mapping(command, "target")
    if command is None or target.get("uid"):
        return None
    kind = kinds.find(str(target.get("apiVersion")), str(target.get("kind")))
    if kind is None:
        return None
    found = store.find(Key(kind, key.namespace if kind.namespaced else "", str(target.get("name"))))
    return None if found is None else {**command, "target": {**target, "uid": found["metadata"]["uid"]}}
