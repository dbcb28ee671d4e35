"""What an explanation consists of: plain records, amounts as Kubernetes quantities, lists in an order that follows from the state alone."""

from __future__ import annotations

from typing import Literal

import msgspec

Shown = dict[str, str]  # a resource and how much of it, as a Kubernetes quantity


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an explanation."""


# -- placement -------------------------------------------------------------------------------------------------


class NearestMiss(Fact, frozen=True, kw_only=True):
    """The node of a group that lacks least: by how much, and what else would keep the pod off it if it had that (empty: nothing)."""

    node: str
    short: Shown
    otherwise: str = ""


class Detail(Fact, frozen=True, kw_only=True):
    """What exactly a reason means on some nodes of a group: the taint, or the label that is missing."""

    text: str
    count: int


class NodeGroup(Fact, frozen=True, kw_only=True):
    """The nodes that were rejected for the same first reason.

    `resource` is what they are short of, with `nearest` the one that lacks least; other reasons are those of a plugin's filter. `curable` tells whether evicting pods could help.
    """

    reason: str
    count: int
    first: str
    plugin: str = ""
    resource: str = ""
    asked: str = ""
    curable: bool = True
    nearest: NearestMiss | None = None
    details: tuple[Detail, ...] = ()


class Placement(Fact, frozen=True, kw_only=True):
    """Where equal members of a job could go: how many nodes take one now, and all others by the first reason that rejects them.

    `fitting` and the counts of the groups add up to `nodes`. `refusal` is what a plugin says before any node is looked at.
    """

    pod: str
    members: int
    request: Shown
    nodes: int
    fitting: int
    groups: tuple[NodeGroup, ...] = ()
    refusal: str = ""


# -- gang ------------------------------------------------------------------------------------------------------


class MissingMember(Fact, frozen=True, kw_only=True):
    """Members of a gang, equal to each other, that find no place beside the others; why is said with the others in their places."""

    pod: str
    count: int
    reason: str
    role: str = ""
    placement: Placement | None = None


class GangVerdict(Fact, frozen=True, kw_only=True):
    """How much of a gang could start: `placed` have their places, `fit` more find one beside each other, `missing` do not.

    Members beyond the minimum count too. `enough` tells whether that is all the gang needs.
    """

    members: int
    minimum: int
    placed: int
    fit: int
    enough: bool
    missing: tuple[MissingMember, ...] = ()


# -- queue -----------------------------------------------------------------------------------------------------


class Holder(Fact, frozen=True, kw_only=True):
    """Who holds how much of a resource."""

    name: str
    amount: str
    pods: int = 0


class Dimension(Fact, frozen=True, kw_only=True):
    """A resource in which a queue has no room for what a job wants.

    `have` is what the queue (or `queue`, one above it) holds, `letIn` what groups that were let in may still take, `want` what the job asks for, `limit` what the
    queue may hold by its `ceiling`, its `due`, or the `room` that others leave.
    """

    resource: str
    queue: str
    have: str
    want: str
    limit: str
    kind: Literal["ceiling", "due", "room"]
    let_in: str = "0"
    holders: tuple[Holder, ...] = ()
    other_holders: int = 0


class QueueVerdict(Fact, frozen=True, kw_only=True):
    """What a job's queue says to it: who refuses it and why, and in which resources."""

    queue: str
    state: str
    refusals: tuple[str, ...] = ()
    dimensions: tuple[Dimension, ...] = ()


class PluginVote(Fact, frozen=True, kw_only=True):
    """What one plugin answers at one extension point about the job."""

    point: str
    plugin: str
    answer: Literal["for", "against", "abstains"]
    reason: str = ""


# -- eviction --------------------------------------------------------------------------------------------------


class CandidateGroup(Fact, frozen=True, kw_only=True):
    """Candidates that stay for the same reason; `offered` ones may go, but that helps nobody."""

    reason: str
    count: int
    first: str
    offered: bool = False


class EvictionVerdict(Fact, frozen=True, kw_only=True):
    """Why an action evicts nobody for a job: the pods it could think of, by the first reason that keeps them; the groups add up to `candidates`.

    Where there are very many, those beyond the first thousands are `unseen`.
    """

    action: str
    candidates: int
    groups: tuple[CandidateGroup, ...] = ()
    unseen: int = 0


