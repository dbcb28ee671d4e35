"""Lists of nodes and pods as openb publishes them: comma-separated, with the names of the columns in the first line. Each pod is a job."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import core, documents, duration, names
from pumice.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pumice.model.requests import WHOLE_CARD
from pumice.simulate import trace_files
from pumice.simulate.trace import Given, Members, Trace, TraceError, TraceJob, node, ordered, pod_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    Asked = tuple[int, int, int, int, tuple[str, ...]]

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
FURTHER_COLUMNS: Final = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
TIMES: Final = ("creation_time", "scheduled_time", "deletion_time")
PODS: Final = 1_000_000
"""Pods that a node takes: the lists know no such limit."""
MOST_CARDS: Final = 64
_LARGEST: Final = 10**12


class Line(msgspec.Struct, frozen=True):
    """One line of a list, by the names of its columns; what is wrong with a value is told with its place."""

    file: str
    number: int
    values: dict[str, str]

    def error(self, column: str, message: str) -> TraceError:
        """Return what is wrong with a value."""
        return TraceError(self.file, self.number, f"column {column}", message)

    def text(self, column: str) -> str:
        """Return a value, empty if it is not there."""
        return self.values.get(column, "").strip()

    def whole(self, column: str, most: int = _LARGEST) -> int:
        """Read a whole number."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
            raise self.error(column, f"{text[:40]!r} is no whole number from 0 to {most:,}")
        return int(text)

    def seconds(self, column: str) -> int | None:
        """Read a time in seconds, as microseconds; None if it is not there."""
        return self.whole(column) * duration.SECOND if self.text(column) else None

    def name(self, column: str) -> str:
        """Read a name that an object of Kubernetes may have."""
        text = self.text(column)
        if not is_name(text):
            raise self.error(column, f"{text[:40]!r} is no name: lower case letters, digits, '-' and '.'")
        return text


def is_name(text: str) -> bool:
    """Tell whether something can be the name of an object."""
    plain = text.replace("-", "").replace(".", "")
    return 0 < len(text) <= 200 and plain.isascii() and plain.isalnum() and text == text.lower() and text[0] not in "-."


def _lines(file: str, needed: tuple[str, ...], further: tuple[str, ...] = ()) -> Iterator[Line]:
    """Give the lines of a list, and first make sure that it has the columns it needs and no others."""
    header: list[str] = []
    for number, text in trace_files.lines(file):
        try:
            row = next(csv.reader([text], strict=True))
        except csv.Error as error:
            raise TraceError(file, number, "", f"is no line of comma-separated values: {error}") from error
        if not header:
            header = [column.strip() for column in row]
            _check_header(file, number, header, needed, further)
            continue
        if len(row) != len(header):
            raise TraceError(file, number, "", f"has {len(row)} values, and the first line names {len(header)} columns")
        yield Line(file, number, dict(zip(header, row, strict=True)))
    if not header:
        raise TraceError(file, 0, "", f"is empty; its first line names the columns {','.join(needed)}")


def _check_header(file: str, number: int, header: list[str], needed: tuple[str, ...], further: tuple[str, ...]) -> None:
    known = (*needed, *further)
    for column in header:
        if column not in known:
            near = documents.nearest(column, known)
            hint = f"did you mean {near}?" if near else f"there are {','.join(known)}"
            raise TraceError(file, number, f"column {column[:40]}", f"is not known; {hint}")
        if header.count(column) > 1:
            raise TraceError(file, number, f"column {column}", "is there twice")
    for column in needed:
        if column not in header:
            raise TraceError(file, number, f"column {column}", "is missing")


def nodes(file: str) -> list[Given]:
    """Read a list of nodes."""
    found: dict[str, Given] = {}
    for line in _lines(file, NODE_COLUMNS):
        name, cards = line.name("sn"), line.whole("gpu", MOST_CARDS)
        if name in found:
            raise line.error("sn", f"{name} is there twice")
        offers: dict[str, str | int | float] = {
            names.CPU: f"{line.whole('cpu_milli')}m",
            names.MEMORY: f"{line.whole('memory_mib')}Mi",
            names.PODS: PODS,
        }
        if cards:
            offers[names.CARD_MILLI] = str(WHOLE_CARD * cards)
        found[name] = node(name, offers, {names.GPU_PRODUCT: line.text("model")} if line.text("model") else None)
    return list(found.values())


def read(file: str, *, stay: bool = False) -> Trace:
    """Read a list of pods. Those that never ran are skipped, unless pods `stay` and no times are needed."""
    specs: dict[Asked, core.PodSpec] = {}
    jobs: list[TraceJob] = []
    skipped = 0
    for line in _lines(file, POD_COLUMNS, FURTHER_COLUMNS):
        created, began, ended = (line.seconds(column) for column in TIMES)
        if not stay:
            if created is None and "creation_time" not in line.values:
                raise TraceError(file, 1, "column creation_time", "is missing; without times pods can only --stay")
            if created is None:
                raise line.error("creation_time", "is empty; without times pods can only --stay")
            if began is None or ended is None or ended <= began:
                skipped += 1
                continue
        run = None if stay or began is None or ended is None else ended - began
        jobs.append(
            TraceJob(
                number=len(jobs),
                name=line.name("name"),
                submit=0 if stay or created is None else created,
                run_time=run,
                members=(Members(count=1, spec=_spec(line, specs), run_time=run),),
                min_member=1,
                queue=names.DEFAULT_QUEUE,
                estimate=run,
                line=line.number,
            )
        )
    notes = [f"{skipped:,} pods that never ran are skipped"] if skipped else []
    return Trace(source=file, jobs=ordered(jobs), skipped=skipped, notes=notes)


def _spec(line: Line, specs: dict[Asked, core.PodSpec]) -> core.PodSpec:
    """Return the spec of a pod, one for all that ask for the same."""
    cpu, memory, cards = line.whole("cpu_milli"), line.whole("memory_mib"), line.whole("num_gpu", MOST_CARDS)
    milli = line.whole("gpu_milli", WHOLE_CARD) if cards else 0
    if cards and not milli:
        raise line.error("gpu_milli", f"is 0, and the pod asks for {cards} cards")
    if cards > 1 and milli < WHOLE_CARD:
        raise line.error(
            "gpu_milli",
            f"is {milli} of each of {cards} cards; only a pod with one card asks for less than {WHOLE_CARD}",
        )
    models = tuple(sorted({part.strip() for part in line.text("gpu_spec").split("|") if part.strip()}))
    key = (cpu, memory, cards, milli, models)
    if key not in specs:
        asked: dict[str, str | int | float] = {names.CPU: f"{cpu}m", names.MEMORY: f"{memory}Mi"}
        if cards:
            asked[names.CARD_MILLI] = str(milli)
        if cards > 1:
            asked[names.CARD_COUNT] = str(cards)
        affinity = _only_on(models) if models else None
        specs[key] = pod_spec(asked, scheduler=names.SCHEDULER, affinity=affinity)
    return specs[key]


def _only_on(models: tuple[str, ...]) -> Affinity:
    requirement = NodeSelectorRequirement(key=names.GPU_PRODUCT, operator="In", values=models)
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
