"""What the scheduler knows, as one JSON array of manifests: a scenario takes such a file as its `given`.

Only what the scheduler reads is there: no environment of containers, no Secrets, none of the copy of a manifest that kubectl leaves in an annotation.

A folder keeps the newest few, and never more bytes than a pod may have in its temporary folder: a pod that has more is evicted. What was not written by us is left alone.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from pumice.api import kinds, names
from pumice.cache import shadows
from pumice.model import native_groups
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.api import core
    from pumice.api.meta import KubeObject
    from pumice.model.cluster import Cluster
    from pumice.model.task import Task
    from pumice.server.logs.logs import Log

LEFT_OUT: Final = (names.LAST_APPLIED,)
KEPT: Final = 5  # dumps of a folder
MOST_BYTES: Final = 1 << 30  # of all of them together
_UNFINISHED: Final = ".snapshot-"
_ABANDONED: Final = 3600.0  # seconds after which an unfinished file is nobody's any more
_NAME: Final = re.compile(r"snapshot-([0-9]{1,18})\.json")
_BEGINNINGS: Final = (b'[\n{"apiVersion":', b"[\n\n]")
_KINDS: Final = {kind.name: kind for kind in reversed(kinds.KINDS)}

Manifest = dict[str, Any]


def write(cluster: Cluster, folder: str, second: int) -> Path:
    """Write what is known to a new file of a folder, whole or not at all, for nobody else to read; older ones make room for it."""
    target = Path(folder or tempfile.gettempdir()) / f"snapshot-{second}.json"
    data = encode(cluster)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"a dump of {len(data)} bytes is larger than {MOST_BYTES}")
    prune(target, len(data))
    # mkstemp makes it readable by its owner alone.
    handle, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def prune(target: Path, size: int) -> None:
    """Remove the oldest dumps of a folder until one more of so many bytes has its place, and what a process left behind that ended while it wrote one."""
    now = time.time()
    for path in target.parent.glob(f"{_UNFINISHED}*"):
        if (found := _own(path)) is not None and now - found.st_mtime > _ABANDONED:
            path.unlink(missing_ok=True)
    older = [(int(match[1]), path) for path in target.parent.iterdir() if (match := _NAME.fullmatch(path.name))]
    room, places = MOST_BYTES - size, KEPT - 1
    for _, path in sorted(older, reverse=True):
        found = _own(path)
        if path == target or found is None or not _is_dump(path):
            continue
        room, places = room - found.st_size, places - 1
        if room < 0 or places < 0:
            path.unlink(missing_ok=True)


def check(folder: str, log: Log) -> None:
    """Log a warning if no dump could be written to a folder; everything else works without."""
    try:
        place = folder or tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(prefix=_UNFINISHED, dir=place):
            pass
    except OSError as error:
        log.warning(
            "dumps cannot be written",
            folder=folder or "the temporary folder",
            problem=error.strerror or str(error),
            remedy="make the folder writable, name another with --cache-dump-dir, or turn dumps off with --cache-dumper=false",
        )


def _own(path: Path) -> os.stat_result | None:
    """Return the state of a file that this account made for itself alone, as dumps are; None for any other."""
    try:
        found = path.lstat()
    except OSError:
        return None
    private = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
    return found if private and found.st_uid == os.geteuid() else None


def _is_dump(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(32).startswith(_BEGINNINGS)
    except OSError:
        return False


def encode(cluster: Cluster) -> bytes:
    """Give what is known as JSON, one object per line."""
    encoded = [msgspec.json.encode(manifest) for manifest in manifests(cluster)]
    return b"[\n" + b",\n".join(encoded) + b"\n]\n"


def manifests(cluster: Cluster) -> Iterator[Manifest]:
    """Give every object that is known, what pods may need first."""
    for kind, found in _objects(cluster):
        yield _manifest(kind, found)


def _objects(cluster: Cluster) -> Iterator[tuple[kinds.Kind, KubeObject]]:
    for name, kept in cluster.objects.items():
        yield from ((_KINDS[name], found) for found in kept.values())
    yield from ((kinds.PRIORITY_CLASS, found) for found in cluster.priority_classes.values())
    yield from ((kinds.QUEUE, queue.object) for queue in cluster.queues.values() if queue.object is not None)
    records = cluster.nodes.by_name.values()
    yield from ((kinds.NODE, record.object) for record in records if record.object is not None)
    yield from ((kinds.HYPER_NODE, found) for found in cluster.hyper_nodes.objects())
    for job in cluster.jobs.values():
        if job.group is not None and not shadows.is_shadow(job.group):
            if isinstance(job.group, native_groups.NativeGroup):
                yield kinds.NATIVE_POD_GROUP, job.group.origin
            else:
                yield kinds.POD_GROUP, structs.replace(job.group, status=job.status)
    yield from ((kinds.POD, _pod(task)) for task in cluster.tasks.values())


def _pod(task: Task) -> core.Pod:
    """Give a pod as it is counted: one whose bind is on its way is on its node already."""
    if task.status != Status.BINDING or task.node is None:
        return task.pod
    return structs.replace(task.pod, spec=structs.replace(task.pod.spec, node_name=task.node.name))


def _manifest(kind: kinds.Kind, found: KubeObject) -> Manifest:
    body: Manifest = msgspec.to_builtins(found)
    metadata = body.get("metadata", {})
    annotations = metadata.get("annotations", {})
    for name in LEFT_OUT:
        annotations.pop(name, None)
    metadata.pop("resourceVersion", None)
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}
