"""What the flags of one process come to: typed values that were checked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import quantity
from pumice.server.flags import addresses, controller_settings, flags, process_settings

if TYPE_CHECKING:
    from collections.abc import Mapping


LEAST_RECORDING: Final = 1 << 20


SettingsError = process_settings.SettingsError


class Settings(process_settings.ProcessSettings, frozen=True, kw_only=True):
    """The flags that the scheduler acts on; durations are microseconds. Those that shape decisions are in `shaping`."""

    csi_storage: bool
    schedule_period: int | None
    cycle_deadline: int
    scheduler_sharding_mode: str
    scheduler_conf: str
    disable_default_scheduler_config: bool
    plugins_dir: str
    cache_dumper: bool
    cache_dump_dir: str
    record: str
    record_limit: str
    controllers: str
    controllers_lease_name: str
    web_address: str
    web_cert_file: str
    web_private_key_file: str
    web_client_ca: str
    web_hosts: tuple[str, ...]
    shaping: dict[str, Any]

    @property
    def record_bytes(self) -> int:
        """The limit of recordings, in bytes."""
        return quantity.whole(self.record_limit)


def read(given: Mapping[str, Any]) -> Settings:
    """Put values, by flag name, over the defaults, and check them; raise `SettingsError` for the first that is wrong."""
    values = {flag.name: given.get(flag.name, flag.default) for flag in flags.FLAGS}
    shaping = {flag.name: values[flag.name] for flag in flags.FLAGS if flag.shapes}
    gates = process_settings.read_gates(values["feature-gates"])
    shaping["priority-class"] = shaping["priority-class"] and gates.get("PriorityClass", True)
    shaping["feature-gates"] = values["feature-gates"]
    fields = {flag.field: values[flag.name] for flag in flags.FLAGS if flag.field in Settings.__struct_fields__}
    unheard = process_settings.unheard(flags.FLAGS, given)
    try:
        settings = msgspec.convert({**fields, "shaping": shaping, "unheard": unheard}, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from None
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    if settings.scheduler_sharding_mode != "none":
        raise SettingsError(
            f"--scheduler-sharding-mode: {settings.scheduler_sharding_mode!r} is not provided yet, only none; "
            "--node-selector gives each scheduler nodes of its own"
        )
    _check_recording(settings)
    _check_web(settings)
    if settings.schedule_period is not None and settings.schedule_period < 0:
        raise SettingsError("--schedule-period: a pause cannot be negative")
    if settings.cycle_deadline < 0:
        raise SettingsError("--cycle-deadline: a cycle cannot take less than no time; 0 lets it take any")
    process_settings.check(settings)
    controller_settings.beside_scheduler(settings)
    if settings.disable_default_scheduler_config and not settings.scheduler_conf:
        raise SettingsError("--disable-default-scheduler-config: name a configuration with --scheduler-conf")


def _check_recording(settings: Settings) -> None:
    try:
        enough = settings.record_bytes >= LEAST_RECORDING
    except quantity.QuantityError as error:
        raise SettingsError(f"--record-limit: {error}") from None
    if not enough:
        raise SettingsError(f"--record-limit: {settings.record_limit} is too little; at least 1Mi is needed")


def _check_web(settings: Settings) -> None:
    beside = {
        "web-cert-file": settings.web_cert_file,
        "web-private-key-file": settings.web_private_key_file,
        "web-client-ca": settings.web_client_ca,
        "web-hosts": settings.web_hosts,
    }
    if not settings.web_address:
        if given := [name for name, value in beside.items() if value]:
            raise SettingsError(f"--{given[0]}: nothing is served without --web-address, such as :8443")
        return
    try:
        addresses.parse(settings.web_address)
    except ValueError as error:
        raise SettingsError(f"--web-address: {error}") from None
    if bool(settings.web_cert_file) != bool(settings.web_private_key_file):
        raise SettingsError("--web-cert-file and --web-private-key-file belong together: give both or none")
