"""What the flags of `pumice admission` come to: typed values that were checked together."""

from __future__ import annotations

import ipaddress
import urllib.parse
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import requests, rules
from pumice.api import documents, names
from pumice.server.admission import flags
from pumice.server.flags import addresses
from pumice.server.flags.process_settings import SettingsError, read_gates

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST_PORT: Final = 65535
_GATE: Final = "SchedulingGatesQueueAdmission"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that the process acts on; durations are microseconds."""

    master: str
    kubeconfig: str
    kube_api_qps: float
    kube_api_burst: int
    enabled_admission: tuple[str, ...]
    scheduler_name: tuple[str, ...]
    admission_conf: str
    strict: bool
    max_queue_depth: int
    enable_root_queue_protection: bool
    enable_queue_allocated_pods_check: bool
    feature_gates: tuple[str, ...]
    listen_address: str
    port: int
    graceful_shutdown_time: int
    healthz_address: str
    enable_healthz: bool
    webhook_namespace: str
    webhook_service_name: str
    webhook_secret_name: str
    webhook_url: str
    ca_cert_file: str
    tls_cert_file: str
    tls_private_key_file: str
    v: int
    logging_format: str
    unheard: tuple[str, ...] = ()

    @property
    def secret(self) -> str:
        """The Secret that replicas share."""
        return self.webhook_secret_name or f"{self.webhook_service_name.removesuffix('-service')}-secret"

    @property
    def left_alone(self) -> frozenset[str]:
        """Namespaces whose objects are never judged."""
        return frozenset({names.SYSTEM_NAMESPACE, self.webhook_namespace})

    @property
    def host_names(self) -> tuple[str, ...]:
        """Every name that the API server may call this process by."""
        short, home = self.webhook_service_name, self.webhook_namespace
        found = [f"{short}.{home}.svc", f"{short}.{home}", short, f"{short}.{home}.svc.cluster.local"]
        host = urllib.parse.urlsplit(self.webhook_url).hostname if self.webhook_url else None
        return (*found, host) if host else tuple(found)

    @property
    def address(self) -> addresses.Address:
        """Where to listen."""
        return addresses.Address(self.listen_address.strip("[]"), self.port)

    def configuration(self, rule: rules.Rule) -> str:
        """Name the webhook configuration of a path."""
        return f"{self.webhook_service_name}{rule.path.replace('/', '-')}"

    def rules_settings(self, job_plugins: tuple[str, ...]) -> requests.RuleSettings:
        """Give what the rules follow, apart from the file of resource groups."""
        return requests.RuleSettings(
            scheduler_names=self.scheduler_name,
            job_plugins=job_plugins,
            strict=self.strict,
            most_depth=self.max_queue_depth,
            root_protected=self.enable_root_queue_protection,
            allocated_pods_checked=self.enable_queue_allocated_pods_check,
            gates_pods=read_gates(self.feature_gates).get(_GATE, False),
        )


def read(given: Mapping[str, Any]) -> Settings:
    """Put values, by flag name, over the defaults, and check them; raise `SettingsError` for the first that is wrong."""
    fields = {
        flag.field: given.get(flag.name, flag.default)
        for flag in flags.FLAGS
        if flag.field in Settings.__struct_fields__
    }
    unheard = tuple(flag.name for flag in flags.FLAGS if flag.ignored and flag.name in given)
    try:
        settings = msgspec.convert({**fields, "unheard": unheard}, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from None
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    for path in settings.enabled_admission:
        if path not in rules.BY_PATH:
            near = documents.nearest(path, rules.BY_PATH)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(rules.BY_PATH)}"
            raise SettingsError(f"--enabled-admission: {path!r} is not served; {hint}")
    if not settings.scheduler_name:
        raise SettingsError("--scheduler-name: name at least one")
    if settings.max_queue_depth < 1:
        raise SettingsError(f"--max-queue-depth: {settings.max_queue_depth} is too few; at least 1 is needed")
    if not 0 <= settings.port <= _LARGEST_PORT:
        raise SettingsError(f"--port: {settings.port} is not within 0 to {_LARGEST_PORT}")
    if settings.graceful_shutdown_time < 0:
        raise SettingsError("--graceful-shutdown-time: it cannot be negative")
    if settings.logging_format not in ("text", "json"):
        raise SettingsError(f"--logging-format: {settings.logging_format!r} is neither text nor json")
    if not settings.kube_api_qps > 0 or settings.kube_api_burst <= 0:
        raise SettingsError("--kube-api-qps and --kube-api-burst must be above 0, or nothing could be asked at all")
    read_gates(settings.feature_gates)
    _check_places(settings)


def _check_places(settings: Settings) -> None:
    host = settings.listen_address.strip("[]")
    if ":" in host:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise SettingsError(
                f"--listen-address: {settings.listen_address!r} is no address; the port is given with --port"
            ) from None
    try:
        addresses.parse(settings.healthz_address)
    except ValueError as error:
        raise SettingsError(f"--healthz-address: {error}") from None
    files = (settings.ca_cert_file, settings.tls_cert_file, settings.tls_private_key_file)
    if any(files) and not all(files):
        raise SettingsError(
            "--ca-cert-file, --tls-cert-file and --tls-private-key-file belong together: give all or none"
        )
    url = urllib.parse.urlsplit(settings.webhook_url)
    if settings.webhook_url and (url.scheme != "https" or not url.hostname):
        raise SettingsError(f"--webhook-url: {settings.webhook_url!r} must begin with https:// and name a host")
