"""The certificate of the page: files that somebody else looks after, or one that is made here and that nobody knows."""

from __future__ import annotations

import datetime as dt
import ssl
from typing import TYPE_CHECKING, Final

from pumice.server.admission import certificate_sources, certificates, keeping

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def keeper(begin: Begin, context: ssl.SSLContext, log: Log) -> keeping.Keeper:
    """Give whoever looks after the certificate that a context shows."""
    source: certificate_sources.Source = (
        certificate_sources.Files(begin.certificate, begin.certificate, begin.key)
        if begin.certificate
        else SelfMade(begin.hosts)
    )

    def show(bundle: Bundle) -> bool:
        try:
            certificates.load(context, bundle)
        except (ssl.SSLError, OSError) as error:
            if made.shown is None:
                raise certificate_sources.CertificateError(
                    f"--web-cert-file {begin.certificate} and its key cannot be used: {error}"
                ) from error
            log.warning("the new certificate of the page cannot be used; the old one is shown", problem=str(error))
            return False
        return True

    made = keeping.Keeper(
        source,
        trust=lambda _bundle: None,
        announced=lambda: True,
        show=show,
        warn=lambda what, why: log.warning(what, problem=why),
    )
    return made
