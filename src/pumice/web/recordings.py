"""A recording as a cluster that is shown: what came in is taken in its order and at its times, so that every moment of it can be chosen. Nothing is decided again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import core, decoding, kinds, names, timestamp
from pumice.api.meta import ObjectMeta
from pumice.recording import lines, segments
from pumice.recording.player import Player
from pumice.server import dump
from pumice.study import configuration_text
from pumice.web import past, questions
from pumice.web.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.scheduler import Scheduler
    from pumice.web.sources import Policy

WEEK: Final = 60_480  # samples of use
ALL: Final = past.Bounds(memory=2**62, rows=512 << 20, objects=512 << 20, samples=WEEK)
"""All of it, as far as there is room."""


def read(paths: Iterable[Path], known: Registry, policy: Policy) -> Cluster:
    """Read a recording to its end; raise a `RecordingError` if it cannot be read."""
    found = _Reading(Player(paths, known))
    found.read()
    return found.shown(known, policy)


class _Reading:
    """Takes step after step."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._time = 0
        self._steps = 0
        self._events = 0
        self._scheduler: Scheduler | None = None
        self._policies: list[tuple[int, Configuration]] = []
        self._cluster = Cluster("", lambda: self._time, ALL)

    def read(self) -> None:
        for step, segment in self._player.steps():
            place = f"{segment.path}: line {segment.line}"
            if self._player.scheduler is not self._scheduler:
                self._begin(self._player.scheduler)
            self._note_policy(self._player.scheduler.engine.configuration)
            try:
                events = [lines.event(each) for look in step.events for each in look]
                sent = lines.effects(step)
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise segments.RecordingError(f"{place}: {type(error).__name__}: {error}") from error
            for kind, event_type, each in events:
                self._cluster.objects.feed(kind, event_type, each)
            for effect in sent:
                self._take_note(effect, step.now)
            self._time = max(self._time, step.now)
            self._steps += 1
            self._cluster.board.update(self._time)
            self._cluster.objects.mark(self._time)
        if not self._steps:
            raise segments.RecordingError("the recording holds no cycle")

    def _begin(self, scheduler: Scheduler) -> None:
        """Take over what a state holds, where a recording begins or has a gap; what is not in it is gone."""
        self._scheduler = scheduler
        there = {
            (kind.api_version, kind.name, found.metadata.namespace, found.metadata.name): (kind, found)
            for manifest in dump.manifests(scheduler.cache.cluster)
            if (kind := kinds.find(manifest["apiVersion"], manifest["kind"])) is not None
            and not isinstance(found := decoding.decode(manifest), decoding.Malformed)
        }
        for identity in self._cluster.objects.identities():
            if identity not in there:
                self._cluster.objects.forget(identity)
        for kind, found in there.values():
            self._cluster.objects.feed(kind, "ADDED", found)

    def _note_policy(self, loaded: Configuration) -> None:
        """Know when a configuration came into force."""
        if not self._policies or self._policies[-1][1] is not loaded:
            self._policies.append((self._player.now(), loaded))

    def _take_note(self, effect: list[Any], now: int) -> None:
        """Take what was told of an eviction, as an API server would have kept it."""
        match effect:
            case ["event", "v1/Pod", str(namespace), str(name), str(), str(), names.EVENT_EVICT, str(message)]:
                self._events += 1
                event = core.Event(
                    metadata=ObjectMeta(
                        name=f"{name}.{self._events}", namespace=namespace, uid=f"event-{self._events}"
                    ),
                    involved_object=core.ObjectReference(kind="Pod", namespace=namespace, name=name),
                    reason=names.EVENT_EVICT,
                    message=message,
                    last_timestamp=timestamp.format_timestamp(now),
                )
                self._cluster.objects.feed(kinds.EVENT, "ADDED", event)

    def shown(self, known: Registry, policy: Policy) -> Cluster:
        """Give the cluster as it was at the end, with everything before it."""
        cluster = self._cluster
        cut = [segment.path.name for segment in self._player.segments if segment.cut]
        notes = (
            (f"the end of {', '.join(cut)} is missing: what is shown ends after {self._steps} steps",) if cut else ()
        )
        cluster.source = f"a recording of {self._steps} steps"
        cluster.notes = lambda: notes
        for since, loaded in self._policies:
            about = questions.About(
                source=cluster.source,
                text=configuration_text.render(loaded, known.catalog()),
                configuration=loaded.source,
                since=since,
                given=policy.config,
                plugins=policy.plugins,
                schedulers=policy.schedulers,
                notes=notes,
            )
            cluster.explain_with(about, since)
        return cluster
