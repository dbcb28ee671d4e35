"""Explains one object of a cluster that was read: the cycle's own record in depth, what is written on the objects, and the smallest change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import core, kinds, names, native, scheduling, timestamp
from pumice.framework import explaining
from pumice.framework.explaining import JobExplanation, PodExplanation
from pumice.model import native_groups
from pumice.study import configuring, naming, rights, search
from pumice.study.rehearsal import Rehearsal
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.framework.explaining.explanations import Explanation
    from pumice.framework.registry import Registry
    from pumice.study import live
    from pumice.study.configuring import Policy
    from pumice.study.state import State

_FOUND_BY: Final[dict[str, tuple[kinds.Kind, ...]]] = {
    "pod": (kinds.POD,),
    "job": (kinds.POD_GROUP, kinds.POD),
    "queue": (kinds.QUEUE,),
    "node": (kinds.NODE,),
}
PODS_ASKED: Final = 3
_IN_CONDITIONS: Final = frozenset({names.EVENT_FAILED_SCHEDULING, names.EVENT_UNSCHEDULABLE, names.EVENT_GROUP_PENDING})
_TOLD: Final = frozenset({"waits", "not let in", "holds room", "invalid", "without pods"})


Warnings = Callable[[Sequence[tuple[str, str]]], Sequence[core.Event]]


class Written(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition that is written on an object, or a warning about it; what only the running scheduler knows, a refused bind or a plugin that broke down, is there too."""

    object: str
    type: str
    status: str
    reason: str
    message: str
    since: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What can be said about one object. `cause` says in a sentence why it waits, if it does.

    Without the rights to read what it depends on there is no explanation, only what is written; `refused` says why, and `rules_to_add` what would help.
    """

    what: str
    name: str
    source: str
    time: str
    configuration: str
    schedulers: tuple[str, ...]
    cause: str = ""
    explanation: Explanation | None
    search: search.Search | None
    written: tuple[Written, ...]
    missing_rights: tuple[str, ...]
    refused: str = ""
    rules_to_add: tuple[str, ...] = ()
    notes: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and with which policy."""

    what: naming.What
    name: str
    namespace: str = ""
    config: str = ""
    scheduler_names: tuple[str, ...] = ()
    search: bool = True


