"""Who is meant by a name on the command line: a pod, a job by its group, its Volcano Job or another owner, a queue, a node."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pumice.api import kinds, names
from pumice.framework import causes
from pumice.model import native_groups
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.api.meta import ObjectMeta
    from pumice.study.state import State

What = Literal["pod", "job", "queue", "node"]
NEAR: Final = 3
_JOB_LABEL: Final = "volcano.sh/job-name"
_WITHOUT_GROUP: Final = {
    "Pending": "nobody has made them yet; do the controllers run?",
    "Aborted": "`pumice job resume` starts it again",
    **dict.fromkeys(("Aborting", "Restarting", "Completing", "Terminating"), "its controller is at work on it"),
}
"""What there is to do about a Job without a group, by its phase; in any other it has ended."""


class UnknownNameError(StudyError):
    """A name that nothing has."""


class WithoutGroupError(StudyError):
    """A Job that has neither a group nor pods."""

    def __init__(self, job: str, why: str) -> None:
        super().__init__(f"Job {job} has no PodGroup and no pods: {why}")
        self.job = job


def find(state: State, what: What, name: str, namespace: str = "") -> str:
    """Return the key of what is meant, or raise an error that names what is near."""
    if what in ("queue", "node"):
        kind = kinds.QUEUE if what == "queue" else kinds.NODE
        return _one(
            what,
            name,
            [found.metadata.name for found in state.of(kind) if found.metadata.name == name],
            (found.metadata.name for found in state.of(kind)),
        )
    wanted = _split(what, name, namespace)
    if what == "pod":
        known = [_key(found.metadata.namespace, found.metadata.name) for found in state.of(kinds.POD)]
        return _one(what, name, [key for key in known if _fits(key, wanted)], known)
    groups = list(dict.fromkeys(_groups(state)))
    exact = [key for key in groups if _fits(key, wanted)]
    owned = [owned for owned in _owners(state) if _fits(owned.owner, wanted)]
    if not exact and not owned:
        _miss_group(state, wanted)
    return _one(what, name, exact or _live(state, owned), [*groups, *(each.owner for each in _owners(state))])


def _miss_group(state: State, wanted: tuple[str, str]) -> None:
    """Say of a Job that is there, and has neither a group nor pods, why that is so; likewise of whoever has pods without a group."""
    for job in state.jobs.values():
        metadata, said = job["metadata"], (job.get("status") or {}).get("state") or {}
        key, phase = _key(metadata.get("namespace", ""), metadata["name"]), said.get("phase") or "Pending"
        if _fits(key, wanted):
            since = f" since {said['lastTransitionTime']}" if said.get("lastTransitionTime") else ""
            why = _WITHOUT_GROUP.get(phase, "that is over, and nothing of it waits")
            if phase == "Pending" and said.get("message"):
                why = said["message"]  # its controller has said what it waits for
            raise WithoutGroupError(key, f"it is {phase}{since}; {why}")
    alone = [pod for pod in state.pods() if any(_fits(owner, wanted) for owner in _names_of_owners(pod.metadata))]
    if alone:
        first = min(alone, key=lambda pod: pod.metadata.name)
        key = _key(first.metadata.namespace, first.metadata.name)
        pods = f"{len(alone)} pods" if len(alone) > 1 else "1 pod"
        raise StudyError(f"{wanted[1]} has {pods} and no PodGroup; of {key}: {causes.without_group(first)}")


def _names_of_owners(metadata: ObjectMeta) -> Iterator[str]:
    return (_key(metadata.namespace, owner.name) for owner in metadata.owner_references)


def _split(what: str, name: str, namespace: str) -> tuple[str, str]:
    given, slash, rest = name.rpartition("/")
    if "/" in given or not rest or (slash and not given):
        raise StudyError(f"{what} {name!r}: write NAME with -n NAMESPACE, or NAMESPACE/NAME")
    if given and namespace and given != namespace:
        raise StudyError(f"{what} {name!r} is in namespace {given}, and -n says {namespace}")
    return given or namespace, rest


def _fits(key: str, wanted: tuple[str, str]) -> bool:
    namespace, name = key.split("/", 1)
    return wanted[1] in (name, name.removesuffix(native_groups.MARK)) and wanted[0] in ("", namespace)


def _groups(state: State) -> Iterator[str]:
    """Walk over groups, those included that only pods name: somebody has to say that they are missing."""
    for found in state.of(kinds.POD_GROUP):
        yield _key(found.metadata.namespace, native_groups.name_of_job(found))
    for pod in state.pods():
        if group := native_groups.name_in_job(pod):
            yield _key(pod.metadata.namespace, group)


class _Owned(NamedTuple):
    """A group, and who it or one of its pods belongs to."""

    owner: str
    group: str
    kind: str
    uid: str
    created: str
    going: bool


def _owners(state: State) -> Iterator[_Owned]:
    """Walk over those to whom pods and groups belong: their controllers, their Volcano Job."""
    for pod in state.pods():
        metadata = pod.metadata
        group = native_groups.name_in_job(pod)
        if group:
            yield from _owners_of(metadata, group)
            job = metadata.labels.get(_JOB_LABEL) or metadata.annotations.get(_JOB_LABEL)
            if job and not any(owner.name == job for owner in metadata.owner_references):
                yield _owned(metadata, group, job, "", "")
    for found in state.of(kinds.POD_GROUP):
        yield from _owners_of(found.metadata, native_groups.name_of_job(found))


def _owners_of(metadata: ObjectMeta, group: str) -> Iterator[_Owned]:
    for owner in metadata.owner_references:
        yield _owned(metadata, group, owner.name, owner.kind, owner.uid)


def _owned(metadata: ObjectMeta, group: str, owner: str, kind: str, uid: str) -> _Owned:
    place, created = metadata.namespace, metadata.creation_timestamp or ""
    return _Owned(_key(place, owner), _key(place, group), kind, uid, created, bool(metadata.deletion_timestamp))


def _live(state: State, owned: Sequence[_Owned]) -> list[str]:
    """Return the groups of those who have a name; of an owner that was deleted and made anew those of the one that is there, though pods of the other are still going."""
    if len({(each.kind, each.owner) for each in owned}) == 1 and len({each.uid for each in owned}) > 1:
        there = {uid for uid, job in state.jobs.items() if not job["metadata"].get("deletionTimestamp")}
        newest = max(owned, key=lambda each: (each.uid in there, not each.going, each.created))
        owned = [each for each in owned if each.uid == newest.uid]
    return list(dict.fromkeys(each.group for each in owned))


def _one(what: str, name: str, found: list[str], known: Iterable[str]) -> str:
    if len(found) == 1:
        return found[0]
    if found:
        raise StudyError(
            f"{what} {name!r}: {len(found)} have this name: {', '.join(sorted(found)[:5])}; say which with -n"
        )
    listed = list(dict.fromkeys(known))
    near = get_close_matches(name, listed, n=NEAR, cutoff=0.5)
    if not near:
        bare = {key.rpartition("/")[2]: key for key in listed}
        near = [bare[each] for each in get_close_matches(name.rpartition("/")[2], list(bare), n=NEAR, cutoff=0.5)]
    hint = (
        f"; did you mean {' or '.join(near)}?"
        if near
        else f"; there are {len(listed)}"
        if listed
        else "; there are none"
    )
    raise UnknownNameError(f"no {what} {name!r}{hint}")


def _key(namespace: str, name: str) -> str:
    return f"{namespace or names.DEFAULT_NAMESPACE}/{name}"
