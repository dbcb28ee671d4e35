"""resourcequota: keep groups waiting whose pods the namespace's quota would not let be created."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from pumice.api import core, kinds, quantity
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import meta
    from pumice.framework.configuration import Settings
    from pumice.framework.session import Session
    from pumice.model.job import Job

Exact = dict[str, Fraction]


class Quota(msgspec.Struct, frozen=True):
    """A ResourceQuota, read exactly."""

    name: str
    hard: Exact
    used: Exact


class Lack(msgspec.Struct, frozen=True):
    """Of what a quota has too little left; written out when somebody reads it."""

    quota: str
    name: str
    asked: Exact
    taken: Exact
    hard: Exact

    def __str__(self) -> str:
        taken, hard, asked = (_shown(self.name, each[self.name]) for each in (self.taken, self.hard, self.asked))
        return f"quota {self.quota} has {taken} of its {hard} {self.name} in use, the job asks for {asked} more"


class ResourceQuota(Plugin):
    """Let a group in only if its `minResources` fit every ResourceQuota of its namespace, beside what is used and what was let in earlier in the cycle.

    Names are compared as they are written: a quota on `requests.cpu` does not limit a group that names `cpu`. Scopes are ignored.
    """

    name = "resourcequota"
    points = frozenset({"JobEnqueueable", "JobEnqueued"})

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self._read: dict[str, tuple[object, Quota | None]] = {}

    def open(self, session: Session) -> None:
        """Register the vote; nothing has been let in yet."""
        self._quotas: dict[str, list[Quota]] | None = None
        self._entered: dict[str, Exact] = {}
        session.job_enqueueable.add(lambda job: self.vote(session, job))
        session.job_enqueued.add(self.enter)

    def vote(self, session: Session, job: Job) -> Vote:
        """Vote whether every quota of the namespace holds the job's minimum."""
        if self._quotas is None:
            self._quotas = self._by_namespace(session.cluster.objects.get(kinds.RESOURCE_QUOTA.name, {}))
        quotas = self._quotas.get(job.namespace)
        if not quotas:
            return PERMIT
        asked = _minimum(job)
        entered = self._entered.get(job.namespace, {})
        for quota in quotas:
            masked = [name for name in sorted(asked) if name in quota.hard]
            taken = {name: quota.used.get(name, Fraction()) + entered.get(name, Fraction()) for name in masked}
            beyond = [name for name in masked if taken[name] + asked[name] > quota.hard[name]]
            if beyond:
                numbers = f"requested: {_told(asked, masked)}, used: {_told(taken, masked)}, limited: {_told(quota.hard, masked)}"
                session.findings.notice(job, f"resource quota insufficient, {numbers}")
                cause = Lack(f"{job.namespace}/{quota.name}", beyond[0], asked, taken, quota.hard)
                return reject(
                    f"quota {job.namespace}/{quota.name} has no room for {', '.join(beyond)}: {numbers}", cause
                )
        return PERMIT

    def enter(self, job: Job) -> None:
        """Count a job that has just been let in, until the quota's own status shows its pods."""
        entered = self._entered.setdefault(job.namespace, {})
        for name, units in _minimum(job).items():
            entered[name] = entered.get(name, Fraction()) + units

    def _by_namespace(self, objects: Mapping[str, meta.KubeObject]) -> dict[str, list[Quota]]:
        """Group the quotas, reading again only those that changed; one that cannot be read counts as absent."""
        known, self._read = self._read, {}
        grouped: dict[str, list[Quota]] = {}
        for key, found in sorted(objects.items()):
            entry = known.get(key)
            if entry is None or entry[0] is not found:
                entry = (found, _quota(found))
            self._read[key] = entry
            if entry[1] is not None:
                grouped.setdefault(found.metadata.namespace, []).append(entry[1])
        return grouped


def _quota(found: meta.KubeObject) -> Quota | None:
    if not isinstance(found, core.ResourceQuota):
        return None
    try:
        hard = _exact(found.status.hard or found.spec.hard)
        return Quota(found.metadata.name, hard, _exact(found.status.used))
    except quantity.QuantityError:
        return None


def _minimum(job: Job) -> Exact:
    """Return a job's minimum under the names as written; names that take no part in scheduling may be in a quota too."""
    listed = job.group.spec.min_resources if job.group is not None else None
    readable: Exact = {}
    for name, text in (listed or {}).items():
        try:
            readable[name] = quantity.parse(text)
        except quantity.QuantityError:
            continue
    return readable


def _exact(listed: meta.ResourceList) -> Exact:
    return {name: quantity.parse(text) for name, text in listed.items()}


def _told(amounts: Mapping[str, Fraction], names: list[str]) -> str:
    return ", ".join(f"{name}={_shown(name, amounts[name])}" for name in names)


def _shown(name: str, units: Fraction) -> str:
    if units.denominator == 1 and name.endswith(("memory", "storage")):
        return quantity.format_bytes(int(units))
    return quantity.format_milli(int(units * 1000))
