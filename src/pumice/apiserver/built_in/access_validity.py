"""What makes roles, bindings and the Secrets of service accounts invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

GROUP: Final = "rbac.authorization.k8s.io"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105  a type, not a token


def role(manifest: Mapping[str, Any], _: Mapping[str, Any] | None) -> Causes:
    """Check the rules of a role."""
    found: Causes = []
    namespaced = manifest.get("kind") == "Role"
    for index, rule in enumerate(manifest.get("rules") or ()):
        found += _rule(rule, f"rules[{index}]", namespaced=namespaced)
    if manifest.get("aggregationRule") is not None:
        selectors = structure.mapping(manifest, "aggregationRule").get("clusterRoleSelectors") or ()
        if not selectors:
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            found += wrong.required("aggregationRule.clusterRoleSelectors", why)
        for index, each in enumerate(selectors):
            found += wrong.selector(each, f"aggregationRule.clusterRoleSelectors[{index}]")
    return found


def _rule(rule: Mapping[str, Any], field: str, *, namespaced: bool) -> Causes:
    found: Causes = []
    if not rule.get("verbs"):
        found += wrong.required(f"{field}.verbs", "verbs must contain at least one value")
    if paths := rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            found += wrong.invalid(f"{field}.nonResourceURLs", paths, why)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            found += wrong.invalid(f"{field}.nonResourceURLs", paths, why)
        return found
    if not rule.get("apiGroups"):
        found += wrong.required(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        found += wrong.required(f"{field}.resources", "resource rules must supply at least one resource")
    return found


def binding(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a binding, and that it stays one to the same role."""
    reference, namespaced = structure.mapping(manifest, "roleRef"), manifest.get("kind") == "RoleBinding"
    found: Causes = []
    if reference.get("apiGroup") != GROUP:
        found += wrong.unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,))
    known = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if reference.get("kind") not in known:
        found += wrong.unsupported("roleRef.kind", reference.get("kind", ""), known)
    if not reference.get("name"):
        found += wrong.required("roleRef.name")
    for index, subject in enumerate(manifest.get("subjects") or ()):
        found += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and manifest.get("roleRef") != old.get("roleRef"):
        found += wrong.invalid("roleRef", manifest.get("roleRef"), "cannot change roleRef")
    return found


def _subject(subject: Mapping[str, Any], field: str, *, namespaced: bool) -> Causes:
    found: Causes = []
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if not subject.get("name"):
        found += wrong.required(f"{field}.name")
    if kind == "ServiceAccount":
        if group:
            found += wrong.unsupported(f"{field}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            found += wrong.required(f"{field}.namespace")
    elif kind in ("User", "Group"):
        if group != GROUP:
            found += wrong.unsupported(f"{field}.apiGroup", group, (GROUP,))
    else:
        found += wrong.unsupported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))
    return found


def token_secret(manifest: Mapping[str, Any]) -> Causes:
    """Check that the Secret of a service account's token says which account."""
    if manifest.get("type") != TOKEN_TYPE or structure.mapping(manifest, "metadata", "annotations").get(_ACCOUNT):
        return []
    return wrong.required(f"metadata.annotations[{_ACCOUNT}]")
