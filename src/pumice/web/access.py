"""What each viewer may see: asked for the whole cluster first, then for namespaces with something to show; kept for five minutes, and limited in rate.

Only people who look are asked about, each once however many pages they have open. What is not known, or no longer, may not be seen.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.kube.calls.limiter import Limiter
from pumice.web import sight
from pumice.web.reviews import Question, ReviewError
from pumice.web.sight import Sight

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pumice.web.reviews import Person, Reviews

KEPT: Final = 300.0
RENEWED: Final = 240.0
"""Seconds after which an answer is asked for again, so that it is there before the old one ends."""
LOOKS: Final = 60.0
"""Seconds for which somebody counts as looking who was last seen then; an open page is seen every 15."""
RATE: Final = 20.0
BURST: Final = 60
TURN: Final = 20
"""Questions about one person before it is the next one's turn."""
AGAIN: Final = 5.0
"""Seconds until a review that failed is asked for again, and between two pictures of rights that are not all known."""
FIRST: Final = 10.0
"""Seconds that signing in waits for the first answers."""
MOST_PEOPLE: Final = 1000
MOST_OF_ONE: Final = 5
"""Of one name with different groups and the like."""

_POD, _GROUP, _NATIVE = (
    (kind.group, kind.plural) for kind in (kinds.POD, kinds.POD_GROUP, kinds.NATIVE_POD_GROUP)
)  # fmt: skip
_NODES: Final = Question(kinds.NODE.group, kinds.NODE.plural)
_QUEUES: Final = Question(kinds.QUEUE.group, kinds.QUEUE.plural)
NAMESPACED: Final = ((kinds.POD, _POD), (kinds.POD_GROUP, _GROUP), (kinds.NATIVE_POD_GROUP, _NATIVE))


class _Known:
    """What is known of one person."""

    def __init__(self, now: float) -> None:
        self.answers: dict[Question, tuple[bool, float]] = {}
        self.seen = now
        self.problem = ""
        self.rests_until = now
        self.missing = 0
        self.first = asyncio.Event()
        self.sight = sight.NOTHING
        self.drawn_until = now


class Access:
    """Knows what people may see. `shown` gives the namespaces in which there is anything of a kind, `policy` the namespace and the name of the ConfigMap that the policy stands in."""

    def __init__(
        self,
        reviews: Reviews,
        shown: Callable[[kinds.Kind], Collection[str]],
        policy: tuple[str, str],
        *,
        now: Callable[[], float] = time.monotonic,
        rate: float = RATE,
        burst: int = BURST,
    ) -> None:
        self._reviews = reviews
        self._shown = shown
        self._whole = (
            _NODES,
            _QUEUES,
            *(Question(*resource) for _, resource in NAMESPACED),
            Question("", "configmaps", *policy),
        )
        self._now = now
        self._limiter = Limiter(rate, burst)
        self._people: dict[Person, _Known] = {}
        self._wanted = asyncio.Event()

    async def meet(self, person: Person) -> None:
        """Ask about somebody who comes in, and wait until what is asked for the whole cluster is answered."""
        known = self._look(person)
        self._wanted.set()
        try:
            async with asyncio.timeout(FIRST):
                await known.first.wait()
        except TimeoutError:
            known.problem = known.problem or "the API server does not say what you may see"

    def sight(self, person: Person) -> Sight:
        """Say what somebody may see, as far as that is known."""
        known, now = self._look(person), self._now()
        if now >= known.drawn_until:
            known.sight = self._drawn(known, now)
            known.drawn_until = now + (AGAIN if known.missing else 1.0)
        return known.sight

    def notes(self, person: Person) -> list[str]:
        """Say what somebody should know of what they do not see."""
        known, found = self._look(person), self.sight(person)
        told = [known.problem] if known.problem else []
        if found.is_whole:
            return told
        if known.missing and not known.problem:
            told.append(f"{known.missing} questions about what you may see are not answered yet")
        if found.is_nothing:
            return [
                *told,
                f"{person.name} may list nothing that is shown here; a binding to the role pumice-vcjob-explainer-role would help",
            ]
        return [*told, "What you may not list is left out, and its names read “a job elsewhere”"]

    async def run(self) -> None:
        """Ask what is due, in turn for everybody who looks."""
        while True:
            if not await self.turn():
                self._wanted.clear()
                try:
                    async with asyncio.timeout(1.0):
                        await self._wanted.wait()
                except TimeoutError:
                    continue

    async def turn(self) -> bool:
        """Ask a few questions about each who looks, and forget who does no more; tells whether there were any."""
        self._forget()
        asked = False
        for person, known in list(self._people.items()):
            asked |= await self._ask(person, known)
        return asked

    async def _ask(self, person: Person, known: _Known) -> bool:
        """Ask a few questions about somebody who looks; tells whether there were any."""
        now = self._now()
        if now < known.rests_until or now - known.seen > LOOKS:
            return False
        due = list(itertools.islice(self._due(known, now), TURN))
        try:
            for question in due:
                await self._limiter.acquire()
                may = await self._reviews.may(person, question)
                known.answers[question] = (may, self._now())
        except ReviewError as error:
            known.problem, known.rests_until = str(error), self._now() + AGAIN
            known.first.set()
            return True
        if due:
            known.problem = ""
        if all(each in known.answers for each in self._whole):
            known.first.set()
        return bool(due)

    def _due(self, known: _Known, now: float) -> Iterator[Question]:
        """Walk over what is not known, or not for long."""
        for question in self._questions(known, now):
            found = known.answers.get(question)
            if found is None or found[1] < now - RENEWED:
                yield question

    def _questions(self, known: _Known, now: float) -> Iterator[Question]:
        yield from self._whole
        for kind, resource in NAMESPACED:
            if Question(*resource) in known.answers and not _is(known, Question(*resource), now):
                for namespace in sorted(self._shown(kind)):
                    yield Question(*resource, namespace)

    def _drawn(self, known: _Known, now: float) -> Sight:
        known.answers = {question: found for question, found in known.answers.items() if now - found[1] < KEPT}
        known.missing = sum(question not in known.answers for question in self._questions(known, now))
        pods, groups, native = (self._namespaces(known, kind, resource, now) for kind, resource in NAMESPACED)
        return Sight(
            nodes=_is(known, _NODES, now),
            queues=_is(known, _QUEUES, now),
            policy=_is(known, self._whole[-1], now),
            groups=groups,
            native_groups=native,
            pods=pods,
        )

    def _namespaces(
        self, known: _Known, kind: kinds.Kind, resource: tuple[str, str], now: float
    ) -> frozenset[str] | None:
        if _is(known, Question(*resource), now):
            return None
        return frozenset(each for each in self._shown(kind) if _is(known, Question(*resource, each), now))

    def _look(self, person: Person) -> _Known:
        now = self._now()
        known = self._people.get(person)
        if known is None:
            own = [each for each in self._people if each.name == person.name]
            if len(own) >= MOST_OF_ONE or len(self._people) >= MOST_PEOPLE:
                among = own if len(own) >= MOST_OF_ONE else self._people
                del self._people[min(among, key=lambda each: self._people[each].seen)]
            known = self._people[person] = _Known(now)
        known.seen = now
        return known

    def _forget(self) -> None:
        """Ask no more about people who do not look; what was answered is good for as long as it is kept."""
        now = self._now()
        for person in [each for each, known in self._people.items() if known.seen < now - max(LOOKS, KEPT)]:
            del self._people[person]


def _is(known: _Known, question: Question, now: float) -> bool:
    may, at = known.answers.get(question, (False, now))
    return may and now - at < KEPT
