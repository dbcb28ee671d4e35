"""Which sources of network topology are asked, as a ConfigMap says: key `volcano-controller.conf`, list `networkTopologyDiscovery`.

What is wrong with one source is said, and costs the others nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import documents, duration
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY: Final = "volcano-controller.conf"
LABEL: Final = "label"
UFM: Final = "ufm"
_DEFAULT_INTERVAL: Final = duration.HOUR
_SHORTEST_INTERVAL: Final = duration.SECOND
_LONGEST_TYPE: Final = 20


class LabelSource(msgspec.Struct, frozen=True, kw_only=True):
    """Types of topology, each with the labels of its tiers, narrowest first."""

    types: dict[str, tuple[str, ...]]


class UfmSource(msgspec.Struct, frozen=True, kw_only=True):
    """A fabric manager: where it is, how often it is asked, and which Secret opens it."""

    endpoint: str
    interval: int = _DEFAULT_INTERVAL
    secret_namespace: str = ""
    secret_name: str = ""
    insecure: bool = False


class DiscoverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The sources that are enabled, and what is wrong with the text."""

    labels: LabelSource | None = None
    ufm: UfmSource | None = None
    problems: tuple[str, ...] = ()


def place(environ: Mapping[str, str]) -> tuple[str, str]:
    """Give namespace and name of the ConfigMap, as the environment of the process has it."""
    release = environ.get("HELM_RELEASE_NAME") or "volcano"
    return environ.get("KUBE_POD_NAMESPACE") or "volcano-system", f"{release}-controller-configmap"


def read(config_map: Mapping[str, Any] | None) -> DiscoverySettings:
    """Read the sources from a ConfigMap; one without them enables none."""
    text = manifests.mapping(config_map, "data").get(KEY) if config_map is not None else None
    if not isinstance(text, str):
        return DiscoverySettings()
    try:
        found = documents.load_all(text, KEY)
    except documents.DocumentError as error:
        return DiscoverySettings(problems=(f"{KEY}:{error.line}: {error.message}",))
    problems: list[str] = []
    sources: dict[str, LabelSource | UfmSource] = {}
    listed = manifests.items(found[0].data if found else None, "networkTopologyDiscovery")
    for place_, entry in enumerate(listed):
        where = f"networkTopologyDiscovery[{place_}]"
        try:
            read_source = _source(manifests.mapping(entry), where)
        except _SettingError as error:
            problems.append(str(error))
            continue
        if read_source is not None:
            sources[read_source[0]] = read_source[1]
    labels, ufm = sources.get(LABEL), sources.get(UFM)
    return DiscoverySettings(
        labels=labels if isinstance(labels, LabelSource) else None,
        ufm=ufm if isinstance(ufm, UfmSource) else None,
        problems=tuple(problems),
    )


class _SettingError(ValueError):
    """What is wrong with one source."""


def _source(entry: Mapping[str, Any], where: str) -> tuple[str, LabelSource | UfmSource] | None:
    name = entry.get("source")
    if entry.get("enabled") is not True:
        return None
    if name == LABEL:
        return LABEL, _labels(manifests.mapping(entry, "config"), where)
    if name == UFM:
        return UFM, _ufm(entry, where)
    raise _SettingError(f"{where}.source: {str(name)[:40]!r} is none of label, ufm; nothing is discovered by it")


def _labels(config: Mapping[str, Any], where: str) -> LabelSource:
    types: dict[str, tuple[str, ...]] = {}
    for name, entries in manifests.mapping(config, "networkTopologyTypes").items():
        field = f"{where}.config.networkTopologyTypes.{str(name)[:40]}"
        if not 0 < len(str(name)) <= _LONGEST_TYPE:
            raise _SettingError(f"{field}: a type has 1 to {_LONGEST_TYPE} characters, not {len(str(name))}")
        keys = [manifests.mapping(each).get("nodeLabel") for each in (entries if isinstance(entries, list) else [])]
        if not keys or not all(isinstance(key, str) and key for key in keys):
            raise _SettingError(f"{field}: write a list of nodeLabel: KEY, the widest first and the hostname last")
        if len(set(keys)) < len(keys):
            raise _SettingError(f"{field}: a nodeLabel stands there twice")
        types[str(name)] = tuple(str(key) for key in reversed(keys[:-1]))
    if not types:
        raise _SettingError(f"{where}.config.networkTopologyTypes: name at least one type with its labels")
    return LabelSource(types=types)


def _ufm(entry: Mapping[str, Any], where: str) -> UfmSource:
    config = manifests.mapping(entry, "config")
    endpoint, secret = config.get("endpoint"), manifests.mapping(entry, "credentials", "secretRef")
    if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
        raise _SettingError(f"{where}.config.endpoint: write a URL such as https://ufm.example:443")
    name = secret.get("name")
    if not isinstance(name, str) or not name:
        raise _SettingError(f"{where}.credentials.secretRef.name: name the Secret with username and password")
    return UfmSource(
        endpoint=endpoint.rstrip("/"),
        interval=_interval(entry.get("interval"), where),
        secret_namespace=str(secret.get("namespace") or ""),
        secret_name=name,
        insecure=config.get("insecureSkipVerify") is True,
    )


def _interval(text: object, where: str) -> int:
    if text is None:
        return _DEFAULT_INTERVAL
    try:
        found = duration.parse(str(text))
    except duration.DurationError as error:
        raise _SettingError(f"{where}.interval: {error}") from None
    if found < _SHORTEST_INTERVAL:
        raise _SettingError(f"{where}.interval: {text!s:.40} is shorter than a second")
    return found
