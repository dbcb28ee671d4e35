"""What follows access in a cluster: roles that gather the rules of others, and the tokens that stand in Secrets."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.access import authorization, roles, tokens
from pumice.apiserver.built_in.access_validity import TOKEN_TYPE
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.tokens import Tokens
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"


class Upkeep:
    """Looks at roles when one has changed, and at Secrets of accounts when they or their accounts have."""

    def __init__(self, store: ObjectStore, made: Tokens, authority: bytes) -> None:
        self._store = store
        self._tokens = made
        self._authority = base64.b64encode(authority).decode()
        self._roles_changed = True
        self._secrets: dict[Key, None] = {}
        for kind in (tokens.SECRET, tokens.ACCOUNT):
            for manifest in store.scan(kind):
                metadata = manifest["metadata"]
                self._seen(Key(kind, metadata["namespace"], metadata["name"]), "ADDED", manifest)
        store.observe(self._seen)

    def _seen(self, key: Key, _: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind == authorization.CLUSTER_ROLE:
            self._roles_changed = True
        elif key.kind == tokens.SECRET and manifest.get("type") == TOKEN_TYPE:
            self._secrets[key] = None
        elif key.kind == tokens.ACCOUNT:
            for secret in self._store.inside(tokens.SECRET, key.namespace):
                if secret.get("type") == TOKEN_TYPE and _annotations(secret).get(_NAME) == key.name:
                    self._secrets[Key(tokens.SECRET, key.namespace, secret["metadata"]["name"])] = None

    def keep(self) -> int:
        """Do what is to be done, and give how much that was."""
        count = 0
        if self._roles_changed:
            self._roles_changed = False
            count += self._gather()
        secrets, self._secrets = self._secrets, {}
        return count + sum(self._with_token(key) for key in secrets)

    # ---- roles

    def _gather(self) -> int:
        """Write the rules of roles that are made of others; those may be such roles themselves, and are looked at again."""
        known = list(self._store.scan(authorization.CLUSTER_ROLE))
        count = 0
        for role in known:
            selectors = structure.mapping(role, "aggregationRule").get("clusterRoleSelectors")
            if not selectors:
                continue
            rules = _gathered(role, selectors, known)
            stored = role.get("rules") or []
            # In whatever order: two roles that gather each other's rules would take turns for ever.
            if len(rules) != len(stored) or any(rule not in stored for rule in rules):
                self._store.overwrite(
                    Key(authorization.CLUSTER_ROLE, "", role["metadata"]["name"]), {**role, "rules": rules}
                )
                count += 1
        return count

    # ---- tokens in Secrets

    def _with_token(self, key: Key) -> int:
        """Write the token into a Secret; one of an account that is gone goes, too."""
        secret = self._store.find(key)
        if secret is None or deletion.is_terminating(secret):
            return 0
        annotations, data = _annotations(secret), structure.mapping(secret, "data")
        account = self._store.find(Key(tokens.ACCOUNT, key.namespace, str(annotations.get(_NAME))))
        uid = account["metadata"]["uid"] if account is not None else ""
        if account is None or annotations.get(_UID, uid) != uid:
            self._store.delete(key)
            return 1
        if data.get("token") and data.get("namespace") and data.get("ca.crt") and annotations.get(_UID) == uid:
            return 0
        told = {
            "ca.crt": data.get("ca.crt") or self._authority,
            "namespace": data.get("namespace") or _encoded(key.namespace),
            "token": data.get("token") or _encoded(self._tokens.lasting(account, key.name)),
        }
        metadata = {**secret["metadata"], "annotations": {**annotations, _UID: uid}}
        self._store.overwrite(key, {**secret, "metadata": metadata, "data": {**data, **told}})
        return 1


def _gathered(role: Mapping[str, Any], selectors: list[Any], known: list[Mapping[str, Any]]) -> list[Document]:
    """Give the rules of all roles that the selectors of one fit, each once, in the order of their names."""
    rules: list[Document] = []
    for selector in selectors:
        for other in sorted(known, key=lambda each: each["metadata"]["name"]):
            fits = other is not role and roles.selects(selector, structure.mapping(other, "metadata", "labels"))
            rules += [rule for rule in (other.get("rules") or () if fits else ()) if rule not in rules]
    return rules


def _annotations(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return structure.mapping(manifest, "metadata", "annotations")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
