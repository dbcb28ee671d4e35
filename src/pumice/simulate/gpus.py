"""GPUs, in thousandths of a card, whatever their resource is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.simulate import metrics

if TYPE_CHECKING:
    from pumice.simulate.judging import Case

WHOLE: Final = ("nvidia.com/gpu", "amd.com/gpu", "volcano.sh/gpu-number")
MILLI: Final = "pumice.dev/gpu-milli"
COUNT: Final = "pumice.dev/gpu-count"


def milli(amounts: dict[str, int]) -> int:
    """Return how many thousandths of cards are asked for, or offered, in stored units, which for cards are thousandths already."""
    whole = sum(amounts.get(name, 0) for name in WHOLE)
    # A share is stored in thousandths of thousandths; two cards or more are always whole ones.
    return whole + amounts.get(MILLI, 0) // 1000 * max(1, amounts.get(COUNT, 0) // 1000)


def figures(case: Case) -> dict[str, Any]:
    """Judge how much of the GPUs was allocated, over the makespan; nothing where there are none."""
    capacity = milli(case.capacity)
    if not capacity:
        return {}
    first = case.result.jobs[0].submit if case.result.jobs else 0
    last = max((end for _, _, end in case.runs()), default=first)
    used = sum(milli(case.amounts(job.members[run.member].spec)) * (end - run.start) for job, run, end in case.runs())
    return {"allocation": metrics.utilisation(used, capacity, last - first), "cards": capacity / 1000}
