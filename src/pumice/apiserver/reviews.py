"""Reviews: questions about access that are answered and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver import statuses
from pumice.sim import structure

if TYPE_CHECKING:
    from pumice.apiserver.authentication import User
    from pumice.apiserver.requests import Target

Document = dict[str, Any]


def answer(target: Target, body: Any, user: User) -> Document:
    """Answer a review."""
    if not isinstance(body, dict):
        raise statuses.bad_request(f"the body is no {target.resource.kind_name}")
    kind = target.resource.kind_name
    asked = {**body, "apiVersion": target.resource.api_version, "kind": kind, "metadata": body.get("metadata") or {}}
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    told: dict[str, Document] = {
        "SelfSubjectReview": {"userInfo": {"username": user.name, "groups": list(user.groups)}},
        "SelfSubjectAccessReview": {"allowed": True, "reason": "whoever is known may do everything here"},
        "SubjectAccessReview": {"allowed": True, "reason": "whoever is known may do everything here"},
        "LocalSubjectAccessReview": {"allowed": True, "reason": "whoever is known may do everything here"},
        "SelfSubjectRulesReview": {
            "resourceRules": everything,
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        },
        "TokenReview": {"authenticated": False, "error": "no token but the administrator's is known here"},
    }
    return {**asked, "spec": structure.mapping(asked, "spec"), "status": told[kind]}
