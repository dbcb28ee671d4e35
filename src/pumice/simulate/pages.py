"""The plots of a report, and the page that holds all of them: one file, without anything from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from pumice.model import resources
from pumice.simulate import gpus, judging, metrics, report, svg
from pumice.simulate.svg import COLOURS, Axis, Plot, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.cases import Case
    from pumice.simulate.outcomes import Outcome
    from pumice.simulate.report import Judged
    from pumice.simulate.svg import Point

HOUR: Final = 3_600e6
_CLASSES: Final = ("≤ 1 %", "≤ 5 %", "≤ 25 %", "≤ 50 %", "> 50 %")
_STYLE: Final = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "pre{background:#f6f6f6;padding:1em;overflow-x:auto}svg{max-width:100%;height:auto}.partial{color:#b0413e}"
)


def files(found: Outcome) -> dict[str, bytes]:
    """Draw everything that there are data for, by the name of its file; `index.html` holds all of it."""
    plots = drawn(found.policies)
    text = [*report.table([_timeless(each) for each in found.policies])]
    if len(found.policies) > 1:
        text += ["", *report.told(found.differences(), [each.name for each in found.policies[:2]])]
    title = f"{found.about['trace']}: {', '.join(each.name for each in found.policies)}"
    partial = '<p class="partial">Interrupted: this report is partial.</p>' if found.partial else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in found.about["notes"])
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{partial}{notes}"
        f"<pre>{escape(chr(10).join(text))}</pre>\n{chr(10).join(plots.values())}</body></html>\n"
    )
    return {"index.html": page.encode()} | {name: text.encode() for name, text in plots.items()}


def _timeless(policy: Judged) -> Judged:
    """Leave out how long the simulator took, so that the same simulation gives the same page."""
    kept = {key: value for key, value in policy.figures.items() if key != "seconds"}
    return report.Judged(name=policy.name, figures=kept, repeated=policy.repeated, case=policy.case)


def drawn(policies: Sequence[Judged]) -> dict[str, str]:
    """Draw plots, by the name of their file."""
    found: dict[str, str] = {}
    cases = [policy.case for policy in policies]
    found["waits.svg"] = _waits(cases)
    found["wait-by-size.svg"] = _wait_by_size(cases)
    found["queue-length.svg"] = _queue_length(cases)
    for number, case in enumerate(cases):
        if allocated := _allocated(case):
            found[f"allocated-{number + 1}.svg"] = allocated
    if any(gpus.milli(case.capacity) for case in cases):
        found["gpu-allocation.svg"] = _gpu_allocation(cases)
    if any(case.fragments() for case in cases):
        found["gpu-fragments.svg"] = _fragments(cases)
    if any(_forecasts(case) for case in cases):
        found["forecasts.svg"] = _forecast_plot(cases)
    return found


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _waits(cases: Sequence[Case]) -> str:
    """Draw which part of the jobs waited at most so long."""
    high = 1.0
    lines = []
    for index, case in enumerate(cases):
        waits = sorted((each.start - each.submit) / 1e6 for each in case.result.jobs if each.start is not None)
        points = [(max(wait, 1.0), (rank + 1) / len(waits)) for rank, wait in enumerate(waits)]
        high = max([high, *waits[-1:]])
        lines.append(Series(name=case.result.policy, points=svg.thinned(points), colour=_colour(index)))
    x = Axis(label="wait, seconds (1 or less at the left)", logarithmic=True)
    plot = Plot("Distribution of waits", x, Axis(label="jobs", percent=True), bounds=(1.0, max(high, 10.0), 0.0, 1.0))
    for line in lines:
        plot.line(line)
    return str(plot)


def _wait_by_size(cases: Sequence[Case]) -> str:
    bars, high = [], 1.0
    for index, case in enumerate(cases):
        started = [each for each in case.result.jobs if each.start is not None]
        classes = judging.order_of_size([case.share(case.job(each)) for each in started])
        points = []
        for number in range(len(_CLASSES)):
            waits = [each.start - each.submit for each, size in zip(started, classes, strict=True) if size == number]  # type: ignore[operator]  # they have started
            points.append((float(number), (metrics.mean(waits) or 0.0) / 1e6))
        high = max([high, *(height for _, height in points)])
        bars.append(Series(name=case.result.policy, points=points, colour=_colour(index)))
    x = Axis(label="part of the cluster that a job asks for", names=_CLASSES)
    plot = Plot("Mean wait by size", x, Axis(label="seconds"), bounds=(-0.5, len(_CLASSES) - 0.5, 0.0, high * 1.05))
    for place, each in enumerate(bars):
        plot.bars(each, place, len(bars))
    return str(plot)


def _span(cases: Sequence[Case]) -> tuple[float, float]:
    first = min((case.result.jobs[0].submit for case in cases if case.result.jobs), default=0)
    return first / HOUR, max([first + 1.0, *(float(case.result.stopped) for case in cases)]) / HOUR


def _hours(levels: Sequence[tuple[int, int]], unit: float = 1.0) -> list[Point]:
    return svg.thinned([(moment / HOUR, level / unit) for moment, level in levels])


def _queue_length(cases: Sequence[Case]) -> str:
    lines, high = [], 1.0
    for index, case in enumerate(cases):
        stopped = case.result.stopped
        waiting = [
            metrics.Interval(1, each.submit, stopped if each.start is None else each.start)
            for each in case.result.jobs
            if each.submit <= stopped
        ]
        points = _hours(metrics.steps(waiting))
        high = max([high, *(height for _, height in points)])
        lines.append(Series(name=case.result.policy, points=points, colour=_colour(index)))
    plot = Plot("Jobs that wait", Axis(label="hours"), Axis(label="jobs"), bounds=(*_span(cases), 0.0, high * 1.05))
    for line in lines:
        plot.line(line, stepped=True)
    return str(plot)


def _allocated(case: Case) -> str:
    """Draw what is allocated, stacked by queue, with what is due to all of them together as a dashed line."""
    views = judging.queues_of(case)
    resource = max(
        (view.resource for view in views), key=lambda name: sum(view.resource == name for view in views), default=""
    )
    if not resource:
        return ""
    unit, capacity = float(resources.factor(resource)), case.capacity[resource]
    stack: list[tuple[str, list[tuple[int, int]]]] = []
    moments: set[int] = set()
    for view in views:
        levels = metrics.steps(case.intervals(resource, view.holds))
        stack.append((view.name, levels))
        moments.update(moment for moment, _ in levels)
    times = [int(moment) for moment, _ in svg.thinned([(float(moment), 0.0) for moment in sorted(moments)])]
    title = f"Allocated {resource} under {case.result.policy}"
    y = Axis(label=resource)
    plot = Plot(title, Axis(label="hours"), y, bounds=(*_span([case]), 0.0, capacity / unit * 1.05))
    base = [(moment / HOUR, 0.0) for moment in times]
    for index, (name, levels) in enumerate(stack):
        top = [(x, below + level / unit) for (x, below), level in zip(base, _sampled(levels, times), strict=True)]
        plot.area(Series(name=f"queue {name}", points=top, colour=_colour(index)), base)
        base = top
    due = [0] * len(times)
    for view in views:
        if view.resource == resource:
            wanted = _sampled(view.wanted(), times)
            due = [sum_ + min(level, view.deserved) for sum_, level in zip(due, wanted, strict=True)]
    points = [(moment / HOUR, level / unit) for moment, level in zip(times, due, strict=True)]
    plot.line(Series(name="due", points=points, colour="#111111", dashed=True), stepped=True)
    return str(plot)


def _sampled(levels: Sequence[tuple[int, int]], times: Sequence[int]) -> list[int]:
    """Return the level at each of some times, which are in order."""
    found, at, level = [], 0, 0
    for moment in times:
        while at < len(levels) and levels[at][0] <= moment:
            level = levels[at][1]
            at += 1
        found.append(level)
    return found


def _gpu_allocation(cases: Sequence[Case]) -> str:
    """Draw how much of the GPUs is allocated when so much has arrived; both in parts of all cards."""
    lines, far = [], 1.0
    for index, case in enumerate(cases):
        capacity = gpus.milli(case.capacity)
        if not capacity:
            continue
        held = metrics.steps(
            metrics.Interval(gpus.milli(case.amounts(job.members[run.member].spec)), run.start, end + (run.end is None))
            for job, run, end in case.runs()
        )
        times = [job.submit for job in case.trace.jobs]
        arrived, points = 0, []
        for job, level in zip(case.trace.jobs, _sampled(held, times), strict=True):
            arrived += gpus.milli(case.size(job))
            points.append((arrived / capacity, level / capacity))
        far = max(far, arrived / capacity)
        lines.append(Series(name=case.result.policy, points=svg.thinned(points), colour=_colour(index)))
    x, y = Axis(label="arrived, of all cards", percent=True), Axis(label="allocated", percent=True)
    plot = Plot("GPU allocation against arrived load", x, y, bounds=(0.0, far, 0.0, 1.0))
    for line in lines:
        plot.line(line)
    return str(plot)


def _fragments(cases: Sequence[Case]) -> str:
    """Draw how much of what is left of cards is of no use, over time."""
    lines, high = [], 1.0
    for index, case in enumerate(cases):
        points = svg.thinned([(moment / HOUR, amount / gpus.CARD) for moment, amount, _ in case.fragments()])
        high = max([high, *(height for _, height in points)])
        lines.append(Series(name=case.result.policy, points=points, colour=_colour(index)))
    plot = Plot("GPU fragments", Axis(label="hours"), Axis(label="cards"), bounds=(*_span(cases), 0.0, high * 1.05))
    for line in lines:
        plot.line(line, stepped=True)
    return str(plot)


def _forecasts(case: Case) -> list[Point]:
    found = []
    for each in case.result.jobs:
        expected = next((told.expected for told in each.forecasts if told.expected is not None), None)
        if each.start is not None and expected is not None:
            found.append(((expected - each.submit) / HOUR, (each.start - each.submit) / HOUR))
    return found


def _forecast_plot(cases: Sequence[Case]) -> str:
    clouds = [
        Series(name=case.result.policy, points=_forecasts(case), colour=_colour(index))
        for index, case in enumerate(cases)
    ]
    far = max([1e-3, *(max(point) for cloud in clouds for point in cloud.points)])
    x, y = Axis(label="hours from submit to the first forecast"), Axis(label="hours to the start")
    plot = Plot("Forecast against start", x, y, bounds=(0.0, far, 0.0, far))
    plot.line(Series(name="as forecast", points=[(0.0, 0.0), (far, far)], colour="#999999", dashed=True))
    for cloud in clouds:
        plot.dots(cloud)
    return str(plot)
