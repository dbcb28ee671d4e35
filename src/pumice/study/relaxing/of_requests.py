"""How much less the pods of a job could ask for: what nodes have free, or what the largest of them has in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from pumice.model import resources
from pumice.study.relaxing import of_pods, relaxation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api import core
    from pumice.model.task import Task
    from pumice.study.relaxing.relaxation import Question, Relaxation

_STEPS: Final = 16


def find(question: Question) -> Iterator[Relaxation]:
    """Let the largest pods ask for less of one resource."""
    if not question.members:
        return
    task = question.members[0]
    task.shape.request.lay(question.cluster.vocabulary)
    if len(question.cluster.nodes.view()):
        yield from _unoffered(question, task)
        yield from _sizes(question, task)
        yield from _fitting(question, task)


def _unoffered(question: Question, task: Task) -> Iterator[Relaxation]:
    """Let pods do without a resource that no node offers."""
    for name in task.shape.request.unoffered:
        asked = resources.shown(name, task.shape.request.amounts[name])
        said = f"let its pods do without {name}, which no node offers (they ask for {asked})"
        yield of_pods.of_specs(question, "size", said, _smaller(name, 0))


def _sizes(question: Question, task: Task) -> Iterator[Relaxation]:
    """Let pods that are larger than every node ask for what the largest offers."""
    request, table = task.shape.request, question.cluster.nodes
    names = question.cluster.vocabulary.names
    offered = table.allocatable[: table.count]
    for position, column in enumerate(request.asked.tolist()):
        name, needed = names[column], int(request.needed[position])
        largest = int(offered[:, column].max(initial=0))
        if 0 < largest < needed and name != "pods":
            said = f"let its pods ask for {resources.shown(name, largest)} {name} instead of {resources.shown(name, needed)}, the most that a node offers"
            yield of_pods.of_specs(question, "size", said, _smaller(name, largest))


def _fitting(question: Question, task: Task) -> Iterator[Relaxation]:
    """Let pods of the largest shape ask, in one resource, for as much as lets enough of them find a place beside each other."""
    request, view = task.shape.request, question.cluster.nodes.view()
    if request.unoffered:
        return
    names = question.cluster.vocabulary.names
    alike = sum(1 for each in question.members if each.shape is task.shape)
    wanted = max(1, min(alike, question.lacking))
    free = view.idle[:, request.asked]
    fits = free >= request.needed
    for position, column in enumerate(request.asked.tolist()):
        name, needed = names[column], int(request.needed[position])
        others = np.logical_and.reduce(np.delete(fits, position, axis=1), axis=1)
        enough = _largest(name, np.maximum(free[others, position], 0), wanted, needed)
        if name == "pods" or not 0 < enough < needed:
            continue
        yield relaxation.graded(_STEPS, lambda number, name=name, enough=enough, needed=needed: _less(question, name, enough, needed, number))  # type: ignore[misc]  # fmt: skip


def _less(question: Question, name: str, enough: int, needed: int, number: int) -> Relaxation:
    """Ask for what fits on nodes, or for a part of it where something else is in the way, too."""
    units = max(_step(name), _rounded(name, enough * (_STEPS + 1 - number) // _STEPS))
    said = f"let its pods ask for {resources.shown(name, units)} {name} instead of {resources.shown(name, needed)}"
    found = of_pods.of_specs(question, "request", said, _smaller(name, units))
    return structs.replace(found, drastic=units * 2 < needed)


def _largest(name: str, free: Any, wanted: int, needed: int) -> int:
    """Return the largest amount of which so many fit into what is free, 0 if none does."""
    low, high = 0, needed // _step(name)
    while low < high:
        middle = (low + high + 1) // 2
        if int((free // (middle * _step(name))).sum()) >= wanted:
            low = middle
        else:
            high = middle - 1
    return low * _step(name)


def _step(name: str) -> int:
    """Return what a person would count in: tenths of a cpu, whole Mi of what counts in bytes."""
    return 100 if name == "cpu" else 2**20 if resources.factor(name) == 1 else 1000


def _rounded(name: str, units: int) -> int:
    return units // _step(name) * _step(name)


def _smaller(name: str, most: int) -> Callable[[core.PodSpec], core.PodSpec]:
    """Let pods that ask for more of a resource ask for so much, each container in proportion; none asks for more than it did."""

    def change(spec: core.PodSpec) -> core.PodSpec:
        asked = sum(_asked(each, name) for each in spec.containers)
        first = max((_asked(each, name) for each in spec.init_containers), default=0)
        whole = max(asked, first)
        if whole <= most:
            return spec
        return structs.replace(
            spec,
            containers=tuple(smaller(each, whole) for each in spec.containers),
            init_containers=tuple(smaller(each, whole) for each in spec.init_containers),
        )

    def smaller(container: core.Container, whole: int) -> core.Container:
        requests, bounds = container.resources.requests, container.resources.limits
        if name not in requests and name not in bounds:
            return container
        units = _asked(container, name) * most // whole
        lower = {key: amount for key, amount in requests.items() if key != name}
        # A limit stands for a request that is not stated.
        capped = {key: amount for key, amount in bounds.items() if key != name}
        if units:
            lower[name] = resources.shown(name, units)
        return structs.replace(container, resources=structs.replace(container.resources, requests=lower, limits=capped))

    return change


def _asked(container: core.Container, name: str) -> int:
    stated = container.resources.requests.get(name, container.resources.limits.get(name))
    return 0 if stated is None else resources.amount(name, stated, name)
