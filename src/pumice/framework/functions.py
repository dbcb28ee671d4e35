"""The filters and scores of a session, sorted by what they read: that decides what of their answers is kept, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.extensions import Extension, Registered

LOCAL = Reads.COLUMNS | Reads.TASKS
SINGLE = Reads.TASK | Reads.JOB | Reads.QUEUE | Reads.TIME


class Functions:
    """The filters and scores of a session, sorted by what they read."""

    __slots__ = (
        "aparts",
        "filters",
        "filters_global",
        "filters_local",
        "filters_local_flags",
        "filters_static",
        "looks_elsewhere",
        "raws",
        "reads",
        "scores",
        "scores_global",
        "scores_read_amounts",
        "scores_static",
        "tells_subjects_apart",
    )

    def __init__(self, predicate: Extension[..., Any], score: Extension[..., Any]) -> None:
        self.filters: list[Registered[..., Any]] = list(predicate)
        self.filters_static = [f for f in self.filters if not f.reads & (LOCAL | Reads.OTHER_NODES | SINGLE)]
        self.filters_global = [f for f in self.filters if f.reads & Reads.OTHER_NODES]
        self.filters_local = [f for f in self.filters if f not in self.filters_static and f not in self.filters_global]
        plain: list[Registered[..., Any]] = [f for f in score if f.normalise is None and f.follow is None]
        self.scores_static = [f for f in plain if not f.reads & ~Reads.NODE]
        self.scores = [f for f in plain if f not in self.scores_static and not f.reads & Reads.OTHER_NODES]
        self.scores_global = [f for f in plain if f.reads & Reads.OTHER_NODES]
        self.raws: list[Registered[..., Any]] = [f for f in score if f.normalise is not None or f.follow is not None]
        self.reads = Reads(0)
        for function in [*self.filters, *plain, *self.raws]:
            self.reads |= function.reads
        # What tells subjects of one shape apart, each question once.
        self.aparts = list(dict.fromkeys(f.apart for f in [*self.filters, *plain, *self.raws] if f.apart is not None))
        # Asked for every subject, so worked out once: flags are slow to test.
        self.filters_local_flags = [
            (f, bool(f.reads & Reads.TASKS), f.reads == Reads.COLUMNS) for f in self.filters_local
        ]
        self.scores_read_amounts = all(f.reads == Reads.COLUMNS for f in self.scores)
        self.looks_elsewhere = bool(self.reads & Reads.OTHER_NODES)
        self.tells_subjects_apart = bool(self.reads & SINGLE)

    def identity(self) -> tuple[Hashable, ...]:
        """Return what must stay equal for kept vectors to stay valid: the functions, in order."""
        functions = [*self.filters, *self.scores_static, *self.scores, *self.scores_global, *self.raws]
        return tuple((f.plugin, f.function) for f in functions)
