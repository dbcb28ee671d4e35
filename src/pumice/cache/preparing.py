"""Binds before which something has to be written: what waits for what, and what is taken back.

```
 begin() ──▶ Prepare of each member ──▶ all written ──▶ binds of the whole party ──▶ seen on its node: done
                   │ cannot be written, a member is gone            │ refused
                   └──────────▶ the party falls                     └──▶ give_back() ──▶ TakeBack until it has arrived
```

Pods of one job that leave together are a party: none is bound before everything is written for all of them, and if something cannot be written for one, none is bound. A write that may have arrived is repeated, which
changes nothing if it has; what is not needed any more is taken back until that has arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from pumice.api import kinds, names, timestamp
from pumice.cache import claims, preparation_writes, retry_pauses
from pumice.cache.effects import Bind, Prepare, TakeBack
from pumice.framework.record import BIND
from pumice.model.preparations import ClaimGrant, NodeLock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.cache.effects import FailureCode, Outcome
    from pumice.cache.mirror import Mirror
    from pumice.model.devices import decisions
    from pumice.model.preparations import Preparation

PATIENCE: Final = 30_000_000
TRIES: Final = 5
"""So often something is written again that failed in passing; then the pods are decided about anew."""


class Party(msgspec.Struct):
    """Binds that leave together; `waiting` is what is not written yet, with how often it was tried and when it is to be repeated or asked about.

    Once all is written, at `since`, devices may still lack conditions: these are waited for until `until`.
    """

    binds: dict[str, Bind]
    waiting: dict[str, Prepare]
    tries: dict[str, int]
    due: dict[str, int]
    since: int = 0
    until: int | None = None


class Returning(msgspec.Struct):
    """Something that is being taken back; `due` is when to send it again."""

    effect: TakeBack
    due: int
    tries: int = 0


class Verdict(msgspec.Struct, frozen=True):
    """What follows: binds that may leave, and pods that cannot be bound, with why."""

    ready: tuple[Bind, ...] = ()
    failed: tuple[tuple[str, str, FailureCode], ...] = ()


NOTHING: Final = Verdict()


class Preparing:
    """Parties on their way, what was written for whom, and what is being taken back."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._parties: dict[int, Party] = {}
        self._party_of: dict[str, int] = {}
        self._written: dict[
            str, Prepare
        ] = {}  # by uid, from when it is asked for until the pod is on its node or it is taken back
        self._returning: dict[str, Returning] = {}  # by uid
        self._decided: dict[
            str, decisions.ClaimReservation
        ] = {}  # by uid, what was decided about devices where that is written
        self._numbers = 0
        self._last_stamp = 0

    # -- beginning ---------------------------------------------------------------------------------------------

    def begin(self, binds: Sequence[Bind], preparations: Mapping[str, tuple[Preparation, ...]], now: int) -> None:
        """Have written what has to be there before the binds of one job, and keep these until it is."""
        self._last_stamp = max(now, self._last_stamp + 1)
        stamp = timestamp.format_timestamp(self._last_stamp)
        chosen = _allocations(preparations.values())
        self._numbers += 1
        party = self._parties[self._numbers] = Party({bind.uid: bind for bind in binds}, {}, {}, {})
        for bind in binds:
            self._party_of[bind.uid] = self._numbers
            wanted = tuple(_completed(each, stamp, chosen) for each in preparations.get(bind.uid, ()))
            if wanted:
                self._keep_after_all(bind.uid, wanted)
                effect = Prepare(
                    namespace=bind.namespace, name=bind.name, uid=bind.uid, node=bind.node, preparations=wanted
                )
                party.waiting[bind.uid] = effect
                if (decided := self._cache.cluster.devices.reservations.get(bind.uid)) is not None:
                    self._decided[bind.uid] = decided
                self._send(party, effect, now)
        if not party.waiting:
            party.until = now  # devices are looked at as soon as the decision counts

    def _keep_after_all(self, uid: str, wanted: tuple[Preparation, ...]) -> None:
        """Leave out of what is being taken back what is wanted again; if that was sent already, it comes before what is written now."""
        returning = self._returning.pop(uid, None)
        if returning is None:
            return
        again = [preparation_writes.target(each) for each in wanted]
        left = tuple(
            each
            for each in returning.effect.preparations
            if isinstance(each, NodeLock) or preparation_writes.target(each) not in again
        )
        if left:
            returning.effect = structs.replace(returning.effect, preparations=left)
            self._returning[uid] = returning

    def _send(self, party: Party, effect: Prepare, now: int) -> None:
        self._written[effect.uid] = effect
        party.due[effect.uid] = now + PATIENCE
        self._cache.world.send(effect)

    def is_under_way(self, uid: str) -> bool:
        """Tell whether the bind of a pod has not left yet."""
        return uid in self._party_of

    def is_being_taken_back(self, uid: str) -> bool:
        """Tell whether something that was written for a pod is being taken back, though it may still show."""
        return uid in self._returning

    # -- answers -----------------------------------------------------------------------------------------------

    def settle(self, effect: Prepare, outcome: Outcome, now: int) -> Verdict:
        """Take the answer about what was to be written."""
        party = self._parties.get(self._party_of.get(effect.uid, 0))
        if party is None or party.waiting.get(effect.uid) != effect:
            return NOTHING
        failure = outcome.failure
        if failure is None:
            del party.waiting[effect.uid]
            del party.due[effect.uid]
            return NOTHING
        tries = party.tries[effect.uid] = party.tries.get(effect.uid, 0) + 1
        if failure.code in ("unavailable", "unknown") and tries < TRIES:
            party.due[effect.uid] = now + max(retry_pauses.FIRST_DELAY, retry_pauses.delay(tries, failure.code))
            return NOTHING
        return self.fall(effect.uid, failure.message, failure.code)

    def _go_on(self, number: int, now: int) -> Verdict:
        """Let the binds of a party leave, for which everything is written, once the devices are ready."""
        party = self._parties[number]
        party.since = party.since or now
        party.until = None
        cluster = self._cache.cluster
        for uid, bind in party.binds.items():
            task = cluster.tasks.get(uid)
            if task is None:
                continue
            lacks = claims.unmet(task, cluster.devices, party.since)
            if lacks.failed:
                return self.fall(uid, f"its devices will not be ready: {', '.join(lacks.failed)}", "conflict")
            if lacks.waiting and lacks.until <= now:
                return self.fall(uid, f"its devices were not ready in time: {', '.join(lacks.waiting)}", "conflict")
            if lacks.waiting:
                text = f"waiting for conditions of devices on node {bind.node}: {', '.join(lacks.waiting)}"
                reason = names.EVENT_CONDITIONS_PENDING
                self._cache.note(kinds.POD, task.pod.metadata, "Normal", reason, text, once=True)
                party.until = lacks.until if party.until is None else min(party.until, lacks.until)
        return NOTHING if party.until is not None else self._leave(number)

    def _leave(self, number: int) -> Verdict:
        party = self._parties.pop(number)
        for uid in party.binds:
            del self._party_of[uid]
        return Verdict(ready=tuple(party.binds.values()))

    def fall(self, uid: str, message: str, code: FailureCode) -> Verdict:
        """Give up a whole party, because of one of its members."""
        number = self._party_of.get(uid)
        if number is None:
            return NOTHING
        ready = self._leave(number).ready
        culprit = next(bind for bind in ready if bind.uid == uid)
        others = f"it leaves together with {culprit.namespace}/{culprit.name}: {message}"
        return Verdict(failed=tuple((bind.uid, message if bind.uid == uid else others, code) for bind in ready))

    def settle_return(self, effect: TakeBack, outcome: Outcome, now: int) -> None:
        """Take the answer about what was to be taken back; what did not arrive is sent again."""
        known = self._returning.get(effect.uid)
        if known is None or known.effect != effect:
            return
        failure = outcome.failure
        if failure is None or failure.code == "notfound":
            del self._returning[effect.uid]
            self._cache.cluster.devices.release(_holder(effect.uid))
            self._cache.cluster.changed += 1  # whoever waited to know what a claim has may go on
            return
        known.tries += 1
        known.due = now + max(retry_pauses.FIRST_DELAY, retry_pauses.delay(known.tries, failure.code))
        what = f"what was prepared for pod {effect.namespace}/{effect.name} could not be taken back"
        self._cache.record.say(BIND, f"{what}: {failure.message}; attempt {known.tries} failed, it will be repeated")

    # -- ends --------------------------------------------------------------------------------------------------

    def done(self, uid: str) -> None:
        """Note that a pod is on the node that everything was prepared for: it keeps what was written, the locks for whoever left with it, too."""
        effect = self._written.pop(uid, None)
        self._decided.pop(uid, None)
        if effect is not None:
            self._spare([each for each in effect.preparations if isinstance(each, NodeLock)])

    def _spare(self, locks: Sequence[NodeLock]) -> None:
        """Leave locks to the device plugin, which takes them off."""
        for uid, effect in list(self._written.items()) if locks else ():
            left = tuple(each for each in effect.preparations if each not in locks)
            if left != effect.preparations:
                self._written[uid] = structs.replace(effect, preparations=left)

    def give_back(self, uid: str, now: int) -> None:
        """Have taken back what was written for a pod that is not bound, but for locks that others rely on who left with it.

        Devices that a claim may have been given count as given until it is known what the claim has.
        """
        effect = self._written.pop(uid, None)
        decided = self._decided.pop(uid, None)
        if effect is None:
            return
        wanted = self._not_relied_on(effect.preparations)
        if not wanted:
            return
        back = TakeBack(namespace=effect.namespace, name=effect.name, uid=uid, preparations=wanted)
        before = self._returning.get(uid)
        if before is not None:
            back = structs.replace(back, preparations=(*before.effect.preparations, *wanted))
        self._returning[uid] = Returning(back, now + PATIENCE)
        if decided is not None:
            self._cache.cluster.devices.reserve(_holder(uid), decided)
        self._cache.world.send(back)

    def _not_relied_on(self, wanted: tuple[Preparation, ...]) -> tuple[Preparation, ...]:
        """Leave out locks that were written for others, too."""
        if not any(isinstance(each, NodeLock) for each in wanted):
            return wanted
        relied_on = [each for other in self._written.values() for each in other.preparations]
        return tuple(each for each in wanted if not (isinstance(each, NodeLock) and each in relied_on))

    def forget(self, uid: str) -> None:
        """Drop what was begun for a pod, as if it had never been: nothing is taken back."""
        number = self._party_of.get(uid)
        if number is not None:
            self._leave(number)
        self._written.pop(uid, None)

    # -- time --------------------------------------------------------------------------------------------------

    def leaving(self, now: int) -> list[Verdict]:
        """Say of every party for which all is written whether its binds may leave, or cannot."""
        return [self._go_on(number, now) for number, party in list(self._parties.items()) if not party.waiting]

    def review(self, now: int) -> None:
        """Repeat what is due; an answer that stays away is asked for by doing it again."""
        for party in self._parties.values():
            for uid, due in list(party.due.items()):
                if due <= now:
                    again = party.waiting[uid] = structs.replace(party.waiting[uid])
                    self._send(party, again, now)
        for returning in self._returning.values():
            if returning.due <= now:
                returning.due = now + PATIENCE
                returning.effect = structs.replace(returning.effect)
                self._cache.world.send(returning.effect)

    def next_wake(self) -> int | None:
        """Return when something is to be repeated."""
        times = [due for party in self._parties.values() for due in party.due.values()]
        times += [party.until for party in self._parties.values() if party.until is not None]
        times += [returning.due for returning in self._returning.values()]
        return min(times, default=None)


def _holder(uid: str) -> str:
    """Name who holds the devices of a pod while what was written for it is taken back."""
    return f"returning {uid}"


def _allocations(preparations: Iterable[tuple[Preparation, ...]]) -> dict[str, ClaimGrant]:
    """Return the devices that were chosen for claims, by claim: whoever shares one says the same."""
    listed = (each for several in preparations for each in several if isinstance(each, ClaimGrant))
    return {each.key: each for each in listed if each.allocation is not None}


def _completed(preparation: Preparation, stamp: str, chosen: dict[str, ClaimGrant]) -> Preparation:
    if isinstance(preparation, NodeLock):
        return structs.replace(preparation, stamp=stamp)
    if isinstance(preparation, ClaimGrant) and preparation.allocation is None and preparation.key in chosen:
        return structs.replace(preparation, allocation=chosen[preparation.key].allocation)
    return preparation
