"""What answers depend on, as named facts of a session: whoever takes a shortcut asks here whether it may.

The facts follow from what functions declare that they read, and from what handlers say of themselves; each is found out once, when it is first asked for. What
the functions about nodes read is sorted in `functions.Functions`, which these facts rest on. Nobody else looks at `reads`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

from pumice.framework.reads import NOTHING, Reads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.handlers import Handlers

SINGLE = Reads.TASK | Reads.JOB | Reads.QUEUE | Reads.TIME


class Declared(Protocol):
    """A function that says what it reads."""

    @property
    def reads(self) -> Reads:
        """What its answers depend on."""


class Asked(Protocol):
    """What a session knows of those who are asked, and of those who follow placements."""

    @property
    def pre_predicate(self) -> Iterable[Declared]:
        """Who may refuse a pod before nodes are looked at."""

    @property
    def allocatable(self) -> Iterable[Declared]:
        """Who limits queues."""

    @property
    def job_valid(self) -> Iterable[Declared]:
        """Who says that a job cannot be scheduled at all."""

    @property
    def job_pipelined(self) -> Iterable[Declared]:
        """Who says whether enough of a job is placed or waits."""

    @property
    def job_starving(self) -> Iterable[Declared]:
        """Who says whether a job starves."""

    @property
    def names_nodes(self) -> bool:
        """Whether a plugin names nodes."""

    @property
    def handlers(self) -> Handlers:
        """Who follows placements: whether any may refuse one, or has to be told of each run before the next is applied."""


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
        return not self._session.handlers.may_refuse

    @property
    def placements_are_told_together(self) -> bool:
        """Whether nobody may refuse a placement, and whoever follows them can be told of many at once."""
        return not (self._session.handlers.may_refuse or self._session.handlers.look_around)

    # -- jobs and queues ---------------------------------------------------------------------------------------

    @functools.cached_property
    def limits_go_by_queues(self) -> bool:
        """Whether what a queue may take on depends on the queue and on amounts alone, whoever asks."""
        return all(each.reads in (NOTHING, Reads.QUEUE) for each in self._session.allocatable)

    @functools.cached_property
    def validity_goes_by_queues(self) -> bool:
        """Whether a job and its pods, and the objects of queues, alone say whether it can be scheduled at all."""
        return all(each.reads in (NOTHING, Reads.QUEUE) for each in self._session.job_valid)

    @functools.cached_property
    def waiting_goes_by_numbers(self) -> bool:
        """Whether the numbers of a job alone say whether enough of it is placed or waits for release."""
        return read_nothing(self._session.job_pipelined)


def read_nothing(functions: Iterable[Declared]) -> bool:
    """Tell whether functions go by numbers, priorities and shapes alone, so that those who are equal in these are answered alike."""
    return all(each.reads == NOTHING for each in functions)
