"""Reviews: questions about access that are answered and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver import statuses
from pumice.apiserver.access import tokens, users
from pumice.apiserver.access.attributes import Attributes
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.authorization import Authorizer
    from pumice.apiserver.access.users import User
    from pumice.apiserver.authentication import Authenticator
    from pumice.apiserver.requests import Target

Document = dict[str, Any]
_GROUP: Final = "authorization.k8s.io"
_ONE: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviews:
    """Answers reviews."""

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator

    def answer(self, target: Target, body: Any, user: User) -> Document:
        """Answer a review."""
        kind = target.resource.kind_name
        if not isinstance(body, dict):
            raise statuses.bad_request(f"the body is no {kind}")
        metadata = body.get("metadata") or {}
        asked = {**body, "apiVersion": target.resource.api_version, "kind": kind, "metadata": metadata}
        spec = structure.mapping(asked, "spec")
        if kind == "SelfSubjectReview":
            return {**asked, "status": {"userInfo": user.told()}}
        return {**asked, "spec": spec, "status": self._status(kind, spec, target, user)}

    def _status(self, kind: str, spec: Mapping[str, Any], target: Target, user: User) -> Document:
        match kind:
            case "SelfSubjectAccessReview":
                return self._access(user, _asked(spec, kind))
            case "SubjectAccessReview":
                return self._access(_subject(spec, kind), _asked(spec, kind))
            case "LocalSubjectAccessReview":
                return self._access(_subject(spec, kind), _local(spec, kind, target.namespace))
            case "SelfSubjectRulesReview":
                return self._rules(user, str(spec.get("namespace") or ""))
            case "TokenReview":
                return self._token(spec)
        raise statuses.bad_request(f"{kind} is no review that is answered here")

    def _access(self, user: User, wanted: Attributes) -> Document:
        if self._authorizer.allows(user, wanted):
            reason = self._authorizer.reason(user, wanted)
            return {"allowed": True, **({"reason": reason} if reason else {})}
        reason = self._authorizer.troubles(user, wanted.namespace)
        return {"allowed": False, **({"reason": reason} if reason else {})}

    def _rules(self, user: User, namespace: str) -> Document:
        if not namespace:
            raise statuses.bad_request("no namespace on request")
        documents = [rule.document() for rule in self._authorizer.rules(user, namespace)]
        troubles = self._authorizer.troubles(user, namespace).removeprefix("RBAC: ")
        return {
            "resourceRules": [each for each in documents if "nonResourceURLs" not in each],
            "nonResourceRules": [each for each in documents if "nonResourceURLs" in each],
            "incomplete": bool(troubles),
            **({"evaluationError": troubles} if troubles else {}),
        }

    def _token(self, spec: Mapping[str, Any]) -> Document:
        token, audiences = spec.get("token"), spec.get("audiences") or [tokens.ISSUER]
        if not isinstance(token, str) or not token:
            raise statuses.bad_request("token is required for TokenReview in authentication")
        try:
            user, heard = self._authenticator.of_token(token, tuple(str(each) for each in audiences))
        except tokens.TokenError as error:
            return {"authenticated": False, "user": {}, "error": str(error)}
        return {"authenticated": True, "user": user.told(), "audiences": heard}


def _asked(spec: Mapping[str, Any], kind: str) -> Attributes:
    """Read what somebody would do."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is (path is None):
        cause = ("FieldValueInvalid", "spec.resourceAttributes", f"Invalid value: {_ONE}")
        raise statuses.invalid(kind, _GROUP, "", [cause])
    stated = structure.mapping(spec, "nonResourceAttributes" if resource is None else "resourceAttributes")
    if resource is None:
        return Attributes(verb=str(stated.get("verb", "")), path=str(stated.get("path") or "/"))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{field: str(stated.get(field) or "") for field in fields})


def _local(spec: Mapping[str, Any], kind: str, namespace: str) -> Attributes:
    wanted = _asked(spec, kind)
    if wanted.path:
        cause = ("FieldValueInvalid", "spec.nonResourceAttributes", "Invalid value: disallowed on this kind of request")
        raise statuses.invalid(kind, _GROUP, "", [cause])
    if wanted.namespace != namespace:
        text = f'Invalid value: "{wanted.namespace}": must match metadata.namespace'
        raise statuses.invalid(kind, _GROUP, "", [("FieldValueInvalid", "spec.resourceAttributes.namespace", text)])
    return wanted


def _subject(spec: Mapping[str, Any], kind: str) -> User:
    name, groups = str(spec.get("user") or ""), tuple(str(each) for each in spec.get("groups") or ())
    if not name and not groups:
        cause = ("FieldValueInvalid", "spec.user", 'Invalid value: "": at least one of user or group must be specified')
        raise statuses.invalid(kind, _GROUP, "", [cause])
    return users.User(name, groups)
