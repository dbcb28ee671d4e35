"""GPUs, in thousandths of a card, whatever their resource is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import core
from pumice.model import requests, resources
from pumice.plugins.fragmentation import asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.results import JobResult
    from pumice.simulate.trace import Trace, TraceJob

WHOLE: Final = ("nvidia.com/gpu", "amd.com/gpu", "volcano.sh/gpu-number")
MILLI: Final = "pumice.dev/gpu-milli"
COUNT: Final = "pumice.dev/gpu-count"
CARD: Final = requests.WHOLE_CARD


def milli(amounts: dict[str, int]) -> int:
    """Return how many thousandths of cards are asked for, or offered, in stored units, which for cards are thousandths already."""
    whole = sum(amounts.get(name, 0) for name in WHOLE)
    # A share is stored in thousandths of thousandths; two cards or more are always whole ones.
    return whole + amounts.get(MILLI, 0) // 1000 * max(1, amounts.get(COUNT, 0) // 1000)


def offered(node: core.Node) -> int:
    """Return how many thousandths of cards a node has."""
    return milli(resources.parse(node.status.allocatable, "status.allocatable"))


def cards(job: TraceJob) -> tuple[int, int]:
    """Return how many cards the one pod of a job asks for, and how many thousandths of each."""
    amounts = requests.of_pod(core.Pod(spec=job.members[0].spec))
    number = asked.whole_cards(amounts, WHOLE)
    return (number, CARD) if number else asked.of_card(amounts) or (0, 0)


def allocation_at_load(trace: Trace, results: Sequence[JobResult], capacity: int) -> float | None:
    """Return which part of all GPUs is given out at the full load: the mean over the arrivals at which what has arrived, in whole percent, is the most that does."""
    arrived, given = [0], [0]
    for job, result in zip(trace.jobs, results, strict=True):
        number, milli = cards(job)
        arrived.append(arrived[-1] + number * milli)
        given.append(given[-1] + number * milli * (result.start is not None))
    percent = [round(100 * each / capacity) for each in arrived]
    full = [each for each, load in zip(given, percent, strict=True) if load == percent[-1]]
    return sum(full) / len(full) / capacity if arrived[-1] else None
