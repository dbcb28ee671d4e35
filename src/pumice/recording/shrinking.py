"""From all that was known in a cycle to the few objects that still bring the same verdict about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names
from pumice.model import native_groups
from pumice.recording import reducing, verdicts
from pumice.scenario.stage import SimulatedStage
from pumice.scenario.view import Counts
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.cache.options import Options
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.recording.verdicts import JobVerdict

Manifest = dict[str, Any]

MOST_CYCLES: Final = 3
_IDENTITY: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences")
_KEPT_STATUS: Final = {
    "Pod": ("phase", "nominatedNodeName"),
    "PodGroup": ("phase",),
    "Queue": ("state",),
    "Node": ("allocatable",),
}
_NEEDED: Final = frozenset({("metadata", "name"), ("metadata", "namespace"), ("spec", "containers")})


class NotShownError(ValueError):
    """A verdict that the objects alone do not bring about."""


class Trial:
    """Asks what a scheduler makes of some objects, on a simulated cluster, and whether that is the verdict."""

    def __init__(self, job: str, wanted: JobVerdict, policy: Configuration, options: Options, known: Registry) -> None:
        self._job = job
        self._wanted = wanted
        self._policy = policy
        self._options = options
        self._known = known
        self.cycles = 1
        self.tried = 0
        self.found: JobVerdict | None = None  # that of the last objects with which it was the same

    def shows(self, objects: Sequence[Manifest]) -> bool:
        """Tell whether these objects bring the verdict."""
        self.tried += 1
        try:
            found = self._run(objects)
        except Exception:  # noqa: BLE001  objects that cannot be put together show nothing
            return False
        if not self._wanted.is_same(found):
            return False
        self.found = found
        return True

    def _run(self, objects: Sequence[Manifest]) -> JobVerdict | None:
        stage = SimulatedStage(self._policy, self._options, self._known)
        stage.apply([structure.copied(each) for each in objects])
        stage.connect()
        nodes = {_key(m): m.get("spec", {}).get("nodeName", "") for m in objects if m["kind"] == "Pod"}
        for _ in range(self.cycles):
            stage.cycle(duration.SECOND)
        seen = stage.view(Counts(binds=0, evictions=0, status_writes=0))
        mine = [_key(m) for m in objects if m["kind"] == "Pod" and group_of(m) == self._job]
        there = {pod: seen.pods[pod].get("spec", {}).get("nodeName", "") for pod in mine if pod in seen.pods}
        bound = {pod: node for pod, node in there.items() if node and not nodes[pod]}
        waiting = any(not node for node in there.values())
        evicted = [pod for pod in mine if pod in seen.evicted]
        return verdicts.summed_up(bound, evicted, stage.verdicts(self._job) if waiting else (), self._wanted)


def shrink(objects: Sequence[Manifest], trial: Trial, tell: Callable[[str], None]) -> list[Manifest]:
    """Return the fewest objects, and of them the fewest fields, that still show the verdict; raise `NotShownError` if not even all of them do."""
    kept = _presentable(objects, trial)
    tell(f"{len(kept)} objects show the verdict; cycles that it takes: {trial.cycles}")
    bundles: dict[str, list[Manifest]] = {}
    for manifest in kept:
        bundles.setdefault(group_of(manifest) or manifest["kind"], []).append(manifest)
    order = {id(manifest): place for place, manifest in enumerate(kept)}

    def joined(chosen: list[list[Manifest]]) -> list[Manifest]:
        return sorted((m for bundle in chosen for m in bundle), key=lambda m: order[id(m)])

    kept = joined(reducing.minimal(list(bundles.values()), lambda chosen: trial.shows(joined(chosen))))
    tell(f"{len(kept)} objects are left after whole jobs and kinds were tried ({trial.tried} trials)")
    kept = reducing.minimal(kept, trial.shows)
    tell(f"{len(kept)} objects are left, none of which can go ({trial.tried} trials)")
    kept = _plain(kept, trial)
    kept = reducing.minimal(kept, trial.shows)  # a field less may make an object needless
    trial.shows(kept)
    return kept


def _presentable(objects: Sequence[Manifest], trial: Trial) -> list[Manifest]:
    """Return the objects as somebody would write them, else as they are, in the number of cycles that shows the verdict."""
    ordered = sorted(
        objects, key=lambda m: (m["metadata"].get("creationTimestamp") or "", m["metadata"].get("uid", ""))
    )
    for form in ([_tidy(manifest) for manifest in ordered], list(objects)):
        for trial.cycles in range(1, MOST_CYCLES + 1):
            if trial.shows(form):
                return form
    raise NotShownError(
        "the objects of that cycle alone do not bring the same verdict: it rests on what only the process knew, "
        "such as a write under way, a pause after a failure or a room held for somebody"
    )


def _tidy(manifest: Manifest) -> Manifest:
    """Leave out what the API server fills in, and what follows from the rest."""
    made = structure.copied(manifest)
    for field in _IDENTITY:
        made["metadata"].pop(field, None)
    status = made.pop("status", {})
    kept = {key: status[key] for key in _KEPT_STATUS.get(made["kind"], tuple(status)) if key in status}
    if made["kind"] == "Pod" and kept.get("phase") in ("Pending", "Running"):
        del kept["phase"]  # follows from whether it has a node
    if made["kind"] == "Node":
        bad = [c for c in status.get("conditions", ()) if c.get("type") == "Ready" and c.get("status") != "True"]
        kept |= {"conditions": bad} if bad else {}
    return {**made, "status": kept} if kept else made


def _plain(objects: list[Manifest], trial: Trial) -> list[Manifest]:
    """Take off every field that does not matter."""
    done: list[Manifest] = []
    for index, manifest in enumerate(objects):
        kept, others = manifest, objects[index + 1 :]
        for path in list(_fields(manifest)):
            smaller = _without(kept, path)
            if smaller != kept and trial.shows([*done, smaller, *others]):
                kept = smaller
        done.append(kept)
    return done


def _fields(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    """Name what could be left out: whole sections first, then what is in them."""
    for section, content in manifest.items():
        if section in ("apiVersion", "kind"):
            continue
        if section != "metadata" and not (isinstance(content, dict) and "containers" in content):
            yield (section,)
        for field, inner in content.items() if isinstance(content, dict) else ():
            if (section, field) not in _NEEDED:
                yield section, field
                if isinstance(inner, dict):
                    yield from ((section, field, key) for key in inner)


def _without(manifest: Manifest, path: tuple[str, ...]) -> Manifest:
    first, *rest = path
    if first not in manifest:
        return manifest
    inner = _without(manifest[first], tuple(rest)) if rest else {}
    return {**manifest, first: inner} if inner else {key: value for key, value in manifest.items() if key != first}


def group_of(manifest: Manifest) -> str:
    """Return the key of the group that an object is, or belongs to; empty if it has none."""
    metadata = manifest["metadata"]
    native = ((manifest.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    if manifest["kind"] == "PodGroup":
        mark = native_groups.MARK if manifest["apiVersion"] == kinds.NATIVE_POD_GROUP.api_version else ""
        return f"{_key(manifest)}{mark}"
    if native and manifest["kind"] == "Pod":
        return native_groups.key_of(metadata.get("namespace", "default"), native)
    group = (metadata.get("annotations") or {}).get(names.GROUP_NAME, "")
    return f"{metadata.get('namespace', 'default')}/{group}" if group and manifest["kind"] == "Pod" else ""


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
