"""What makes configurations of webhooks invalid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pumice.apiserver.built_in import wrong
from pumice.apiserver.schemas import cel
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

GROUP: Final = "admissionregistration.k8s.io"
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_LONGEST: Final = 30


def configuration(manifest: Mapping[str, Any], _: Mapping[str, Any] | None) -> Causes:
    """Check all webhooks of a configuration."""
    found: Causes = []
    seen: set[str] = set()
    for index, webhook in enumerate(manifest.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        name = str(webhook.get("name", ""))
        if len(name.split(".")) < 3 or not re.fullmatch(wrong.SUBDOMAIN, name):
            found += wrong.invalid(
                f"{field}.name", name, "should be a domain with at least three segments separated by dots"
            )
        if name in seen:
            found += wrong.duplicate(f"{field}.name", name)
        seen.add(name)
        found += _webhook(webhook, field)
    return found


def _webhook(webhook: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        found += wrong.required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(versions):
        found += wrong.invalid(f"{field}.admissionReviewVersions", versions, "must include at least one of v1, v1beta1")
    for index, rule in enumerate(webhook.get("rules") or ()):
        found += _rule(rule, f"{field}.rules[{index}]")
    for name, known in (
        ("failurePolicy", ("Fail", "Ignore")),
        ("matchPolicy", ("Equivalent", "Exact")),
        ("sideEffects", ("None", "NoneOnDryRun")),
        ("reinvocationPolicy", ("IfNeeded", "Never")),
    ):
        if name == "sideEffects" and webhook.get(name) is None:
            found += wrong.required(f"{field}.{name}", "must specify one of None, NoneOnDryRun")
        elif webhook.get(name) is not None and webhook[name] not in known:
            found += wrong.unsupported(f"{field}.{name}", webhook[name], known)
    seconds = webhook.get("timeoutSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= _LONGEST:
        found += wrong.invalid(f"{field}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    found += wrong.selector(webhook.get("namespaceSelector"), f"{field}.namespaceSelector")
    found += wrong.selector(webhook.get("objectSelector"), f"{field}.objectSelector")
    return (
        found
        + _client(structure.mapping(webhook, "clientConfig"), f"{field}.clientConfig")
        + _conditions(webhook, field)
    )


def _rule(rule: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    for name in ("operations", "apiGroups", "apiVersions", "resources"):
        if not rule.get(name):
            found += wrong.required(f"{field}.{name}")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            found += wrong.unsupported(f"{field}.operations[{index}]", operation, _OPERATIONS)
    if rule.get("scope") not in (None, "*", "Cluster", "Namespaced"):
        found += wrong.unsupported(f"{field}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))
    return found


def _client(client: Mapping[str, Any], field: str) -> Causes:
    url, service = client.get("url"), client.get("service")
    if (url is None) is (service is None):
        return wrong.required(field, "exactly one of url or service is required")
    if url is not None:
        parts = urlsplit(str(url))
        if parts.scheme != "https":
            return wrong.invalid(
                f"{field}.url", url, "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            )
        if not parts.hostname:
            return wrong.invalid(f"{field}.url", url, "host must be specified; desired format: https://host[/path]")
        return []
    found: Causes = []
    for name in ("name", "namespace"):
        if not structure.mapping(client, "service").get(name):
            found += wrong.required(f"{field}.service.{name}", f"service {name} is required")
    return found


def _conditions(webhook: Mapping[str, Any], field: str) -> Causes:
    """Refuse a condition that is not evaluated here, by name: passing over it would ask about other objects than its author meant."""
    found: Causes = []
    for index, condition in enumerate(webhook.get("matchConditions") or ()):
        where, text = f"{field}.matchConditions[{index}]", str(condition.get("expression") or "")
        if not condition.get("name"):
            found += wrong.required(f"{where}.name")
        if not text:
            found += wrong.required(f"{where}.expression")
            continue
        try:
            cel.parse_condition(text)
        except cel.CelError as error:
            found += wrong.invalid(
                f"{where}.expression",
                text,
                f"compilation failed: {error}; take the condition out to use the webhook here",
            )
    return found
