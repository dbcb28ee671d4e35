"""What the flags of one process come to: typed values that were checked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, quantity
from pumice.server.flags import addresses, flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


LEAST_RECORDING: Final = 1 << 20


class SettingsError(ValueError):
    """Flags that do not go together, or a value that makes no sense, with the flag named."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that this process acts on; durations are microseconds. Those that shape decisions are in `shaping`."""

    master: str
    kubeconfig: str
    kube_api_qps: float
    kube_api_burst: int
    csi_storage: bool
    schedule_period: int | None
    feature_gates: tuple[str, ...]
    scheduler_sharding_mode: str
    scheduler_conf: str
    disable_default_scheduler_config: bool
    plugins_dir: str
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
    cache_dumper: bool
    cache_dump_dir: str
    record: str
    record_limit: str
    shaping: dict[str, Any]
    unheard: tuple[str, ...] = ()

    @property
    def gates(self) -> dict[str, bool]:
        """The feature gates that are given."""
        return read_gates(self.feature_gates)

    @property
    def record_bytes(self) -> int:
        """The limit of recordings, in bytes."""
        return quantity.whole(self.record_limit)

    @property
    def lease_namespace(self) -> str:
        """The namespace of the Lease; the older flag counts where it is given."""
        return self.lock_object_namespace or self.leader_elect_resource_namespace


def read(given: Mapping[str, Any]) -> Settings:
    """Put values, by flag name, over the defaults, and check them; raise `SettingsError` for the first that is wrong."""
    values = {flag.name: given.get(flag.name, flag.default) for flag in flags.FLAGS}
    shaping = {flag.name: values[flag.name] for flag in flags.FLAGS if flag.shapes}
    gates = read_gates(values["feature-gates"])
    shaping["priority-class"] = shaping["priority-class"] and gates.get("PriorityClass", True)
    shaping["feature-gates"] = values["feature-gates"]
    fields = {flag.field: values[flag.name] for flag in flags.FLAGS if flag.field in Settings.__struct_fields__}
    unheard = tuple(name for name, flag in flags.BY_NAME.items() if flag.ignored and name in given)
    try:
        settings = msgspec.convert({**fields, "shaping": shaping, "unheard": unheard}, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from None
    _check(settings)
    return settings


def read_gates(pairs: Iterable[str]) -> dict[str, bool]:
    """Read `Name=true` pairs."""
    gates = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or value.lower() not in ("true", "false"):
            raise SettingsError(f"--feature-gates: {pair!r} is not of the form Name=true or Name=false")
        gates[name] = value.lower() == "true"
    return gates


def _check(settings: Settings) -> None:
    if settings.scheduler_sharding_mode != "none":
        raise SettingsError(
            f"--scheduler-sharding-mode: {settings.scheduler_sharding_mode!r} is not provided yet, only none; "
            "--node-selector gives each scheduler nodes of its own"
        )
    if settings.leader_elect_resource_lock != "leases":
        raise SettingsError(
            f"--leader-elect-resource-lock: {settings.leader_elect_resource_lock!r} is not provided, only leases"
        )
    if settings.logging_format not in ("text", "json"):
        raise SettingsError(f"--logging-format: {settings.logging_format!r} is neither text nor json")
    _check_recording(settings)
    if settings.schedule_period is not None and settings.schedule_period < 0:
        raise SettingsError("--schedule-period: a pause cannot be negative")
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
    if settings.disable_default_scheduler_config and not settings.scheduler_conf:
        raise SettingsError("--disable-default-scheduler-config: name a configuration with --scheduler-conf")


def _check_recording(settings: Settings) -> None:
    try:
        enough = settings.record_bytes >= LEAST_RECORDING
    except quantity.QuantityError as error:
        raise SettingsError(f"--record-limit: {error}") from None
    if not enough:
        raise SettingsError(f"--record-limit: {settings.record_limit} is too little; at least 1Mi is needed")


def _check_tls(settings: Settings) -> None:
    files = (settings.ca_cert_file, settings.tls_cert_file, settings.tls_private_key_file)
    if any(files) and not all(files):
        raise SettingsError(
            "--ca-cert-file, --tls-cert-file and --tls-private-key-file belong together: give all or none"
        )


def _check_election(settings: Settings) -> None:
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
