"""The users section of a kubeconfig, turned into credentials."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec

from pumice import plain_files
from pumice.kube.access import credentials as kinds_of
from pumice.kube.access import execplugin
from pumice.kube.access.tls import Pem
from pumice.kube.errors import ConfigurationError, CredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class User(kinds_of.Hidden, frozen=True, rename="kebab"):
    """Who somebody is, in one of several ways."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: execplugin.ExecEntry | None = None
    auth_provider: dict[str, Any] | None = None
    impersonated: str = msgspec.field(default="", name="as")
    impersonated_uid: str = msgspec.field(default="", name="as-uid")
    impersonated_groups: list[str] = msgspec.field(default_factory=list, name="as-groups")
    impersonated_extra: dict[str, list[str]] = msgspec.field(default_factory=dict, name="as-user-extra")


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a file: how its fields are named in messages, and the folder its paths start from."""

    field: Callable[[str], str]
    folder: Path
    environ: Mapping[str, str]

    def pem(self, field: str, path: str, data: str) -> Pem:
        """Return a PEM text that is given inline (which wins) or as a file."""
        if data:
            try:
                return Pem(self.field(f"{field}-data"), data=base64.b64decode("".join(data.split()), validate=True))
            except (binascii.Error, ValueError):
                raise ConfigurationError(
                    f"{self.field(f'{field}-data')} is not base64; encode the PEM file with base64 -w0"
                ) from None
        return Pem(self.field(field), path=self.folder / path if path else None)


class ClusterInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a credential plugin may be told about the cluster."""

    server: str
    tls_server_name: str
    insecure: bool
    authority: Pem
    proxy_url: str
    config: Any

    def spec(self) -> dict[str, Any]:
        """Return it as `spec.cluster` of an ExecCredential."""
        authority = self.authority.read()
        parts: dict[str, Any] = {
            "server": self.server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.insecure,
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "proxy-url": self.proxy_url,
            "config": self.config,
        }
        return {key: value for key, value in parts.items() if value}


def credentials(user: User, owner: Owner, cluster: ClusterInfo) -> kinds_of.Credentials:
    """Return the credentials of a user, or say why there are none that we can use."""
    _check(user, owner)
    extra = _impersonation(user, owner)
    if user.token_file:
        path = owner.folder / user.token_file
        _check_file(path, owner.field("tokenFile"))
        return kinds_of.TokenFile(path, extra=extra)
    if user.token:
        try:
            return kinds_of.Fixed(kinds_of.bearer(kinds_of.check_token(user.token, owner.field("token")), extra))
        except CredentialsError as error:
            raise ConfigurationError(str(error)) from None
    if user.username:
        return kinds_of.Fixed(kinds_of.basic(user.username, user.password, extra))
    if user.exec is not None:
        return execplugin.ExecPlugin(
            user.exec,
            field=owner.field("exec"),
            folder=owner.folder,
            environ=owner.environ,
            cluster=cluster.spec,
            extra=extra,
        )
    return kinds_of.Fixed(extra)


def _check_file(path: Path, field: str) -> None:
    """Refuse what is there and no file; a file that is not there may be mounted later."""
    try:
        plain_files.opened(path).close()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"{field}: cannot read {path}: {error.strerror}") from None


def _check(user: User, owner: Owner) -> None:
    """Refuse what contradicts itself and what nobody supports any more."""
    certificate = user.client_certificate or user.client_certificate_data
    key = user.client_key or user.client_key_data
    if bool(certificate) != bool(key):
        given, missing = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise ConfigurationError(f"{owner.field(missing)} is missing although a {given} is given; give both or neither")
    if user.username and (user.token or user.token_file):
        raise ConfigurationError(f"{owner.field('username')} and a token are both given; remove one of the two")
    if user.auth_provider is not None:
        name = user.auth_provider.get("name")
        raise ConfigurationError(
            f"{owner.field('auth-provider')} {name if isinstance(name, str) else ''!r} is not supported: Kubernetes has removed these; "
            "use the provider's exec plugin instead (kubectl config set-credentials --exec-command)"
        )


def _impersonation(user: User, owner: Owner) -> dict[str, str]:
    if user.impersonated_extra or len(user.impersonated_groups) > 1:
        field = "as-user-extra" if user.impersonated_extra else "as-groups"
        raise ConfigurationError(
            f"{owner.field(field)} asks for more than as, as-uid and one of as-groups, which is what is supported; remove it"
        )
    if not user.impersonated:
        if user.impersonated_groups or user.impersonated_uid:
            raise ConfigurationError(f"{owner.field('as')} is not set although as-groups or as-uid is; name a user")
        return {}
    headers = {"Impersonate-User": user.impersonated, "Impersonate-Uid": user.impersonated_uid}
    headers["Impersonate-Group"] = user.impersonated_groups[0] if user.impersonated_groups else ""
    if not all(text.isprintable() for text in headers.values()):
        raise ConfigurationError(f"{owner.field('as')}, as-uid or as-groups has characters that no header can carry")
    return {name: text for name, text in headers.items() if text}
