"""Handlers: what plugins follow placements with, in lists of runs; one that takes a run at a time is told of each in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from pumice.framework import wrong_answers
from pumice.framework.breakdowns import HANDLER
from pumice.framework.runs import Run, Step

if TYPE_CHECKING:
    from pumice.framework.breakdowns import Breakdowns, PluginBreakdownError

Handler = Callable[[Run, int], str | None]
ListHandler = Callable[[Sequence[Run], int], str | None]


class Follower(msgspec.Struct, frozen=True):
    """A handler, and what was said of it; the plugin is empty if it is not known."""

    plugin: str
    handler: Callable[..., str | None]  # takes runs, or one run
    by_run: bool
    waiting: bool


class Handlers:
    """Everybody who follows placements, in the order in which they began to."""

    __slots__ = ("_breakdowns", "_culprit", "_followers", "look_around", "may_refuse")

    def __init__(self, breakdowns: Breakdowns, culprit: Callable[[Exception], str]) -> None:
        self._breakdowns = breakdowns
        self._culprit = culprit
        self._followers: list[Follower] = []
        self.may_refuse = False
        self.look_around = False  # whether any has to be told of each run before the next is applied

    def __len__(self) -> int:
        return len(self._followers)

    def add(self, follower: Follower, *, may_refuse: bool, one_job: bool) -> None:
        """Let one more follow."""
        self._followers.append(follower)
        self.may_refuse = self.may_refuse or may_refuse
        self.look_around = self.look_around or not one_job

    def keep(self, count: int) -> None:
        """Forget all but the first."""
        del self._followers[count:]

    def tell(self, runs: Sequence[Run], sign: int) -> str | PluginBreakdownError | None:
        """Tell everybody about runs of one direction that were applied (sign 1) or undone (-1), evictions the other way round; returns the first refusal.

        One that breaks down has refused, and the others are told all the same.
        """
        direction = sign * runs[0].direction
        seen = runs if runs[0].step is not Step.SUPPOSE else [run.told() for run in runs]
        refusal: str | PluginBreakdownError | None = None
        for follower in self._followers:
            if not direction and not follower.waiting:
                continue
            for told in seen if follower.by_run else (seen,):
                answer = self._answer(follower, told, direction)
                refusal = answer if refusal is None else refusal
        if refusal is not None and len(runs) == 1:
            self.may_refuse = True
        elif refusal is not None:
            # Who was refused among them is found out where each is told of before the next.
            self.look_around = True
        return refusal

    def _answer(
        self, follower: Follower, told: Run | Sequence[Run], direction: int
    ) -> str | PluginBreakdownError | None:
        try:
            answer: str | None = follower.handler(told, direction)
            if answer is not None:
                wrong_answers.check_instance(answer, str)
        except Exception as error:  # noqa: BLE001  half a placement must not stay behind
            first = told if isinstance(told, Run) else told[0]
            name = follower.plugin or self._culprit(error)
            return self._breakdowns.note(name, HANDLER, follower.handler, error, first.tasks[0].job_key)
        return answer
