"""The lease by which one of several schedulers leads."""

from pumice.api.meta import KubeObject, Wire


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """Who holds a lease, since when and for how long."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(KubeObject, frozen=True, kw_only=True):
    """A lease."""

    spec: LeaseSpec = LeaseSpec()
