"""Renewals go unnoticed: whichever replica an API server asks, at any time, it believes the certificate that it is shown.

Three replicas that start at different times live through several certificates of an hour each, in virtual time. API servers hear of a configuration late, and now
and then a replica cannot reach the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import datetime as dt
import io
import json
import random

import pytest
from cryptography import x509

from kube import virtual_loop
from pumice.admission import rules
from pumice.api import decoding
from pumice.kube import errors
from pumice.server.admission import certificates, injecting, keeping, settings
from pumice.server.admission.certificate_sources import SharedSecret
from pumice.server.logs.logs import Log

START = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
NAME = "volcano-admission-service-jobs-validate"
HOSTS = ("volcano-admission-service.volcano-system.svc",)
HOURS = 4
LATE = 20.0  # seconds after which every API server has heard of a configuration


class World:
    """One Secret, one webhook configuration, and everybody who watches it."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311  a test
        self.secret = None
        self.version = 0
        self.configuration = {"metadata": {"name": NAME}, "webhooks": [{"name": "n", "clientConfig": {"service": {}}}]}
        self.history = [(0.0, b"")]
        self.watchers = []

    def _reach(self):
        if self.random.random() < 0.05:
            raise errors.UnreachableError("no connection")

    async def get(self, kind, namespace, name):
        self._reach()
        await asyncio.sleep(self.random.random())
        if self.secret is None:
            raise errors.ApiError(404, "NotFound", "not found")
        return copy.deepcopy(self.secret)

    async def create(self, kind, manifest):
        self._reach()
        if self.secret is not None:
            raise errors.ApiError(409, "AlreadyExists", "exists")
        return self._store(manifest)

    async def patch(self, kind, namespace, name, body):
        self._reach()
        if body["metadata"]["resourceVersion"] != self.secret["metadata"]["resourceVersion"]:
            raise errors.ApiError(409, "Conflict", "changed")
        stored = self._store({**self.secret, "data": body["data"]})
        if self.random.random() < 0.2:
            raise errors.UnknownOutcomeError("no answer")
        return stored

    def _store(self, manifest):
        self.version += 1
        self.secret = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        return self.secret

    async def request(self, method, path, *, body, content_type):
        self._reach()
        client = body[-1]["value"]
        self.configuration = {**self.configuration, "webhooks": [{"name": "n", "clientConfig": client}]}
        loop = asyncio.get_running_loop()
        self.history.append((loop.time(), base64.b64decode(client["caBundle"])))
        for each in self.watchers:
            loop.call_later(2 * self.random.random(), self.tell, each)
        return json.dumps(self.configuration).encode()

    def tell(self, injector):
        raw = json.dumps(self.configuration).encode()
        injector.feed(injecting.VALIDATING, "MODIFIED", decoding.decode_json(injecting.VALIDATING, raw), raw)

    def believed(self, moment):
        """Give what API servers may believe at a moment: each bundle that one of them may still have."""
        settled = [bundle for when, bundle in self.history if when <= moment - LATE][-1:]
        return settled + [bundle for when, bundle in self.history if moment - LATE < when <= moment]


class Replica:
    """What `pumice admission` does about its certificate."""

    def __init__(self, world):
        loop = asyncio.get_running_loop()
        log = Log(stream=io.StringIO())
        self.injector = injecting.Injector(world, settings.read({}), (rules.BY_PATH["/jobs/validate"],), log)
        source = SharedSecret(world, ("n", "s"), HOSTS, lambda: START + dt.timedelta(seconds=loop.time()))
        self.keeper = keeping.Keeper(
            source,
            trust=self.injector.trust,
            announced=lambda: self.injector.settled,
            show=self._show,
            warn=lambda *_: None,
        )
        self.seen = []
        world.watchers.append(self.injector)
        world.tell(self.injector)

    def _show(self, bundle):
        self.seen.append(bundle.certificate)
        return True

    async def run(self, after):
        await asyncio.sleep(after)
        injecting_ = asyncio.create_task(self.injector.run())
        try:
            await self.keeper.start()
            await self.keeper.run()
        finally:
            injecting_.cancel()


async def lived(seed, deletions=()):
    """Let the replicas live and ask each of them every ten seconds; gives what was shown and not believed, and the certificates."""
    world, loop = World(seed), asyncio.get_running_loop()
    replicas = [Replica(world) for _ in range(3)]
    running = [asyncio.create_task(each.run(40.0 * index)) for index, each in enumerate(replicas)]
    refused = []
    await asyncio.sleep(200)  # until everybody is ready
    for moment in deletions:
        loop.call_at(moment, setattr, world, "secret", None)
    while loop.time() < HOURS * 3600:
        await asyncio.sleep(10)
        now = START + dt.timedelta(seconds=loop.time())
        for number, each in enumerate(replicas):
            certificate = x509.load_pem_x509_certificate(each.seen[-1])
            if certificate.not_valid_after_utc <= now:
                refused.append((loop.time(), number, "it has ended"))
            believing = [
                any(certificates.signed(certificate, one) for one in certificates.read_all(bundle))
                for bundle in world.believed(loop.time())
            ]
            if not all(believing):
                refused.append((loop.time(), number, "nobody believes it"))
    for task in running:
        task.cancel()
    return refused, [each.seen for each in replicas]


@pytest.mark.parametrize("seed", range(3))
def test_no_request_meets_a_certificate_that_is_not_believed(seed, monkeypatch):
    monkeypatch.setattr(certificates, "LIFETIME", dt.timedelta(hours=1))
    monkeypatch.setattr(certificates, "MARGIN", dt.timedelta(minutes=15))

    refused, shown = virtual_loop.run(lived(seed))

    assert refused == []
    for seen in shown:
        assert len(set(seen)) >= HOURS  # it was renewed again and again
    assert (
        len({certificate for seen in shown for certificate in seen}) <= HOURS * 60 / 45 + 2
    )  # and by one replica for all


@pytest.mark.parametrize("seed", range(4))
def test_a_secret_that_somebody_deletes_is_made_anew_and_no_request_notices(seed, monkeypatch):
    monkeypatch.setattr(certificates, "LIFETIME", dt.timedelta(hours=1))
    monkeypatch.setattr(certificates, "MARGIN", dt.timedelta(minutes=15))
    chance = random.Random(seed)  # noqa: S311  a test
    deletions = [moment + chance.uniform(0, 600) for moment in (600, 5000, 9000)]

    refused, shown = virtual_loop.run(lived(seed, deletions))

    assert refused == []
    for seen in shown:
        assert len(set(seen)) >= HOURS + len(deletions) - 1  # each deletion brings a new one
