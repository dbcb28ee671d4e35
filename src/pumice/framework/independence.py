"""What answers depend on, as named facts of a session, and of those who decide about victims: whoever takes a shortcut asks here whether it may.

The facts follow from what functions declare that they read, from tiers, and from what handlers say of themselves; each is found out once, when it is first asked for. What
the functions about nodes read is sorted in `functions.Functions`, which these facts rest on. Nobody else looks at `reads` (`tests/layers`).
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Protocol

from pumice.framework.reads import MOVED, NOTHING, SINGLE, Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.handlers import Handlers

# Where three functions share a tier, two may agree on nobody and the third decide alone.
VOICES = 2


class Declared(Protocol):
    """A function that says what it reads."""

    @property
    def reads(self) -> Reads:
        """What its answers depend on."""


class Named(Declared, Protocol):
    """One that is a plugin's."""

    @property
    def plugin(self) -> str:
        """Whose it is."""


class Asked(Protocol):
    """What a session knows of those who are asked, and of those who follow placements."""

    @property
    def pre_predicate(self) -> Iterable[Named]:
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

    def names_apart(self, plugin: str) -> bool:
        """Whether a plugin names what its filters tell pods of one shape apart by."""


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
        return not (self._nodes.tells_subjects_apart or self._refusals_pass or self._refusals_read & SINGLE)

    @property
    def siblings_share_answers(self) -> bool:
        """Whether nodes answer alike about pods of one likeness in one job."""
        return not (self._nodes.tells_tasks_apart or self._refusals_pass or self._refusals_read & Reads.TASK)

    @property
    def nodes_are_chosen_by_scores(self) -> bool:
        """Whether no plugin names nodes."""
        return not self._session.names_nodes

    @functools.cached_property
    def refusals_go_by_shape(self) -> bool:
        """Whether what is asked before nodes are looked at depends on nothing but the shape of a pod."""
        return not any(each.reads & (SINGLE | MOVED) for each in self._session.pre_predicate)

    @functools.cached_property
    def _refusals_pass(self) -> bool:
        """Whether what is asked before nodes are looked at has to be asked again after each placement."""
        return any(each.reads & MOVED for each in self._session.pre_predicate)

    @functools.cached_property
    def _refusals_read(self) -> Reads:
        """What is read by those who are asked before nodes are looked at, unless their plugin names what its filters tell equals apart by."""
        asked = self._session.pre_predicate
        return functools.reduce(
            operator.or_, (e.reads for e in asked if not self._nodes.names_apart(e.plugin)), Reads(0)
        )

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


class Voting(Protocol):
    """Those who vote about victims, by tier; with a final veto all of them are one."""

    @property
    def tiers(self) -> Sequence[Sequence[Declared]]:
        """The functions of each tier."""

    @property
    def final_veto(self) -> bool:
        """Whether one intersection over all tiers decides."""


class Victims:
    """The facts about those who decide who may be evicted: the functions that vote, and the protections."""

    def __init__(self, voting: Voting, protections: Iterable[Declared]) -> None:
        self._voting = voting
        self._voices = [each for tier in voting.tiers for each in tier]
        self._protections = list(protections)

    @functools.cached_property
    def votes_go_by_numbers(self) -> bool:
        """Whether votes know of claimants and candidates nothing but priorities, shapes and the numbers of jobs."""
        return read_nothing(self._voices)

    @functools.cached_property
    def votes_go_by_priority(self) -> bool:
        """Whether votes say the same for all claimants of one queue and one priority, whatever jobs and queues hold."""
        return not self._votes_read(Reads.JOB | Reads.QUEUE | Reads.OTHER_NODES | Reads.COLUMNS)

    @functools.cached_property
    def votes_know_jobs(self) -> bool:
        """Whether votes know who a claimant is."""
        return self._votes_read(Reads.JOB)

    @functools.cached_property
    def votes_know_amounts(self) -> bool:
        """Whether votes know what a claimant asks for and what its job holds."""
        return self._votes_read(Reads.COLUMNS)

    @functools.cached_property
    def votes_count_who_goes(self) -> bool:
        """Whether votes know what jobs hold with those gone who are offered before."""
        return self._votes_read(Reads.OTHER_NODES)

    def _votes_read(self, reads: Reads) -> bool:
        return any(each.reads & reads for each in self._voices)

    @functools.cached_property
    def nobody_is_outvoted(self) -> bool:
        """Whether a candidate goes if and only if every function would let it go, whoever else is asked about."""
        voices = [len(tier) for tier in self._voting.tiers if tier]
        return self._voting.final_veto or not voices or (len(voices) == 1 and voices[0] <= VOICES)

    @functools.cached_property
    def first_tier_of_several(self) -> int | None:
        """The first tier that votes, if others do too and all it knows of a candidate are its numbers: whom it gives alone it gives, or another in his place, when asked about many."""
        voting = [number for number, tier in enumerate(self._voting.tiers) if tier]
        return voting[0] if len(voting) > 1 and read_nothing(self._voting.tiers[voting[0]]) else None

    @functools.cached_property
    def candidates_are_looked_at(self) -> bool:
        """Whether anybody knows more of a candidate than its numbers."""
        return any(looks_at_pods(each) for each in (*self._voices, *self._protections))

    @functools.cached_property
    def protections_go_by_pod_or_queue(self) -> bool:
        """Whether each protection knows of a pod itself alone, or its queue alone."""
        return all(not each.reads & ~Reads.TASK or goes_by_queue(each) for each in self._protections)

    @functools.cached_property
    def protections_stay(self) -> bool:
        """Whether what is said of a pod stays so whoever else goes, but for the protections of queues, which protect nobody inside them."""
        return all(
            not each.reads & (Reads.OTHER_NODES | Reads.QUEUE) or goes_by_queue(each) for each in self._protections
        )


class Based(Declared, Protocol):
    """A function that may say what its answers rest on."""

    @property
    def basis(self) -> Callable[[], object] | None:
        """What gives that."""


def goes_by_queue(function: Declared) -> bool:
    """Tell whether a protection knows of a pod its queue, what queues hold, its shape and what has to go with it, and nothing else."""
    return function.reads == Reads.QUEUE


def looks_at_pods(function: Declared) -> bool:
    """Tell whether a function knows more of a candidate than its numbers."""
    return bool(function.reads & Reads.TASK)


def counts_evictions(function: Declared) -> bool:
    """Tell a protection that counts who goes, anywhere, from those that look at one pod and from those of queues, which judge what goes together once."""
    return bool(function.reads & Reads.OTHER_NODES)


def stays_with_its_basis(function: Based) -> bool:
    """Tell whether answers stay what they are as long as what they rest on does: nobody reads the clock, or more of jobs, queues and nodes than is said."""
    return not function.reads & Reads.TIME and (function.basis is not None or not function.reads & ~Reads.TASK)


def read_nothing(functions: Iterable[Declared]) -> bool:
    """Tell whether functions go by numbers, priorities and shapes alone, so that those who are equal in these are answered alike."""
    return all(each.reads == NOTHING for each in functions)
