"""The rows of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.apiserver.tables import pods
from pumice.cli.volcano import columns
from pumice.cli.volcano.columns import Column
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.api.meta import ObjectMeta


def _label(item: Mapping[str, Any], key: str) -> str:
    return str(structure.mapping(item, "metadata", "labels").get(key) or "")


def queue(pod: Mapping[str, Any], _: int = 0) -> str:
    """Give the queue that a pod says it is in."""
    stated = structure.mapping(pod, "metadata", "annotations")
    annotated = stated.get(names.JOB_QUEUE_NAME) or stated.get(names.QUEUE_NAME)
    return _label(pod, names.JOB_QUEUE_NAME) or str(annotated or "")


def job(pod: Mapping[str, Any], _: int = 0) -> str:
    """Give the Volcano Job that a pod belongs to."""
    return _label(pod, names.JOB_NAME)


COLUMNS: Final = (
    Column("Name", columns.name, gap=8, heading_counts=False),
    Column("Ready", pods.ready, gap=8, heading_counts=False),
    Column("Status", pods.status, gap=8, heading_counts=False, is_state=True),
    Column("Restart", pods.restarts, gap=8, heading_counts=False),
    Column("Age", columns.age, gap=8, heading_counts=False, moves=True),
)
WIDE: Final = (
    Column("Namespace", columns.namespace, gap=3),
    Column("Node", columns.field("spec", "nodeName", otherwise=columns.NONE), gap=3),
    Column("Job", lambda pod, _: job(pod) or columns.NONE, gap=3),
    Column("Queue", lambda pod, _: queue(pod) or columns.NONE, gap=3),
)


def in_queue(name: str) -> Callable[[ObjectMeta], bool]:
    """Give the test for pods of a queue: those that a Job labelled so, or annotated where the name is too long for a label, and those that are annotated so."""
    keys = (names.JOB_QUEUE_NAME, names.QUEUE_NAME)
    return lambda pod: name in (pod.labels.get(names.JOB_QUEUE_NAME), *map(pod.annotations.get, keys))


def outside(pods_found: list[dict[str, Any]], name: str) -> str:
    """Give the first other queue that a pod is labelled with, empty if there is none."""
    labelled = (_label(pod, names.JOB_QUEUE_NAME) for pod in pods_found)
    return next((found for found in labelled if found and found != name), "")
