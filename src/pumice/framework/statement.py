"""A statement: decisions already applied to the cluster, to be made real or undone as a whole, and what-ifs, which are always undone.

The log holds runs of equal tasks that made the same step. A run knows what its tasks were and what they became; sums are never saved, since
taking away exactly what was added restores them, in any order. So any task can be undone out of the middle, and merging, saving and
recovering are operations on lists.

Nothing else changes the cluster inside a cycle. Whoever tries something out does it in a `trial`, which takes back what was done and what was said, unless it is kept.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Protocol

import msgspec

from pumice.framework.breakdowns import PluginBreakdownError
from pumice.framework.runs import Run, Step, alike, begun, equals, victims_apart
from pumice.framework.trials import Trial
from pumice.model.pending_order import PendingOrder
from pumice.model.statuses import PREEMPTABLE, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.findings import Findings, Journal
    from pumice.framework.handlers import Handlers
    from pumice.framework.outlet import Sender
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


_PENDING = frozenset({Status.PENDING})
_PLACING = frozenset({Step.ALLOCATE, Step.PIPELINE})


class StatedSession(Protocol):
    """What a statement needs of a session."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def findings(self) -> Findings:
        """What was found out."""

    @property
    def handlers(self) -> Handlers:
        """Who follows placements."""

    def tell(self, runs: Sequence[Run], sign: int) -> str | PluginBreakdownError | None:
        """Tell the handlers about runs of one direction that were applied (sign 1) or undone (-1); returns the first refusal."""

    def refused(self, task: Task, reason: str) -> None:
        """Note that a plugin refused a placement."""

    def remember(self, run: Run) -> None:
        """Remember where a discarded run had put its tasks."""

    def keep(self, runs: Iterable[Run]) -> None:
        """Keep runs applied until the session closes."""

    def settle_words(self) -> None:
        """Let what was said in an attempt stay, since something of it does."""

    @property
    def sender(self) -> Sender:
        """What sends decisions on their way."""


class Saved(msgspec.Struct, frozen=True):
    """A detached copy of decisions that can be applied again: step, tasks, node names, reason, eviction flag."""

    steps: tuple[tuple[Step, tuple[Task, ...], tuple[str, ...], str, bool], ...]


