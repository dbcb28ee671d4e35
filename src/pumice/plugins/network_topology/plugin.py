"""network-topology-aware: keep the members of a job inside few network domains."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.model.statuses import Status
from pumice.plugins.network_topology.domains import Gradients
from pumice.plugins.network_topology.scores import Cells, Closeness, Fill, Weights

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import SubJob
    from pumice.model.nodes import Nodes, NodeTable
    from pumice.model.task import Task
    from pumice.plugins.network_topology.scores import Request

RUNS = (Status.BINDING, Status.BOUND, Status.RUNNING)
ELSEWHERE = Reads.NODE | Reads.OTHER_NODES


class NetworkTopologySettings(Settings):
    """What makes a hyper-node full, and how much that counts."""

    weight = settings.whole("weight", 1, minimum=0, replacement=1, help="weight of all scores")
    cpu = settings.whole("hypernode.binpack.cpu", 1, minimum=0, replacement=1, help="weight of cpu")
    memory = settings.whole("hypernode.binpack.memory", 1, minimum=0, replacement=1, help="weight of memory")
    resources = settings.words("hypernode.binpack.resources", help="further resource names that count")
    resource_weights = settings.each(
        settings.whole("hypernode.binpack.resources.*", 1, minimum=0, replacement=1, help="weight of such a resource")
    )
    fills = settings.truth(
        "hypernode.binpack.normal-pod.enable",
        default=True,
        help="whether pods of jobs without a topology prefer nodes of full hyper-nodes",
    )
    fading = settings.number(
        "hypernode.binpack.normal-pod.fading",
        Fraction(4, 5),
        minimum=0,
        replacement=Fraction(4, 5),
        help="how much less each higher tier counts for such pods",
    )
    most_offered = settings.whole(
        "hypernode.gradient.evict.max-hypernodes",
        8,
        minimum=1,
        replacement=8,
        help="how many hyper-nodes are offered to evict in",
    )


class NetworkTopology(Plugin):
    """Place all members of a job with a hard limit inside one hyper-node of at most that tier, and any other job with a wish as low as it fits.

    Domains are tried tier by tier, lowest first, and among those of a tier the fullest first. Members that run already bind the rest of their job
    to the hyper-node they are in. Pods of other jobs fill domains that are in use, unless `hypernode.binpack.normal-pod.enable` is off.
    """

    name = "network-topology-aware"
    points = frozenset({"HyperNodeGradientForJob", "HyperNodeGradientForSubJob", "HyperNodeOrder", "NodeOrder"})
    reads = ELSEWHERE
    settings = Configured(NetworkTopologySettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        told = self.settings
        resources = {"cpu": told.cpu, "memory": told.memory}
        resources |= {name: told.resource_weights.get(name, 1) for name in told.resources}
        self._weights = Weights(resources, told.weight)
        self._fading = float(told.fading)
        self._fills = told.fills
        self._most = told.most_offered
        self._requests: dict[str, tuple[int, Request]] = {}
        self._cells: Cells | None = None

    def open(self, session: Session) -> None:
        """Register domains, their order and the scores of nodes."""
        self._session = session
        self._topology = session.topology
        self._requests.clear()
        gradients = Gradients(session, self._most)
        session.job_gradient.add(gradients.of_job)
        session.sub_job_gradient.add(gradients.of_sub_job)
        session.hyper_node_order.add(self.order)
        if self._weights.whole and not self._topology.tree.is_flat:
            session.score.add(self.is_near, follow=self.near, apart=self.runs_as)
            if self._fills:
                session.score.add(self.is_ordinary, follow=self.fill, apart=self.is_ordinary_in)

    def order(self, sub_job: SubJob, domains: Sequence[HyperNode]) -> Floats:
        """Score hyper-nodes for a sub-job: the fuller with all its tasks the better, 0 where they would be too much."""
        tree, totals = self._topology.tree, self._session.cluster.hyper_nodes.totals
        index = [domain.index for domain in domains]
        used, offered = totals.used(tree)[index], totals.allocatable(tree)[index]
        full = self._weights.fullness(used, offered, self._request(sub_job), self._session.cluster.vocabulary)
        placed = np.zeros(tree.root.rows.shape, dtype=np.int64)
        for task in sub_job.tasks.values():
            if task.node is not None and task.node.row < len(placed) and task.status != Status.PENDING:
                placed[task.node.row] += 1
        present = tree.sums(placed)[index].astype(np.float64) if placed.any() else np.zeros(len(index))
        return self._weights.order(full, present, len(sub_job.tasks))

    def _request(self, sub_job: SubJob) -> Request:
        """Return what all tasks of a sub-job ask for together."""
        known = self._requests.get(sub_job.key)
        if known is None or known[0] != sub_job.job.version:
            total = np.zeros(len(self._session.cluster.vocabulary), dtype=np.int64)
            unoffered: dict[str, None] = {}
            for task in sub_job.tasks.values():
                total += task.shape.request.vector
                unoffered.update(dict.fromkeys(task.shape.request.unoffered))
            known = self._requests[sub_job.key] = (sub_job.job.version, (total, tuple(unoffered)))
        return known[1]

    def _home(self, subject: Subject) -> tuple[SubJob, list[Task]] | None:
        """Return the sub-job of a task that must stay together, with those of its tasks that run; None if none does."""
        sub_job = subject.task.sub_job
        if sub_job is None or self._is_free(sub_job):
            return None
        counts = sub_job.tally.counts
        if not any(counts[status] for status in RUNS):
            return None
        running = [task for task in sub_job.tasks.values() if task.status in RUNS and task.node is not None]
        return (sub_job, running) if running else None

    def _is_free(self, sub_job: SubJob) -> bool:
        """Tell whether neither a sub-job nor its job says anything about topology."""
        return sub_job.topology is None

    def runs_as(self, subject: Subject) -> Hashable:
        """Name what nearness depends on: the sub-job, if it runs anywhere, and the tree."""
        found = self._home(subject)
        return None if found is None else (found[0].key, self._topology.tree.version)

    def is_near(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Say nothing about tasks that belong nowhere; the others are scored by what `near` makes."""
        return None if self._home(subject) is None else np.zeros(len(nodes))

    def near(self, subject: Subject, _table: NodeTable) -> Closeness:
        """Make the score of nodes for a task whose sub-job runs somewhere."""
        tree = self._topology.tree
        found = self._home(subject)
        tasks = found[1] if found is not None else []
        rows = np.array([t.node.row for t in tasks if t.node and t.node.row < len(tree.lowest)], dtype=np.int64)
        home = next(iter(self._topology.containing(rows.tolist())), tree.root) if len(rows) else tree.root
        total = len(found[0].tasks) if found is not None else 0
        return Closeness(tree, home, rows, total, self._weights.whole)

    def is_ordinary_in(self, subject: Subject) -> Hashable:
        """Name what the score of an ordinary task depends on beside its shape: the tree."""
        sub_job = subject.task.sub_job
        return self._topology.tree.version if sub_job is None or self._is_free(sub_job) else None

    def is_ordinary(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Say nothing about tasks with a topology of their own; the others are scored by what `fill` makes."""
        return None if self.is_ordinary_in(subject) is None else np.zeros(len(nodes))

    def fill(self, subject: Subject, table: NodeTable) -> Fill:
        """Make the score of nodes for an ordinary task."""
        if self._cells is None or self._cells.tree is not self._topology.tree:
            self._cells = Cells(self._topology.tree)
        totals = self._session.cluster.hyper_nodes.totals
        request = subject.request
        asked = (request.vector, request.unoffered)
        return Fill(self._cells, totals, asked, vocabulary=table.vocabulary, weights=self._weights, fading=self._fading)
