"""Tokens on request: the subresource `token` of a service account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, timestamp
from pumice.apiserver import statuses
from pumice.apiserver.access import tokens
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.access.tokens import Tokens
    from pumice.apiserver.requests import Target
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_GROUP: Final = "authentication.k8s.io"
_HOUR: Final = 3600
_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32
_BOUND: Final = {"Pod": kinds.POD, "Secret": tokens.SECRET, "Node": kinds.NODE}


class TokenRequests:
    """Issues tokens."""

    def __init__(self, store: ObjectStore, made: Tokens, now: Callable[[], int]) -> None:
        self._store = store
        self._tokens = made
        self._now = now

    def issue(self, target: Target, body: Any) -> Document:
        """Give the request with a token in its status."""
        account = self._store.find(Key(tokens.ACCOUNT, target.namespace, target.name))
        if account is None:
            raise statuses.not_found("serviceaccounts", "", target.name)
        spec = structure.mapping(body, "spec")
        audiences = [str(each) for each in spec.get("audiences") or (tokens.ISSUER,)]
        seconds = _seconds(spec)
        to = self._bound(target, structure.mapping(spec, "boundObjectRef"))
        token = self._tokens.bound(account, seconds, audiences, to)
        now = self._now() // 1_000_000
        metadata = account["metadata"]
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                "name": target.name,
                "namespace": target.namespace,
                "uid": metadata["uid"],
                "creationTimestamp": timestamp.format_timestamp(now * 1_000_000),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": timestamp.format_timestamp((now + seconds) * 1_000_000)},
        }

    def _bound(self, target: Target, reference: Mapping[str, Any]) -> dict[str, Document]:
        """Find what a token is to be bound to."""
        if not reference:
            return {}
        name, kind = str(reference.get("name", "")), _BOUND.get(str(reference.get("kind")))
        if kind is None or reference.get("apiVersion") not in (None, "", "v1"):
            what = f"{reference.get('apiVersion')}, Kind={reference.get('kind')}"
            raise statuses.bad_request(f"cannot bind token to object of type {what}")
        found = self._store.find(Key(kind, target.namespace if kind.namespaced else "", name))
        if found is None:
            raise statuses.not_found(kind.plural, "", name)
        stated, uid = reference.get("uid"), found["metadata"]["uid"]
        if stated and stated != uid:
            why = f"the UID in the bound object reference ({stated}) does not match the UID in record. The object might have been deleted and then recreated"  # fmt: skip
            raise statuses.conflict(kind.name, "", name, why)
        if kind is not kinds.POD:
            return {kind.name.lower(): {"name": name, "uid": uid}}
        return self._to_pod(target, found)

    def _to_pod(self, target: Target, pod: Mapping[str, Any]) -> dict[str, Document]:
        spec, metadata = structure.mapping(pod, "spec"), pod["metadata"]
        if spec.get("serviceAccountName", "default") != target.name:
            message = f'cannot bind token for serviceaccount "{target.name}" to pod running with different serviceaccount name.'
            raise statuses.bad_request(message)
        to: dict[str, Document] = {"pod": {"name": metadata["name"], "uid": metadata["uid"]}}
        if node := spec.get("nodeName"):
            found = self._store.find(Key(kinds.NODE, "", node))
            to["node"] = {"name": node} | ({"uid": found["metadata"]["uid"]} if found is not None else {})
        return to


def _seconds(spec: Mapping[str, Any]) -> int:
    seconds = spec.get("expirationSeconds", _HOUR)
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise statuses.bad_request(f"spec.expirationSeconds: Invalid value: {seconds!r}: it must be a whole number")
    text = ""
    if seconds < _SHORTEST:
        text = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        text = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
    if text:
        cause = ("FieldValueInvalid", "spec.expirationSeconds", text)
        raise statuses.invalid("TokenRequest", _GROUP, "", [cause])
    return seconds
