"""The report: figures per policy side by side, the best of each row marked, and the jobs on which two policies differ most."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration
from pumice.simulate import judging, metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.simulate.cases import Case
    from pumice.simulate.judging import Figures

_COUNTS: Final = re.compile(r"; \d+/\d+ tasks in gang unschedulable")
DIFFERING: Final = 10
"""So many jobs are told of on which the first two policies differ most."""


class Judged(msgspec.Struct, kw_only=True):
    """One policy: its figures, what they are in other repetitions, and the case they come from."""

    name: str
    figures: dict[str, Any]
    repeated: list[dict[str, Any]] = []
    case: Any = None

    def spread(self, path: str) -> tuple[float, float] | None:
        """Return mean and standard deviation of a figure over all repetitions; None where there is only one, or no figure."""
        values = [value for each in (self.figures, *self.repeated) if (value := number(each, path)) is not None]
        if not self.repeated or not values:
            return None
        return sum(values) / len(values), metrics.deviation(values)

    def value(self, path: str) -> float | None:
        """Return a figure: its mean where there are several repetitions."""
        found = self.spread(path)
        return number(self.figures, path) if found is None else found[0]


class Difference(msgspec.Struct, frozen=True):
    """A job, when it started under two policies (None: never), and why it waited under the one where it waited longer."""

    job: str
    starts: tuple[int | None, int | None]
    slower: str
    reason: str


def look_up(figures: Mapping[str, Any], path: str) -> Any:
    """Find a figure by its dotted name; names of queues and resources may have dots themselves. Raises KeyError."""
    if path in figures:
        return figures[path]
    parts = path.split(".")
    for length in range(1, len(parts)):
        inner = figures.get(".".join(parts[:length]))
        if isinstance(inner, dict):
            try:
                return look_up(inner, ".".join(parts[length:]))
            except KeyError:
                continue
    raise KeyError(path)


def number(figures: Mapping[str, Any], path: str) -> float | None:
    """Return a figure that is a number, None if there is none."""
    try:
        found = look_up(figures, path)
    except KeyError:
        return None
    return float(found) if isinstance(found, int | float) else None


def names(figures: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Name every figure that is a number, or would be one."""
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from names(value, f"{prefix}{key}.")
        elif value is None or isinstance(value, int | float):
            yield f"{prefix}{key}"


def differences(first: Case, second: Case, most: int = DIFFERING) -> list[Difference]:
    """Return the jobs whose starts differ most between two policies, the largest difference first."""
    stopped = max(first.result.stopped, second.result.stopped)
    found = []
    for index, (left, right) in enumerate(zip(first.result.jobs, second.result.jobs, strict=True)):
        if left.start == right.start:
            continue
        begun = [stopped + 1 if each.start is None else each.start for each in (left, right)]
        slower = left if begun[0] > begun[1] else right
        policy = (first if slower is left else second).result.policy
        reason = slower.reason or "it was never told why it waits"
        key = first.trace.jobs[index].key
        found.append((-abs(begun[0] - begun[1]), index, Difference(key, (left.start, right.start), policy, reason)))
    return [each for _, _, each in sorted(found, key=lambda each: each[:2])[:most]]


# ---- text


class Row(msgspec.Struct, frozen=True):
    """A row of the table: what it is called, which figure, how it is written, and what is better."""

    label: str
    path: str
    form: str
    better: str = ""


_ROWS: Final = (
    Row("jobs done", "jobs.done", "count", "high"),
    Row("jobs unfinished", "jobs.unfinished", "count", "low"),
    Row("jobs that never fit", "jobs.neverFitting", "count", "low"),
    Row("wait, mean", "wait.mean", "seconds", "low"),
    Row("wait, median", "wait.p50", "seconds", "low"),
    Row("wait, p95", "wait.p95", "seconds", "low"),
    Row("wait, longest", "wait.max", "seconds", "low"),
    Row("wait of wide jobs", "wait.wide", "seconds", "low"),
    Row("completion, mean", "completion.mean", "seconds", "low"),
    Row("slowdown, mean", "slowdown.mean", "ratio", "low"),
    Row("slowdown, p95", "slowdown.p95", "ratio", "low"),
    Row("makespan", "makespan", "seconds", "low"),
)
_LATER: Final = (
    Row("GPU allocation", "gpu.allocation", "percent", "high"),
    Row("GPU allocation at full load", "gpu.allocationAtLoad", "percent", "high"),
    Row("GPU fragments, cards", "gpu.fragments", "ratio", "low"),
    Row("GPU fragments, of idle cards", "gpu.fragmentsOfIdle", "percent", "low"),
)
_LAST: Final = (
    Row("fairness", "fairness.jain", "share", "high"),
    Row("least share got of its due", "fairness.least", "percent", "high"),
    Row("evictions", "evictions", "count", "low"),
)
_FORECASTS: Final = (
    Row("forecast error, mean", "forecast.mean", "seconds"),
    Row("forecast error, absolute", "forecast.absolute", "seconds", "low"),
    Row("forecast error, p95", "forecast.p95", "seconds", "low"),
    Row("later than forecast", "forecast.late", "percent", "low"),
    Row("never had a forecast", "forecast.without", "percent", "low"),
)
_OWN: Final = (Row("cycles", "cycles", "count"), Row("processor time", "seconds", "seconds"))


