"""Which pods a Job starts and which it takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, naming, pods
from pumice.controllers.workloads.jobs import tallying

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Step
    from pumice.controllers.workloads.jobs.ending import JobEnd
    from pumice.controllers.workloads.jobs.tallying import Tally

Manifest = dict[str, Any]
_FIRST_PAUSE: Final = 10 * duration.SECOND
_LONGEST_PAUSE: Final = 600 * duration.SECOND
_VARIABLE: Final = "JOB_COMPLETION_INDEX"


def changes(
    job: Manifest, tally: Tally, verdict: JobEnd, observed: Observed, moment: Moment
) -> tuple[list[Step], int | None]:
    """Give the pods to make or to remove, and when to look again if a pause after failures holds pods back."""
    if verdict.state == "failing":
        return [pods.delete(pod) for pod in tally.active], None  # whoever is stopped by a failure has failed too
    if verdict.state != "running":
        return [step for pod in tally.active for step in removed(pod)], None
    surplus = _surplus(job, tally)
    if surplus:
        return [step for pod in surplus for step in removed(pod)], None
    missing = _wanted(job, tally) - len(tally.active) - (len(tally.terminating) if tally.only_failed else 0)
    if missing <= 0:
        return [], None
    until = _pause_ends(tally, moment)
    if until is not None and until > moment.now:
        return [], until
    missing = min(missing, pods.AT_ONCE)
    found = _indexed(job, tally, missing, observed) if tally.indexed else _plain(job, missing, observed)
    return [pods.create(pod) for pod in found], None


def balance(steps: Sequence[Step]) -> tuple[int, frozenset[str]]:
    """Give how many pods come, and the uids of those that go."""
    made = sum(isinstance(step.request, effects.Create) for step in steps)
    return made, frozenset(step.request.uid for step in steps if isinstance(step.request, requests.Delete))


def removed(pod: Manifest) -> list[Step]:
    """Remove a pod that is not wanted any more: it counts neither as failed nor as succeeded."""
    steps = [tallying.release(pod)] if tallying.is_tracked(pod) else []
    return [*steps, pods.delete(pod)]


def _wanted(job: Manifest, tally: Tally) -> int:
    parallelism = manifests.number(manifests.mapping(job, "spec"), "parallelism", 1)
    if tally.completions is None:
        # Once one has succeeded the others are left to end, and none is started in place of one that does.
        return len(tally.active) if tally.succeeded else parallelism
    return min(tally.completions - tally.succeeded, parallelism)


def _surplus(job: Manifest, tally: Tally) -> list[Manifest]:
    """Give the active pods beyond what is wanted, and those whose index is done, or is another's, or does not exist."""
    wrong: list[Manifest] = []
    if not tally.indexed and len(tally.active) <= _wanted(job, tally):
        return []
    rest = sorted(tally.active, key=pods.first_to_go)
    if tally.indexed:
        by_index: dict[int | None, Manifest] = {}
        for pod in reversed(rest):
            place = tallying.index(pod)
            if place is None or place in tally.completed or place >= (tally.completions or 0) or place in by_index:
                wrong.append(pod)
            else:
                by_index[place] = pod
        rest = [pod for pod in rest if pod not in wrong]
    beyond = len(rest) - _wanted(job, tally)
    return wrong + rest[: max(0, beyond)]


def _pause_ends(tally: Tally, moment: Moment) -> int | None:
    """Give when a pause after failures in a row is over: 10 seconds, doubled with each, at most 10 minutes."""
    ended = sorted(
        (_ended(pod), pods.phase(pod) == names.PHASE_SUCCEEDED)
        for pod in tally.pods
        if pods.is_finished(pod) or (manifests.is_going(pod) and tally.is_failed(pod))
    )
    streak = 0
    for _, good in reversed(ended):
        if good:
            break
        streak += 1
    if not streak:
        return None
    pause = min(_LONGEST_PAUSE, _FIRST_PAUSE << min(streak - 1, 30))
    return moment.reaches(ended[-1][0], pause)


def _ended(pod: Mapping[str, Any]) -> int:
    times = [
        manifests.moment_of(manifests.mapping(each, "state", "terminated").get("finishedAt"))
        for each in manifests.items(pod, "status", "containerStatuses")
    ]
    found = [each for each in times if each is not None]
    ready = manifests.condition(manifests.mapping(pod, "status"), names.CONDITION_READY)
    return max(found) if found else manifests.moment_of(ready.get("lastTransitionTime")) or manifests.created(pod)


def _plain(job: Manifest, count: int, observed: Observed) -> Iterator[Manifest]:
    free = naming.free_names(
        f"{manifests.name(job)}-", job["metadata"].get("namespace", ""), manifests.uid(job), observed
    )
    for _ in range(count):
        yield _pod(job, next(free))


def _indexed(job: Manifest, tally: Tally, count: int, observed: Observed) -> Iterator[Manifest]:
    busy = {tallying.index(pod) for pod in tally.active}
    busy |= {tallying.index(pod) for pod in tally.terminating} if tally.only_failed else set()
    missing = (each for each in tally.completed.missing(tally.completions or 0) if each not in busy)
    for _, place in zip(range(count), missing, strict=False):
        name, namespace = manifests.name(job), job["metadata"].get("namespace", "")
        free = naming.free_names(f"{name}-{place}-", namespace, manifests.uid(job), observed, place)
        yield _with_index(_pod(job, next(free)), f"{name}-{place}", place)


def _pod(job: Manifest, name: str) -> Manifest:
    pod = pods.from_template(job, kinds.BATCH_JOB, manifests.mapping(job, "spec").get("template"), name)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*metadata.get("finalizers", []), tallying.FINALIZER]
    return pod


def _with_index(pod: Manifest, host: str, place: int) -> Manifest:
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["annotations"] = {**metadata.get("annotations", {}), tallying.INDEX: str(place)}
    metadata["labels"] = {**metadata.get("labels", {}), tallying.INDEX: str(place)}
    spec["hostname"] = host
    where = {"fieldRef": {"fieldPath": f"metadata.labels['{tallying.INDEX}']"}}
    for part in ("initContainers", "containers"):
        if isinstance(spec.get(part), list):
            spec[part] = [_with_variable(each, where) for each in spec[part]]
    return pod


def _with_variable(container: Any, where: Manifest) -> Any:
    present = manifests.items(container, "env")
    if any(manifests.mapping(each).get("name") == _VARIABLE for each in present):
        return container
    return {**container, "env": [*present, {"name": _VARIABLE, "valueFrom": where}]}
