"""Where a cluster that is shown comes from: a live one, followed with the user's own rights, or a file."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import decoding, kinds, names
from pumice.kube import errors
from pumice.kube.watches.watching import WatchSpec
from pumice.study import configuration_text, live
from pumice.study.following.reading import Reading
from pumice.study.state import StudyError, manifest
from pumice.web import questions
from pumice.web.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pumice.framework.registry import Registry
    from pumice.kube.calls.client import Client
    from pumice.study.state import State

SHOWN: Final = (kinds.POD, kinds.NODE, kinds.QUEUE, kinds.POD_GROUP, kinds.NATIVE_POD_GROUP, kinds.EVENT)
"""Kinds without which something on the page is missing."""
EVICTIONS: Final = WatchSpec(kinds.EVENT, field_selector=f"involvedObject.kind=Pod,reason={names.EVENT_EVICT}")
AGAIN: Final = 60.0
"""Seconds between two looks at the configuration in force."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is explained with, as far as the user says so."""

    config: str = ""
    plugins: str = ""
    schedulers: tuple[str, ...] = ()


@contextlib.asynccontextmanager
async def followed(client: Client, policy: Policy, namespace: str = "") -> AsyncIterator[Cluster]:
    """Follow a live cluster while the body runs, which begins when everything is there that may be read."""
    cluster = Cluster(f"cluster {client.connection.server}")
    cluster.is_live = True
    reading = Reading(client, [*live.specs(), EVICTIONS], cluster.objects, namespace)
    async with reading.running():
        await reading.wait()
        if reading.refused():
            raise StudyError("; ".join(reading.missing(SHOWN)))
        cluster.notes = lambda: reading.missing(SHOWN)
        await _configured(client, cluster, reading, policy)
        again = asyncio.create_task(_again(client, cluster, reading, policy))
        try:
            yield cluster
        finally:
            again.cancel()


async def _again(client: Client, cluster: Cluster, reading: Reading, policy: Policy) -> None:
    while True:
        await asyncio.sleep(AGAIN)
        with contextlib.suppress(errors.KubeError):
            await _configured(client, cluster, reading, policy)


async def _configured(client: Client, cluster: Cluster, reading: Reading, policy: Policy) -> None:
    """See which configuration is in force, and what may not be read."""
    found = live.Configured(None, "", []) if policy.config else await live.configuration(client)
    denied = (*reading.denied(), *found.unread)
    about = questions.About(
        source=cluster.source,
        text=found.text,
        configuration=found.place,
        since=found.written,
        given=policy.config,
        plugins=policy.plugins,
        schedulers=policy.schedulers,
        denied=tuple((each.kind.api_version, each.kind.name, each.message) for each in denied),
    )
    cluster.explain_with(about)


def from_state(state: State, known: Registry, policy: Policy) -> Cluster:
    """Show a cluster that was read from a file, at the moment it was written."""
    cluster = Cluster(state.source, lambda: state.now)
    for kind, found in state.objects:
        raw = b""
        if kind is kinds.JOB and not isinstance(found, decoding.Malformed):
            raw = msgspec.json.encode(state.jobs.get(found.metadata.uid) or manifest(kind, found))
        cluster.objects.feed(kind, "ADDED", found, raw)
    text = state.text
    if state.configuration is not None:
        text = configuration_text.render(state.configuration, known.catalog())
    about = questions.About(
        source=state.source,
        text=text,
        configuration=state.configuration_source,
        given=policy.config,
        plugins=policy.plugins,
        schedulers=policy.schedulers,
        notes=state.notes,
        flags=state.flags,
    )
    cluster.explain_with(about)
    cluster.notes = lambda: state.notes
    return cluster
