"""Clusters in files: a dump, what `kubectl get -o json` or `-o yaml` prints, plain manifests, or a scenario played to its end or to one of its steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice import plain_files
from pumice.api import decoding, documents, duration, kinds, timestamp
from pumice.scenario import format as scenario_format
from pumice.scenario import manifests, runner, stage, steps
from pumice.sim import clock, errors
from pumice.sim.cluster import SimulatedCluster
from pumice.study import expanding
from pumice.study.state import State, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.framework.registry import Registry
    from pumice.study.state import Found, Manifest

LARGEST: Final = 1 << 30
_DUMP_NAME: Final = re.compile(r"snapshot-([0-9]{1,18})\.json")


def read(path: str, known: Registry | None = None, *, scenario: str = "", line: int = 0) -> State:
    """Read a file that holds objects, or play the scenario that it holds."""
    found = _documents(path)
    if any(isinstance(each, dict) and "scenario" in each for each in found):
        return _played(path, known, scenario, line)
    if scenario or line:
        raise StudyError(f"{path} holds no scenario, so --scenario and --until-line mean nothing for it")
    listed = list(_manifests(found, path))
    now = _moment(path, listed)
    if all(map(_is_stored, listed)):
        return State(
            source=path,
            now=now,
            objects=[(kind, found) for kind, found in map(decoded, listed) if _is_read(kind)],
            jobs=jobs_of(listed),
        )
    cluster = SimulatedCluster(clock.VirtualClock(now))
    try:
        cluster.apply(listed)
    except errors.ApiError as error:
        raise StudyError(f"{path}: {error}") from error
    return State(source=path, now=now, objects=stored(cluster), jobs=jobs_of(cluster.store.scan(kinds.JOB)))


def listed(path: str) -> list[Manifest]:
    """Read the objects of a file, whatever their kinds."""
    return list(_manifests(_documents(path), path, strict=False))


def manifests_of(path: str) -> list[Manifest]:
    """Read the manifests of a file that is to be applied, workloads taken apart into the pods that their controllers would make."""
    return _expanded(_documents(path), path)


def manifests_in(text: str, source: str, bounds: expanding.Bounds | None = None) -> list[Manifest]:
    """Read the manifests of the text of such a file, within bounds if there are any."""
    return _expanded(_parsed(text.encode("utf-8", "surrogatepass"), source), source, bounds)


def _expanded(documents_found: list[Any], path: str, bounds: expanding.Bounds | None = None) -> list[Manifest]:
    found = []
    for manifest in _manifests(documents_found, path, strict=False):
        if bounds is not None:
            bounds.add(manifest)
        made = expanding.expand(manifest)
        if made is None:
            raise StudyError(
                f"{path}: {manifest.get('apiVersion')} {manifest['kind']} {manifest['metadata']['name']} is nothing that a scheduler "
                "or a workload controller reads; leave it out"
            )
        found += made
    return found


def stored(cluster: SimulatedCluster) -> list[tuple[kinds.Kind, Found]]:
    """Give everything that a simulated cluster stores, as a scheduler would read it."""
    return [decoded(manifest) for kind in kinds.SCHEDULING if _is_read(kind) for manifest in cluster.store.scan(kind)]


def jobs_of(listed: Iterable[Mapping[str, Any]]) -> dict[str, Manifest]:
    """Give the Jobs of Volcano by their uid, as they are written."""
    return {
        each["metadata"]["uid"]: dict(each)
        for each in listed
        if (each.get("apiVersion"), each.get("kind")) == (kinds.JOB.api_version, kinds.JOB.name)
    }


def _is_read(kind: kinds.Kind) -> bool:
    return kind not in (kinds.EVENT, kinds.LEASE, kinds.BINDING)


def _is_stored(manifest: Manifest) -> bool:
    """Tell whether a manifest comes from an API server, which has filled in what its author left out."""
    metadata = manifests.mapping(manifest.get("metadata"))
    return bool(metadata.get("uid") and metadata.get("creationTimestamp"))


def decoded(manifest: Mapping[str, Any]) -> tuple[kinds.Kind, Found]:
    """Return the kind of an object and the object as it is studied."""
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    if kind is None:
        raise StudyError(f"{manifest['apiVersion']} {manifest['kind']} is no kind that is read here")
    return kind, decoding.decode(manifest)


def _documents(path: str) -> list[Any]:
    """Read a file; JSON, which may be large, without keeping its lines."""
    try:
        return _parsed(plain_files.read(path, LARGEST), path)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error


def _parsed(data: bytes, path: str) -> list[Any]:
    try:
        if path.endswith(".json") or data[:1] in (b"[", b"{"):
            return [msgspec.json.decode(data)]
        return [each.data for each in documents.load_all(data.decode("utf-8"), path)]
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise StudyError(f"{path} is not valid JSON: {error}") from error
    except documents.DocumentError as error:
        raise StudyError(f"{path}:{error.line}: {error.message}") from error


def _manifests(found: Sequence[Any], path: str, *, strict: bool = True) -> Iterator[Manifest]:
    """Take lists apart; where strict, a kind that nobody here knows, as `kubectl get all` gives some, is left out."""
    for document in found:
        items = document if isinstance(document, list) else [document]
        for item in items:
            if not isinstance(item, dict):
                raise StudyError(f"{path} holds {documents.described(item)} where a manifest should be")
            for manifest in manifests.unlist(item):
                kind = manifest.get("kind")
                if not isinstance(kind, str) or not manifests.dig(manifest, "metadata", "name"):
                    raise StudyError(f"{path} holds a manifest without kind or metadata.name; {_known_forms()}")
                if not strict or kinds.find(str(manifest.get("apiVersion")), kind) in kinds.SCHEDULING:
                    yield manifest


def _known_forms() -> str:
    return "a dump, the output of kubectl get -o json or -o yaml, manifests and scenarios can be read"


def _moment(path: str, listed: Sequence[Manifest]) -> int:
    """Return when a file was written: as the name of a dump says, else just after the last thing that happened in it."""
    if match := _DUMP_NAME.fullmatch(Path(path).name):
        return int(match[1]) * duration.SECOND
    latest = max((_latest(manifest) for manifest in listed), default=0)
    return latest + duration.SECOND if latest else clock.START


def _latest(manifest: Manifest) -> int:
    """Return the last moment that a manifest tells of: its creation, or the latest change of a condition."""
    told = [manifests.dig(manifest, "metadata", "creationTimestamp")]
    conditions = manifests.sequence(manifests.dig(manifest, "status", "conditions"))
    told += [manifests.dig(condition, "lastTransitionTime") for condition in conditions]
    return max((_instant(each) for each in told), default=0)


def _instant(text: object) -> int:
    try:
        return timestamp.parse(text) if isinstance(text, str) else 0
    except timestamp.TimestampError:
        return 0


def _played(path: str, known: Registry | None, name: str, line: int) -> State:
    """Play a scenario to its end, to the first step below a line, or to a step that fails."""
    file = scenario_format.load(Path(path))
    if file.problems:
        problem = file.problems[0]
        raise StudyError(f"{path}:{problem.line}: {problem.message}")
    chosen = _chosen(path, file.scenarios, name, line)
    taken = tuple(step for step in chosen.steps if not line or step.line <= line)
    played = stage.build(msgspec.structs.replace(chosen, steps=taken), known)
    result = runner.Player(msgspec.structs.replace(chosen, steps=taken), played).play()
    notes = (f"the scenario fails there: {result.failures[0]}",) if result.failures else ()
    source = f"scenario {chosen.name!r} after {result.cycles} cycles"
    return State(
        source=source,
        now=played.cluster.clock.now(),
        objects=stored(played.cluster),
        jobs=jobs_of(played.cluster.store.scan(kinds.JOB)),
        configuration=played.configuration,
        configuration_source=f"the scenario {path}",
        flags=chosen.flags,
        notes=notes,
    )


def _chosen(path: str, scenarios: Sequence[steps.Scenario], name: str, line: int) -> steps.Scenario:
    """Pick the scenario whose name holds a text, or that stands around a line; the only one if nothing is asked for."""
    fitting = [each for each in scenarios if name in each.name]
    if line and not name:
        fitting = [each for each in scenarios if each.line <= line][-1:]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(repr(each.name) for each in (fitting or scenarios)[:10])
    raise StudyError(f"{path} holds {len(scenarios)} scenarios; say which with --scenario TEXT: {listed}")
