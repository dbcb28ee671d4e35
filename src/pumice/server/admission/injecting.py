"""Tells the API server which certificate to believe: the `caBundle` of our webhook configurations, at the start and whenever it is not what it should be."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import rules
from pumice.api import kinds
from pumice.kube import errors
from pumice.server.admission import certificates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.admission.rules import Rule
    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.kube.calls.client import Client
    from pumice.server.admission.certificates import Bundle
    from pumice.server.admission.settings import Settings
    from pumice.server.logs.logs import Log

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = kinds.Kind(name="MutatingWebhookConfiguration", group=GROUP, version="v1", plural="mutatingwebhookconfigurations", namespaced=False)  # fmt: skip
VALIDATING: Final = kinds.Kind(name="ValidatingWebhookConfiguration", group=GROUP, version="v1", plural="validatingwebhookconfigurations", namespaced=False)  # fmt: skip
VOLCANOS: Final = "volcano-admission-service"  # the Service of Volcano's own installation
_END: Final = b"-----END CERTIFICATE-----"
AGAIN: Final = 5.0  # seconds before a write that failed is tried again


def kind_of(rule: Rule) -> kinds.Kind:
    """Give the kind of configuration that a path belongs to."""
    return MUTATING if rule.mutates else VALIDATING


class Injector:
    """Follows the configurations of the paths that are served, and mends what is not as it should be."""

    def __init__(self, client: Client, settings: Settings, served: tuple[Rule, ...], log: Log) -> None:
        self._client = client
        self._url = settings.webhook_url.rstrip("/")
        self._log = log
        # Of every path: an older installation may have left configurations that still ask here.
        self._wanted = {(kind_of(rule), settings.configuration(rule)): rule for rule in rules.RULES}
        self._served = served
        self._theirs = {f"{VOLCANOS}{rule.path.replace('/', '-')}": rule.path for rule in rules.RULES}
        self._in_place = settings.webhook_service_name == VOLCANOS
        self._aside: dict[str, None] = {}
        self._present: dict[tuple[kinds.Kind, str], dict[str, Any]] = {}
        self._authorities = ""
        self._needed: frozenset[bytes] = frozenset()
        self._stirred = asyncio.Event()
        self._announced: dict[tuple[kinds.Kind, str], None] = {}  # where our own address was written

    def feed(self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes) -> None:
        """Take a change of a configuration."""
        key = (kind, found.metadata.name)
        self._look_aside(found.metadata.name, gone=event_type == "DELETED")
        if key not in self._wanted:
            return
        if event_type == "DELETED" or not raw:
            self._present.pop(key, None)
        else:
            self._present[key] = msgspec.json.decode(raw)
        self._stirred.set()

    def _look_aside(self, name: str, *, gone: bool) -> None:
        """Leave a path to Volcano's own webhook while there is one, for two sets of rules would judge the same object."""
        path = self._theirs.get(name)
        if path is None or self._in_place:
            return
        if gone and path in self._aside:
            del self._aside[path]
            self._log.info("Volcano's webhook is gone; objects are judged here from now on", configuration=name)
        elif not gone and path not in self._aside:
            self._aside[path] = None
            self._log.warning("Volcano's webhook is there, so everything is let through here", configuration=name)

    def stands_aside(self, path: str) -> bool:
        """Tell whether a path is left to Volcano's own webhook."""
        return path in self._aside

    @property
    def aside(self) -> list[str]:
        """Name the paths that are left to Volcano's own webhooks."""
        return sorted(self._aside)

    def trust(self, bundle: Bundle) -> None:
        """Let the API server believe a certificate, and those that other replicas may still show."""
        self._authorities = base64.b64encode(bundle.authorities).decode()
        self._needed = _parts(certificates.issuers(bundle))
        self._stirred.set()

    @property
    def missing(self) -> list[str]:
        """Name the configurations that are not there: nobody asks at their paths."""
        return [
            name
            for (kind, name), rule in self._wanted.items()
            if rule in self._served and (kind, name) not in self._present
        ]

    @property
    def settled(self) -> bool:
        """Whether every configuration that is there is as it should be."""
        return bool(self._authorities) and not any(self._patch(key) for key in self._present)

    async def run(self) -> None:
        """Mend what is wrong, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            if self._authorities and not await self.mend():
                await asyncio.sleep(AGAIN)
                self._stirred.set()

    async def mend(self) -> bool:
        """Write the authorities wherever they are missing; tells whether everything was written."""
        good = True
        for key in list(self._present):
            body = self._patch(key)
            if not body:
                continue
            kind, name = key
            try:
                written = await self._client.request(
                    "PATCH",
                    f"/apis/{kind.api_version}/{kind.plural}/{name}",
                    body=body,
                    content_type="application/json-patch+json",
                )
            except errors.KubeError as error:
                # One that is gone or was changed meanwhile is told of by the watch.
                good = good and isinstance(error, errors.ApiError) and error.status in (404, 422)
                self._log.warning("a webhook configuration cannot be written", configuration=name, problem=str(error))
                continue
            self._present[key] = msgspec.json.decode(written)
            self._announced[key] = None
            self._log.info("certificate injected", configuration=name)
        return good

    def _is_believed(self, present: Any) -> bool:
        """Tell whether our certificate is believed by whoever believes a bundle."""
        try:
            found = base64.b64decode(present, validate=True) if isinstance(present, str) else b""
        except ValueError:
            return False
        return bool(self._needed) and self._needed <= _parts(found)

    def _patch(self, key: tuple[kinds.Kind, str]) -> list[dict[str, Any]]:
        """Give what must change of a configuration, against what was seen of it."""
        rule, present = self._wanted[key], self._present[key]
        operations: list[dict[str, Any]] = []
        for index, webhook in enumerate(present.get("webhooks") or ()):
            current: Mapping[str, Any] = webhook.get("clientConfig") or {}
            # A replica that is ahead of us has announced a newer authority: who took that away would make its certificate unknown.
            believed = current.get("caBundle") if self._is_believed(current.get("caBundle")) else self._authorities
            wanted = {**current, "caBundle": believed}
            # Of several that are reached by addresses of their own the last to come is asked: they would take turns for ever.
            others = key in self._announced and bool(current.get("url"))
            if self._url and not others:
                wanted = {"url": f"{self._url}{rule.path}", "caBundle": believed}
            if wanted != current:
                where = f"/webhooks/{index}"
                operations.append({"op": "test", "path": f"{where}/name", "value": webhook.get("name")})
                operations.append({"op": "replace", "path": f"{where}/clientConfig", "value": wanted})
        return operations


def _parts(pem: bytes) -> frozenset[bytes]:
    """Take a bundle apart, so that two of them can be compared."""
    return frozenset(part.strip() for part in pem.split(_END) if part.strip())
