"""What has to be written before pods are bound, on a store; the rules are those of every world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.cache import preparation_writes
from pumice.cache.effects import Failure, Prepare
from pumice.cache.preparation_writes import Make, Remove, Write
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.cache.effects import TakeBack
    from pumice.sim.clock import VirtualClock
    from pumice.sim.store import ObjectStore


class Preparer:
    """Writes preparations, and takes them back; nobody comes between."""

    def __init__(self, store: ObjectStore, clock: VirtualClock, create: Callable[[dict[str, Any]], object]) -> None:
        self._store = store
        self._clock = clock
        self._create = create

    def carry_out(self, effect: Prepare | TakeBack) -> tuple[dict[str, Any] | None, Failure | None]:
        """Carry an effect out; returns claims as they are then, and what stood in the way."""
        claims: dict[str, dict[str, Any]] = {}
        try:
            if isinstance(effect, Prepare):
                for preparation in effect.preparations:
                    key = Key(*preparation_writes.target(preparation))
                    while wanted := preparation_writes.forth(preparation, self._look(key, claims), self._clock.now()):
                        self._write(key, wanted)
            else:
                for preparation in reversed(effect.preparations):
                    key = Key(*preparation_writes.target(preparation))
                    while wanted := preparation_writes.back(preparation, self._look(key, claims)):
                        self._write(key, wanted)
        except preparation_writes.HinderedError as error:
            return preparation_writes.shown(claims), Failure(error.code, str(error))
        return preparation_writes.shown(claims), None

    def _look(self, key: Key, claims: dict[str, dict[str, Any]]) -> Mapping[str, Any] | None:
        found = self._store.find(key)
        preparation_writes.note(claims, key, found)
        return found

    def _write(self, key: Key, wanted: Write | Make | Remove) -> None:
        match wanted:
            case Write(body, "status", strategic):
                self._store.patch_status(key, body, strategic=strategic)
            case Write(body):
                self._store.patch(key, body)
            case Make(manifest):
                self._create(manifest)
            case Remove(uid):
                self._store.delete(key, uid=uid)