class Statement:
    """Decisions of one action about one job (or one task), applied at once and reversible until committed."""

    __slots__ = ("_claimant", "_orders", "_serial", "_session", "runs")

    def __init__(self, session: StatedSession, claimant: Task | None = None) -> None:
        self._session = session
        self._claimant = claimant
        self._serial = 0
        # How pending tasks were listed before a batch of several runs was moved, with where in the log it begins and ends.
        self._orders: list[tuple[int, int, PendingOrder]] = []
        self.runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.tasks) for run in self.runs)

    @property
    def journal(self) -> Journal:
        """What keeps the words of this cycle that can be taken back."""
        return self._session.findings.journal

    # -- deciding ----------------------------------------------------------------------------------------------

    def allocate(
        self, tasks: Sequence[Task], nodes: Sequence[NodeRecord], until: Callable[[], bool] | None = None
    ) -> int:
        """Place pending tasks on room that is free now; return how many were placed before `until` held or a plugin refused."""
        return self._apply(Step.ALLOCATE, Status.ALLOCATED, tasks, nodes, until)

    def pipeline(
        self,
        tasks: Sequence[Task],
        nodes: Sequence[NodeRecord],
        until: Callable[[], bool] | None = None,
        *,
        evicted: bool = False,
    ) -> int:
        """Let pending tasks wait for room that is being released; `evicted` says that pods were evicted for them."""
        return self._apply(Step.PIPELINE, Status.PIPELINED, tasks, nodes, until, evicted=evicted)

    def evict(self, tasks: Sequence[Task], reason: str) -> None:
        """Release tasks from their nodes."""
        self._apply(Step.EVICT, Status.RELEASING, tasks, [task.node for task in tasks], reason=reason)

    def suppose(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord | None], status: Status) -> None:
        """Ask what would be if tasks were somewhere else, or something else: handlers are told, and it never becomes real.

        It has to be undone before the statement is committed or kept; a trial sees to it.
        """
        self._apply(Step.SUPPOSE, status, tasks, nodes)

    def trial(self) -> Trial:
        """Begin to try something out: `with statement.trial() as trial:`."""
        return Trial(self)

    def _apply(
        self,
        step: Step,
        status: Status,
        tasks: Sequence[Task],
        targets: Sequence[NodeRecord | None],
        until: Callable[[], bool] | None = None,
        *,
        reason: str = "",
        evicted: bool = False,
    ) -> int:
        """Move tasks, as many at once as those who are told allow; returns how many, fewer if `until` held before the last or somebody refused."""
        claimant = self._claimant if step is Step.EVICT else None
        moved = 0
        for size in self._batches(step, tasks, until):
            batch, places = tasks[moved : moved + size], targets[moved : moved + size]
            runs = begun(step, status, batch, places, reason=reason, evicted=evicted, claimant=claimant)
            if len(runs) > 1 and step in _PLACING:
                order = PendingOrder(
                    self._session.cluster, [job for run in runs if (job := run.tasks[0].job) is not None]
                )
                self._orders.append((self._serial, self._serial + size, order))
            if until is not None and size > 1:
                self._move_until(runs[0], until)
            else:
                self._session.cluster.apply(batch, places, status)
            if not self._is_accepted(runs):
                if len(runs) == 1:
                    return moved
                return moved + self._apply(step, status, batch, places, reason=reason, evicted=evicted)
            moved += size if until is None else len(runs[0].tasks)
            if until is not None and (len(runs[0].tasks) < size or until()):
                return moved
        return moved

    def _batches(self, step: Step, tasks: Sequence[Task], until: Callable[[], bool] | None) -> list[int]:
        """Return how many tasks are moved, and told of, at once: all, or equal ones where somebody looks at what is there after each, or one where somebody may refuse it."""
        handlers = self._session.handlers
        if len(tasks) < 2:
            return [1] * len(tasks)
        if handlers.may_refuse and step in _PLACING:
            return [1] * len(tasks)
        if until is None and not handlers.look_around and step is not Step.SUPPOSE:
            return [len(tasks)]
        return [end - start for start, end in itertools.pairwise(equals(tasks))]

    def _move_until(self, run: Run, until: Callable[[], bool]) -> None:
        """Move equal tasks until something holds; the run is then of those that were moved."""
        try:
            moved = self._session.cluster.apply(run.tasks, run.targets, run.after, until)
        except Exception:
            self._take_back([run.still_applied()])
            raise
        run.drop(moved, len(run.tasks))

    def _is_accepted(self, runs: Sequence[Run]) -> bool:
        """Tell everybody of runs that were moved; a refusal undoes them."""
        refusal = self._session.tell(runs, 1)
        if refusal is None:
            for run in runs:
                self._log(run)
            return True
        if len(runs) == 1 and runs[0].step not in _PLACING:
            # Nobody can refuse that somebody goes; but who does not know of it would judge what follows by what is no more.
            self._log(runs[0])
            if isinstance(refusal, PluginBreakdownError):
                raise refusal
            return True
        self._take_back(runs)
        self._session.tell(runs, -1)
        self._list_as_before(self._serial)
        if len(runs) == 1:
            self._session.refused(runs[0].tasks[0], str(refusal))
        return False

    def _log(self, run: Run) -> None:
        run.serials = list(range(self._serial, self._serial + len(run.tasks)))
        self._serial += len(run.tasks)
        if self.runs and self.runs[-1].joins(run):
            self.runs[-1].append(run)
        else:
            self.runs.append(run)

    # -- undoing -----------------------------------------------------------------------------------------------

    def checkpoint(self) -> int:
        """Return a mark to roll back to."""
        return self._serial

    def rollback(self, mark: int) -> None:
        """Undo everything that was logged after a mark."""
        undone: list[Run] = []
        while self.runs and self.runs[-1].serials[-1] >= mark:
            run = self.runs[-1]
            if run.serials[0] >= mark:
                undone.append(self.runs.pop())
                continue
            keep = bisect.bisect_left(run.serials, mark)
            undone.append(run.pick(range(keep, len(run.tasks))))
            run.drop(keep, len(run.tasks))
        self._undo(undone)
        self._list_as_before(mark)

    def _list_as_before(self, mark: int) -> None:
        """List those that are pending again as they were before what was logged after a mark."""
        while self._orders and self._orders[-1][1] > mark:
            start, _, order = self._orders.pop()
            order.restore()
            if start < mark:
                self._orders.append((start, mark, order))
                return

    def discard(self) -> None:
        """Undo everything, remembering where each task would have gone."""
        runs, self.runs = self.runs[::-1], []
        self._orders.clear()
        for run in runs:
            self._session.remember(run)
        self._undo(runs)

    def make_wait(self, mark: int) -> None:
        """Let everything that was placed after a mark wait on its node instead of being bound."""
        placed: list[tuple[Task, NodeRecord]] = []
        for run in self.runs:
            keep = bisect.bisect_left(run.serials, mark)
            pairs = zip(run.tasks[keep:], run.targets[keep:], strict=True)
            placed += [(task, node) for task, node in pairs if node is not None]
        self.rollback(mark)
        self.pipeline([task for task, _ in placed], [node for _, node in placed])

    def undo(self, task: Task) -> None:
        """Undo one task, wherever it stands in the log."""
        for position in range(len(self.runs) - 1, -1, -1):
            run = self.runs[position]
            if task in run.tasks:
                index = run.tasks.index(task)
                single = run.pick([index])
                run.drop(index, index + 1)
                if not run.tasks:
                    del self.runs[position]
                self._undo([single])
                return

    def _undo(self, runs: Sequence[Run]) -> None:
        """Take runs back in their order, as far as their tasks are still where they put them, as many at once as those who are told allow."""
        for batch in self._undone_together(runs):
            still = [part for run in batch if (part := run.still_applied()).tasks]
            if still:
                self._take_back(still)
                self._session.tell(still, -1)

    def _undone_together(self, runs: Sequence[Run]) -> Iterable[Sequence[Run]]:
        """Split runs into those that may be undone before anybody is told of them."""
        if len(runs) < 2:
            return [runs]
        return [[run] for run in runs] if self._session.handlers.look_around else alike(runs)

    def _take_back(self, runs: Sequence[Run]) -> None:
        """Move tasks of runs back to where they were."""
        if len(runs) == 1 and not runs[0].listed:
            run = runs[0]
            if run.tasks:
                self._session.cluster.apply(run.tasks, run.sources, run.before)
            return
        for before, equal in itertools.groupby(runs, key=lambda run: run.before):
            batch = list(equal)
            tasks = [task for run in batch for task in run.tasks]
            if tasks:
                self._session.cluster.apply(tasks, [node for run in batch for node in run.sources], before)
            for record, uids in (listed for run in batch for listed in run.listed):
                record.list_as(uids)

    # -- making real -------------------------------------------------------------------------------------------

    def commit(self, *, apart: bool = False) -> None:
        """Send binds and evictions on their way; pipelined tasks stay held until the session ends.

        What has become known meanwhile keeps everything of a gang here, or only those whom it is about if they are bound `apart` from each other.
        """
        self._check_that_all_is_meant()
        runs, self.runs = self.runs, []
        self._orders.clear()
        leaving = [task for run in runs if run.step is Step.ALLOCATE for task in run.tasks]
        withheld = self._session.sender.withheld(leaving, apart=apart)
        for bound, equal in itertools.groupby(runs, key=lambda run: run.step is Step.ALLOCATE):
            if bound:
                self._send_binds(list(equal), withheld)
            else:
                # Who waits for victims sends nothing, so that the evictions of a plan leave together.
                evicting, kept = victims_apart(equal)
                self._session.sender.send_evictions(evicting)
                self._session.keep(kept)
        self._session.settle_words()

    def _send_binds(self, runs: Sequence[Run], withheld: Mapping[str, str]) -> None:
        """Send the binds of some runs together, and undo those that are not sent."""
        leaving = [task for run in runs for task in run.tasks if not withheld or task.uid not in withheld]
        refused = {**withheld, **self._session.sender.send_binds(leaving)} if leaving else withheld
        if refused:
            self._undo([run.pick([i for i, task in enumerate(run.tasks) if task.uid in refused]) for run in runs])

    def keep(self) -> None:
        """Keep everything applied, and nothing real, until the session ends."""
        self._check_that_all_is_meant()
        runs, self.runs = self.runs, []
        self._orders.clear()
        self._session.keep(runs)
        self._session.settle_words()

    def _check_that_all_is_meant(self) -> None:
        for run in self.runs:
            if run.step is Step.SUPPOSE:
                raise RuntimeError(f"{run.tasks[0].key} is only supposed to be {run.after.title}: undo that first")

    # -- lists -------------------------------------------------------------------------------------------------

    def merge(self, *others: Statement) -> None:
        """Take over the operations of other statements, leaving them empty."""
        for other in others:
            for run in other.runs:
                self._log(run)
            other.runs = []
            other._orders.clear()  # noqa: SLF001  a statement too

    def save(self) -> Saved:
        """Return the decisions as a detached copy."""
        return Saved(
            tuple(
                (run.step, tuple(run.tasks), tuple(t.name if t else "" for t in run.targets), run.reason, run.evicted)
                for run in self.runs
            )
        )

    def recover(self, saved: Saved) -> bool:
        """Apply saved decisions again; False, with nothing applied, if some task or node is no longer as it was."""
        mark = self.checkpoint()
        for step, tasks, names, reason, evicted in saved.steps:
            live = [self._session.cluster.tasks.get(task.uid) for task in tasks]
            present = [task for task in live if task is not None]
            nodes = [self._session.cluster.nodes.by_name.get(name) for name in names]
            found = [node for node in nodes if node is not None]
            free = PREEMPTABLE if step is Step.EVICT else _PENDING
            if len(present) < len(tasks) or len(found) < len(names) or any(task.status not in free for task in present):
                self.rollback(mark)
                return False
            if step is Step.EVICT:
                self.evict(present, reason)
            elif self._apply(
                step,
                Status.ALLOCATED if step is Step.ALLOCATE else Status.PIPELINED,
                present,
                found,
                evicted=evicted,
            ) < len(present):
                self.rollback(mark)
                return False
        return True
