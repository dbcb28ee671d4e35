"""In what order effects are performed, as a state machine without input or output.

```
   put()                          take()                            done()
 effect ──▶ its object is free ──▶ urgent                ┐
   │                             └ status   1 of 4       ├─▶ worker ──▶ next of the object
   │                             └ reports  in calm      ┘
   │                             └ patient ──────────▶ a slot of its own
   ├──▶ its object is taken: waits behind it
   └──▶ it says all that a patch says which still waits: takes its place
```

What this rests on: effects on one object never overtake each other, and at most one of them is in flight. Effects on different objects run side
by side: binds, evictions, reads and creations first, patches of statuses with a fair share beside them, and reports when it is calm, after what was decided with them: what is written on pods that
wait, most of which will not be true any more, and how groups fare that have pods, for which nobody waits and which costs a server as much as three binds. Where it
is never calm, they get a small share, and the longer a server takes to answer, whoever keeps it busy, the fewer of them are in flight at once. A patch that nobody has begun is left out if another one says all that it says, or for as long as its pod is being bound: so
a server that is too slow for everything gets less to do, and not more. A bind that has to wait for volumes goes a way of its own, so that nobody waits behind it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names
from pumice.cache.effects import Answerable, Bind, Create, Evict, Patch, Prepare, TakeBack

if TYPE_CHECKING:
    from collections.abc import Iterator

_Object = tuple[str, str, str]

_PODS = kinds.POD.plural
_STATUS_SHARE = 4  # one in so many is a status while there are urgent effects, too
_REPORT_SHARE = 32  # and one in so many a report, where it is never calm
MOST_REPORTS = 8  # in flight at once, while the server is quick
_FEW = 4  # so many urgent effects in flight at once are no burden to a server


class Agenda:
    """Effects that wait, and the objects that are being written to."""

    def __init__(self) -> None:
        self._urgent: deque[Answerable] = deque()
        self._status: OrderedDict[_Object, Patch] = OrderedDict()
        self._reports: OrderedDict[_Object, Patch] = OrderedDict()
        self._patient: deque[Bind] = deque()
        self._behind: dict[_Object, deque[Answerable] | None] = {}  # an object that is taken -> what waits for it
        self._turn = 0
        self._urgent_in_flight = 0
        self._reports_in_flight = 0
        self._moved_on = True  # whether an urgent effect was performed since the first of the reports that wait
        self.most_reports = MOST_REPORTS
        self.waiting = 0

    @property
    def is_calm(self) -> bool:
        """Tell whether no bind or other urgent effect waits and few are in flight; those that wait for volumes do not count."""
        return not self._urgent and self._urgent_in_flight <= _FEW

    @property
    def _takes_reports(self) -> bool:
        """Tell whether a report may go: not beside a bind that was decided with it, if that is all there is to do."""
        return self.is_calm and (self._moved_on or not self._urgent_in_flight)

    @property
    def on_offer(self) -> int:
        """How many workers would find something to do, at most: what waits behind its object or for a calm moment does not count."""
        room = max(0, self.most_reports - self._reports_in_flight) if self._takes_reports else 0
        return len(self._urgent) + len(self._status) + min(room, len(self._reports))

    def put(self, effect: Answerable) -> list[Patch]:
        """Queue an effect behind those on the same object; returns the patches that need not be sent any more, for a bind if it succeeds; the last one comes first."""
        self.waiting += 1
        key = _object(effect)
        if key not in self._behind:
            self._behind[key] = None
            self._line_up(key, effect)
            return []
        queue = self._behind[key]
        if queue is None:
            queue = self._behind[key] = deque()
        left_out: list[Patch] = []
        while queue and (last := _replaced(queue[-1], effect)) is not None:
            left_out.append(last)
            queue.pop()
        first = self._status.get(key) or self._reports.get(key)
        if not queue and first is not None and _replaced(first, effect) is not None:
            left_out.append(first)
            self._take_place(key, first, effect)
        else:
            queue.append(effect)
        self.waiting -= len(left_out)
        return left_out

    def _take_place(self, key: _Object, first: Patch, effect: Answerable) -> None:
        """Put an effect where a patch of its object waits that nobody has begun; if it is of another line, at the end of that one."""
        if not isinstance(effect, Patch) or effect.reports != first.reports:
            del self._line_of(first)[key]
        self._line_up(key, effect)

    def _line_of(self, patch: Patch) -> OrderedDict[_Object, Patch]:
        return self._reports if patch.reports else self._status

    def _line_up(self, key: _Object, effect: Answerable) -> None:
        if isinstance(effect, Patch):
            if effect.reports and not self._reports:
                self._moved_on = False
            self._line_of(effect)[key] = effect
        elif isinstance(effect, Bind) and effect.volumes:
            self._patient.append(effect)
        else:
            self._urgent.append(effect)

    def take(self, *, sharing: bool = False) -> Answerable | None:
        """Give a worker its next effect; reports have a share beside others only if that is said."""
        self._turn += 1
        effect: Answerable | None = None
        if sharing and self._turn % _REPORT_SHARE == 0:
            effect = self._next_report()
        if effect is None and self._turn % _STATUS_SHARE == 0:
            effect = _first(self._status)
        if effect is None and self._urgent:
            self._urgent_in_flight += 1
            effect = self._urgent.popleft()
        if effect is None:
            effect = _first(self._status)
        if effect is None and self._takes_reports:
            effect = self._next_report()
        self.waiting -= effect is not None
        return effect

    def _next_report(self) -> Patch | None:
        """Give the next report, unless as many are in flight as may be."""
        if self._reports_in_flight >= self.most_reports:
            return None
        report = _first(self._reports)
        self._reports_in_flight += report is not None
        return report

    def take_patient(self) -> Bind | None:
        """Give the next bind that has to wait for volumes."""
        if not self._patient:
            return None
        self.waiting -= 1
        return self._patient.popleft()

    def is_followed(self, effect: Answerable) -> bool:
        """Tell whether others wait behind an effect that is in flight."""
        return bool(self._behind.get(_object(effect)))

    def done(self, effect: Answerable) -> None:
        """Note that an effect was performed, and let the next one on its object come."""
        if isinstance(effect, Patch):
            self._reports_in_flight -= effect.reports
        elif not (isinstance(effect, Bind) and effect.volumes):
            self._urgent_in_flight -= 1
            self._moved_on = True
        key = _object(effect)
        queue = self._behind[key]
        if queue:
            self._line_up(key, queue.popleft())
        else:
            del self._behind[key]

    def clear(self) -> Iterator[Answerable]:
        """Give everything that waits, to be refused; nothing can be queued after that."""
        patches = deque([*self._status.values(), *self._reports.values()])
        self._status.clear()
        self._reports.clear()
        lines: list[deque[Any]] = [self._urgent, patches, self._patient]
        lines += [queue for queue in self._behind.values() if queue]
        for line in lines:
            while line:
                self.waiting -= 1
                yield line.popleft()


def _first(line: OrderedDict[_Object, Patch]) -> Patch | None:
    """Take the first patch of a line."""
    return line.popitem(last=False)[1] if line else None


def _gives_reason(effect: Patch) -> bool:
    """Tell whether a patch says why a pod waits."""
    return effect.kind.plural == _PODS and effect.subresource == "status"


def _only_waits(effect: Patch) -> bool:
    """Tell whether a patch says that a pod waits, which the bind itself takes back, and nothing else."""
    status = effect.body["status"]
    types = {each["type"] for each in status.get("conditions", ())}
    return _gives_reason(effect) and status.keys() == {"conditions"} and types == {names.CONDITION_POD_SCHEDULED}


def _replaced(waiting: Answerable, effect: Answerable) -> Patch | None:
    """Return what waits, if it is a patch of a status that need not be sent now that an effect on the same object follows."""
    if not isinstance(waiting, Patch) or waiting.body.keys() != {"status"}:
        return None
    if isinstance(effect, Bind):
        return waiting if effect.uid == waiting.uid and _only_waits(waiting) else None
    if not isinstance(effect, Patch) or (effect.uid, effect.body.keys()) != (waiting.uid, waiting.body.keys()):
        return None
    if (effect.kind, effect.subresource, effect.strategic) != (waiting.kind, waiting.subresource, waiting.strategic):
        return None
    return waiting if _says_all(effect.body["status"], waiting.body["status"], merged=effect.strategic) else None


def _says_all(later: dict[str, Any], earlier: dict[str, Any], *, merged: bool) -> bool:
    """Tell whether a status has all fields of an earlier one, and where conditions are merged by type all their types."""
    types = [{each["type"] for each in status.get("conditions", ())} for status in (later, earlier)]
    return later.keys() >= earlier.keys() and not (merged and types[1] - types[0])


def _object(effect: Answerable) -> _Object:
    if isinstance(effect, Bind | Evict | Prepare | TakeBack):
        return _PODS, effect.namespace, effect.name
    if isinstance(effect, Create):
        metadata = effect.manifest["metadata"]
        return effect.kind.plural, metadata.get("namespace", ""), metadata["name"]
    return effect.kind.plural, effect.namespace, effect.name
