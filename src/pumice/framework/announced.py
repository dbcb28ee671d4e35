"""What plugins let a session know of themselves beside the functions that they register."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pumice.framework.explaining.queue_accounts import Accounts
    from pumice.framework.searching import StandingPlan
    from pumice.framework.subject import Subject
    from pumice.model.task import Task


class Announced:
    """Said when plugins are opened, true for one cycle."""

    def __init__(self) -> None:
        # Questions to which equal tasks may have different answers: nodes are then chosen apart for them.
        self.divisions: list[Callable[[Task], object]] = []
        # Whether no job is ever ready below its minimum.
        self.minimums_count = False
        # What they say in a sentence of the objects that keep a pod with volumes from every node, given the reasons of nodes; empty if nothing does.
        self.pod_causes: list[Callable[[Subject, Collection[str]], str]] = []
        # By plugin that plans ahead: whether its plan stands though jobs that find no room are not looked at in this cycle.
        self.standing_plans: dict[str, StandingPlan] = {}
        # How queues stand, as the plugin that shares sees it; for explanations.
        self.queue_accounts: Accounts | None = None
