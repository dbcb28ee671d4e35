"""How far apart the members of a job may be in this session: limits read against the tree of hyper-nodes, and the domains that plugins allow.

A soft wish is a limit at the tier of the virtual root, which holds everything; only the order in which domains are tried serves it. Where members run already follows
from their nodes and from nothing else, so it survives restarts of members and of the scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.api import names
from pumice.framework.told_session import ToldSession
from pumice.model.native_groups import LabelTopology
from pumice.model.resources import CPU, MEMORY
from pumice.model.statuses import SETTLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import scheduling
    from pumice.framework.combining import FirstAnswer, Sum
    from pumice.framework.vectors import Floats, Mask
    from pumice.model.hypernodes import HyperNode, HyperNodeTree
    from pumice.model.job import Job, SubJob
    from pumice.model.nodes import Rows
    from pumice.model.task import Task

SOURCE = "topology"

Groups = list[list["HyperNode"]]


class Purpose(msgspec.Struct, frozen=True, eq=False):
    """What domains are looked for: room as it is, or, if `evicts`, room that evictions could make, in those that are worthwhile (None for all)."""

    evicts: bool = False
    worthwhile: Mask | None = None


ALLOCATE = Purpose()
EVICT = Purpose(evicts=True)


class Limit(msgspec.Struct, frozen=True):
    """The highest tier whose hyper-nodes may hold all members; a soft one is only a wish."""

    tier: int
    soft: bool = False


LABELLED = Limit(1)


class TopologySession(ToldSession, Protocol):
    """What limits and domains need of a session."""

    @property
    def job_gradient(self) -> FirstAnswer[[Job, HyperNode, Purpose], Groups]:
        """Who names domains for jobs."""

    @property
    def sub_job_gradient(self) -> FirstAnswer[[SubJob, HyperNode, Purpose], Groups]:
        """Who names domains for sub-jobs."""

    @property
    def hyper_node_order(self) -> Sum[SubJob, HyperNode]:
        """Who scores domains."""


class JobDomains:
    """The limits and domains of one session."""

    __slots__ = ("_limits", "_rows", "_session", "tree")

    def __init__(self, session: TopologySession) -> None:
        self._session = session
        self.tree: HyperNodeTree = session.cluster.hyper_nodes.tree
        self._limits: dict[str, Limit | None] = {}
        self._rows: dict[str, tuple[int, Job | SubJob, list[int]]] = {}

    # -- limits ------------------------------------------------------------------------------------------------

    def tree_of(self, job: Job) -> HyperNodeTree:
        """Return the tree whose domains a job may be in: the hyper-nodes, or the values of the node label that its group names."""
        wish = job.topology
        return self._session.cluster.hyper_nodes.of_label(wish.label) if isinstance(wish, LabelTopology) else self.tree

    def heeded(self, job: Job) -> Limit | None:
        """Return how far apart the members of a job may be, as far as somebody sees to it: a plugin to hyper-nodes, the framework itself to node labels."""
        if self._session.job_gradient.active or isinstance(job.topology, LabelTopology):
            return self.limit(job)
        return None

    def limit(self, job: Job) -> Limit | None:
        """Return how far apart the members of a job may be, None if that does not matter."""
        if job.topology is None:
            return None
        if isinstance(job.topology, LabelTopology):
            return LABELLED
        if job.key not in self._limits:
            self._keep(job.key, self._read(job, job.topology, Limit(self.tree.root.tier, soft=True)))
        return self._limits[job.key]

    def sub_limit(self, sub_job: SubJob) -> Limit | None:
        """Return how far apart the members of a sub-job may be; a soft wish stays inside the limit of the job."""
        job = sub_job.job
        if not job.policies or sub_job.key == job.key:
            return self.limit(job)
        if sub_job.topology is None:
            return None
        if sub_job.key not in self._limits:
            outer = self.limit(job)
            widest = Limit(self.tree.root.tier if outer is None else outer.tier, soft=True)
            self._keep(sub_job.key, self._read(job, sub_job.topology, widest))
        return self._limits[sub_job.key]

    def _keep(self, key: str, limit: Limit | None) -> None:
        """Keep a limit as long as what was said about it: a trial takes both back."""
        self._session.findings.journal.put(self._limits, key, limit)

    def _read(self, job: Job, wish: scheduling.NetworkTopology, widest: Limit) -> Limit | None:
        if wish.mode == names.TOPOLOGY_SOFT:
            return widest
        if wish.highest_tier_allowed is not None:
            return Limit(wish.highest_tier_allowed)
        if not wish.highest_tier_name:
            return None
        tier = self.tree.tier_names.get(wish.highest_tier_name)
        if tier is None:
            text = f"highestTierName {wish.highest_tier_name} is the tierName of no HyperNode; the job is placed without a limit"
            self._session.record.judge(job.key, SOURCE, text)
            self._session.findings.warn(job, text)
            return None
        self._session.record.acquit(job.key, SOURCE)
        return Limit(tier)

    def steers(self, job: Job) -> bool:
        """Tell whether a job is placed domain by domain or sub-group by sub-group."""
        if job.policies:
            return True
        return job.topology is not None and self.heeded(job) is not None

    # -- where members are -------------------------------------------------------------------------------------

    def rows(self, subject: Job | SubJob) -> list[int]:
        """Return the nodes of a job's tasks, or a sub-job's, as far as they have one, each once."""
        changed = self._session.cluster.changed
        known = self._rows.get(subject.key)
        if known is None or known[0] != changed or known[1] is not subject:
            tasks = subject.tasks.values()
            rows = dict.fromkeys(task.node.row for task in tasks if task.node is not None and task.status in SETTLED)
            known = self._rows[subject.key] = (changed, subject, list(rows))
        return known[2]

    def containing(self, rows: Sequence[int], job: Job | None = None) -> list[HyperNode]:
        """Return the hyper-nodes that hold all of some nodes, of the tree of a job if one is named, lowest tier first; nodes that are gone lie below the root alone."""
        tree = self.tree if job is None else self.tree_of(job)
        if any(row >= len(tree.root.rows) for row in rows):
            return [tree.root]
        return tree.containing_all(rows)

    # -- domains -----------------------------------------------------------------------------------------------

    def job_domains(self, job: Job, purpose: Purpose) -> Groups:
        """Ask for the domains of a job, in the order in which they are tried; without an answer there is only the root."""
        if isinstance(job.topology, LabelTopology):
            return [self._labelled(job, purpose)]
        root = self.tree.root
        groups = self._session.job_gradient(job, root, purpose)
        return [[root]] if groups is None else groups

    def _labelled(self, job: Job, purpose: Purpose) -> list[HyperNode]:
        """Return the values of a node label that a job may be in: that of its members that have a node, else all; none if these are of several, or on a node without the label."""
        rows, root = self.rows(job), self.tree_of(job).root
        values = self.containing(rows, job) if rows else root.children
        worthwhile = purpose.worthwhile
        return [v for v in values if v is not root and (worthwhile is None or worthwhile[v.index])]

    def sub_job_domains(self, sub_job: SubJob, within: HyperNode, purpose: Purpose) -> Groups:
        """Ask for the domains of a sub-job inside one that was chosen for its job."""
        groups = self._session.sub_job_gradient(sub_job, within, purpose)
        return [[within]] if groups is None else groups

    def order(self, sub_job: SubJob, domains: Sequence[HyperNode]) -> Floats:
        """Add up what the plugins say about hyper-nodes for a sub-job; of the values of a node label the fullest is the best."""
        if isinstance(sub_job.job.topology, LabelTopology):
            return self._fullness(domains)
        return self._session.hyper_node_order(sub_job, domains)

    def _fullness(self, domains: Sequence[HyperNode]) -> Floats:
        """Return the mean share of cpu and memory that is used on the nodes of each domain, in percent."""
        table = self._session.cluster.nodes
        scores = []
        for domain in domains:
            used = table.used[domain.rows][:, [CPU, MEMORY]].sum(axis=0)
            offered = table.allocatable[domain.rows][:, [CPU, MEMORY]].sum(axis=0)
            scores.append(sum(100 * int(u) // int(o) for u, o in zip(used, offered, strict=True) if o) / 2)
        return np.array(scores, dtype=np.float64)

    def reach(self, task: Task) -> Rows | None:
        """Return the nodes that one more member may go to as things stand, None if it may go anywhere."""
        job = task.job
        if job is None:
            return None
        if isinstance(job.topology, LabelTopology):
            values = [domain.rows for group in self.job_domains(job, ALLOCATE) for domain in group]
            return np.unique(np.concatenate(values)) if values else np.zeros(0, dtype=np.int64)
        if not self._session.job_gradient.active:
            return None
        if job.topology is None and not any(policy.topology for policy in job.policies):
            return None
        marks = np.zeros(len(self.tree.root.rows), dtype=np.bool_)
        for domain in (domain for group in self.job_domains(job, ALLOCATE) for domain in group):
            inner = [[domain]] if task.sub_job is None else self.sub_job_domains(task.sub_job, domain, ALLOCATE)
            for each in (each for group in inner for each in group):
                marks[each.rows] = True
        return None if marks.all() else np.flatnonzero(marks)
