"""The conditions of a group: this cycle's take the place of those of the same type, and what no longer holds becomes False, with the time of the change.

A condition that gives the same reason stays as it is, time and numbers included, so that it is not written again; a group that enters another phase gets the numbers of that moment, one
that goes on waiting those of later moments (`renewed`), as often as they may be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import names
from pumice.framework.reason_keys import has_other_numbers, is_news

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api.scheduling import PodGroupCondition, PodGroupStatus

    Stamp = Callable[[PodGroupCondition], PodGroupCondition]

TRUE, FALSE = "True", "False"
STARTED = frozenset({names.PHASE_RUNNING, names.PHASE_COMPLETED})


def merged(
    known: PodGroupStatus,
    given: Sequence[PodGroupCondition],
    phase: str,
    stamp: Stamp,
    *,
    retries: bool = False,
    empty: bool = False,
) -> tuple[PodGroupCondition, ...]:
    """Put this cycle's conditions in the place of those of the same type, and end those that no longer hold.

    A group that `retries` a bind that was refused is ready in one cycle and not in the next: what it is in turn is not ended, or every attempt would be written.
    One that is `empty` has no pods: what kept it from being let in is over once it is.
    """
    found = list(known.conditions)
    anew = phase != (known.phase or names.PHASE_PENDING)
    for condition in given:
        for position, old in enumerate(found):
            if old.type == condition.type:
                if not says(old, condition, exactly=anew):
                    found[position] = _since(old, stamp(condition))
                break
        else:
            found.append(stamp(condition))
    now = {condition.type for condition in given if not retries}
    for position, condition in enumerate(found):
        if (
            condition.status == TRUE
            and condition.type not in now
            and (why := _ended(condition, now, phase, empty=empty))
        ):
            # Without a reason of its own: the column that shows it is empty for a group that does not wait.
            over = msgspec.structs.replace(condition, status=FALSE, reason="", message=f"the group is {why}")
            found[position] = stamp(over)
    return tuple(found)


def renewed(known: PodGroupStatus, given: Sequence[PodGroupCondition]) -> PodGroupStatus | None:
    """Give conditions that hold for the same reason the numbers of this cycle, without another time; None if they have them."""
    messages = {condition.type: condition.message for condition in given}
    found = tuple(
        msgspec.structs.replace(old, message=messages[old.type])
        if old.status == TRUE and has_other_numbers(old.message, messages.get(old.type, old.message))
        else old
        for old in known.conditions
    )
    return None if found == known.conditions else msgspec.structs.replace(known, conditions=found)


def _since(old: PodGroupCondition, new: PodGroupCondition) -> PodGroupCondition:
    """Let a forecast of the same kind keep the time since when there is one: by that a place is remembered."""
    if new.type != names.CONDITION_START_FORECAST or (old.status, old.reason) != (new.status, new.reason):
        return new
    return msgspec.structs.replace(new, last_transition_time=old.last_transition_time)


def _ended(condition: PodGroupCondition, now: set[str], phase: str, *, empty: bool) -> str:
    """Say what a group is for which a condition of ours no longer holds; empty if it may still hold.

    What was only sent may be refused, so a group is unschedulable no longer when its members have their nodes.
    """
    if condition.type == names.CONDITION_START_FORECAST:
        return phase if phase in STARTED else ""
    if condition.type == names.CONDITION_SCHEDULED:
        return names.CONDITION_UNSCHEDULABLE if names.CONDITION_UNSCHEDULABLE in now else ""
    if condition.type != names.CONDITION_UNSCHEDULABLE:
        return ""
    if phase in STARTED:
        return phase
    if empty and phase == names.PHASE_INQUEUE:
        return "let in and has no pods yet"
    return "served again" if condition.reason == names.REASON_QUEUE_UNUSABLE else ""


def says(old: PodGroupCondition, new: PodGroupCondition, *, exactly: bool) -> bool:
    """Tell whether a condition gives the reason of another; exactly means in the same words, numbers included."""
    if (old.type, old.status, old.reason) != (new.type, new.status, new.reason):
        return False
    # Of a forecast its numbers are the news.
    exactly = exactly or new.type == names.CONDITION_START_FORECAST
    return old.message == new.message if exactly else not is_news(old.message, new.message)


def same(old: Sequence[PodGroupCondition], new: Sequence[PodGroupCondition]) -> bool:
    """Tell whether two lists differ in nothing a reader could care about."""
    return [_told(c) for c in old] == [_told(c) for c in new]


def _told(condition: PodGroupCondition) -> tuple[str, str, str, str]:
    return (condition.type, condition.status, condition.reason, condition.message)
