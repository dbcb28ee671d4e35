"""What answers depend on, as named facts of a session: whoever takes a shortcut asks here whether it may.

The facts follow from what functions declare that they read, from the tiers in which they vote, and from what handlers say of themselves; each is found out once, when it is first asked for. What
the functions about nodes read is sorted in `functions.Functions`, which these facts rest on. Nobody else looks at `reads`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

from pumice.framework.reads import NOTHING, Reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SINGLE = Reads.TASK | Reads.JOB | Reads.QUEUE | Reads.TIME
# Where three functions share a tier, two may agree on nobody and the third decide alone.
VOICES = 2


class Declared(Protocol):
    """A function that says what it reads."""

    @property
    def reads(self) -> Reads:
        """What its answers depend on."""


class Voted(Protocol):
    """A point at which functions vote in tiers."""

    @property
    def tiers(self) -> Sequence[Sequence[Declared]]:
        """The functions, in the order of tiers."""

    @property
    def final_veto(self) -> bool:
        """Whether an empty intersection is final."""


class Asked(Protocol):
    """What a session knows of those who are asked, and of those who follow placements."""

    @property
    def pre_predicate(self) -> Iterable[Declared]:
        """Who may refuse a pod before nodes are looked at."""

    @property
    def allocatable(self) -> Iterable[Declared]:
        """Who limits queues."""

    @property
    def job_pipelined(self) -> Iterable[Declared]:
        """Who says whether enough of a job is placed or waits."""

    @property
    def job_starving(self) -> Iterable[Declared]:
        """Who says whether a job starves."""

    @property
    def protection(self) -> Iterable[Declared]:
        """Who protects pods from eviction."""

    @property
    def names_nodes(self) -> bool:
        """Whether a plugin names nodes."""

    @property
    def handlers_may_refuse(self) -> bool:
        """Whether any handler may refuse a placement; one that has done so once may do so again."""

    @property
    def handlers_look_around(self) -> bool:
        """Whether any handler has to be told of each run before the next is applied."""


class NodeFacts(Protocol):
    """What is known of the functions about nodes."""

    @property
    def looks_at_all_nodes(self) -> bool:
        """Whether searches do not stop where enough nodes were found."""

    @property
    def tells_subjects_apart(self) -> bool:
        """Whether any function reads more of a subject than its shape."""

    @property
    def tells_tasks_apart(self) -> bool:
        """Whether any function reads more of a task than its shape, its job and its queue."""


class Independence:
    """The facts of one session."""

    def __init__(self, session: Asked, nodes: NodeFacts) -> None:
        self._session = session
        self._nodes = nodes

    # -- nodes -------------------------------------------------------------------------------------------------

    @property
    def all_nodes_are_looked_at(self) -> bool:
        """Whether a search does not stop where enough nodes were found, and so ends the same wherever it begins."""
        return self._nodes.looks_at_all_nodes

    @property
    def equals_share_answers(self) -> bool:
        """Whether nodes answer alike about pods of one likeness, whosever they are and whenever they ask."""
        return not self._nodes.tells_subjects_apart

    @property
    def siblings_share_answers(self) -> bool:
        """Whether nodes answer alike about pods of one likeness in one job."""
        return not self._nodes.tells_tasks_apart

    @property
    def nodes_are_chosen_by_scores(self) -> bool:
        """Whether no plugin names nodes."""
        return not self._session.names_nodes

    @functools.cached_property
    def refusals_go_by_shape(self) -> bool:
        """Whether what is asked before nodes are looked at depends on nothing but the shape of a pod."""
        return not any(each.reads & SINGLE for each in self._session.pre_predicate)

    # -- placements --------------------------------------------------------------------------------------------

    @property
    def placements_stand(self) -> bool:
        """Whether nobody who follows placements may refuse one."""
        return not self._session.handlers_may_refuse

    @property
    def placements_are_told_together(self) -> bool:
        """Whether nobody may refuse a placement, and whoever follows them can be told of many at once."""
        return not (self._session.handlers_may_refuse or self._session.handlers_look_around)

    # -- jobs and queues ---------------------------------------------------------------------------------------

    @functools.cached_property
    def limits_go_by_queues(self) -> bool:
        """Whether what a queue may take on depends on the queue and on amounts alone, whoever asks."""
        return all(each.reads in (NOTHING, Reads.QUEUE) for each in self._session.allocatable)

    @functools.cached_property
    def waiting_goes_by_numbers(self) -> bool:
        """Whether the numbers of a job alone say whether enough of it is placed or waits for release."""
        return read_nothing(self._session.job_pipelined)

    @functools.cached_property
    def starving_goes_by_numbers(self) -> bool:
        """Whether the numbers of a job alone say whether it starves: how many of its pods are placed, wait for room, and exist."""
        return read_nothing(self._session.job_starving)

    # -- victims -----------------------------------------------------------------------------------------------

    @functools.cached_property
    def protections_stay(self) -> bool:
        """Whether who is protected stays so whoever else goes, inside one queue: nothing counts evictions."""
        counting = Reads.OTHER_NODES | Reads.QUEUE
        return all(not each.reads & counting or each.reads == Reads.QUEUE for each in self._session.protection)

    @functools.cached_property
    def protections_know_no_job(self) -> bool:
        """Whether protections know of a pod nothing but itself, or its queue and what that holds."""
        return all(not each.reads & ~Reads.TASK or each.reads == Reads.QUEUE for each in self._session.protection)

    @functools.cached_property
    def pods_are_protected_alone(self) -> bool:
        """Whether protections other than those of queues know of a pod nothing but itself, so that what they say stays so."""
        return all(not each.reads & ~Reads.TASK for each in self._session.protection if knows_more_than_queues(each))


def read_nothing(functions: Iterable[Declared]) -> bool:
    """Tell whether functions go by numbers, priorities and shapes alone, so that those who are equal in these are answered alike."""
    return all(each.reads == NOTHING for each in functions)


def go_by_priority(functions: Iterable[Declared]) -> bool:
    """Tell whether functions know of who asks its queue, its priority and what it asks for, and not who it is."""
    return not any(each.reads & Reads.JOB for each in functions)


def knows_the_pod(function: Declared) -> bool:
    """Tell whether a function reads more of a pod than its shape."""
    return bool(function.reads & Reads.TASK)


def knows_queues_alone(function: Declared) -> bool:
    """Tell whether a protection knows of a pod its queue, what queues hold, its shape and what has to go with it, and nothing else."""
    return function.reads == Reads.QUEUE


def knows_more_than_queues(function: Declared) -> bool:
    """Tell whether a protection knows more of a pod than its queue."""
    return not knows_queues_alone(function)


def counts_evictions(function: Declared) -> bool:
    """Tell a protection that counts who goes, anywhere, from those that look at one pod and from queues, which judge what goes together once."""
    return bool(function.reads & Reads.OTHER_NODES) and not function.reads & Reads.QUEUE


def nobody_is_outvoted(votes: Voted) -> bool:
    """Tell whether a candidate goes if and only if every function would let it go, whoever else is asked about."""
    voices = [len(tier) for tier in votes.tiers if tier]
    return votes.final_veto or not voices or (len(voices) == 1 and voices[0] <= VOICES)
