"""The cluster that a trace runs on, given as a file: manifests as in a scenario's `given`, a dump, or a node list of openb."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import core, decoding
from pumice.simulate import openb, trace_files
from pumice.simulate.trace import TraceError
from pumice.study import files
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from pumice.simulate.trace import Given


def read(file: str) -> list[Given]:
    """Read a cluster; pods that wait belong into the trace, pods that run hold their room for ever."""
    if trace_files.bare_name(file).endswith(".csv"):
        return openb.nodes(file)
    try:
        state = files.read(file)
    except StudyError as error:
        raise TraceError(file, 0, "", str(error).removeprefix(f"{file}: ")) from error
    found: list[Given] = []
    for kind, each in state.objects:
        if isinstance(each, decoding.Malformed):
            raise TraceError(file, 0, f"{kind.name} {each.metadata.name}", each.message)
        if isinstance(each, core.Pod) and not each.spec.node_name:
            name = f"Pod {each.metadata.namespace}/{each.metadata.name}"
            raise TraceError(file, 0, name, "waits for a node; pods that wait belong into the trace")
        found.append((kind, each))
    return found
