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

    def limit(self, job: Job) -> Limit | None:
        """Return how far apart the members of a job may be, None if that does not matter."""
        if job.topology is None:
            return None
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
        return job.topology is not None and self._session.job_gradient.active and self.limit(job) is not None

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

    def containing(self, rows: Sequence[int]) -> list[HyperNode]:
        """Return the hyper-nodes that hold all of some nodes, lowest tier first; nodes that are gone lie below the root alone."""
        if any(row >= len(self.tree.root.rows) for row in rows):
            return [self.tree.root]
        return self.tree.containing_all(rows)

    # -- domains -----------------------------------------------------------------------------------------------

    def job_domains(self, job: Job, purpose: Purpose) -> Groups:
        """Ask for the domains of a job, in the order in which they are tried; without an answer there is only the root."""
        root = self.tree.root
        groups = self._session.job_gradient(job, root, purpose)
        return [[root]] if groups is None else groups

    def sub_job_domains(self, sub_job: SubJob, within: HyperNode, purpose: Purpose) -> Groups:
        """Ask for the domains of a sub-job inside one that was chosen for its job."""
        groups = self._session.sub_job_gradient(sub_job, within, purpose)
        return [[within]] if groups is None else groups

    def order(self, sub_job: SubJob, domains: Sequence[HyperNode]) -> Floats:
        """Add up what the plugins say about hyper-nodes for a sub-job."""
        return self._session.hyper_node_order(sub_job, domains)

    def reach(self, task: Task) -> Rows | None:
        """Return the nodes that one more member may go to as things stand, None if it may go anywhere."""
        job = task.job
        if job is None or not self._session.job_gradient.active:
            return None
        if job.topology is None and not any(policy.topology for policy in job.policies):
            return None
        marks = np.zeros(len(self.tree.root.rows), dtype=np.bool_)
        for domain in (domain for group in self.job_domains(job, ALLOCATE) for domain in group):
            inner = [[domain]] if task.sub_job is None else self.sub_job_domains(task.sub_job, domain, ALLOCATE)
            for each in (each for group in inner for each in group):
                marks[each.rows] = True
        return None if marks.all() else np.flatnonzero(marks)
