"""The process of `pumice admission`: what the flags ask for, put together on one event loop and ended in good order."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import ssl
from typing import TYPE_CHECKING, Final

import msgspec

from pumice import __version__
from pumice.admission import job_plugins, pod_rules, rules, surroundings
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls import client as clients
from pumice.kube.watches import informers
from pumice.server import serving
from pumice.server.admission import answering, certificate_sources, certificates, following, injecting, keeping
from pumice.server.configuration import sources
from pumice.server.flags import addresses
from pumice.server.health import checks, overdue
from pumice.server.logs import logs, watch_log
from pumice.server.threads import interpreter, watchdog

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pumice.admission.requests import PodRule
    from pumice.server.admission.certificates import Bundle
    from pumice.server.admission.settings import Settings
    from pumice.server.logs.logs import Log

MOST_CONNECTIONS: Final = 1000  # the API server opens one for each request that it sends at once
FAREWELL: Final = 5.0  # seconds in which new requests are still answered after a signal: endpoints take a while to go


class StartError(Exception):
    """Why nothing can be served, in words for the operator."""


def run(settings: Settings) -> int:
    """Serve until told to end; returns the exit status."""
    log = logs.Log(settings.v, settings.logging_format)
    logs.adopt_libraries(log)
    log.info("starting", version=__version__)
    for name in settings.unheard:
        log.info("flag without effect", flag=f"--{name}")
    interpreter.tune()
    try:
        return asyncio.run(Process(settings, log).run())
    except (errors.KubeError, sources.SourceError, pod_rules.PodRulesError, StartError, ValueError) as error:
        return _refuse(log, error)


def _refuse(log: Log, error: Exception) -> int:
    log.error("cannot start", problem=str(error))
    return 1


class Process:
    """The webhook server with everything around it."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._rules = rules.named(settings.enabled_admission)
        self._around = surroundings.KnownObjects()
        where = connection.load(settings.kubeconfig, master=settings.master, in_cluster_first=True)
        self._client = clients.Client(where, qps=settings.kube_api_qps, burst=settings.kube_api_burst)
        self._injector = injecting.Injector(self._client, settings, self._rules, log)
        feed = following.Feed(self._around, self._injector)
        self._informers = informers.Informers(self._client, following.specs(self._rules), feed)
        self._answering = answering.Answering(
            self._rules,
            self._around,
            settings.rules_settings(job_plugins.installed()),
            log,
            left_alone=settings.left_alone,
            waits=self._waits,
            aside=self._injector.stands_aside,
        )
        self._pod_rules = (
            following.PodRules(settings.admission_conf, self._use, log) if settings.admission_conf else None
        )
        if self._pod_rules is not None:
            self._pod_rules.start()
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._keeper = keeping.Keeper(
            self._source(),
            trust=self._injector.trust,
            announced=lambda: self._injector.settled,
            show=self._show,
            warn=lambda what, why: log.warning(what, problem=why),
        )
        self._ending = asyncio.Event()
        self._watchdog = watchdog.Watchdog(log)
        self._beating = overdue.Part("webhooks", "a turn of the loop that answers")
        self._watchdog.watch.add(self._beating)
        self.health = checks.Health(
            live={"progress": self._watchdog.watch.late},
            ready={
                "lists": self._waits,
                "certificate": self._uncertified,
                "end": self._leaving,
                "progress": self._watchdog.watch.late,
            },
            notes={"webhook-configurations": self._unasked, "admission-conf": self._refused_rules},
        )

    # -- how it is doing ---------------------------------------------------------------------------------------

    def _waits(self) -> str:
        missing = [report.watch for report in self._informers.report() if not report.synced]
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def _uncertified(self) -> str:
        if self._keeper.shown is None:
            return "there is no certificate yet"
        return "" if self._injector.settled else "the API server does not know the certificate yet"

    def _leaving(self) -> str:
        return "it is ending" if self._ending.is_set() else ""

    def _unasked(self) -> str:
        missing, aside = self._injector.missing, self._injector.aside
        told = [f"not there, so nobody asks: {', '.join(missing)}"] if missing else []
        told += [f"left to Volcano's own webhooks: {', '.join(aside)}"] if aside else []
        return "; ".join(told)

    def _refused_rules(self) -> str:
        return self._pod_rules.problem if self._pod_rules is not None else ""

    def _use(self, found: tuple[PodRule, ...]) -> None:
        self._answering.settings = msgspec.structs.replace(self._answering.settings, pod_rules=found)

    # -- running -----------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Serve until a signal comes."""
        self._heed_signals()
        self._watchdog.start()
        async with self._client:
            listeners: list[serving.Listener] = []
            works = [asyncio.ensure_future(each) for each in self._works()]
            ending = asyncio.create_task(self._ending.wait())
            try:
                if self._settings.enable_healthz:
                    listeners.append(await self._listen_health())
                first = asyncio.create_task(self._serve(listeners))
                works.append(first)
                done, _ = await asyncio.wait([*works, ending], return_when=asyncio.FIRST_COMPLETED)
                for work in done - {ending}:
                    work.result()
                await self._finish()
                return 0
            finally:
                for work in (*works, ending):
                    work.cancel()
                await asyncio.gather(*works, ending, return_exceptions=True)
                for listener in listeners:
                    await listener.cleanup()
                self._log.info("ended")

    def _works(self) -> list[Awaitable[None]]:
        found: list[Awaitable[None]] = [
            self._informers.run(),
            watch_log.keep(self._informers, self._log),
            watchdog.beat(self._beating),
            self._injector.run(),
        ]
        return [*found, self._pod_rules.run()] if self._pod_rules is not None else found

    async def _serve(self, listeners: list[serving.Listener]) -> None:
        """Get a certificate, listen, and follow the certificate from then on."""
        try:
            await self._keeper.start()
        except certificate_sources.CertificateError as error:
            raise StartError(str(error)) from error
        listener = serving.Listener(
            self._answering.app(),
            most=MOST_CONNECTIONS,
            patience=self._settings.graceful_shutdown_time / 1e6,
        )
        address = self._settings.address
        try:
            bound = await listener.start(address, self._context)
        except OSError as error:
            raise StartError(f"cannot listen on {address}: {error.strerror or error}") from error
        listeners.append(listener)
        self._log.info(
            "serving", what="admission", address=str(bound), paths=", ".join(rule.path for rule in self._rules)
        )
        await self._keeper.run()

    def _source(self) -> certificate_sources.Source:
        settings = self._settings
        if settings.tls_cert_file:
            return certificate_sources.Files(
                settings.ca_cert_file, settings.tls_cert_file, settings.tls_private_key_file
            )
        return certificate_sources.SharedSecret(
            self._client,
            (settings.webhook_namespace, settings.secret),
            settings.host_names,
            lambda: dt.datetime.now(dt.UTC),
            lambda text: self._log.info(text, secret=f"{settings.webhook_namespace}/{settings.secret}"),
        )

    def _show(self, bundle: Bundle) -> bool:
        """Show a certificate to whoever connects from now on, if it can be used."""
        try:
            certificates.load(self._context, bundle)
            ends = certificates.ends(bundle)
        except (ssl.SSLError, ValueError, OSError) as error:
            if self._keeper.shown is None:
                raise StartError(f"the certificate cannot be used: {error}") from error
            self._log.error("the new certificate cannot be used; the old one is shown", problem=str(error))
            return False
        self._log.info("certificate shown", ends=ends)
        return True

    async def _listen_health(self) -> serving.Listener:
        listener = serving.Listener(serving.health_app(self))
        address = addresses.parse(self._settings.healthz_address)
        try:
            bound = await listener.start(address, None)
        except OSError as error:
            raise StartError(f"cannot serve health on {address}: {error.strerror or error}") from error
        self._log.info("serving", what="health", address=str(bound))
        return listener

    async def _finish(self) -> None:
        """Go on answering for a moment: whoever was told of this process has not heard yet that it ends."""
        self._log.info("ending", reason="told to by a signal")
        await asyncio.sleep(min(FAREWELL, self._settings.graceful_shutdown_time / 1e6))

    # -- signals -----------------------------------------------------------------------------------------------

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)

    def _end(self) -> None:
        if self._ending.is_set():
            os._exit(1)
        self._ending.set()
