"""Who keeps evaluations and blocks, and what these need of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.functions import Functions
    from pumice.framework.observing import Observer
    from pumice.framework.reasons import Reasons
    from pumice.framework.sampling import Sampler
    from pumice.framework.shortcuts import Shortcuts
    from pumice.framework.subject import Subject
    from pumice.framework.vectors import Floats, Mask
    from pumice.model.nodes import NodeTable


class Together(Protocol):
    """Who works out subjects together with others that are expected."""

    def row(self, key: Hashable, subject: Subject) -> tuple[Floats, int] | None:
        """Return the keys of all nodes for a subject."""

    def rows(self, key: Hashable, subject: Subject, count: int) -> list[int] | None:
        """Return rows for a few equal tasks."""


class Keeper(Protocol):
    """What is needed of whoever keeps evaluations (`evaluator.Evaluator`)."""

    @property
    def table(self) -> NodeTable:
        """All nodes."""

    @property
    def functions(self) -> Functions:
        """The functions of the session."""

    @property
    def observer(self) -> Observer:
        """Who measures."""

    @property
    def reasons(self) -> Reasons:
        """The numbers of reasons."""

    @property
    def sampler(self) -> Sampler | None:
        """Who ends a search early."""

    @property
    def shortcuts(self) -> Shortcuts:
        """What may be taken for granted."""

    @property
    def forgotten(self) -> int:
        """How often something was not worth keeping."""

    @property
    def blocks(self) -> Together:
        """Subjects that are worked out together."""

    def static_mask(self, subject: Subject, *, bare: bool = False) -> Mask:
        """Return the nodes that the Node objects alone do not rule out."""

    def key(self, subject: Subject) -> Hashable:
        """Return what a subject shares with its equals."""
