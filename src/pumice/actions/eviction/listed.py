"""The searches of all evicting actions that the configuration lists: by any of them a waiting job may claim room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import gang_rules, rules
from pumice.actions.eviction.search import Search
from pumice.actions.eviction.settings import EvictingSettings, GangSettings

if TYPE_CHECKING:
    from pumice.framework.session import Session

_SINGLE: dict[str, type[rules.Rules]] = {"preempt": rules.Preempt, "reclaim": rules.Reclaim}
_GANGS: dict[str, type[gang_rules.GangRules]] = {
    "gangpreempt": gang_rules.GangPreempt,
    "gangreclaim": gang_rules.GangReclaim,
}


def searches(session: Session) -> list[Search]:
    """Return one search for each evicting action between jobs, in the order of the list, as the next cycle would make it."""
    found: list[Search] = []
    for action in session.configuration.actions:
        told = action.settings
        if action.name in _SINGLE and isinstance(told, EvictingSettings):
            found.append(Search(session, _SINGLE[action.name](session, told.asked)))
        elif action.name in _GANGS and isinstance(told, GangSettings):
            found.append(Search(session, _GANGS[action.name](session, told.asked)))
    for search in found:
        search.rules.look_ahead()
    return found
