"""What a pod will probably use before anybody has measured it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pumice.api import quantity
from pumice.framework.configuration import Settings, settings
from pumice.model import requests, resources

if TYPE_CHECKING:
    from pumice.model.task import Task

BEST_EFFORT = (250, 200 * 2**20)


class EstimatorSettings(Settings):
    """How much of what a pod asks for it is taken to use."""

    request_ratio = settings.number(
        "request_ratio",
        Fraction(7, 10),
        minimum=0,
        maximum=1,
        help="the part of its requests that a pod is taken to use",
    )
    burst_ratio = settings.number(
        "burst_ratio", Fraction(0), minimum=0, maximum=1, help="the part of what its limits allow beyond that"
    )
    risk_threshold = settings.number(
        "risk_threshold", Fraction(3, 5), minimum=0, maximum=1, help="the load from which on a node counts as risky"
    )
    risk_factor = settings.number(
        "risk_factor", Fraction(6, 5), minimum=1, help="what estimates are multiplied by on a node that is risky"
    )
    be_cpu = settings.anything(
        "be_cpu", "quantity", 250, help="cpu of a pod without requests: millicores, or a quantity"
    )
    be_mem = settings.anything("be_mem", "quantity", 200, help="memory of such a pod: MiB, or a quantity")


class Estimator:
    """Estimates pods in millicores and bytes, rounded down."""

    def __init__(self, told: EstimatorSettings) -> None:
        self.told = told
        self._best_effort = (
            _amount(told.be_cpu, whole=1, scale=1000, default=BEST_EFFORT[0]),
            _amount(told.be_mem, whole=2**20, scale=1, default=BEST_EFFORT[1]),
        )

    def estimate(self, task: Task, *, risky: bool) -> tuple[int, int]:
        """Return cpu and memory that a pod will probably use on a node."""
        risk = self.told.risk_factor if risky else Fraction(1)
        if task.best_effort:
            return tuple(math.floor(units * risk) for units in self._best_effort)  # type: ignore[return-value]
        amounts = task.shape.request.amounts
        limits = _limits(task)
        cpu, memory = (self._of(amounts.get(name, 0), limits.get(name, 0), risk) for name in ("cpu", "memory"))
        return cpu, memory

    def _of(self, request: int, limit: int, risk: Fraction) -> int:
        limit = max(limit, request)
        likely = request * self.told.request_ratio + (limit - request) * self.told.burst_ratio
        return min(limit, math.floor(likely * risk))


def _limits(task: Task) -> resources.Amounts:
    """Return the limits of a pod; those that cannot be read limit nothing."""
    try:
        return requests.limits_of(task.pod)
    except resources.BadValueError:
        return {}


def _amount(written: Any, *, whole: int, scale: int, default: int) -> int:
    """Read a number of units, or a quantity; one that is neither, or negative, is the default."""
    try:
        units = written * whole if isinstance(written, int) else quantity.scaled(written, scale)
    except quantity.QuantityError:
        return default
    return units if units >= 0 else default
