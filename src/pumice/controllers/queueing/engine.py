"""Turns of controllers: an event says which object to look at, a controller says what to do about it, answers say how that went.

```
  events ──feed──▶ observed ──▶ work queue ──take──▶ turn ──next_steps──▶ world
                       ▲                              ▲                     │
                       └────── what was written ──────┴────── answered ◀────┘
```

The rules that keep a late watch and a lost answer from doing harm:
- an object has one turn at a time, and answers are seen at once (`observed`);
- a write without an answer is followed by a read of its object before anything else is done about it;
- names are chosen by us and depend on the owner and a number alone, so the same wish gives the same name, and a second creation fails; a number whose
  object was seen is spent, so a name that was in use is in no later wish;
- what is known from answers alone is read after a while, in case the watch never tells of it;
- what others delete again and again is made anew after pauses that grow: they may know that its owner is gone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.api import duration
from pumice.cache import effects
from pumice.controllers.queueing import ahead, requests, work_queue
from pumice.controllers.queueing import observed as knowing
from pumice.controllers.queueing.controller import remembered_by
from pumice.controllers.queueing.readers import Readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.api import kinds
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.requests import Answer, Moment, Reconciled, Request, Step

_CONFIRMATION: Final = 30 * duration.SECOND  # how long a watch may take to tell of what we have written
_LARGEST_STAGE: Final = 64
_LARGE: Final = 100  # objects looked at in one turn
_REST: Final = 300  # microseconds between two turns for each of them
_LONGEST_REST: Final = duration.SECOND
_LOOKS: Final = 256  # in which nothing was to be done, before others than controllers have their turn
MUCH_TO_DO: Final = 32  # objects that have their turn or wait for it
_LITTLE_TO_DO: Final = 16
FEW_WAITING: Final = 1000
_PEACE: Final = 2 * work_queue.LONGEST_PAUSE  # after which nobody counts any more how often something was deleted
_MOST_REMADE: Final = 10_000
_SOONEST: Final = 10 * duration.MILLISECOND  # after which an object is looked at again without an event


class Key(NamedTuple):
    """An object with the controller that looks at it."""

    place: int
    namespace: str
    name: str


class Turn(msgspec.Struct, kw_only=True):
    """One look at an object: the steps that are left, and how it has gone so far."""

    key: Key
    subject: Mapping[str, Any] | None
    kind: kinds.Kind
    plan: Reconciled
    left: list[Step]
    creating: kinds.Kind | None = None
    width: int = 1  # how many creations of that kind are tried at once
    doubtful: bool = False  # something failed, or has to be read
    refused: bool = False
    reading: bool = False
    vanished: list[str] = []  # uids of what was gone when it began


def _ignore(_: effects.Note) -> None:
    pass


def _unheard(_: str) -> None:
    pass


def _nobody(*_: object) -> bool:
    return False


class Engine:
    """Runs controllers for whoever brings events, time and answers; `tell` takes events about objects, `complain` what broke down; `trim` gives what is kept of an object, as JSON if `packed` has its kind; `spares` tells which objects are left alone, `longest_pause` how long one that fails waits at the most."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        *,
        tell: Callable[[effects.Note], None] = _ignore,
        complain: Callable[[str], None] = _unheard,
        trim: Callable[[kinds.Kind, dict[str, Any]], dict[str, Any]] | None = None,
        packed: Iterable[kinds.Kind] = (),
        spares: Callable[[kinds.Kind, str, str, Mapping[str, Any] | None], bool] = _nobody,
        longest_pause: int = work_queue.LONGEST_PAUSE,
    ) -> None:
        self._controllers = tuple(controllers)
        self._spares = spares
        self._tell = tell
        self._complain = complain
        self._remembered = tuple(remembered_by(each) for each in self._controllers)
        self._readers = Readers(self._controllers)
        pairs = zip(self._controllers, self._remembered, strict=True)
        kept = ((each.kind, kind) for each, remembered in pairs for kind in remembered)
        self.observed = knowing.Observed(kept, trim, packed)
        self.queue: work_queue.WorkQueue[Key] = work_queue.WorkQueue(longest_pause=longest_pause)
        self._doubts: dict[Key, dict[knowing.Reference, None]] = {}
        self._written: dict[Key, dict[knowing.Reference, int]] = {}  # not confirmed by a watch, and when to read it
        self._refusals: dict[Key, int] = {}  # in a row
        self._ahead = ahead.Ahead()
        # How often in a row others deleted something, and when that was seen last.
        self._remade: dict[knowing.Reference, tuple[int, int]] = {}
        self._patient: dict[Key, None] = {}  # that are looked at as soon as there is little to do
        self._said: dict[Key, tuple[str, list[tuple[str, str, str]]]] = {}  # about which object, in the last turn
        self._most_waiting = FEW_WAITING  # beyond that it is looked who is gone, while others do the work
        self.turns = 0
        self.writes = 0

    @property
    def watched(self) -> tuple[kinds.Kind, ...]:
        """All kinds whose events are wanted."""
        return self._readers.watched

    def selector(self, kind: kinds.Kind) -> str:
        """Give the label selector with which a kind has to be watched, empty if all of it has to."""
        return self._readers.selector(kind)

    def trimmed(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what is kept of an object."""
        return self._readers.trimmed(kind, manifest)

    # ---- events

    def feed(
        self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any], *, trimmed: bool = False
    ) -> None:
        """Take a watch event; `trimmed` says that the object is what is kept of it already."""
        manifest = manifest if trimmed else self.trimmed(kind, manifest)
        metadata = manifest["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        before = self.observed.find(kind, namespace, name)
        if self.observed.feed(kind, event_type, manifest):
            self._changed((kind, namespace, name), before, manifest)
            if not self.turns:
                self._stand_by(kind, namespace, name)

    def _stand_by(self, kind: kinds.Kind, namespace: str, name: str) -> None:
        """Keep no more than there are objects as long as nobody has had a turn: others do the work, so what vanished before its owner changed is theirs, and who is gone needs no look.

        Whoever is started anew knows of neither, and must do without.
        """
        for _, each, own, _ in self._readers.of(kind):
            if own:
                self.observed.forget(each.kind, namespace, name, self.observed.untold(each.kind, namespace, name))
        if len(self.queue) > self._most_waiting:
            for key in self.queue.waiting():
                if not self.observed.has(self._controllers[key.place].kind, key.namespace, key.name):
                    self.queue.drop(key)
            self._most_waiting = max(FEW_WAITING, 2 * len(self.queue))

    def _changed(
        self, reference: knowing.Reference, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> None:
        """Want everybody looked at whom a change concerns, as the object was and as it is."""
        kind, namespace, name = reference
        versions = [each for each in (before, after) if each is not None]
        generations = {each["metadata"].get("generation") for each in versions}
        for place, each, own, read in self._readers.of(kind):
            if own:
                key = Key(place, namespace, name)
                if before is None or len(generations) > 1:
                    self.queue.forgive(key)
                    self._refusals.pop(key, None)
                self.queue.add(key)
            if read:
                if self.observed.has(*reference) and self._readers.is_same(place, kind, before, after):
                    continue
                ordered = before is None and self._readers.obeys(place, kind)
                for version in versions:
                    for concerned in each.concerns(kind, version, self.observed):
                        key = Key(place, *concerned)
                        if ordered:
                            self.queue.forgive(key)
                        self.queue.add(key)

    # ---- turns

    def take(self, moment: Moment) -> Turn | None:
        """Give the next turn in which something is to be asked of the cluster, None if nothing is due now, or after many looks in vain."""
        for _ in range(_LOOKS):
            key = self.queue.take(moment.now) or self._patient_one(moment)
            if key is None:
                return None
            self.turns += 1
            turn = self._turn(key, moment)
            if turn is not None and turn.left:
                return turn
            if turn is not None:
                self.finish(turn, moment)
        return None

    def _patient_one(self, moment: Moment) -> Key | None:
        """Give one of those that wait until there is little to do, if that is so."""
        while self._patient and self.queue.load < _LITTLE_TO_DO and not moment.busy:
            key = next(iter(self._patient))
            del self._patient[key]
            self.queue.add(key)
            if (taken := self.queue.take(moment.now)) is not None:
                return taken
        return None

    def _turn(self, key: Key, moment: Moment) -> Turn | None:
        each = self._controllers[key.place]
        subject = self.observed.find(each.kind, key.namespace, key.name)
        if self._spares(each.kind, key.namespace, key.name, subject):
            self.queue.done(key)
            return None
        doubts = self._doubtful(key, moment.now)
        if doubts:
            reads = [effects.Read(kind=kind, namespace=namespace, name=name) for kind, namespace, name in doubts]
            steps = [requests.Step(request=read) for read in reads]
            plan = requests.Reconciled(steps=steps)
            return Turn(key=key, subject=subject, kind=each.kind, plan=plan, left=steps, reading=True)
        moment = msgspec.structs.replace(
            moment,
            refusals=self._refusals.get(key, 0),
            busy=moment.busy or self.queue.load > MUCH_TO_DO,
            met=functools.partial(self._ahead.since, key),
        )
        gone = self.observed.untold(each.kind, key.namespace, key.name) if self._remembered[key.place] else []
        try:
            plan = each.reconcile(key.namespace, key.name, self.observed, moment)
        except Exception as error:  # noqa: BLE001  an object that a controller cannot bear costs nobody else anything
            self._complain(f"{each.kind.name} {key.namespace}/{key.name}: {type(error).__name__}: {error}")
            self.queue.failed(key, moment.now)
            return None
        if pause := self._pause(plan, moment.now):
            self.queue.done(key, moment.now + pause)
            self.queue.add(key)
            return None
        return Turn(key=key, subject=subject, kind=each.kind, plan=plan, left=list(plan.steps), vanished=gone)

    def _pause(self, plan: Reconciled, now: int) -> int:
        """Say how long a plan has to wait because it makes anew what others have deleted: the first time not at all, then twice as long each time, until there was peace for a while."""
        longest = 0
        for made in (step.request for step in plan.steps if isinstance(step.request, effects.Create)):
            reference = requests.target(made)
            if self.observed.taken(*reference):
                times, before = self._remade.pop(reference, (0, now))
                times = times + 1 if now - before <= _PEACE else 1
                self._remade[reference] = times, now
                longest = max(longest, self.queue.pause(times - 1))
        while len(self._remade) > _MOST_REMADE:
            del self._remade[next(iter(self._remade))]
        return longest

    def _doubtful(self, key: Key, now: int) -> list[knowing.Reference]:
        """Give what has to be read before an object is looked at."""
        found = list(self._doubts.get(key, ()))
        written = {ref: due for ref, due in self._written.pop(key, {}).items() if ref in self.observed.unconfirmed}
        if written:
            self._written[key] = written
        return found + [reference for reference, due in written.items() if due <= now and reference not in found]

    def next_steps(self, turn: Turn) -> list[Step]:
        """Give the steps that may be done side by side: creations of a kind after the first one of it; anything else one by one.

        What refuses one pod mostly refuses all of its equals, so the first is sent ahead. Whoever was refused something last time goes on in numbers that double.
        """
        count, kind = 0, turn.left[0].request.kind
        if turn.creating != kind:
            turn.creating, turn.width = kind, 1
        for step in turn.left[: turn.width]:
            if not isinstance(step.request, effects.Create) or step.request.kind != kind:
                break
            count += 1
        if count:
            turn.width = min(_LARGEST_STAGE, turn.width * 2 if turn.key in self._refusals else _LARGEST_STAGE)
        steps, turn.left = turn.left[: max(1, count)], turn.left[max(1, count) :]
        return steps

    def answered(self, turn: Turn, step: Step, answer: Answer, now: int) -> None:
        """Take the answer to a step; one that failed ends the turn."""
        request = step.request
        reference = requests.target(request)
        if isinstance(request, effects.Read):
            self._read(turn, reference, answer)
        elif isinstance(request, requests.Confirm):
            self._confirmed(turn, request, answer)
        elif not answer.code:
            self.writes += 1
            self._wrote(turn, request, answer, now)
            self._say(turn, "Normal", step.said)
        else:
            self._failed(turn, step, answer)

    def finish(self, turn: Turn, moment: Moment) -> None:
        """End a turn."""
        if turn.refused or (turn.plan.stuck and not turn.doubtful):
            self._refusals[turn.key] = self._refusals.get(turn.key, 0) + 1
        if turn.doubtful:
            self.queue.failed(turn.key, moment.now)
            return
        if turn.reading:
            self.queue.add(turn.key)
        for kind, reason, message in self._news(turn) if not turn.reading else ():
            self._say(turn, kind, (reason, message))
        if turn.vanished:
            self.observed.forget(turn.kind, turn.key.namespace, turn.key.name, turn.vanished)
        if turn.plan.stuck:
            self.queue.failed(turn.key, moment.now)
            return
        if not turn.reading:
            self._refusals.pop(turn.key, None)
        rest = min(_LONGEST_REST, turn.plan.size * _REST) if turn.plan.size >= _LARGE else None
        self.queue.done(turn.key, None if rest is None else moment.now + rest)
        if turn.plan.patient:
            self._patient[turn.key] = None
        if turn.plan.again is not None:
            self.queue.add_at(turn.key, max(turn.plan.again, moment.now + _SOONEST))

    # ---- answers

    def _read(self, turn: Turn, reference: knowing.Reference, answer: Answer) -> None:
        before = self.observed.find(*reference)
        if answer.code not in ("", "notfound"):
            turn.doubtful, turn.left = True, []
            return
        self._doubts.get(turn.key, {}).pop(reference, None)
        if not self._doubts.get(turn.key):
            self._doubts.pop(turn.key, None)
        found = self.trimmed(reference[0], answer.object) if answer.object is not None else None
        if found is None:
            self.observed.lost(*reference)
        elif not self.observed.learned(reference[0], found, read=True):
            return
        self._changed(reference, before, found)

    def _confirmed(self, turn: Turn, request: requests.Confirm, answer: Answer) -> None:
        metadata = answer.object["metadata"] if answer.object is not None else {}
        if not request.uid and answer.object is None and answer.code in ("", "notfound"):
            return
        if answer.code or metadata.get("uid") != request.uid or metadata.get("deletionTimestamp"):
            turn.doubtful, turn.left = True, []
            self._doubts.setdefault(turn.key, {})[requests.target(request)] = None

    def _wrote(self, turn: Turn, request: Request, answer: Answer, now: int) -> None:
        reference = requests.target(request)
        before = self.observed.find(*reference)
        if isinstance(request, requests.Delete):
            self.observed.deleted(*reference, request.uid)
            self._changed(reference, before, None)
        elif answer.object is not None:
            found = self.trimmed(reference[0], answer.object)
            if self.observed.learned(reference[0], found):
                self._changed(reference, before, found)
        if reference in self.observed.unconfirmed:
            self._written.setdefault(turn.key, {})[reference] = now + _CONFIRMATION
            self.queue.add_at(turn.key, now + _CONFIRMATION)

    def _failed(self, turn: Turn, step: Step, answer: Answer) -> None:
        turn.doubtful = True
        if answer.code != "refused":
            turn.left = []
            self._doubts.setdefault(turn.key, {})[requests.target(step.request)] = None
            return
        first, turn.refused = not turn.refused, True
        if not isinstance(step.request, effects.Create):
            turn.left = []  # what comes after rests on it
        elif first:
            turn.left = turn.plan.when_refused(answer.message)
        if first:
            self._say(turn, "Warning", step.refused and (step.refused[0], step.refused[1] + answer.message))

    def _news(self, turn: Turn) -> list[tuple[str, str, str]]:
        """Give what is to be said after a turn and was not said after the last one: a verdict that stays the same is no news."""
        uid = turn.subject["metadata"].get("uid", "") if turn.subject is not None else ""
        before, said = self._said.pop(turn.key, ("", []))
        if turn.plan.notes:
            self._said[turn.key] = uid, turn.plan.notes
        return [note for note in turn.plan.notes if uid != before or note not in said]

    def _say(self, turn: Turn, kind: Any, said: tuple[str, str] | None) -> None:
        if said and turn.subject is not None:
            note = effects.Note(
                kind=turn.kind,
                namespace=turn.key.namespace,
                name=turn.key.name,
                uid=turn.subject["metadata"].get("uid", ""),
                type=kind,
                reason=said[0],
                message=said[1],
            )
            self._tell(note)
