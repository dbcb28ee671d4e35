"""What somebody who may not see everything may try, and what they are told of how it comes out: of jobs elsewhere only how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import kinds
from pumice.scenario import manifests
from pumice.study.comparing import JobDifference, JobOutcome
from pumice.web import hiding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.study.comparing import Comparison
    from pumice.study.state import Manifest
    from pumice.web.sight import Sight

_OF_NODES: Final = frozenset({kinds.NODE, kinds.HYPER_NODE})
_OF_QUEUES: Final = frozenset({kinds.QUEUE, kinds.PRIORITY_CLASS})


class RefusedError(Exception):
    """Something that may not be tried; the message has only words of whoever asked, so that it tells them of nothing that is there."""


def check(pasted: Iterable[Manifest], sight: Sight) -> None:
    """Refuse manifests of what somebody may not see."""
    for manifest in pasted:
        metadata = manifest["metadata"]
        kind = kinds.find(str(manifest.get("apiVersion")), str(manifest.get("kind")))
        named = f"{manifest.get('kind')} {metadata['name']}"
        if kind is not None and not kind.namespaced:
            if not _may(kind, sight):
                raise RefusedError(f"{named} is for the whole cluster, and you may not list what it would change")
        elif not sight.names(namespace := str(manifests.dig(metadata, "namespace") or "default")):
            raise RefusedError(f"{named} is in namespace {namespace}, where there is nothing that you may list")


def _may(kind: kinds.Kind, sight: Sight) -> bool:
    if kind in _OF_NODES:
        return sight.nodes
    return sight.queues if kind in _OF_QUEUES else sight.is_whole


def seen(found: Comparison, sight: Sight) -> Comparison:
    """Leave out of a comparison what may not be seen; jobs elsewhere come last, so that their place tells nothing of their names."""
    own, others = [], []
    for each in found.jobs:
        namespace, _, name = each.job.partition("/")
        if sight.job(namespace, name):
            own.append(each if sight.pod(namespace) else _without_pods(each))
        else:
            others.append(_elsewhere(each))
    others.sort(key=lambda each: (each.before.standing, each.after.standing))
    return msgspec.structs.replace(found, jobs=(*own, *others), queues=found.queues if sight.queues else ())


def _elsewhere(found: JobDifference) -> JobDifference:
    before, after = (JobOutcome(standing=each.standing) for each in (found.before, found.after))
    return JobDifference(job=hiding.JOB, before=before, after=after)


def _without_pods(found: JobDifference) -> JobDifference:
    """Leave out names of pods; how many there are the group tells as well."""
    before, after = (msgspec.structs.replace(each, nodes={}, evicted=()) for each in (found.before, found.after))
    return JobDifference(job=found.job, before=before, after=after)
