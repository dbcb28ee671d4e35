"""How large a round is: as large as rounds turn out to be of use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.framework.session import Session

# How many turns the first round is for, and the most that one is for.
FIRST, MOST = 16, 256


class RoundSize:
    """Grows as long as all turns of a round are taken; after rounds in vain turns are taken one by one for a while, longer each time."""

    __slots__ = ("_pause", "_rests", "turns")

    def __init__(self) -> None:
        self.turns = FIRST
        # After rounds in vain so many turns are taken one by one, and so many are left of that.
        self._pause = self._rests = 0

    def rests(self) -> bool:
        """Tell whether the next turn is one of those that are taken alone, and count it."""
        self._rests -= (resting := self._rests > 0)
        return resting

    def adapt(self, served: int) -> None:
        """Learn how many turns of a round were taken."""
        if served > 1:
            self.turns = min(MOST, 2 * self.turns) if served == self.turns else self.turns
            self._pause = 0
        else:
            self.turns = max(2, self.turns // 2)
            self._rests = self._pause = min(MOST, 2 * self._pause + 1)


def may_be_played(session: Session) -> bool:
    """Tell whether nobody names nodes, has a say before binds or before a job is tried, or has room held, each of which is for turns of their own."""
    asks = session.pre_bind.active or session.job_delay.active or session.reservations.holds
    return session.shortcuts.rounds and session.independence.nodes_are_chosen_by_scores and not asks
