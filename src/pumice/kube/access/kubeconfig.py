"""One context of some kubeconfig files as a connection. Paths in a file are relative to its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice import plain_files
from pumice.api import names
from pumice.kube.access import identity, proxies
from pumice.kube.access.endpoint import Connection, Scheduled, checked_server
from pumice.kube.access.kubefiles import Cluster, Context, Entry, Kubeconfig
from pumice.kube.access.tls import Pem, Tls
from pumice.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LARGEST: Final = 4 << 20


def load(
    files: Sequence[Path], context: str, master: str, *, environ: Mapping[str, str], required: bool = False
) -> Connection:
    """Return the connection of one context; files that do not exist are passed over unless `required`."""
    config = Kubeconfig(files)
    for file in files:
        text = _read(file, required=required)
        if text is not None:
            config.add(file, text)
    chosen = config.choose(context)
    cluster: Entry[Cluster] = config.referred(chosen, "clusters", chosen.body.cluster)
    user: Entry[identity.User] | None = None
    if chosen.body.user:
        user = config.referred(chosen, "users", chosen.body.user)
    return _connection(chosen, cluster, user, master, environ)


def _connection(
    context: Entry[Context],
    cluster: Entry[Cluster],
    user: Entry[identity.User] | None,
    master: str,
    environ: Mapping[str, str],
) -> Connection:
    settings = cluster.body
    if not settings.server and not master:
        raise ConfigurationError(f"{cluster.field('server')} is not set; write it as https://HOST:PORT")
    server = checked_server(
        master or settings.server,
        "--master" if master else cluster.field("server"),
        encrypted=bool(
            settings.certificate_authority or settings.certificate_authority_data or settings.insecure_skip_tls_verify
        ),
    )
    authority = _authority(cluster)
    who = identity.Owner(
        field=user.field if user else context.field, folder=(user or context).file.parent, environ=environ
    )
    body = user.body if user else identity.User()
    connection = Connection(
        server,
        tls=Tls(
            authority=authority,
            certificate=who.pem("client-certificate", body.client_certificate, body.client_certificate_data),
            key=who.pem("client-key", body.client_key, body.client_key_data),
            insecure=settings.insecure_skip_tls_verify,
        ),
        tls_server_name=settings.tls_server_name,
        proxy_url=proxies.choose(server, settings.proxy_url, cluster.field("proxy-url"), environ),
        namespace=context.body.namespace or "default",
        credentials=identity.credentials(body, who, _cluster_info(cluster, server, authority)),
        origin=f"user {context.body.user!r} of context {context.name!r} in {context.file}",
        scheduled=_scheduled(cluster),
    )
    if connection.encrypted:
        connection.tls.context()  # a certificate that cannot be used is an error now rather than at the first request
    return connection


def _authority(cluster: Entry[Cluster]) -> Pem:
    """Return the authorities of a cluster, which cannot be trusted and ignored at once."""
    settings = cluster.body
    owner = identity.Owner(field=cluster.field, folder=cluster.file.parent, environ={})
    authority = owner.pem("certificate-authority", settings.certificate_authority, settings.certificate_authority_data)
    if authority and settings.insecure_skip_tls_verify:
        raise ConfigurationError(
            f"{cluster.field('insecure-skip-tls-verify')} is true although a certificate-authority is given; remove one of the two"
        )
    return authority


def _cluster_info(cluster: Entry[Cluster], server: str, authority: Pem) -> identity.ClusterInfo:
    config: Any = None
    for extension in cluster.body.extensions or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            config = extension.get("extension")
    return identity.ClusterInfo(
        server=server,
        tls_server_name=cluster.body.tls_server_name,
        insecure=cluster.body.insecure_skip_tls_verify,
        authority=authority,
        proxy_url=cluster.body.proxy_url,
        config=config,
    )


def _scheduled(cluster: Entry[Cluster]) -> Scheduled:
    """Return what `pumice up` says of its scheduler beside its cluster; what is odd counts as not said."""
    for extension in cluster.body.extensions or ():
        if extension.get("name") == names.SCHEDULER_EXTENSION:
            try:
                found = msgspec.convert(extension.get("extension"), Scheduled)
            except msgspec.ValidationError:
                return Scheduled()
            file = str(cluster.file.parent / found.configuration) if found.configuration else ""
            return msgspec.structs.replace(found, configuration=file)
    return Scheduled()


def _read(file: Path, *, required: bool) -> str | None:
    try:
        with plain_files.opened(file) as opened:
            found = opened.read(_LARGEST + 1)
        if len(found) > _LARGEST:
            raise ConfigurationError(f"{file}: larger than {_LARGEST} bytes; this is no kubeconfig")
        return found.decode()
    except FileNotFoundError:
        if not required:
            return None
        raise ConfigurationError(f"{file}: no such kubeconfig; check the path given") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: byte {error.start} is not UTF-8 text; this is no kubeconfig") from None
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}; check its permissions") from None
    except ValueError:
        raise ConfigurationError(f"{file}: not UTF-8 text; this is no kubeconfig") from None
