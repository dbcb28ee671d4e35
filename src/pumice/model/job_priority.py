"""The priority of a job, by the PriorityClass that its group names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import native_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import scheduling
    from pumice.model.job import Job


def priority_of(job: Job, classes: Mapping[str, scheduling.PriorityClass]) -> int:
    """Return the value of the job's priority class, else of the global default, else 0; a group of Kubernetes' own states its own."""
    if job.group is not None and isinstance(job.group.spec, native_groups.NativeSpec):
        return job.group.spec.priority
    named = job.group.spec.priority_class_name if job.group else ""
    found = classes.get(named)
    if found is None:
        defaults = [each for each in classes.values() if each.global_default]
        found = max(defaults, key=lambda each: each.metadata.name) if defaults else None
    return found.value if found else 0
