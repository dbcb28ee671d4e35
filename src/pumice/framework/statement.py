"""A statement: decisions already applied to the cluster, to be made real or undone as a whole, and what-ifs, which are always undone.

The log holds runs of equal tasks that made the same step. A run knows what its tasks were and what they became; sums are never saved, since
taking away exactly what was added restores them, in any order. So any task can be undone out of the middle, and merging, saving and
recovering are operations on lists.

Nothing else changes the cluster inside a cycle. Whoever tries something out does it in a `trial`, which takes back what was done and what was said, unless it is kept.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Self

import msgspec

from pumice.framework.breakdowns import PluginBreakdownError
from pumice.framework.runs import Run, Step, equals, joined, victims_apart
from pumice.model.statuses import PREEMPTABLE, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from pumice.framework.findings import Journal
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


_PENDING = frozenset({Status.PENDING})
_PLACING = frozenset({Step.ALLOCATE, Step.PIPELINE})


class Saved(msgspec.Struct, frozen=True):
    """A detached copy of decisions that can be applied again: step, tasks, node names, reason, eviction flag."""

    steps: tuple[tuple[Step, tuple[Task, ...], tuple[str, ...], str, bool], ...]


class Trial:
    """What is done and said until it is kept; whatever is not kept is taken back when the trial ends, also by an exception."""

    __slots__ = ("_kept", "_mark", "_statement", "_words")

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._kept = False
        self._mark = self._words = 0

    def __enter__(self) -> Self:
        self._mark = self._statement.checkpoint()
        self._words = self._statement.journal.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        journal = self._statement.journal
        try:
            if not self._kept or error is not None:
                self.take_back()
        finally:
            journal.end()

    def keep(self) -> None:
        """Let everything stay."""
        self._kept = True

    def take_back(self) -> None:
        """Undo what was done and said so far; the trial goes on."""
        self._statement.rollback(self._mark)
        self._statement.journal.back_to(self._words)


class Statement:
    """Decisions of one action about one job (or one task), applied at once and reversible until committed."""

    __slots__ = ("_claimant", "_serial", "_session", "runs")

    def __init__(self, session: Session, claimant: Task | None = None) -> None:
        self._session = session
        self._claimant = claimant
        self._serial = 0
        self.runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.tasks) for run in self.runs)

    @property
    def journal(self) -> Journal:
        """What keeps the words of this cycle that can be taken back."""
        return self._session.findings.journal

    @property
    def has_evictions(self) -> bool:
        """Tell whether anything is evicted."""
        return any(run.step is Step.EVICT for run in self.runs)

    # -- deciding ----------------------------------------------------------------------------------------------

    def allocate(
        self, tasks: Sequence[Task], nodes: Sequence[NodeRecord], until: Callable[[], bool] | None = None
    ) -> int:
        """Place pending tasks on room that is free now; return how many were placed before `until` held or a plugin refused."""
        return self._place(Step.ALLOCATE, Status.ALLOCATED, tasks, nodes, until)

    def allocate_together(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord]) -> bool:
        """Place pending tasks of any jobs and shapes on room that is free now, and tell the handlers of one after the other when all are placed; False, with nobody placed, if one refuses.

        Until they are settled (`Cluster.settle`), `take_back` takes them back without a trace.
        """
        mark = self.checkpoint()
        self._session.cluster.place(tasks, nodes, [task.job for task in tasks if task.job is not None])
        runs = [
            Run(Step.ALLOCATE, Status.PENDING, Status.ALLOCATED, [task], [None], [node])
            for task, node in zip(tasks, nodes, strict=True)
        ]
        accepted = self._session.tell_of_all(runs)
        for run in runs[: accepted + 1]:
            self._log(run)
        if accepted == len(runs):
            return True
        self.take_back(mark, tasks, untold=tasks[accepted + 1 :])
        # What is refused here is refused again where tasks are placed one by one, and known from then on.
        self._session.handlers_may_refuse, self._session.handlers_look_around = False, True
        return False

    def take_back(self, mark: int, tasks: Sequence[Task], untold: Sequence[Task] = ()) -> None:
        """Undo everything that was logged after a mark, which are tasks that were placed together and not settled; nobody will know that they were placed."""
        dirty = self._session.cluster.dirty_jobs
        clean = [task.job_key for task in tasks if task.job_key not in dirty]
        for task in untold:
            self._move_back([task], [None], Status.PENDING)
        self.rollback(mark)
        for key in clean:
            dirty.pop(key, None)

    def pipeline(
        self,
        tasks: Sequence[Task],
        nodes: Sequence[NodeRecord],
        until: Callable[[], bool] | None = None,
        *,
        evicted: bool = False,
    ) -> int:
        """Let pending tasks wait for room that is being released; `evicted` says that pods were evicted for them."""
        return self._place(Step.PIPELINE, Status.PIPELINED, tasks, nodes, until, evicted=evicted)

    def pipeline_together(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord], *, evicted: bool) -> bool:
        """Let pending tasks of any jobs and shapes wait on nodes, each by itself, and tell the handlers of one after the other when all do; False, with nobody placed, if one refuses."""
        self._session.cluster.move_each(tasks, nodes, Status.PIPELINED)
        runs = [
            Run(Step.PIPELINE, Status.PENDING, Status.PIPELINED, [task], [None], [node], evicted=evicted, serials=[at])
            for at, (task, node) in enumerate(zip(tasks, nodes, strict=True), self._serial)
        ]
        accepted = self._session.tell_of_all(runs)
        if accepted == len(runs):
            self._serial += len(runs)
            self.runs += runs
            return True
        self._session.cluster.move_each(tasks, None, Status.PENDING)
        self._session.tell_of_undone(runs[: accepted + 1])
        # As where tasks are allocated together.
        self._session.handlers_may_refuse, self._session.handlers_look_around = False, True
        return False

    def evict(self, tasks: Sequence[Task], reason: str) -> None:
        """Release tasks from their nodes."""
        groups = list(equals(tasks))
        if len(groups) > 1 and not self._session.handlers_look_around:
            self._evict_together(groups, reason)
            return
        for group in groups:
            self._apply(Step.EVICT, Status.RELEASING, group, [task.node for task in group], None, reason=reason)

    def _evict_together(self, groups: Sequence[list[Task]], reason: str) -> None:
        """Release runs of tasks, and tell the handlers of one after the other when all are released."""
        statuses = [group[0].status for group in groups]
        self._session.cluster.restate([task for group in groups for task in group], Status.RELEASING)
        for number, (group, before) in enumerate(zip(groups, statuses, strict=True)):
            nodes = [task.node for task in group]
            run = Run(Step.EVICT, before, Status.RELEASING, group, nodes, nodes[:], reason, claimant=self._claimant)
            refusal = self._session.tell(run, 1)
            self._log(run)
            if isinstance(refusal, PluginBreakdownError):
                # As in `_apply`; whoever comes after it has not gone.
                for later, status in zip(groups[number + 1 :], statuses[number + 1 :], strict=True):
                    self._move_back(later, [task.node for task in later], status)
                raise refusal

    def suppose(self, tasks: Sequence[Task], nodes: Sequence[NodeRecord | None], status: Status) -> None:
        """Ask what would be if tasks were somewhere else, or something else: handlers are told, and it never becomes real.

        It has to be undone before the statement is committed or kept; a trial sees to it.
        """
        start = 0
        for group in equals(tasks):
            targets = nodes[start : start + len(group)]
            left = {id(t.node): t.node for t, target in zip(group, targets, strict=True) if t.node is not target}
            listed = [(record, list(record.tasks)) for record in left.values() if record is not None]
            known = len(self.runs)
            try:
                self._apply(Step.SUPPOSE, status, group, targets, None)
            finally:
                if len(self.runs) > known:
                    self.runs[-1].listed = listed
            start += len(group)

    def trial(self) -> Trial:
        """Begin to try something out: `with statement.trial() as trial:`."""
        return Trial(self)

    def _place(
        self,
        step: Step,
        status: Status,
        tasks: Sequence[Task],
        nodes: Sequence[NodeRecord],
        until: Callable[[], bool] | None,
        *,
        evicted: bool = False,
    ) -> int:
        if len(tasks) == 1:
            return self._apply(step, status, tasks, nodes, until, evicted=evicted)[0]
        placed = 0
        for group in equals(tasks):
            targets = nodes[placed : placed + len(group)]
            # A handler that may refuse must be asked task by task.
            size = 1 if self._session.handlers_may_refuse else len(group)
            for start in range(0, len(group), size):
                part = group[start : start + size]
                moved, refusal = self._apply(step, status, part, targets[start : start + size], until, evicted=evicted)
                placed += moved
                if refusal is not None or moved < len(part) or (until is not None and until()):
                    return placed
        return placed

    def _apply(
        self,
        step: Step,
        status: Status,
        tasks: Sequence[Task],
        targets: Sequence[NodeRecord | None],
        until: Callable[[], bool] | None,
        *,
        reason: str = "",
        evicted: bool = False,
    ) -> tuple[int, str | None]:
        """Apply one run and tell everybody; a refusal undoes it whole."""
        before = tasks[0].status
        sources = [task.node for task in tasks]
        try:
            moved = self._session.cluster.move(tasks, targets, status, until)
        except Exception:
            self._move_back([task for task in tasks if task.status == status], sources, before)
            raise
        claimant = self._claimant if step is Step.EVICT else None
        run = Run(
            step, before, status, list(tasks[:moved]), sources[:moved], list(targets[:moved]), reason, evicted, claimant
        )
        refusal = self._session.tell(run, 1)
        if refusal is not None and step not in (Step.EVICT, Step.SUPPOSE):
            self._move_back(run.tasks, run.sources, before)
            self._session.tell(run, -1)
            self._session.refused(run.tasks[0], str(refusal))
            return 0, str(refusal)
        if isinstance(refusal, PluginBreakdownError):
            # Nobody can refuse that somebody goes; but who does not know of it would judge what follows by what is no more.
            self._log(run)
            raise refusal
        self._log(run)
        return moved, None

    def _move_back(self, tasks: Sequence[Task], sources: Sequence[NodeRecord | None], status: Status) -> None:
        if tasks:
            self._session.cluster.move(tasks, sources, status)

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
        while self.runs and self.runs[-1].serials[-1] >= mark:
            run = self.runs[-1]
            keep = bisect.bisect_left(run.serials, mark)
            part = run.pick(range(keep, len(run.tasks)))
            run.drop(keep, len(run.tasks))
            if not run.tasks:
                self.runs.pop()
            self._undo(part)

    def discard(self) -> None:
        """Undo everything, remembering where each task would have gone."""
        runs, self.runs = self.runs, []
        for run in joined(reversed(runs)):
            self._session.remember(run)
            self._undo(run)

    def discard_together(self) -> None:
        """Undo everything as `discard` does, placements of all jobs at once unless a handler has to be told of each run before the next is undone."""
        runs, self.runs = joined(reversed(self.runs)), []
        for run in runs:
            self._session.remember(run)
        still = [part for run in runs if (part := self._still_applied(run)).tasks]
        tasks = {task.uid: task for run in still for task in run.tasks}
        if (
            self._session.handlers_look_around
            or len(still) < 2
            or len(tasks) < sum(len(run.tasks) for run in still)
            or any(run.step not in _PLACING or run.tasks[0].job is None for run in still)
        ):
            for run in runs:
                self._undo(run)
            return
        for _, alike in itertools.groupby(still, key=lambda run: run.after):
            self._session.cluster.move_each([task for run in alike for task in run.tasks], None, Status.PENDING)
        self._session.tell_of_undone(still)

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
                self._undo(single)
                return

    def _undo(self, run: Run) -> None:
        """Take a run back, as far as its tasks are still where it put them."""
        run = self._still_applied(run)
        if run.tasks:
            self._session.cluster.move(run.tasks, run.sources, run.before)
            for record, uids in run.listed:
                record.list_as(uids)
            self._session.tell(run, -1)

    @staticmethod
    def _still_applied(run: Run) -> Run:
        """Return a run without the tasks that are no longer where it put them."""
        still = [i for i, task in enumerate(run.tasks) if task.status == run.after and task.node is run.targets[i]]
        return run if len(still) == len(run.tasks) else run.pick(still)

    # -- making real -------------------------------------------------------------------------------------------

    def commit(self, *, apart: bool = False) -> None:
        """Send binds and evictions on their way; pipelined tasks stay held until the session ends.

        What has become known meanwhile keeps everything of a gang here, or only those whom it is about if they are bound `apart` from each other.
        """
        self._check_that_all_is_meant()
        runs, self.runs = self.runs, []
        leaving = [task for run in runs if run.step is Step.ALLOCATE for task in run.tasks]
        withheld = self._session.withheld(leaving, apart=apart)
        for bound, alike in itertools.groupby(runs, key=lambda run: run.step is Step.ALLOCATE):
            if bound:
                self._send_binds(list(alike), withheld)
            else:
                # Who waits for victims sends nothing, so that the evictions of a plan leave together.
                evicting, kept = victims_apart(alike)
                self._session.send_evictions(evicting)
                self._session.keep(kept)
        self._session.settle_words()

    def _send_binds(self, runs: Sequence[Run], withheld: Mapping[str, str]) -> None:
        """Send the binds of some runs together, and undo those that are not sent."""
        leaving = [task for run in runs for task in run.tasks if not withheld or task.uid not in withheld]
        refused = {**withheld, **self._session.send_binds(leaving)} if leaving else withheld
        for run in runs if refused else ():
            self._undo(run.pick([i for i, task in enumerate(run.tasks) if task.uid in refused]))

    def keep(self) -> None:
        """Keep everything applied, and nothing real, until the session ends."""
        self._check_that_all_is_meant()
        runs, self.runs = self.runs, []
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
            elif self._place(
                step,
                Status.ALLOCATED if step is Step.ALLOCATE else Status.PIPELINED,
                present,
                found,
                None,
                evicted=evicted,
            ) < len(present):
                self.rollback(mark)
                return False
        return True
