"""What a trace needs before it can run: queues and namespaces that it names and nobody gave, priorities that exist, jobs that can be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import core, documents, kinds, meta, names, scheduling
from pumice.simulate.trace import Trace, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.trace import Given


def cluster(trace: Trace, given: Sequence[Given]) -> list[Given]:
    """Complete a cluster by what a trace names; raise what makes the two unfit for each other."""
    if not any(kind is kinds.NODE for kind, _ in given):
        raise TraceError(trace.source, 0, "", "the trace describes no nodes; give them with --cluster FILE")
    _check(trace, given)
    found = list(given)
    for name in dict.fromkeys((names.ROOT_QUEUE, names.DEFAULT_QUEUE, *(job.queue for job in trace.jobs))):
        if name and not _has(found, kinds.QUEUE, name):
            reclaimable = name != names.ROOT_QUEUE
            spec = scheduling.QueueSpec(weight=1, reclaimable=reclaimable)
            found.append((kinds.QUEUE, scheduling.Queue(metadata=_metadata("queue", name), spec=spec)))
    for name in dict.fromkeys(job.namespace for job in trace.jobs):
        if not _has(found, kinds.NAMESPACE, name):
            found.append((kinds.NAMESPACE, core.Namespace(metadata=_metadata("namespace", name))))
    return found


def _metadata(kind: str, name: str) -> meta.ObjectMeta:
    return meta.ObjectMeta(name=name, uid=f"{kind}-{name}", creation_timestamp="2025-12-31T23:00:00Z")


def _has(found: Sequence[Given], wanted: kinds.Kind, name: str) -> bool:
    return any(kind is wanted and each.metadata.name == name for kind, each in found)


def _check(trace: Trace, given: Sequence[Given]) -> None:
    classes = {found.metadata.name for kind, found in given if kind is kinds.PRIORITY_CLASS}
    seen: dict[str, int] = {}
    for job in trace.jobs:
        if job.priority and job.priority not in classes:
            near = documents.nearest(job.priority, classes)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(classes)) or 'none'}"
            raise TraceError(
                trace.source, job.line, "priority", f"the cluster has no PriorityClass {job.priority!r}; {hint}"
            )
        first = seen.setdefault(job.key, job.line)
        if first != job.line:
            raise TraceError(trace.source, job.line, "name", f"{job.key} is the job of line {first} too")
