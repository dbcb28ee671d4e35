"""A relaxation: a change of objects, in words and as edits that can be put together with those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.api import kinds
    from pumice.api.meta import KubeObject
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.study.rehearsal import Change


class Edit(msgspec.Struct, frozen=True):
    """One object before, and what it becomes: `before` is None for one that is added, a change that gives None removes it."""

    kind: kinds.Kind
    before: KubeObject | None
    change: Callable[[KubeObject | None], KubeObject | None]


class Relaxation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing relaxed. `sort` is its rank among others, the smallest first; `said` what to do, in words."""

    sort: str
    said: str
    edits: tuple[Edit, ...]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a relaxation is sought for: a job, and those of its pods that wait."""

    cluster: Cluster
    job: Job
    waiting: tuple[Task, ...]
    plugins: frozenset[str]  # of the configuration
    evicts: bool  # whether some action evicts
    fitting: int  # members that would find a place as things are
    base: str  # why the others do not


def effect(edits: Iterable[Edit]) -> tuple[list[Change], list[Change]]:
    """Return the changes that edits come to, and those that take them back; edits of one object are made one after the other."""
    first: dict[tuple[str, str, str], Edit] = {}
    result: dict[tuple[str, str, str], KubeObject | None] = {}
    for edit in edits:
        found = edit.before if edit.before is not None else edit.change(None)
        if found is None:
            continue
        key = (edit.kind.name, found.metadata.namespace, found.metadata.name)
        before = result[key] if key in first else edit.before
        first.setdefault(key, edit)
        result[key] = edit.change(before)
    forth: list[Change] = []
    back: list[Change] = []
    for key, edit in first.items():
        after = result[key]
        if edit.before is None and after is not None:
            forth.append((edit.kind, "ADDED", after))
            back.insert(0, (edit.kind, "DELETED", after))
        elif edit.before is not None:
            forth.append((edit.kind, "DELETED", edit.before) if after is None else (edit.kind, "MODIFIED", after))
            back.insert(0, (edit.kind, "ADDED" if after is None else "MODIFIED", edit.before))
    return forth, back


def joined(relaxations: Iterable[Relaxation]) -> Relaxation:
    """Put several relaxations together."""
    listed = list(relaxations)
    return Relaxation(
        sort="together",
        said=" and ".join(each.said for each in listed),
        edits=tuple(edit for each in listed for edit in each.edits),
    )
