"""A task: one pod, as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import requests, shape
from pumice.model.reading import instant as instant  # noqa: PLC0414  whoever reads pods finds it here
from pumice.model.records import Task as Task  # noqa: PLC0414  it stands where its node and its job do

if TYPE_CHECKING:
    from pumice.api import core


def build(pod: core.Pod, shapes: shape.Shapes) -> Task:
    """Make a task of a pod, or raise the `BadValueError` that disables it."""
    blueprint = shape.blueprint_of(pod)
    interned = None if blueprint is None else shapes.recall(blueprint)
    if interned is None:
        amounts = requests.of_pod(pod)
        interned = shapes.intern(shape.constraints_of(pod), amounts, requests.non_zero(pod, amounts))
        if blueprint is not None:
            shapes.remember(blueprint, interned)
    return Task(pod, interned)