def rows(policies: Sequence[Judged]) -> list[Row]:
    """List the rows of the table: those that at least one policy has something to say in."""
    found = [*_ROWS]
    found += [
        Row(f"utilisation, {name}", f"utilisation.{name}", "percent", "high") for name in _keys(policies, "utilisation")
    ]
    if any(number(each.figures, "evictions") for each in policies):
        found += [Row(f"goodput, {name}", f"goodput.{name}", "percent", "high") for name in _keys(policies, "goodput")]
    found += _LATER
    queues = _keys(policies, "queues")
    if len(queues) > 1:
        for name in queues:
            found.append(Row(f"queue {name}: wait", f"queues.{name}.wait", "seconds", "low"))
            found.append(Row(f"queue {name}: share due", f"queues.{name}.due", "count"))
            found.append(Row(f"queue {name}: share got", f"queues.{name}.got", "count", "high"))
    found += [Row(f"queue {name}: rho", f"queues.{name}.rho", "ratio", "low") for name in queues]
    found += _LAST
    found += [Row(f"lost work, {name}", f"lostWork.{name}", "count", "low") for name in _keys(policies, "lostWork")]
    found += _FORECASTS if any(number(each.figures, "forecast.mean") is not None for each in policies) else ()
    found += _OWN
    return [row for row in found if any(each.value(row.path) is not None for each in policies)]


def _keys(policies: Sequence[Judged], group: str) -> list[str]:
    return list(dict.fromkeys(name for each in policies for name in each.figures.get(group, {})))


def table(policies: Sequence[Judged]) -> list[str]:
    """Write the table, a column per policy; `*` marks the best value of a row in which they differ."""
    cells = [["", *(each.name for each in policies)]]
    for row in rows(policies):
        values = [each.value(row.path) for each in policies]
        best = _best(values, row.better)
        cells.append(
            [
                row.label,
                *(
                    _cell(each, row, best=value is not None and value == best)
                    for each, value in zip(policies, values, strict=True)
                ),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            [line[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))]
        ).rstrip()
        for line in cells
    ]


def _best(values: Sequence[float | None], better: str) -> float | None:
    known = [value for value in values if value is not None]
    if not better or len(known) < 2 or len(set(known)) == 1:
        return None
    return min(known) if better == "low" else max(known)


def _cell(policy: Judged, row: Row, *, best: bool) -> str:
    spread = policy.spread(row.path)
    value = number(policy.figures, row.path) if spread is None else spread[0]
    if value is None:
        return "- "
    text = written(value, row.form)
    if spread is not None and row.path != "seconds":
        text += f" ± {written(spread[1], row.form)}"
    return f"{text}{'*' if best else ' '}"


def written(value: float, form: str) -> str:
    """Write a figure as its row does."""
    match form:
        case "count":
            return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
        case "seconds":
            return f"{value:,.0f} s" if abs(value) >= 100 or value == int(value) else f"{value:,.1f} s"
        case "percent":
            return f"{100 * value:.1f} %"
        case "share":
            return f"{value:.3f}"
    return f"{value:,.2f}"


def told(found: Iterable[Difference], policies: Sequence[str]) -> list[str]:
    """Write the jobs that differ most."""
    listed = list(found)
    if not listed:
        return [f"Every job starts at the same time under {policies[0]} and {policies[1]}."]
    lines = [f"Jobs that start at the most different times under {policies[0]} and {policies[1]}:"]
    for each in listed:
        starts = " and ".join(
            f"{_moment(start)} under {name}" for start, name in zip(each.starts, policies, strict=True)
        )
        lines += [f"  {each.job}: {starts}", f"      {each.slower}: {brief(each.reason)}"]
    return lines


def brief(reason: str) -> str:
    """Return the sentence of a reason that names what is missing; the rest counts pods as Volcano does."""
    return _COUNTS.split(reason, maxsplit=1)[0]


def _moment(start: int | None) -> str:
    return "never" if start is None else f"at {start / duration.SECOND:,.0f} s"


def never(case: Case) -> list[str]:
    """Say which jobs never fit, and why."""
    found = judging.never_fitting(case)
    lines = [f"  {case.job(each).key}: {brief(each.reason) or 'no reason was given'}" for each in found[:DIFFERING]]
    if len(found) > DIFFERING:
        lines.append(f"  … and {len(found) - DIFFERING:,} more")
    count = "1 job never fits" if len(found) == 1 else f"{len(found):,} jobs never fit"
    return [f"{count} under {case.result.policy}:", *lines] if found else []


def judged(name: str, cases: Sequence[Case], add: Figures | None = None) -> Judged:
    """Judge one policy, all its repetitions."""
    figures = [judging.judge(case) for case in cases]
    if add:
        for queue, rho in add.items():
            figures[0]["queues"].setdefault(queue, {})["rho"] = rho
    return Judged(name=name, figures=figures[0], repeated=figures[1:], case=cases[0])
