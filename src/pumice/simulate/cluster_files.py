"""The cluster that a trace runs on, given as a file: manifests as in a scenario's `given`, a dump, or a node list of openb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pumice.api import core, decoding, documents
from pumice.scenario import given_files, manifests
from pumice.scenario.reading import Cursor, Problem
from pumice.sim import errors
from pumice.sim.cluster import SimulatedCluster
from pumice.simulate import openb, trace_files
from pumice.simulate.trace import TraceError
from pumice.study import files
from pumice.study.state import Found, StudyError

if TYPE_CHECKING:
    from pumice.api import kinds
    from pumice.simulate.trace import Given


def read(file: str) -> list[Given]:
    """Read a cluster; pods that wait belong into the trace, pods that run hold their room for ever."""
    if trace_files.bare_name(file).endswith(".csv"):
        return openb.nodes(file)
    found: list[Given] = []
    for kind, each in _dumped(file) if file.endswith(".json") else _written(file):
        if isinstance(each, decoding.Malformed):
            raise TraceError(file, 0, "", each.message)
        if isinstance(each, core.Pod) and not each.spec.node_name:
            name = f"Pod {each.metadata.namespace}/{each.metadata.name}"
            raise TraceError(file, 0, name, "waits for a node; pods that wait belong into the trace")
        found.append((kind, each))
    return found


def _dumped(file: str) -> list[tuple[kinds.Kind, Found]]:
    try:
        return files.read(file).objects
    except StudyError as error:
        raise TraceError("", 0, "", str(error)) from error


def _written(file: str) -> list[tuple[kinds.Kind, Found]]:
    """Read manifests, some of them repeated, and let a cluster fill in what their author left out."""
    problems: list[Problem] = []
    name = Path(file).name
    entries = given_files.read(Cursor(documents.Located(name, documents.Mark(1), file), problems, name))
    if problems:
        told = problems[0].message.removeprefix("the document: ")  # which begins with the name of the file
        raise TraceError(str(Path(file).parent / told), 0, "", "")
    cluster = SimulatedCluster()
    try:
        cluster.apply(manifests.expand(entries))
    except errors.ApiError as error:
        raise TraceError(file, 0, "", str(error)) from error
    return files.stored(cluster)
