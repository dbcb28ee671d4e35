"""What is filled into a job before it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

from pumice.admission import patches
from pumice.api import names

if TYPE_CHECKING:
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

Document = dict[str, Any]
RETRIES: Final = 3
# Plugins that need others: who talks to its peers needs their addresses, mpi reaches them through ssh.
_NEEDS: Final = {"tensorflow": ("svc",), "mpi": ("svc", "ssh"), "pytorch": ("svc",), "ray": ("svc",)}


def complete(request: Request, _: Surroundings, settings: RuleSettings) -> Document:
    """Give a job with everything that its author left to us."""
    job: Document = patches.copied(request.object)
    spec = job.get("spec")
    if isinstance(spec, dict):
        complete_spec(spec, settings)
    return job


def complete_spec(spec: Document, settings: RuleSettings) -> None:
    """Fill in a job's spec, in place; what is of a wrong type is left for the rules to refuse."""
    if spec.get("queue") in (None, ""):
        spec["queue"] = names.DEFAULT_QUEUE
    if spec.get("schedulerName") in (None, "") and settings.scheduler_names:
        spec["schedulerName"] = settings.scheduler_names[0]
    if _is_zero(spec.get("maxRetry")):
        spec["maxRetry"] = RETRIES
    tasks = spec.get("tasks")
    whole = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    for index, task in enumerate(whole):
        _complete_task(task, index)
    if _is_zero(spec.get("minAvailable")):
        least = [task.get("minAvailable") for task in whole]
        if least and all(_is_count(each) for each in least):
            spec["minAvailable"] = sum(least)
    _complete_plugins(spec)


def _complete_task(task: Document, index: int) -> None:
    if task.get("name") in (None, ""):
        task["name"] = f"default{index}"
    if task.get("minAvailable") is None:
        least = _least(task)
        if _is_count(least):
            task["minAvailable"] = least
    if _is_zero(task.get("maxRetry")):
        task["maxRetry"] = RETRIES
    template = task.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if isinstance(pod, dict) and pod.get("hostNetwork") is True and pod.get("dnsPolicy") in (None, ""):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"


def _least(task: Document) -> Any:
    """Say how many pods of a task start together: whole partitions if so many must, else all."""
    parts = task.get("partitionPolicy")
    if isinstance(parts, dict):
        least, size = parts.get("minPartitions"), parts.get("partitionSize")
        if _is_count(least) and _is_count(size) and least > 0:
            return least * size
    return task.get("replicas", 0)


def _complete_plugins(spec: Document) -> None:
    plugins = spec.get("plugins")
    if not isinstance(plugins, dict):
        return
    for name, needed in _NEEDS.items():
        if name in plugins:
            for each in needed:
                plugins.setdefault(each, [])


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_zero(value: Any) -> bool:
    return value is None or (value == 0 and _is_count(value))
