"""Where plugins of one cycle find each other: the cards that are shared, and who prefers some of them to others. Either may be opened first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.plugins.deviceshare.holdings import Holdings, Preference

_CARDS: Final = "shared cards"
_PREFERENCE: Final = "preferred cards"


def share(session: Session, holdings: Holdings) -> None:
    """Let others know of cards; in this cycle they are given out by whatever preference there is."""
    session.scratch[_CARDS] = holdings
    holdings.preference = None
    _join(session)


def prefer(session: Session, preference: Preference) -> None:
    """Give cards out by a preference in this cycle."""
    session.scratch[_PREFERENCE] = preference
    _join(session)


def _join(session: Session) -> None:
    holdings = cast("Holdings | None", session.scratch.get(_CARDS))
    preference = cast("Preference | None", session.scratch.get(_PREFERENCE))
    if holdings is not None and preference is not None:
        holdings.preference = preference
        preference.know(holdings)
