"""Which plugins jobs may name: ours, and those that other packages bring under the entry point `pumice.job_plugins`."""

from __future__ import annotations

from importlib import metadata
from typing import Final

from pumice.admission.requests import JOB_PLUGINS

GROUP: Final = "pumice.job_plugins"


def installed() -> tuple[str, ...]:
    """Name them, ours first."""
    found = {each.name: None for each in metadata.entry_points(group=GROUP)}
    return tuple(dict.fromkeys((*JOB_PLUGINS, *found)))
