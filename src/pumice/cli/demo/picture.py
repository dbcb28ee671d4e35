"""The live picture: nodes as bars of pods, queues, jobs as rows of blocks, and what happened last.

Every job has a colour, on the nodes and in its row; how a member stands is told by the form of its block, so that nothing depends on colour alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pumice.api import names, quantity
from pumice.cli import drawing
from pumice.cli.demo import snapshot
from pumice.cli.demo.snapshot import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table

    from pumice.cli.demo.changes import Change
    from pumice.cli.demo.snapshot import Job, Node, Snapshot

BLOCKS = {State.WAITING: "□", State.PLACED: "▣", State.RUNNING: "■", State.DONE: "▪", State.FAILED: "✗"}
CELLS = 3  # of a bar, per cpu
HIGH = 30
MOST_NEWS = 12


class Picture:
    """Remembers the latest news and draws the latest scene."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._news: deque[Change] = deque(maxlen=MOST_NEWS)
        self._seen: Snapshot | None = None
        self._colours: dict[str, str] = {}

    def see(self, told: Sequence[Change], seen: Snapshot) -> None:
        """Take in a new scene and what is new in it."""
        self._news.extend(told)
        self._seen = seen
        for job in seen.jobs:
            self._colours.setdefault(job.key, drawing.COLOURS[len(self._colours) % len(drawing.COLOURS)])

    def draw(self, console: Console) -> RenderableType:
        """Draw everything, the news as far as there is room."""
        tables = self.tables(console)
        room = console.height - len(console.render_lines(tables)) - 1
        return Group(tables, self._latest(room, console.width)) if room > 0 else tables

    def tables(self, console: Console) -> RenderableType:
        """Draw the scene without the news."""
        seen = self._seen
        if seen is None:
            return Text("")
        overview: list[RenderableType] = [self._nodes(seen), self._queues(seen)]
        if console.width >= drawing.WIDE:
            overview = [Columns(overview, padding=(0, 4))]
        parts = [self._title(seen), *overview, self._jobs(seen, console.width), _legend()]
        gap = 1 if console.height >= HIGH else 0
        return Group(*(Padding(part, (0, 0, gap, 0)) for part in parts))

    def _title(self, seen: Snapshot) -> Text:
        text = Text.assemble(
            ("Pumice", "bold"), "  ", (snapshot.clock(seen.time), "bold"), f" simulated, {self._speed:g}x  "
        )
        return text.append(f"cycle {seen.cycle}, {seen.binds} pods bound, {seen.evictions} evicted", style="dim")

    def _nodes(self, seen: Snapshot) -> Table:
        table = drawing.table()
        table.add_column("NODE", no_wrap=True)
        table.add_column("CPU IN USE", no_wrap=True)
        table.add_column("", no_wrap=True, justify="right")
        table.add_column("PODS", no_wrap=True, justify="right")
        for node in seen.nodes:
            amount = f"{quantity.format_milli(node.used)} of {quantity.format_milli(node.cpu)}"
            table.add_row(node.name, self._bar(node), amount, str(len(node.parts)))
        return table

    def _bar(self, node: Node) -> Text:
        """Draw each pod as a piece in the colour of its job, as long as its share of the node."""
        parts = ((cpu * CELLS // 1000, self._colours.get(job, "")) for job, cpu in node.parts)
        return drawing.pieces(parts, node.cpu * CELLS // 1000)

    def _queues(self, seen: Snapshot) -> Table:
        table = drawing.table()
        table.add_column("QUEUE", no_wrap=True)
        for heading in ("CPU", "PENDING", "INQUEUE", "RUNNING", "COMPLETED"):
            table.add_column(heading, no_wrap=True, justify="right")
        for queue in seen.queues:
            counts = [str(number) if number else "-" for number in queue.groups.values()]
            table.add_row(queue.name, quantity.format_milli(queue.allocated), *counts)
        return table

    def _jobs(self, seen: Snapshot, width: int) -> Table:
        """Draw a row per job; the widths are fixed, so that nothing jumps when a job arrives."""
        table = drawing.table()
        for heading, size in (("JOB", 18), ("MEMBERS", 20), ("NEEDS", 8), ("PHASE", 9)):
            table.add_column(heading, no_wrap=True, width=size)
        if width >= drawing.WIDE:
            table.add_column("WHY IT WAITS", no_wrap=True, width=width - 64)
        for job in seen.jobs:
            cells: list[RenderableType] = [
                Text(job.title, style=self._colours[job.key]),
                self._blocks(job),
                f"{job.minimum} of {len(job.members)}",
                Text(job.phase, style="dim" if job.phase == names.PHASE_COMPLETED else ""),
            ]
            if width >= drawing.WIDE:
                cells.append(Text(job.reason.partition(";")[0] if job.waits else "", style="dim"))
            table.add_row(*cells)
        return table

    def _blocks(self, job: Job) -> Text:
        colour = self._colours[job.key]
        styles = {State.WAITING: "", State.PLACED: f"bold {colour}", State.RUNNING: colour}
        row = Text()
        for member in job.members:
            row.append(BLOCKS[member.state], style=styles.get(member.state, "dim")).append(" ")
        return row

    def _latest(self, rows: int, width: int) -> RenderableType:
        table = drawing.table()
        table.add_column("TIME", no_wrap=True)
        table.add_column("WHAT HAPPENED", no_wrap=True)
        for change in list(self._news)[-rows:]:
            line = Text.assemble((change.title, self._colours.get(change.job, "")), f": {change.text}")
            line.truncate(width - 9, overflow="ellipsis")
            table.add_row(snapshot.clock(change.time), line)
        return table


def _legend() -> RenderableType:
    shown = [state for state in State if state is not State.FAILED]
    return Text("   ".join(f"{BLOCKS[state]} {state.value}" for state in shown), style="dim")
