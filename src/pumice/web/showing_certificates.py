"""The certificate of the page, files that somebody else looks after or one that is made here and that nobody knows; and the authority of the certificates that people show."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.server.admission import certificate_sources, certificates, keeping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.server.admission.certificates import Bundle
    from pumice.server.logs.logs import Log
    from pumice.web.relaying import Begin

AUTHORITY: Final = "pumice-web-ca"
LOCAL: Final = ("localhost", "127.0.0.1")


class SelfMade:
    """Makes a certificate, and another before it ends; it is kept nowhere."""

    pause = 3600.0
    patient = False

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = list(dict.fromkeys([*hosts, *LOCAL]))
        self._made: Bundle | None = None

    async def read(self) -> Bundle:
        """Give the one that is good now."""
        now = dt.datetime.now(dt.UTC)
        if self._made is None or certificates.problem(self._made, self._hosts, now):
            self._made = certificates.make(self._hosts, now, authority_called=AUTHORITY)
        return self._made


class WithClients:
    """A certificate, and beside it the authority whose certificates people may show; either may change."""

    pause = certificate_sources.Files.pause
    patient = False

    def __init__(self, source: certificate_sources.Source, client_ca: str) -> None:
        self._source, self._client_ca = source, client_ca

    async def read(self) -> Bundle:
        """Give both as they are now."""
        made = await self._source.read()
        clients = await asyncio.to_thread(certificate_sources.read_file, self._client_ca)
        return msgspec.structs.replace(made, authorities=clients)


class Shown:
    """What connections are made with: each with the certificate, and with the authority of people's, that are good when it begins.

    A context forgets no authority, so a change makes another one, which connections are handed to as they come. `changed` is told of another authority.
    """

    def __init__(self, begin: Begin, log: Log, changed: Callable[[], None]) -> None:
        self._begin, self._log, self._changed = begin, log, changed
        self._good: ssl.SSLContext | None = None
        self._authorities = b""
        self.context = self._context()
        self.context.sni_callback = self._hand_over

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if self._good is not None:
            connection.context = self._good

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        if self._begin.client_ca:
            context.verify_mode = ssl.CERT_OPTIONAL
            # A session that is taken up again would not show its certificate again, which may have ended.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def show(self, bundle: Bundle) -> bool:
        """Show a certificate from now on, and trust an authority; tells whether that could be."""
        made, begin = self._context(), self._begin
        what = f"--web-cert-file {begin.certificate} and its key"
        try:
            certificates.load(made, bundle)
            if begin.client_ca:
                what = f"--web-client-ca {begin.client_ca}"
                made.load_verify_locations(cadata=bundle.authorities.decode("ascii"))
        except (ssl.SSLError, OSError, ValueError) as error:
            if self._good is None:
                raise certificate_sources.CertificateError(f"{what} cannot be used: {error}") from error
            self._log.warning(
                "what is new cannot be used; the page shows and trusts what it did", problem=f"{what}: {error}"
            )
            return False
        self._good = made
        if begin.client_ca and self._authorities not in (b"", bundle.authorities):
            self._log.info("the page trusts another authority", file=begin.client_ca)
            self._changed()
        self._authorities = bundle.authorities
        return True


def keeper(begin: Begin, shown: Shown, log: Log) -> keeping.Keeper:
    """Give whoever looks after what is shown."""
    source: certificate_sources.Source = (
        certificate_sources.Files(begin.certificate, begin.certificate, begin.key)
        if begin.certificate
        else SelfMade(begin.hosts)
    )
    return keeping.Keeper(
        WithClients(source, begin.client_ca) if begin.client_ca else source,
        trust=lambda _bundle: None,
        announced=lambda: True,
        show=shown.show,
        warn=lambda what, why: log.warning(what, problem=why),
    )
