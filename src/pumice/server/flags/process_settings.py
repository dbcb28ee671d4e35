"""What every process of ours is told by its flags: how it reaches the API server, its Lease, its servers and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import duration
from pumice.server.flags import addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.server.flags.flags import Flag


class SettingsError(ValueError):
    """Flags that do not go together, or a value that makes no sense, with the flag named."""


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that the scheduler and the controllers have in common; durations are microseconds."""

    master: str
    kubeconfig: str
    kube_api_qps: float
    kube_api_burst: int
    feature_gates: tuple[str, ...]
    leader_elect: bool
    leader_elect_lease_duration: int
    leader_elect_renew_deadline: int
    leader_elect_retry_period: int
    leader_elect_resource_lock: str
    leader_elect_resource_namespace: str
    leader_elect_resource_name: str
    lock_object_namespace: str
    listen_address: str
    enable_metrics: bool
    healthz_address: str
    enable_healthz: bool
    ca_cert_file: str
    tls_cert_file: str
    tls_private_key_file: str
    v: int
    logging_format: str
    unheard: tuple[str, ...] = ()

    @property
    def gates(self) -> dict[str, bool]:
        """The feature gates that are given."""
        return read_gates(self.feature_gates)

    @property
    def lease_namespace(self) -> str:
        """The namespace of the Lease; the older flag counts where it is given."""
        return self.lock_object_namespace or self.leader_elect_resource_namespace


def unheard(table: Iterable[Flag], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the flags that were given and have no effect."""
    return tuple(flag.name for flag in table if flag.ignored and flag.name in given)


def read_gates(pairs: Iterable[str]) -> dict[str, bool]:
    """Read `Name=true` pairs."""
    gates = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or value.lower() not in ("true", "false"):
            raise SettingsError(f"--feature-gates: {pair!r} is not of the form Name=true or Name=false")
        gates[name] = value.lower() == "true"
    return gates


def check(settings: ProcessSettings) -> None:
    """Raise `SettingsError` for the first value that is wrong."""
    read_gates(settings.feature_gates)
    if settings.leader_elect_resource_lock != "leases":
        raise SettingsError(
            f"--leader-elect-resource-lock: {settings.leader_elect_resource_lock!r} is not provided, only leases"
        )
    if settings.logging_format not in ("text", "json"):
        raise SettingsError(f"--logging-format: {settings.logging_format!r} is neither text nor json")
    if not settings.kube_api_qps > 0 or settings.kube_api_burst <= 0:  # NaN is not above 0 either
        raise SettingsError("--kube-api-qps and --kube-api-burst must be above 0, or nothing could be asked at all")
    for flag, address in (
        ("listen-address", settings.listen_address),
        ("healthz-address", settings.healthz_address),
    ):
        try:
            addresses.parse(address)
        except ValueError as error:
            raise SettingsError(f"--{flag}: {error}") from None
    _check_tls(settings)
    _check_election(settings)


def _check_tls(settings: ProcessSettings) -> None:
    files = (settings.ca_cert_file, settings.tls_cert_file, settings.tls_private_key_file)
    if any(files) and not all(files):
        raise SettingsError(
            "--ca-cert-file, --tls-cert-file and --tls-private-key-file belong together: give all or none"
        )


def _check_election(settings: ProcessSettings) -> None:
    """Keep the order that makes two writers impossible: retry < renew deadline < lease duration."""
    lease, renew = settings.leader_elect_lease_duration, settings.leader_elect_renew_deadline
    retry = settings.leader_elect_retry_period
    if not lease > renew:
        raise SettingsError(
            f"--leader-elect-lease-duration ({duration.format_duration(lease)}) must be above "
            f"--leader-elect-renew-deadline ({duration.format_duration(renew)})"
        )
    if not renew > retry > 0:
        raise SettingsError(
            f"--leader-elect-renew-deadline ({duration.format_duration(renew)}) must be above "
            f"--leader-elect-retry-period ({duration.format_duration(retry)}), and that above 0"
        )
    if lease < duration.SECOND:
        raise SettingsError("--leader-elect-lease-duration: a Lease counts in whole seconds, at least 1s")
