"""Job files, a format of our own: one job per line, as JSON or as CSV. An unknown key is an error that names the line and the nearest key."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import core, documents, duration, meta, names
from pumice.model import requests, resources
from pumice.simulate import trace_files
from pumice.simulate.trace import Members, Trace, TraceError, TraceJob, ordered, pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEYS: Final = (
    "name",
    "submit",
    "queue",
    "user",
    "priority",
    "minMember",
    "runTime",
    "estimate",
    "members",
    "checkpoint",
    "exit",
)
MEMBER_KEYS: Final = ("count", "requests", "runTime", "pod")
COLUMNS: Final = (
    "name",
    "submit",
    "queue",
    "user",
    "priority",
    "count",
    "cpu",
    "memory",
    "gpu",
    "gpu_milli",
    "min_member",
    "run_time",
    "estimate",
)
MOST: Final = 1_000_000
"""Members of one job."""
GPU: Final = "nvidia.com/gpu"
GPU_MILLI: Final = "pumice.dev/gpu-milli"
GPU_COUNT: Final = "pumice.dev/gpu-count"
_EXITS: Final = ("succeeded", "failed")
_SIMULATED_NOT: Final = (("resource_claims", "resourceClaims"), ("scheduling_gates", "schedulingGates"))


def read(file: str) -> Trace:
    """Read a file of jobs; its name says in which form."""
    reader = _Reader(file)
    jobs = reader.table() if trace_files.bare_name(file).endswith(".csv") else reader.lines()
    if not jobs:
        raise TraceError(file, 0, "", "the trace has no jobs")
    return Trace(source=file, jobs=ordered(jobs))


class _Line:
    """One line, and the errors that it is worth."""

    def __init__(
        self, file: str, number: int, value: Mapping[str, Any], known: tuple[str, ...], inside: str = ""
    ) -> None:
        self._file = file
        self.number = number
        self._value = value
        self._inside = inside
        for key in value:
            if key not in known:
                near = documents.nearest(key, known)
                raise self.error(
                    key,
                    f"unknown key; did you mean {near!r}?" if near else f"unknown key; known are {', '.join(known)}",
                )

    def error(self, field: str, message: str) -> TraceError:
        """Make an error that names the place."""
        return TraceError(self._file, self.number, f"{self._inside}{field}", message)

    def has(self, field: str) -> bool:
        """Tell whether a field says something."""
        return self._value.get(field) not in (None, "")

    def raw(self, field: str) -> Any:
        """Return what a field says, which it must."""
        if not self.has(field):
            raise self.error(field, "is missing")
        return self._value[field]

    def text(self, field: str, default: str = "") -> str:
        """Return a text."""
        if not self.has(field):
            return default
        found = self._value[field]
        if not isinstance(found, str):
            raise self.error(field, f"expected text, found {documents.described(found)}")
        if len(found) > 253 or not found.isprintable():
            raise self.error(field, f"{found[:40]!r} is longer than 253 characters or cannot be printed")
        return found

    def count(self, field: str, default: int, least: int = 1) -> int:
        """Return a whole number."""
        if not self.has(field):
            return default
        found = self._value[field]
        if isinstance(found, str) and found.strip().isdecimal() and len(found) < 12:
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= MOST:
            raise self.error(field, f"{str(found)[:40]!r} is no whole number between {least} and {MOST:,}")
        return found

    def time(self, field: str) -> int:
        """Return microseconds: a number of seconds, or a duration such as 95m."""
        found = self.raw(field)
        try:
            if isinstance(found, str):
                parsed = _seconds(found)
                found = duration.parse(found.strip()) if parsed is None else parsed
            elif isinstance(found, int | float) and not isinstance(found, bool):
                found = round(found * duration.SECOND)
            else:
                raise self.error(
                    field, f"expected seconds or a duration such as 95m, found {documents.described(found)}"
                )
        except (duration.DurationError, OverflowError, ValueError) as error:
            raise self.error(field, str(error)) from error
        if not 0 <= found < 2**53:
            raise self.error(field, f"{self._value[field]!s:.40} is negative, or later than anybody simulates")
        return found


def _seconds(text: str) -> int | None:
    try:
        return round(float(text) * duration.SECOND)
    except ValueError:
        return None


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._specs: dict[bytes, core.PodSpec] = {}

    def lines(self) -> list[TraceJob]:
        """Read JSON, an object per line."""
        found: list[TraceJob] = []
        for number, text in trace_files.lines(self._file):
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                raise TraceError(self._file, number, "", f"is not valid JSON: {error}") from error
            if not isinstance(value, dict):
                raise TraceError(self._file, number, "", f"expected a job (a map), found {documents.described(value)}")
            found.append(self._job(_Line(self._file, number, value, KEYS), len(found) + 1))
        return found

    def _job(self, line: _Line, number: int) -> TraceJob:
        whole = line.time("runTime")
        listed = line.raw("members")
        if not isinstance(listed, list) or not listed:
            raise line.error("members", "expected a list with at least one kind of member")
        members = tuple(self._members(line, index, each, whole) for index, each in enumerate(listed))
        failed = line.text("exit", "succeeded")
        if failed not in _EXITS:
            raise line.error("exit", f"{failed!r} is neither succeeded nor failed")
        return self._made(line, number, members, "minMember", "estimate", whole, failed == "failed")

    def _members(self, line: _Line, index: int, value: Any, whole: int) -> Members:
        inside = f"members[{index}]."
        if not isinstance(value, dict):
            raise line.error(inside[:-1], f"expected a map, found {documents.described(value)}")
        each = _Line(self._file, line.number, value, MEMBER_KEYS, inside)
        if each.has("requests") == each.has("pod"):
            raise each.error("requests", "give either requests or pod, a pod spec")
        spec = self._asked(each, value["requests"]) if each.has("requests") else self._pod(each, value["pod"])
        run_time = each.time("runTime") if each.has("runTime") else whole
        return Members(count=each.count("count", 1), spec=spec, run_time=run_time)

    def _asked(self, line: _Line, value: Any) -> core.PodSpec:
        if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
            raise line.error("requests", "expected a map of quantities")
        return self._shared(
            line,
            "requests",
            msgspec.json.encode(value, order="sorted"),
            lambda: pod_spec(value, scheduler=names.SCHEDULER),
        )

    def _pod(self, line: _Line, value: Any) -> core.PodSpec:
        def make() -> core.PodSpec:
            try:
                found = msgspec.convert(value, core.PodSpec)
            except msgspec.ValidationError as error:
                raise line.error("pod", str(error)) from error
            for field, written in _SIMULATED_NOT:
                if getattr(found, field):
                    raise line.error(f"pod.{written}", "is not simulated; leave it out")
            if any(volume.persistent_volume_claim is not None for volume in found.volumes):
                raise line.error("pod.volumes", "volume claims are not simulated; leave them out")
            if not found.containers:
                raise line.error("pod.containers", "is missing")
            return msgspec.structs.replace(found, scheduler_name=names.SCHEDULER, node_name="")

        return self._shared(line, "pod", b"pod" + msgspec.json.encode(value, order="sorted"), make)

    def _shared(self, line: _Line, field: str, key: bytes, make: Callable[[], core.PodSpec]) -> core.PodSpec:
        """Return the spec that was first written like this one."""
        found = self._specs.get(key)
        if found is None:
            found = make()
            try:
                requests.of_pod(core.Pod(spec=found))
            except resources.BadValueError as error:
                raise line.error(field, str(error)) from error
            self._specs[key] = found
        return found

    def table(self) -> list[TraceJob]:
        """Read CSV with a header."""
        rows = trace_files.lines(self._file)
        first, header = next(rows, (0, ""))
        columns = tuple(each.strip() for each in next(csv.reader([header]), []))
        _Line(self._file, first, dict.fromkeys(columns), COLUMNS)
        if len(set(columns)) < len(columns):
            raise TraceError(self._file, first, "", "a column stands there twice")
        found: list[TraceJob] = []
        for number, text in rows:
            try:
                cells = next(csv.reader([text], strict=True))
            except csv.Error as error:
                raise TraceError(self._file, number, "", f"is no line of CSV: {error}") from error
            if len(cells) != len(columns):
                raise TraceError(self._file, number, "", f"has {len(cells)} cells, and the header {len(columns)}")
            line = _Line(self._file, number, dict(zip(columns, (cell.strip() for cell in cells), strict=True)), COLUMNS)
            found.append(self._row(line, len(found) + 1))
        return found

    def _row(self, line: _Line, number: int) -> TraceJob:
        whole = line.time("run_time")
        asked: meta.ResourceList = {name: line.text(name) for name in ("cpu", "memory") if line.has(name)}
        cards = line.text("gpu")
        share = line.text("gpu_milli")
        if share and share != "1000":
            asked[GPU_MILLI] = share
            if cards not in ("", "0", "1"):
                raise line.error("gpu_milli", f"{share} of {cards} cards; only one card can be shared")
        elif cards not in ("", "0"):
            asked[GPU] = cards
        if not asked:
            raise line.error("cpu", "the job asks for nothing; give cpu, memory or gpu")
        members = (Members(count=line.count("count", 1), spec=self._asked(line, asked), run_time=whole),)
        return self._made(line, number, members, "min_member", "estimate", whole, failed=False)

    def _made(  # noqa: PLR0917  what both forms have in common
        self,
        line: _Line,
        number: int,
        members: tuple[Members, ...],
        least: str,
        estimate: str,
        whole: int,
        failed: bool,
    ) -> TraceJob:
        size = sum(each.count for each in members)
        min_member = line.count(least, size, 0)
        if size > MOST:
            raise line.error("members", f"{size:,} members; at most {MOST:,} are simulated")
        if min_member > size:
            raise line.error(least, f"{min_member} is more than the {size} members that there are")
        namespace, _, name = line.text("name", f"default/job-{number}").rpartition("/")
        if "/" in namespace or not name:
            raise line.error("name", f"{line.text('name')!r} is not of the form name or namespace/name")
        return TraceJob(
            number=number,
            name=name,
            namespace=namespace or "default",
            submit=line.time("submit"),
            queue=line.text("queue", names.DEFAULT_QUEUE),
            user=line.text("user"),
            priority=line.text("priority"),
            members=members,
            min_member=min_member,
            run_time=max([whole, *(each.run_time or 0 for each in members)]),
            estimate=line.time(estimate) if line.has(estimate) else None,
            checkpoint=line.time("checkpoint") if least == "minMember" and line.has("checkpoint") else 0,
            failed=failed,
            line=line.number,
        )
