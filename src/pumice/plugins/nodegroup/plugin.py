"""nodegroup: queues use groups of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names, scheduling
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject
from pumice.plugins.nodegroup import limits
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Demand
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import Nodes, NodeTable
    from pumice.model.queue import Queue

NO_LABEL = "node group label not found"
NO_AFFINITY = "node group affinity not specified"
MISMATCH = "node does not satisfy the node group affinity"
BAD_LIMITS = "node group resource limit annotation invalid"

PREFERRED_SCORE = 50.0
AVOIDED_SCORE = -1.0
NOWHERE = scheduling.NodeGroupAffinity()


class NodeGroupSettings(Settings):
    """What is open to whom, and how preferences count."""

    strict = settings.truth(
        "strict", default=True, help="whether nodes without a group are closed to queues without affinity too"
    )
    ordered = settings.truth(
        "enablePreferredOrder",
        default=False,
        help="whether the first of n preferred groups scores 50, and each further one 50/n less",
    )


class NodeGroup(Plugin):
    """Bind queues to groups of nodes: those whose label `volcano.sh/nodegroup-name` has one value.

    A queue uses the groups that `required` and `preferred` of its `spec.affinity.nodeGroupAffinity` name, but none that `required` of its
    `nodeGroupAntiAffinity` names; those that the latter prefers not to use are open to it as a last resort, whatever else is said about them. A group that is not named is closed: anti-affinity
    alone opens nothing. A required group scores 100, a preferred one 50 more, one to be avoided -1.

    A queue without affinity uses no labelled node, and an unlabelled one only if `strict` is off. With `enableHierarchy: true` it has the affinity of its nearest
    ancestor that has one, `root` included.

    The annotation `volcano.sh/nodegroup-resource-limits` of a queue, `{"GROUP": {"cpu": "10"}}`, says how much its pods may hold in a group. It is not inherited. While
    it cannot be read, the queue's pods wait.

    A limit that is used up is like room that is used up: preempt and gangpreempt may evict less important pods of the same queue in that group, even if its nodes
    have room, each by its own rules (preempt only on the node where the pod goes). With `compatibility: volcano` preempt leaves such nodes out. reclaim and gangreclaim take from other queues, which
    gives none of a limit back, and evict nobody where the limit is in the way; nor does anybody for a pod that asks for more than the limit. Lowering a limit evicts nobody by itself.
    """

    name = "nodegroup"
    points = frozenset({"Predicate", "NodeOrder", "Hierarchy", "Preemptive"})
    reads = Reads.NODE | Reads.QUEUE
    settings = Configured(NodeGroupSettings)

    def open(self, session: Session) -> None:
        """Register filters and score."""
        self._session = session
        self._verdicts: dict[str, tuple[Attributes, ReasonVector]] = {}
        self._points: dict[str, tuple[Attributes, Floats]] = {}
        self._limits = limits.Limits(session, self.name)
        session.predicate.add(self.member)
        reads = self.reads | Reads.OTHER_NODES
        session.predicate.add(self.within_limits, reads=reads, follow=self._follow, own_queue=True)
        if self.switches["enablePredicate"]:
            session.preemptive.add(self.may_not_reclaim)
        session.score.add(self.preference)
        session.add_handler(self._limits.follow)

    # -- membership --------------------------------------------------------------------------------------------

    def member(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Say which nodes the queue of a pod does not use, and why."""
        queue = self._queue(subject)
        if queue is None:
            return None
        attributes = nodes.table.attributes
        kept = self._verdicts.get(queue.name)
        if kept is None or kept[0] is not attributes:
            problem = self._limits.problem(queue)
            if problem:
                number = self._reason(f"{BAD_LIMITS} (queue {queue.name}: {problem})")
                verdict = np.full(attributes.count, number, dtype=np.int16)
            else:
                affinity = self._affinity(queue)
                numbers = _by_group(attributes, lambda group: self._refusal(affinity, group))
                verdict = numbers.astype(np.int16)
            kept = self._verdicts[queue.name] = (attributes, verdict)
        return kept[1][nodes.index] if kept[1].any() else None

    def _refusal(self, affinity: scheduling.QueueAffinity | None, group: str | None) -> int:
        """Return the number of the reason why a group is closed, 0 if it is open."""
        if group is None:
            bare = affinity is None or affinity == scheduling.QueueAffinity()
            return 0 if bare and not self.settings.strict else self._reason(NO_LABEL)
        if affinity is None:
            return self._reason(NO_AFFINITY)
        wanted = affinity.node_group_affinity or NOWHERE
        unwanted = affinity.node_group_anti_affinity or NOWHERE
        is_open = group in _required(wanted) or group in _preferred(wanted)
        is_open = is_open and group not in _required(unwanted)
        # As in Volcano, a group that both lists of the anti-affinity name is open.
        return 0 if is_open or group in _preferred(unwanted) else self._reason(MISMATCH)

    def _reason(self, text: str) -> int:
        return self._session.reason(self.name, Code.UNRESOLVABLE, text)

    def _queue(self, subject: Subject) -> Queue | None:
        if subject.queue is not None or subject.job is None:
            return subject.queue
        return self._session.queue_of(subject.job)

    def _affinity(self, queue: Queue) -> scheduling.QueueAffinity | None:
        """Return the affinity of a queue, or what it inherits."""
        seen: dict[str, None] = {}
        name = queue.name
        while name not in seen:
            seen[name] = None
            found = self._session.cluster.queues.get(name)
            if found is not None and found.object is not None and found.object.spec.affinity is not None:
                return found.object.spec.affinity
            if not self.switches["enableHierarchy"]:
                break
            name = (found.parent if found is not None else "") or names.ROOT_QUEUE
        return None

    # -- limits ------------------------------------------------------------------------------------------------

    def within_limits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Say in which groups the queue of a pod would hold more than it may."""
        holdings = self._holdings(subject)
        return None if holdings is None else holdings.refusals(subject.request, nodes.table.attributes)[nodes.index]

    def _follow(self, subject: Subject, table: NodeTable, *, released: bool) -> limits.Filling:
        """Keep step with equal pods that are placed one after another; pods that are going hold nothing in either view."""
        del released
        holdings = self._holdings(subject) or limits.Holdings({})
        return limits.Filling(holdings, subject.request, table.attributes)

    def may_not_reclaim(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse to take from other queues for tasks whose own queue has used its limits up in every group that is open to it."""
        holdings = self._limits.holdings(queue)
        if holdings is None:
            return None
        nodes = self._session.cluster.nodes.view()
        numbers: dict[int, None] = {}
        for task in {task.shape.serial: task for task in demand.tasks}.values():
            subject = Subject(task, queue)
            closed = self.member(subject, nodes)
            full = holdings.refusals(subject.request, nodes.table.attributes)[nodes.index]
            open_to_it = full if closed is None else full[closed == 0]
            if not open_to_it.all():
                return None
            numbers.update(dict.fromkeys(np.unique(open_to_it).tolist()))
        # Where no group is open at all, the limits are not what is in the way.
        return "; ".join(self._session.evaluator.reasons.table[number].text for number in numbers) or None

    def _holdings(self, subject: Subject) -> limits.Holdings | None:
        queue = self._queue(subject)
        return None if queue is None else self._limits.holdings(queue)

    # -- preference --------------------------------------------------------------------------------------------

    def preference(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score the groups that the queue of a pod names."""
        queue = self._queue(subject)
        if queue is None:
            return None
        attributes = nodes.table.attributes
        kept = self._points.get(queue.name)
        if kept is None or kept[0] is not attributes:
            affinity = self._affinity(queue)
            kept = self._points[queue.name] = (attributes, _by_group(attributes, lambda g: self._score(affinity, g)))
        return kept[1][nodes.index] if kept[1].any() else None

    def _score(self, affinity: scheduling.QueueAffinity | None, group: str | None) -> float:
        if affinity is None or group is None:
            return 0.0
        wanted = affinity.node_group_affinity or NOWHERE
        if group in _preferred(affinity.node_group_anti_affinity or NOWHERE):
            return AVOIDED_SCORE
        score = float(MAX_SCORE) if group in _required(wanted) else 0.0
        ranked = list(dict.fromkeys(_preferred(wanted)))
        if group in ranked:
            behind = ranked.index(group) if self.settings.ordered else 0
            score += PREFERRED_SCORE * (len(ranked) - behind) / len(ranked)
        return score


def _required(affinity: scheduling.NodeGroupAffinity) -> tuple[str, ...]:
    return affinity.required_during_scheduling_ignored_during_execution


def _preferred(affinity: scheduling.NodeGroupAffinity) -> tuple[str, ...]:
    return affinity.preferred_during_scheduling_ignored_during_execution


def _by_group(attributes: Attributes, answer: Callable[[str | None], float]) -> Floats:
    """Ask a question once per group, and answer it for all nodes."""
    codes, groups = attributes.codes(names.NODE_GROUP_NAME)
    answers: Floats = np.array([*(answer(group) for group in groups), answer(None)], dtype=np.float64)
    return answers[codes]
