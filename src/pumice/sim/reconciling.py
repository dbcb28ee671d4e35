"""Controllers on the simulated cluster, in virtual time: they follow the store as any client does, and their writes go into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.cache import effects
from pumice.controllers.queueing import engine, requests, running
from pumice.sim import errors, informer, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.requests import Answer, Code, Request
    from pumice.sim.clock import VirtualClock
    from pumice.sim.store import ObjectStore

Manifest = dict[str, Any]
_CODES: dict[type[errors.ApiError], Code] = {
    errors.NotFoundError: "notfound",
    errors.AlreadyExistsError: "exists",
    errors.ConflictError: "conflict",
    errors.InvalidError: "refused",
}


class StoreWorld:
    """Performs requests on a store; `create` admits a new object as the cluster does."""

    def __init__(self, store: ObjectStore, create: Callable[[Mapping[str, Any]], object] | None = None) -> None:
        self._store = store
        self._create = create

    def perform(self, request: Request, /) -> Answer:
        """Carry a request out at once."""
        key = Key(*requests.target(request))
        try:
            return requests.Answer(object=self._performed(request, key))
        except errors.ApiError as error:
            return requests.Answer(code=_CODES[type(error)], message=str(error))

    def _performed(self, request: Request, key: Key) -> Manifest | None:
        match request:
            case effects.Create():
                if self._store.find(key) is not None:
                    raise errors.AlreadyExistsError(f"{key} exists already")
                if self._create is not None:
                    self._create(request.manifest)
                else:
                    self._store.adopt(structure.copied(request.manifest), key)
            case effects.Patch():
                self._store.patch(key, request.body, subresource=request.subresource, uid=request.uid)
            case requests.Apply():
                self._store.patch(key, request.body, subresource=request.subresource, uid=request.uid)
            case requests.Delete():
                self._store.delete(key, uid=request.uid)
                return None
        found = self._store.find(key)
        return dict(found) if found is not None else None


class Reconciler:
    """Runs controllers whenever the cluster settles; what is due later is due in virtual time."""

    def __init__(
        self,
        store: ObjectStore,
        clock: VirtualClock,
        controllers: Sequence[Controller],
        *,
        create: Callable[[Mapping[str, Any]], object] | None = None,
        tell: Callable[[effects.Note], None] = lambda _: None,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._world = StoreWorld(store, create)
        self._engine = engine.Engine(controllers, tell=tell, complain=complain)
        self._informers = [informer.Informer(store, kind) for kind in self._engine.watched]
        self._woken = -1

    def hear(self) -> None:
        """Take what has changed."""
        for _, kind, event_type, manifest in informer.merge(self._informers):
            self._engine.feed(kind, event_type, manifest)

    def act(self) -> int:
        """Do what is due, and give how many requests there were."""
        return running.run_due(self._engine, self._world, lambda: requests.Moment(self._clock.now()))

    def react(self) -> int:
        """Take what has changed, do what is due, say when more is, and give how many requests there were."""
        self.hear()
        count = self.act()
        due = self._engine.queue.next_due(self._clock.now())
        if due is not None and due != self._woken:
            self._woken = due
            self._clock.call_at(due, _nothing)  # whoever advances the clock stops there and lets the cluster settle
        return count

    def next_due(self) -> int | None:
        """Say when something is due without an event."""
        return self._engine.queue.next_due(self._clock.now())


def _nothing() -> None:
    pass
