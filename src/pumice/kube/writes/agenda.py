"""In what order effects are performed, as a state machine without input or output.

```
   put()                          take()                       done()
 effect ──▶ its object is free ──▶ urgent   3 of 4 ┐
   │                             └ status   1 of 4 ┴─▶ worker ──▶ next of the object
   │                             └ patient ──────────▶ a slot of its own
   └──▶ its object is taken: waits behind it
```

What this rests on: effects on one object never overtake each other, and at most one of them is in flight. Effects on different objects run side
by side: binds, evictions, reads and creations first, patches of statuses with a fair share beside them. A bind that has to wait for volumes
goes a way of its own, so that nobody waits behind it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pumice.api import kinds
from pumice.cache.effects import Answerable, Bind, Create, Evict, Patch

if TYPE_CHECKING:
    from collections.abc import Iterator

_Object = tuple[str, str, str]

_PODS = kinds.POD.plural
_SHARE = 4  # one in so many is a patch while there is both


class Agenda:
    """Effects that wait, and the objects that are being written to."""

    def __init__(self) -> None:
        self._urgent: deque[Answerable] = deque()
        self._status: deque[Answerable] = deque()
        self._patient: deque[Bind] = deque()
        self._behind: dict[_Object, deque[Answerable] | None] = {}  # an object that is taken -> what waits for it
        self._turn = 0
        self._urgent_in_flight = 0
        self.waiting = 0

    @property
    def is_calm(self) -> bool:
        """Tell whether no bind or other urgent effect waits or is in flight; those that wait for volumes do not count."""
        return not self._urgent and not self._urgent_in_flight

    @property
    def has_work(self) -> bool:
        """Tell whether a worker would find something to do."""
        return bool(self._urgent or self._status)

    def put(self, effect: Answerable) -> None:
        """Queue an effect behind those on the same object."""
        self.waiting += 1
        key = _object(effect)
        if key not in self._behind:
            self._behind[key] = None
            self._line_up(effect)
            return
        queue = self._behind[key]
        if queue is None:
            queue = self._behind[key] = deque()
        queue.append(effect)

    def _line_up(self, effect: Answerable) -> None:
        if isinstance(effect, Patch):
            self._status.append(effect)
        elif isinstance(effect, Bind) and effect.volumes:
            self._patient.append(effect)
        else:
            self._urgent.append(effect)

    def take(self) -> Answerable | None:
        """Give a worker its next effect."""
        if self._status and (self._turn >= _SHARE - 1 or not self._urgent):
            self._turn = 0
            self.waiting -= 1
            return self._status.popleft()
        if not self._urgent:
            return None
        self._turn += 1
        self._urgent_in_flight += 1
        self.waiting -= 1
        return self._urgent.popleft()

    def take_patient(self) -> Bind | None:
        """Give the next bind that has to wait for volumes."""
        if not self._patient:
            return None
        self.waiting -= 1
        return self._patient.popleft()

    def done(self, effect: Answerable) -> None:
        """Note that an effect was performed, and let the next one on its object come."""
        if not isinstance(effect, Patch) and not (isinstance(effect, Bind) and effect.volumes):
            self._urgent_in_flight -= 1
        key = _object(effect)
        queue = self._behind[key]
        if queue:
            self._line_up(queue.popleft())
        else:
            del self._behind[key]

    def clear(self) -> Iterator[Answerable]:
        """Give everything that waits, to be refused; nothing can be queued after that."""
        lines: list[deque[Answerable] | deque[Bind]] = [self._urgent, self._status, self._patient]
        lines += [queue for queue in self._behind.values() if queue]
        for line in lines:
            while line:
                self.waiting -= 1
                yield line.popleft()


def _object(effect: Answerable) -> _Object:
    if isinstance(effect, Bind | Evict):
        return _PODS, effect.namespace, effect.name
    if isinstance(effect, Create):
        metadata = effect.manifest["metadata"]
        return effect.kind.plural, metadata.get("namespace", ""), metadata["name"]
    return effect.kind.plural, effect.namespace, effect.name
