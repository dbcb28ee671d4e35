"""`--stay`: pods arrive one by one, each decided before the next, and never end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.simulate.trace import TraceError

if TYPE_CHECKING:
    from pumice.simulate.settings import Settings
    from pumice.simulate.trace import Given, Trace


def prepare(trace: Trace, cluster: list[Given], settings: Settings) -> tuple[Trace, list[Given]]:
    """Return the pods that arrive, an instant each and for ever, and the nodes in their tie order."""
    del cluster, settings
    raise TraceError(trace.source, 0, "", "--stay cannot be simulated yet")
