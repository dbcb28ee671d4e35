"""A relaxation: a change of objects, in words and as edits that can be put together with those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.api import kinds
    from pumice.api.meta import KubeObject
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.study.rehearsal import Replaced
    from pumice.study.state import Manifest


class Edit(msgspec.Struct, frozen=True):
    """One object before, and what it becomes: `before` is None for one that is added, a change that gives None removes it."""

    kind: kinds.Kind
    before: KubeObject | None
    change: Callable[[KubeObject | None], KubeObject | None]


class Relaxation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing relaxed. `sort` is its rank among others, the smallest first; `said` what to do, in words.

    `job` changes the Volcano Job that the pods come from, which makes its group and further pods follow. One that can go less far says so:
    `at` gives it by number, from 1 to `most`, which is itself. What leaves little of a job is `drastic`, and comes after everything else.
    """

    sort: str
    said: str
    edits: tuple[Edit, ...]
    job: Callable[[Manifest], Manifest] | None = None
    at: Callable[[int], Relaxation] | None = None
    most: int = 1
    drastic: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a relaxation is sought for: a job, those of its pods that wait, and those that its controller has yet to make."""

    cluster: Cluster
    job: Job
    waiting: tuple[Task, ...]
    plugins: frozenset[str]  # of the configuration
    evicts: bool  # whether some action evicts
    fitting: int  # members that would find a place as things are
    base: str  # why the others do not
    backfills: bool = True  # whether some action places pods that ask for nothing
    to_be_made: tuple[Task, ...] = ()
    missing: tuple[Task, ...] = ()  # below the minimum, and nobody makes them
    rivals: tuple[Task, ...] = ()  # pods of the same namespace that controllers of other Jobs have yet to make
    owner: Manifest | None = None  # the Volcano Job that the group belongs to
    now: int = 0

    @property
    def members(self) -> tuple[Task, ...]:
        """The pods that should start, the largest first."""
        return tuple(sorted((*self.waiting, *self.to_be_made, *self.missing), key=_size, reverse=True))

    @property
    def lacking(self) -> int:
        """How many of them have to start at least."""
        members = len(self.waiting) + len(self.to_be_made) + len(self.missing)
        return max(1, min(members or 1, self.job.min_member - self.job.tally.ready))

    @property
    def least(self) -> tuple[Task, ...]:
        """As many of the members as have to start, the smallest."""
        return self.members[-self.lacking :]


def _size(task: Task) -> tuple[int, ...]:
    request = task.shape.request
    return (sum(request.amounts.values()),)


def replaced(edits: Iterable[Edit]) -> list[Replaced]:
    """Return what edits come to, each object once; edits of one object are made one after the other."""
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
    return [
        (edit.kind, edit.before, result[key])
        for key, edit in first.items()
        if not (edit.before is None and result[key] is None)
    ]


def joined(relaxations: Iterable[Relaxation]) -> Relaxation:
    """Put several relaxations together."""
    listed = list(relaxations)
    changes = [each.job for each in listed if each.job is not None]
    return Relaxation(
        sort="together",
        said=" and ".join(each.said for each in listed),
        edits=tuple(edit for each in listed for edit in each.edits),
        job=_in_turn(changes) if changes else None,
    )


def _in_turn(changes: Sequence[Callable[[Manifest], Manifest]]) -> Callable[[Manifest], Manifest]:
    def changed(job: Manifest) -> Manifest:
        for change in changes:
            job = change(job)
        return job

    return changed


def graded(most: int, at: Callable[[int], Relaxation]) -> Relaxation:
    """Return a relaxation that can go less far."""
    whole = at(most)
    return msgspec.structs.replace(whole, at=at, most=most)


def pods(count: int) -> str:
    """Say how many pods."""
    return f"{count} pod" if count == 1 else f"{count} pods"


def nodes(count: int) -> str:
    """Say how many nodes."""
    return f"{count} node" if count == 1 else f"{count} nodes"