def answer(
    state: State,
    request: Request,
    known: Registry,
    *,
    told: Callable[[str], None] = lambda _text: None,
    access: live.Access | None = None,
    warnings: Warnings = lambda _objects: (),
    kept: Callable[[Policy], Rehearsal | None] = lambda _policy: None,
    clock: Callable[[], float] = time.process_time,
) -> Answer:
    """Explain an object of a cluster; `warnings` gives the events about objects, where there is somebody to ask, `kept` a model of the same objects under a policy.

    The search for a change goes on for some seconds by the `clock`.
    """
    try:
        key = _found(state, request)
    except naming.WithoutGroupError as error:
        namespace, _, name = error.job.partition("/")
        last = [each for each in warnings([(namespace, name)])[-1:] if each.message not in str(error)]
        more = "".join(f"\n{each.reason}: {each.message}" for each in last)
        raise StudyError(f"{error}{more}") from error
    pods = list(_pods_of(state, request.what, key))
    policy = configuring.choose(
        state, known, given=request.config, scheduler_names=request.scheduler_names, pods=pods, access=access
    )
    wanting = rights.wanting(state, policy.configuration, given_policy=bool(request.config))
    missing = [each.denied for each in wanting] or state.denied
    explanation, found = None, None
    if not wanting:
        told(f"building the model of {len(state.objects)} objects")
        rehearsal = kept(policy) or Rehearsal(
            state.objects, policy.configuration, policy.options, state.now, known, jobs=state.jobs
        )
        explanation = _explained(rehearsal, request.what, key)
        target = _target(rehearsal, explanation) if request.search else None
        found = search.search(rehearsal, target, told=told, clock=clock) if target is not None else None
    return Answer(
        what=request.what,
        name=key,
        source=state.source,
        time=timestamp.format_timestamp(state.now // 1_000_000 * 1_000_000),
        configuration=policy.source,
        schedulers=policy.options.scheduler_name,
        cause=explanation.cause if isinstance(explanation, JobExplanation | PodExplanation) else "",
        explanation=explanation,
        search=found,
        written=(
            *_written(state, request.what, key, pods),
            *_events(policy.source, request.what, _asked(state, key, pods), warnings),
        ),
        missing_rights=tuple(each.right for each in missing),
        refused=rights.told(wanting) if wanting else "",
        rules_to_add=rights.rules_to_add(missing),
        notes=(*state.notes, *(f"explained without {each}, which is not provided here" for each in policy.left_out)),
    )


def _found(state: State, request: Request) -> str:
    """Find what is meant; where the user does not see all of its kind, nobody says that it is not there."""
    try:
        return naming.find(state, request.what, request.name, request.namespace)
    except StudyError:
        unseen = [
            each
            for each in rights.wanting(state, None, given_policy=True)
            if each.denied.kind in _FOUND_BY[request.what]
        ]
        hidden = [each for each in unseen if not each.denied.read_in or each.denied.read_in != _namespace(request)]
        if not hidden:
            raise
        why = f"whether {request.what} {request.name} is there, and what belongs to it, cannot be seen"
        raise rights.RightsError(f"refused, since it could be wrong: {rights.told(hidden, why)}") from None


def _namespace(request: Request) -> str:
    return request.namespace or request.name.rpartition("/")[0]


def _explained(rehearsal: Rehearsal, what: naming.What, key: str) -> Explanation | None:
    with rehearsal.cycle() as (session, _):
        asked = explaining.Explainer(rehearsal.engine, session)
        match what:
            case "pod":
                return asked.pod(key)
            case "job":
                return asked.job(key)
            case "queue":
                return asked.queue(key)
            case "node":
                return asked.node(key)


def _target(rehearsal: Rehearsal, explanation: Explanation | None) -> search.Target | None:
    """Return for whom a change is sought: a job that waits, or a pod that does."""
    if isinstance(explanation, JobExplanation):
        waits = explanation.state in _TOLD or (explanation.state == "runs" and explanation.members.get("Pending"))
        return search.Target(explanation.job) if waits else None
    if isinstance(explanation, PodExplanation) and explanation.job is not None and explanation.status == "Pending":
        job = rehearsal.cluster.jobs[explanation.job.job]
        uid = next((task.uid for task in job.pending.values() if task.key == explanation.pod), "")
        return search.Target(job.key, uid) if uid else None
    return None


def _pods_of(state: State, what: str, key: str) -> Iterable[core.Pod]:
    for pod in state.pods():
        metadata = pod.metadata
        mine = f"{metadata.namespace}/{metadata.name}" if what == "pod" else ""
        group = native_groups.name_in_job(pod)
        if key in (mine, f"{metadata.namespace}/{group}" if what == "job" else ""):
            yield pod


def _written(state: State, what: str, key: str, pods: Iterable[core.Pod]) -> Iterable[Written]:
    """Walk over what conditions say: of the group, and of its pods as far as they say different things."""
    groups = {key} if what == "job" else set()
    groups |= {f"{pod.metadata.namespace}/{native_groups.name_in_job(pod)}" for pod in pods}
    for found in state.of(kinds.POD_GROUP):
        name = f"{found.metadata.namespace}/{native_groups.name_of_job(found)}"
        if name in groups and isinstance(found, scheduling.PodGroup | native.PodGroup):
            for each in found.status.conditions:
                yield _condition(f"podgroup {name}", each)
    said: set[tuple[str, str]] = set()
    for pod in sorted(pods, key=lambda each: each.metadata.name):
        for condition in pod.status.conditions:
            if condition.type == names.CONDITION_POD_SCHEDULED and condition.status != "True":
                words = (condition.reason, condition.message)
                if words not in said:
                    said.add(words)
                    yield _condition(f"pod {pod.metadata.namespace}/{pod.metadata.name}", condition)


def _asked(state: State, key: str, pods: Sequence[core.Pod]) -> list[str]:
    """List whose warnings are read: those of the job and its first pods, and of whoever has to make those that are missing."""
    asked = [key.removesuffix(native_groups.MARK)]
    for pod in pods[:PODS_ASKED]:
        group = native_groups.name_in_job(pod).removesuffix(native_groups.MARK)
        asked += [f"{pod.metadata.namespace}/{pod.metadata.name}", f"{pod.metadata.namespace}/{group}"]
    return [*asked, *_makers(state, key, len(pods))]


def _events(source: str, what: str, objects: Iterable[str], warnings: Warnings) -> Iterable[Written]:
    """Walk over warnings that say more than conditions do: about some objects, and the ConfigMap of the policy."""
    if what not in ("pod", "job"):
        return
    asked = dict.fromkeys(objects)
    if source.startswith("configmap "):
        asked[source.removeprefix("configmap ").partition(",")[0]] = None
    for event in warnings([(place, name) for place, _, name in (each.partition("/") for each in asked) if name]):
        if event.reason not in _IN_CONDITIONS:
            about = event.involved_object
            yield Written(
                object=f"{about.kind.lower()} {about.namespace}/{about.name}",
                type="Event",
                status=event.type,
                reason=event.reason,
                message=event.message,
                since=event.last_timestamp or event.first_timestamp or "",
            )


def _makers(state: State, key: str, pods: int) -> Iterator[str]:
    """Walk over those to whom a group belongs that has no pods, or fewer than its minimum."""
    for found in state.of(kinds.POD_GROUP):
        metadata = found.metadata
        least = found.spec.min_member if isinstance(found, scheduling.PodGroup) else 0
        if f"{metadata.namespace}/{native_groups.name_of_job(found)}" == key and pods < max(1, least):
            yield from (f"{metadata.namespace}/{owner.name}" for owner in metadata.owner_references)


def _condition(name: str, condition: core.Condition | scheduling.PodGroupCondition) -> Written:
    return Written(
        object=name,
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        since=condition.last_transition_time or "",
    )
