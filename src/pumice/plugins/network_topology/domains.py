"""The domains of network-topology-aware: the hyper-nodes that may hold a job or a sub-job, tier by tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model.resources import CPU, MEMORY
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.framework.evaluation import Mask
    from pumice.framework.job_domains import Groups, Limit, Purpose
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job, SubJob
    from pumice.model.resources import Vector
    from pumice.plugins.network_topology.scores import Request


class Gradients:
    """The domains of one session; to evict in, no more than `most` are offered."""

    __slots__ = ("_most", "_session", "_topology")

    def __init__(self, session: Session, most: int) -> None:
        self._session = session
        self._topology = session.topology
        self._most = most

    def of_job(self, job: Job, root: HyperNode, purpose: Purpose) -> Groups | None:
        """Return the hyper-nodes that may hold a job, tier by tier; None for a job that may be anywhere."""
        limit = self._topology.limit(job)
        if limit is None:
            return None
        return self._groups(limit, job, root, purpose, self._least(job))

    def of_sub_job(self, sub_job: SubJob, root: HyperNode, purpose: Purpose) -> Groups | None:
        """Return the hyper-nodes below one that may hold a sub-job, tier by tier."""
        limit = self._topology.sub_limit(sub_job)
        if limit is None:
            return None
        return self._groups(limit, sub_job, root, purpose, self._lacking(sub_job))

    def _groups(self, limit: Limit, subject: Job | SubJob, root: HyperNode, purpose: Purpose, need: Request) -> Groups:
        tree = self._topology.tree
        rows = self._topology.rows(subject)
        allowed = tree.tiers <= limit.tier
        allowed &= tree.sizes > 0
        if not limit.soft and not tree.is_whole:
            # What cannot be read may be a tier below the root.
            allowed[tree.root.index] = False
        if purpose.worthwhile is not None:
            allowed &= purpose.worthwhile
        if rows:
            inside = np.zeros(len(tree.domains), dtype=np.bool_)
            for top in self._tops(rows, allowed):
                start = top if top.is_within(root) else root if root.is_within(top) else None
                if start is not None:
                    inside[start.inside] = True
            allowed &= inside
        else:
            if root is not tree.root:
                inside = np.zeros(len(tree.domains), dtype=np.bool_)
                inside[root.inside] = True
                allowed &= inside
            allowed &= self._suffices(need, purpose)
        return self._by_tier(np.flatnonzero(allowed).tolist(), purpose)

    def _tops(self, rows: list[int], allowed: Mask) -> list[HyperNode]:
        """Return the highest allowed hyper-nodes that hold all of some nodes; more than one only where hyper-nodes overlap."""
        holding = [each for each in self._topology.containing(rows) if allowed[each.index]]
        return [each for each in holding if not any(o is not each and each.is_within(o) for o in holding)]

    def _by_tier(self, indexes: list[int], purpose: Purpose) -> Groups:
        domains = self._topology.tree.domains
        groups: dict[int, list[HyperNode]] = {}
        for index in indexes:
            groups.setdefault(domains[index].tier, []).append(domains[index])
        listed = list(groups.values())
        if not purpose.evicts:
            return listed
        left = self._most
        kept: Groups = []
        for group in reversed(listed):
            if left > 0:
                kept.append(group[-left:])
                left -= len(kept[-1])
        return kept

    def _suffices(self, need: Request, purpose: Purpose) -> Mask:
        """Tell which domains have enough in sum: free now, or once all is released; to evict in, offered at all."""
        tree, totals = self._topology.tree, self._session.cluster.hyper_nodes.totals
        amounts, unoffered = need
        if unoffered:
            return np.zeros(len(tree.domains), dtype=np.bool_)
        asked = amounts > 0
        asked[[CPU, MEMORY]] = True
        if purpose.evicts:
            enough: Mask = np.logical_and.reduce(totals.allocatable(tree)[:, asked] >= amounts[asked], axis=1)
            return enough
        now: Mask = np.logical_and.reduce(totals.idle(tree)[:, asked] >= amounts[asked], axis=1)
        later: Mask = np.logical_and.reduce(totals.future_idle(tree)[:, asked] >= amounts[asked], axis=1)
        return now | later

    def _least(self, job: Job) -> Request:
        """Return what a job declares as its minimum."""
        vocabulary = self._session.cluster.vocabulary
        amounts = job.min_resources or {}
        return vocabulary.vector(amounts), tuple(
            n for n, units in amounts.items() if units and n not in vocabulary.columns
        )

    def _lacking(self, sub_job: SubJob) -> Request:
        """Return what the members that a sub-job still needs ask for at the least."""
        pending = [task for task in sub_job.tasks.values() if task.status == Status.PENDING]
        lacking = sub_job.minimum - sub_job.tally.ready - sub_job.tally.waiting
        if not pending or lacking <= 0:
            return np.zeros(len(self._session.cluster.vocabulary), dtype=np.int64), ()
        asked = np.stack([task.shape.request.vector for task in pending])
        if len(pending) > lacking:
            asked = np.sort(asked, axis=0)[:lacking]
        unoffered = () if len(pending) > lacking else tuple(n for t in pending for n in t.shape.request.unoffered)
        total: Vector = asked.sum(axis=0)
        return total, unoffered
