"""The searches of all evicting actions that the configuration lists: by any of them a waiting job may claim room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import bundles, rules
from pumice.actions.eviction.bundles import BundleSearch
from pumice.actions.eviction.search import Search

if TYPE_CHECKING:
    from pumice.framework.session import Session


def searches(session: Session) -> list[Search]:
    """Return one search for each evicting action between jobs, in the order of the list."""
    found: list[Search] = []
    for action in session.configuration.actions:
        match action.name:
            case "preempt":
                found.append(Search(session, rules.Preempt(session, action.arguments)))
            case "reclaim":
                found.append(Search(session, rules.Reclaim(session, action.arguments)))
            case "gangpreempt" | "gangreclaim":
                made = bundles.GangPreempt if action.name == "gangpreempt" else bundles.GangReclaim
                whole = bool(action.arguments.get("allowWholeBundle", True))
                found.append(BundleSearch(session, made(session, action.arguments), allow_whole=whole))
    return found
