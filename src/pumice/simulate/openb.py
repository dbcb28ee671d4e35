"""Lists of nodes and pods as openb publishes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.simulate.trace import TraceError

if TYPE_CHECKING:
    from pumice.simulate.trace import Given, Trace


def nodes(file: str) -> list[Given]:
    """Read a list of nodes: `sn,cpu_milli,memory_mib,gpu,model`."""
    raise TraceError(file, 0, "", "lists of openb nodes cannot be read yet")


def read(file: str) -> Trace:
    """Read a list of pods, each a job."""
    raise TraceError(file, 0, "", "lists of openb pods cannot be read yet")
