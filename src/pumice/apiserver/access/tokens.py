"""Tokens of service accounts: signed by the cluster's own key, and good as long as the account, and what else they are bound to, is there."""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from pumice.api import kinds
from pumice.apiserver.access import users
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.access.users import User
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
ISSUER: Final = "https://kubernetes.default.svc"
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
ACCOUNT: Final = kinds.Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", namespaced=True)
SECRET: Final = kinds.Kind(name="Secret", group="", version="v1", plural="secrets", namespaced=True)
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_NODE_UID: Final = "authentication.kubernetes.io/node-uid"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_MOST_KNOWN: Final = 4096
_HALF: Final = 32  # bytes of each number in a signature
_BOUND: Final = (("pod", kinds.POD), ("secret", SECRET), ("node", kinds.NODE))


class TokenError(ValueError):
    """Why a token is not good."""


class Tokens:
    """Makes tokens and reads them; a token whose signature was found good once is not asked for it again."""

    def __init__(self, key_pem: bytes, store: ObjectStore, now: Callable[[], int]) -> None:
        key = serialization.load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise TypeError("the key of service accounts is no key on the curve P-256")
        self._key = key
        self._public = key.public_key()
        public = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._header = {"alg": "ES256", "kid": _encoded(hashlib.sha256(public).digest())}
        self._store = store
        self._now = now
        self._known: dict[str, Document] = {}

    # ---- making

    def sign(self, claims: Document) -> str:
        """Give claims as a token."""
        text = f"{_encoded(msgspec.json.encode(self._header))}.{_encoded(msgspec.json.encode(claims))}"
        first, second = utils.decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_encoded(first.to_bytes(_HALF, 'big') + second.to_bytes(_HALF, 'big'))}"

    def bound(self, account: Mapping[str, Any], seconds: int, audiences: list[str], to: Mapping[str, Document]) -> str:
        """Make a token that ends, for an account, and for what it is bound to."""
        metadata, now = account["metadata"], self._now() // 1_000_000
        own = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            **to,
        }
        return self.sign(
            {
                "aud": audiences,
                "exp": now + seconds,
                "iat": now,
                "iss": ISSUER,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": own,
                "nbf": now,
                "sub": f"{users.ACCOUNT}{metadata['namespace']}:{metadata['name']}",
            }
        )

    def lasting(self, account: Mapping[str, Any], secret: str) -> str:
        """Make the token that stands in a Secret and is good as long as that is there."""
        metadata = account["metadata"]
        return self.sign(
            {
                "iss": LEGACY_ISSUER,
                f"{_LEGACY}namespace": metadata["namespace"],
                f"{_LEGACY}secret.name": secret,
                f"{_LEGACY}service-account.name": metadata["name"],
                f"{_LEGACY}service-account.uid": metadata["uid"],
                "sub": f"{users.ACCOUNT}{metadata['namespace']}:{metadata['name']}",
            }
        )

    # ---- reading

    def user(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> tuple[User, list[str]]:
        """Give whom a token is of, and for which of the audiences; raise `TokenError` for one that is not good."""
        claims = self._claims(token)
        legacy = claims.get("iss") == LEGACY_ISSUER
        if not legacy and claims.get("iss") != ISSUER:
            raise TokenError("its issuer is another")
        stated = claims.get("aud") or [] if not legacy else [ISSUER]
        heard = [each for each in audiences if each in stated]
        if not heard:
            raise TokenError(f"token audiences {stated} is invalid for the target audiences {list(audiences)}")
        now = self._now() / 1e6
        if not legacy and not claims.get("nbf", 0) - 60 <= now <= claims.get("exp", 0):
            raise TokenError("service account token has expired")
        return (self._of_secret(token, claims) if legacy else self._of_claims(claims)), heard

    def _claims(self, token: str) -> Document:
        found = self._known.get(token)
        if found is None:
            found = self._verified(token)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[token] = found
        return found

    def _verified(self, token: str) -> Document:
        text, _, signature = token.rpartition(".")
        try:
            header, claims = (msgspec.json.decode(_decoded(part)) for part in text.split("."))
            raw = _decoded(signature)
            numbers = int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big")
            if len(raw) != 2 * _HALF or header.get("alg") != "ES256" or not isinstance(claims, dict):
                raise TokenError("it is not signed as this cluster signs")
            self._public.verify(utils.encode_dss_signature(*numbers), text.encode(), ec.ECDSA(hashes.SHA256()))
        except (ValueError, binascii.Error, msgspec.MsgspecError, AttributeError, InvalidSignature) as error:
            raise TokenError(f"it is no token of this cluster: {error}") from None
        return claims

    def _of_claims(self, claims: Document) -> User:
        own = structure.mapping(claims, "kubernetes.io")
        namespace, stated = str(own.get("namespace", "")), structure.mapping(own, "serviceaccount")
        account = self._present(ACCOUNT, namespace, stated, "serviceaccount")
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[_CREDENTIAL] = (f"JTI={claims['jti']}",)
        for field, kind in _BOUND:
            reference = own.get(field)
            if isinstance(reference, dict) and not (field == "node" and "pod" in own):
                self._present(kind, namespace if kind.namespaced else "", reference, field)
        for field, name, uid in (("node", _NODE_NAME, _NODE_UID), ("pod", _POD_NAME, _POD_UID)):
            reference = structure.mapping(own, field)
            if reference:
                extra[name] = (str(reference.get("name", "")),)
                extra[uid] = (str(reference.get("uid", "")),)
        return users.account(namespace, account["metadata"]["name"], account["metadata"]["uid"], tuple(extra.items()))

    def _of_secret(self, token: str, claims: Document) -> User:
        namespace = str(claims.get(f"{_LEGACY}namespace", ""))
        reference = {
            "name": claims.get(f"{_LEGACY}service-account.name"),
            "uid": claims.get(f"{_LEGACY}service-account.uid"),
        }
        account = self._present(ACCOUNT, namespace, reference, "serviceaccount")
        secret = self._store.find(Key(SECRET, namespace, str(claims.get(f"{_LEGACY}secret.name"))))
        held = structure.mapping(secret, "data").get("token") if secret is not None else None
        if held != base64.b64encode(token.encode()).decode():
            raise TokenError("the Secret that it stood in is gone or has another")
        return users.account(namespace, account["metadata"]["name"], account["metadata"]["uid"])

    def _present(
        self, kind: kinds.Kind, namespace: str, reference: Mapping[str, Any], called: str
    ) -> Mapping[str, Any]:
        found = self._store.find(Key(kind, namespace, str(reference.get("name", ""))))
        if found is None or found["metadata"]["uid"] != reference.get("uid"):
            raise TokenError(f"the {called} that it is bound to is gone")
        return found


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
