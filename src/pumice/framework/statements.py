"""The statements of a cycle, and what they have left applied until it closes: runs that are only held, undone then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.framework.kept_runs import KeptRuns
from pumice.framework.statement import StatedSession, Statement
from pumice.model.job import BEST_EFFORT_PENDING
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.breakdowns import PluginBreakdownError
    from pumice.framework.runs import Run
    from pumice.model.held_blocks import HeldBlock
    from pumice.model.job import Job
    from pumice.model.task import Task


class HoldingSession(StatedSession, Protocol):
    """What is needed of a session by those who hold something until it closes."""

    @property
    def reserved(self) -> dict[str, Task]:
        """Who waits by a reservation."""

    def tell_of_many(self, runs: Sequence[Run], sign: int) -> str | PluginBreakdownError | None:
        """Tell the handlers about runs of many jobs."""

    @property
    def awake(self) -> dict[str, Job]:
        """The jobs with pending tasks, but for those that are left out of the cycle."""


class Statements:
    """Starts statements, and keeps what they leave; `evicted_for` are those who wait for pods that were evicted for them."""

    def __init__(self, session: HoldingSession) -> None:
        self._session = session
        self.kept = KeptRuns()
        self._statements: list[Statement] = []
        self.evicted_for: dict[str, None] = {}
        self._blocks: list[tuple[HeldBlock, Mapping[str, Run]]] = []

    @property
    def started(self) -> int:
        """How many were started so far."""
        return len(self._statements)

    def start(self, claimant: Task | None = None) -> Statement:
        """Start one, maybe to make room for a claimant."""
        started = Statement(self._session, claimant)
        self._statements.append(started)
        return started

    def undo_since(self, started: int) -> None:
        """Undo what statements started since then have neither committed nor kept."""
        for statement in reversed(self._statements[started:]):
            statement.rollback(0)

    def keep(self, runs: Iterable[Run]) -> None:
        """Keep runs applied until the session closes."""
        for run in runs:
            self.kept.add(run)
            if run.evicted:
                self.evicted_for.update(dict.fromkeys(task.uid for task in run.tasks))

    def hold_together(self, block: HeldBlock, runs: Mapping[str, Run]) -> bool:
        """Let pods wait on the nodes that are held for them, as they did in the last cycle; tells whether everybody who follows placements agrees, else nothing is done."""
        block.put(self._session.cluster)
        if self._session.tell_of_many(list(runs.values()), 1) is not None:
            block.take(self._session.cluster)
            self._session.tell_of_many(list(runs.values()), -1)
            return False
        self._blocks.append((block, runs))
        self.kept.resting.update(runs)
        self.evicted_for.update(dict.fromkeys(runs))
        return True

    def let_go(self) -> None:
        """Undo what was held together and is so still."""
        blocks, self._blocks = self._blocks, []
        cluster = self._session.cluster
        for block, runs in blocks:
            gone = runs.keys() - self.kept.resting.keys()
            block.take(cluster, gone)
            cluster.owed.update(block.by_job)
            for uid in gone:
                del cluster.owed[block.by_uid[uid].job_key]
            if still := [run for uid, run in runs.items() if uid not in gone] if gone else list(runs.values()):
                self._session.tell_of_many(still, -1)
        self.kept.resting.clear()

    def release(self, task: Task) -> None:
        """Undo one held task, so that it can be placed anew."""
        if (run := self.kept.take(task)) is not None:
            statement = Statement(self._session)
            statement.runs = [run]
            statement.rollback(0)

    def hold_anew(self, task: Task, *, evicted: bool) -> None:
        """Leave one held task where it waits, but in the order of what is held as if it had been undone and held again."""
        self.kept.put_last(task, evicted=evicted)
        self._session.reserved[task.uid] = self._session.reserved.pop(task.uid)
        if task.node is not None:
            task.node.tasks[task.uid] = task.node.tasks.pop(task.uid)

    def best_effort_jobs(self) -> list[Job]:
        """Return the jobs that have best-effort tasks without a node, or with only the promise of one."""
        pending = self._session.awake
        found = {key: job for key, job in pending.items() if job.pending and job.tally.counts[BEST_EFFORT_PENDING]}
        for run in self.kept:
            task = run.tasks[0]
            if task.best_effort and task.status == Status.PIPELINED and task.job is not None:
                found[task.job.key] = task.job
        return list(found.values())

    def rollback(self) -> None:
        """Undo everything that was only held, and whatever an action that broke down left behind."""
        for abandoned in self._statements:
            if abandoned.runs:
                abandoned.discard()
        statement = Statement(self._session)
        statement.runs = self.kept.take_all()
        statement.discard()
        self.let_go()
