"""The live picture of a real cluster: as much of it as fits the terminal, drawn as the demonstration draws its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from pumice.api import duration, names
from pumice.apiserver.tables import ages
from pumice.cli import drawing
from pumice.study.following import scene as scenes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table

    from pumice.study.following.scene import JobRow, NodeRow, QueueRow, Scene

BAR: Final = 10
NARROW_BAR: Final = 6
ROOMY: Final = 100
"""Characters from which on a terminal has room for long bars."""
AMOUNTS: Final = 16
"""Characters that the amounts of one dimension take beside its bar."""
LEAST: Final = 4
"""Lines without which a table says nothing: an empty one, the headings, a row, how many more there are."""
SECTIONS: Final = ("queues", "jobs", "nodes")
_PHASES: Final = {names.PHASE_RUNNING: "green", names.PHASE_COMPLETED: "dim", names.PHASE_UNKNOWN: "red"}


class Picture:
    """Draws scenes of one cluster; `rows` limits every table, without it the terminal does, and 0 is no limit."""

    def __init__(self, title: str, sections: Sequence[str] = SECTIONS, rows: int | None = None) -> None:
        self._title = title
        self._sections = sections
        self._rows = rows
        self._bar = BAR

    def draw(self, seen: Scene, console: Console) -> RenderableType:
        """Draw everything that fits."""
        counts = {"queues": len(seen.queues), "jobs": len(seen.jobs), "nodes": len(seen.nodes)}
        notes = [Text(f"note: {line}", style="yellow", overflow="ellipsis", no_wrap=True) for line in seen.missing]
        room = self._room(counts, console.height - 1 - len(notes))
        self._bar = BAR if console.width >= ROOMY else NARROW_BAR
        columns = scenes.dimensions(seen)[: max(2, (console.width - 40) // (self._bar + AMOUNTS))]
        drawn = {
            "queues": lambda: self._queues(seen, columns, room["queues"]),
            "jobs": lambda: self._jobs(seen, room["jobs"], console.width),
            "nodes": lambda: self._nodes(seen, columns, room["nodes"]),
        }
        parts: list[RenderableType] = [self._head(seen, console.width)]
        for section in self._sections:
            if room[section] or (not counts[section] and console.height > LEAST * len(self._sections)):
                parts += ["", drawn[section]()]
                hidden = counts[section] - room[section]
                if hidden > 0:
                    parts.append(Text(f"… and {_counted(hidden, f'more {section}')}", style="dim"))
        return Group(*parts, *notes)

    def _room(self, counts: dict[str, int], lines: int) -> dict[str, int]:
        """Share the lines of a terminal: what a table does not need is left to those after it."""
        shown = dict.fromkeys(SECTIONS, 0)
        if self._rows is not None:
            return {section: min(counts[section], self._rows or counts[section]) for section in SECTIONS}
        fitting = self._sections[: max(1, lines // LEAST)]
        for index, section in enumerate(fitting):
            rows = lines // (len(fitting) - index) - 2  # an empty line and the headings
            shown[section] = counts[section] if counts[section] <= rows else max(0, rows - 1)
            lines -= shown[section] + 2 + (shown[section] < counts[section])
        return shown

    def _head(self, seen: Scene, width: int) -> Text:
        clock = time.strftime("%H:%M:%S", time.localtime(seen.time / duration.SECOND))
        text = Text.assemble(("Pumice", "bold"), f"  {self._title}  ", (clock, "bold"), "  ")
        counted = {
            _counted(len(seen.queues), "queues"): "queues" in self._sections,
            f"{_counted(len(seen.jobs), 'jobs')}, {seen.waiting} waiting": "jobs" in self._sections,
            _counted(len(seen.nodes), "nodes"): "nodes" in self._sections,
            _counted(seen.pods, "pods"): self._sections != ("queues",),
        }
        counts = ", ".join(words for words, known in counted.items() if known)
        text.append(counts, style="dim")
        text.truncate(width, overflow="ellipsis")
        return text

    def _queues(self, seen: Scene, columns: Sequence[str], rows: int) -> Table:
        table = drawing.table()
        table.add_column("QUEUE", no_wrap=True, max_width=30)
        table.add_column("STATE", no_wrap=True)
        for name in columns:
            table.add_column(f"{_heading(name)} HELD/DUE/MOST", no_wrap=True)
        table.add_column("WAITING", no_wrap=True, justify="right")
        table.add_column("RUNNING", no_wrap=True, justify="right")
        for queue in seen.queues[:rows]:
            shares = [_share(queue, seen, name, self._bar) for name in columns]
            table.add_row(queue.name, queue.state, *shares, _count(queue.waiting), _count(queue.running))
        return table

    def _jobs(self, seen: Scene, rows: int, width: int) -> Table:
        table = drawing.table()
        table.expand = True
        if width < drawing.WIDE:
            return self._narrow_jobs(table, seen, rows)
        table.add_column("JOB", no_wrap=True, max_width=40)
        table.add_column("QUEUE", no_wrap=True, max_width=20)
        table.add_column("PHASE", no_wrap=True)
        table.add_column("READY/MIN", no_wrap=True, justify="right")
        table.add_column("OF", no_wrap=True, justify="right")
        table.add_column("WAITS", no_wrap=True, justify="right")
        table.add_column("WHY", no_wrap=True, overflow="ellipsis", ratio=1)
        for job in seen.jobs[:rows]:
            table.add_row(*_job(job, seen.time), Text(job.reason, style="dim"))
        return table

    def _narrow_jobs(self, table: Table, seen: Scene, rows: int) -> Table:
        """Show where there is little room what matters most: who waits, and why; of the others, how they stand."""
        table.add_column("JOB", no_wrap=True, max_width=24)
        table.add_column("READY/MIN", no_wrap=True, justify="right")
        table.add_column("WAITS", no_wrap=True, justify="right")
        table.add_column("PHASE OR WHY", no_wrap=True, overflow="ellipsis", ratio=1)
        for job in seen.jobs[:rows]:
            name, _, phase, ready, _, waits = _job(job, seen.time)
            table.add_row(name, ready, waits, Text(job.reason) if job.reason else phase)
        return table

    def _nodes(self, seen: Scene, columns: Sequence[str], rows: int) -> Table:
        table = drawing.table()
        table.add_column("NODE", no_wrap=True, max_width=40)
        for name in columns:
            table.add_column(f"{_heading(name)} IN USE", no_wrap=True)
        table.add_column("PODS", no_wrap=True, justify="right")
        table.add_column("STATE", no_wrap=True)
        for node in seen.nodes[:rows]:
            state = Text(node.state or "Ready", style="red" if node.state else "dim")
            table.add_row(node.name, *(_use(node, name, self._bar) for name in columns), str(node.pods), state)
        return table


def _share(queue: QueueRow, seen: Scene, name: str, cells: int) -> Text:
    """Draw what a queue holds, of what it may hold at the most or of the cluster, marked at what is its due."""
    held, due, most = queue.allocated.get(name, 0), queue.deserved.get(name), queue.capability.get(name)
    whole = most if most is not None else seen.total.get(name, 0)
    above = due is not None and held > due
    bar = drawing.share(held, whole, cells, mark=due, style="yellow" if above else "green")
    amounts = [
        scenes.short(name, held),
        *(scenes.short(name, each) if each is not None else "-" for each in (due, most)),
    ]
    return bar.append(f" {'/'.join(amounts)}")


def _use(node: NodeRow, name: str, cells: int) -> Text:
    used, whole = node.used.get(name, 0), node.allocatable.get(name, 0)
    if not whole and not used:
        return Text("-", style="dim")
    bar = drawing.share(used, whole, cells, style="red" if used > whole else "green")
    return bar.append(f" {scenes.short(name, used)} of {scenes.short(name, whole)}")


def _job(job: JobRow, now: int) -> list[RenderableType]:
    waits = "" if job.since is None else ages.span((now - job.since) // duration.SECOND)
    short = job.ready < job.minimum
    return [
        f"{job.namespace}/{job.title}",
        job.queue,
        Text(job.phase, style=_PHASES.get(job.phase, "yellow")),
        Text(f"{job.ready}/{job.minimum}", style="yellow" if short else ""),
        str(job.members),
        waits,
    ]


def _heading(name: str) -> str:
    """Write a resource as a heading: the part of its name that tells it apart."""
    return name.rpartition("/")[2].upper()


def _counted(number: int, plural: str) -> str:
    return f"{number} {plural if number != 1 else plural.removesuffix('s')}"


def _count(number: int) -> str:
    return str(number) if number else "-"