class ActionVerdict(Fact, frozen=True, kw_only=True):
    """What an action did with a job in a cycle; `cycle` 0 means that it had nothing to do with it."""

    action: str
    cycle: int
    said: str


class Hold(Fact, frozen=True, kw_only=True):
    """Room that is held for a pod, and whose going it waits for."""

    pod: str
    job: str
    node: str
    request: Shown
    awaits: tuple[str, ...] = ()


# -- whole explanations ----------------------------------------------------------------------------------------

State = Literal["invalid", "without pods", "not let in", "waits", "holds room", "starts", "runs", "ended"]


class JobExplanation(Fact, frozen=True, kw_only=True):
    """Why a job waits, or how it stands; `cause` is the one sentence that its pods and its group begin with, too, and `reason` what they say after it."""

    job: str
    queue: str
    phase: str
    state: State
    cause: str = ""
    reason: str
    priority: int
    minimum: int
    members: dict[str, int]
    cycle: int
    actions: tuple[ActionVerdict, ...] = ()
    queue_verdict: QueueVerdict | None = None
    votes: tuple[PluginVote, ...] = ()
    placements: tuple[Placement, ...] = ()
    gang: GangVerdict | None = None
    evictions: tuple[EvictionVerdict, ...] = ()
    holds: tuple[Hold, ...] = ()
    notes: tuple[str, ...] = ()
    forecast: str = ""  # when it is expected to start, and what would bring that forward; where that is planned


class PodExplanation(Fact, frozen=True, kw_only=True):
    """How one pod stands, in its job."""

    pod: str
    status: str
    node: str
    cause: str = ""
    reason: str
    placement: Placement | None
    notes: tuple[str, ...]
    job: JobExplanation | None


class QueueDimension(Fact, frozen=True, kw_only=True):
    """How a queue stands in one resource; empty where nobody limits it or nothing is due."""

    resource: str
    held: str
    asked: str
    let_in: str
    due: str
    ceiling: str
    guarantee: str
    room: str


class QueueJob(Fact, frozen=True, kw_only=True):
    """A job of a queue: what it holds and asks for, in which phase."""

    job: str
    phase: str
    priority: int
    running: int
    waiting: int
    held: Shown
    asked: Shown


class Claim(Fact, frozen=True, kw_only=True):
    """What a queue could have back from another, by what each holds and is due; `job` is the first job that would get it, `refusal` why it may not ask."""

    claimant: str
    job: str
    owner: str
    amounts: Shown
    refusal: str = ""


class Going(Fact, frozen=True, kw_only=True):
    """A pod that was evicted, and for whom."""

    pod: str
    job: str
    claimant: str


class QueueExplanation(Fact, frozen=True, kw_only=True):
    """How a queue stands: its share, what it is due, who holds what, what would be reclaimed for whom; `waiting` are its first jobs that wait, in the order in which they would be served."""

    queue: str
    state: str
    parent: str
    weight: int
    priority: int
    reclaimable: bool
    plugin: str
    share: float | None
    overused: str
    dimensions: tuple[QueueDimension, ...]
    jobs: tuple[QueueJob, ...]
    other_jobs: int
    claims: tuple[Claim, ...] = ()
    claimed: tuple[Claim, ...] = ()
    going: tuple[Going, ...] = ()
    children: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class NodePod(Fact, frozen=True, kw_only=True):
    """A pod on a node."""

    pod: str
    job: str
    queue: str
    status: str
    request: Shown


class NodeAmount(Fact, frozen=True, kw_only=True):
    """How a node stands in one resource."""

    resource: str
    allocatable: str
    used: str
    releasing: str
    held: str
    free: str


class WaitingGroup(Fact, frozen=True, kw_only=True):
    """Jobs that wait and do not get a node for the same reason; those that it would take wait for something else."""

    reason: str
    jobs: int
    first: str
    fits: bool = False


class NodeExplanation(Fact, frozen=True, kw_only=True):
    """What is on a node, what is held there for whom, and why nobody who waits goes there."""

    node: str
    ready: bool
    cordoned: bool
    taints: tuple[str, ...]
    amounts: tuple[NodeAmount, ...]
    pods: tuple[NodePod, ...]
    holds: tuple[Hold, ...]
    waiting: tuple[WaitingGroup, ...]
    foreign: int = 0


Explanation = JobExplanation | PodExplanation | QueueExplanation | NodeExplanation
