"""Those who propose plans, behind one protocol: each makes one plan after the other inside its statement, the cheapest by its bounds first, and decides nothing.

What is proposed is judged by `judge`; a wrong proposal costs time, never a pod. Whoever asks for the next plan has undone the last, so that each begins with nothing done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.actions.eviction import exhaustive
from pumice.actions.eviction.bundles import Bundles
from pumice.actions.eviction.equal_claimants import EqualClaimants
from pumice.actions.eviction.offers import Offers
from pumice.actions.eviction.plan import orders
from pumice.actions.placing import likeness

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pumice.actions.eviction.asking import Wanted
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.task import Task


class Proposer(Protocol):
    """Makes plans for what is wanted, one after the other."""

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Make the next plan; it is undone before another is asked for."""


class Room:
    """Room that is free or being released, without any victim."""

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Place as many members as are enough, as allocate would."""
        if plan.arrange_enough(wanted.tasks, wanted.done):
            yield


class CheapestNodes:
    """Each member where it costs least, one after the other."""

    def __init__(self, rules: Rules, offers: Offers) -> None:
        self._rules = rules
        self._offers = offers

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Place members in their own order, and in others if they differ; gang forms come here only if they may take jobs whole."""
        if not self._rules.node_by_node and not self._rules.allows_whole:
            return
        for ordered in orders(plan, wanted.tasks if self._rules.node_by_node else wanted.with_requests):
            if self._is_filled(plan, ordered, wanted.done):
                yield
            plan.start_again()

    def _is_filled(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place members until the job has what the plan is for; those that are like one for which there is no offer are passed over."""
        hopeless: dict[Hashable, None] = {}
        for member in tasks:
            kind = likeness.of_member(plan.session, member)
            if kind in hopeless:
                continue
            if not self._offers.place(plan, member):
                hopeless[kind] = None
            elif done():
                return True
        return False


class Proposers:
    """All that propose by the rules of one action, in the order in which they are asked, with what they know of one cycle."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self.offers = Offers(session, rules)
        self.equals = EqualClaimants(session, self.offers)
        every_set, cheapest = exhaustive.EverySet(rules), CheapestNodes(rules, self.offers)
        self._asked: list[Proposer] = (
            [self.equals, Room(), every_set, cheapest]
            if rules.node_by_node
            else [Room(), every_set, cheapest, Bundles(session, rules)]
        )

    def proposals(self, plan: Plan, wanted: Wanted) -> Iterator[None]:
        """Ask one after the other."""
        for proposer in self._asked:
            for _ in proposer.proposals(plan, wanted):
                yield
                plan.start_again()
            plan.start_again()
