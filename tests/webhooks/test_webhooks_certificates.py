"""Certificates: made once for all replicas, replaced in time, believed before they are shown."""

from __future__ import annotations

import asyncio
import base64
import copy
import datetime as dt

import pytest

from kube import virtual_loop
from pumice.kube import errors
from pumice.server.admission import certificate_sources, certificates, keeping
from pumice.server.admission.certificate_sources import CertificateError, Files, SharedSecret

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
NAMES = ("svc.ns.svc", "127.0.0.1")
PLACE = ("ns", "secret")


def test_a_new_certificate_has_nothing_wrong():
    assert certificates.problem(certificates.make(NAMES, NOW), NAMES, NOW) == ""


FIRST, SECOND = (certificates.make(NAMES, NOW) for _ in range(2))


@pytest.mark.parametrize(
    ("bundle", "after", "told"),
    [
        (certificates.Bundle(b"", b"", b""), dt.timedelta(), "cannot be read"),
        (
            certificates.Bundle(FIRST.authorities, FIRST.certificate, SECOND.key),
            dt.timedelta(),
            "key is that of another",
        ),
        (
            certificates.Bundle(SECOND.authorities, FIRST.certificate, FIRST.key),
            dt.timedelta(),
            "no authority beside it",
        ),
        (certificates.make(("elsewhere",), NOW), dt.timedelta(), "it is not for 127.0.0.1, svc.ns.svc"),
        (FIRST, dt.timedelta(days=274), ""),
        (FIRST, dt.timedelta(days=276), "it ends at 2031-01-01 00:00 UTC"),
        (FIRST, dt.timedelta(days=400), "it ends at"),
    ],
)
def test_a_certificate_is_replaced_when_it_is_no_good_or_about_to_end(bundle, after, told):
    found = certificates.problem(bundle, NAMES, NOW + after)

    assert told in found
    assert bool(found) is bool(told)


def test_the_old_authority_is_believed_until_it_ends():
    later = certificates.make(NAMES, NOW + dt.timedelta(days=300), FIRST.authorities)
    old = certificates.Bundle(later.authorities, FIRST.certificate, FIRST.key)

    assert certificates.problem(old, NAMES, NOW) == ""
    last = certificates.make(NAMES, NOW + dt.timedelta(days=366), later.authorities)
    assert "no authority" in certificates.problem(
        certificates.Bundle(last.authorities, FIRST.certificate, FIRST.key), NAMES, NOW
    )
    for _ in range(5):
        last = certificates.make(NAMES, NOW, last.authorities)
    assert last.authorities.count(b"BEGIN CERTIFICATE") == 3


class Cluster:
    """Holds one Secret; the next writes may be lost after they were done, or meet somebody else's."""

    def __init__(self):
        self.secret = None
        self.version = 0
        self.faults = []
        self.writes = 0

    async def get(self, kind, namespace, name):
        if self.secret is None:
            raise errors.ApiError(404, "NotFound", "not found")
        return copy.deepcopy(self.secret)

    async def create(self, kind, manifest):
        fault = self.faults.pop(0) if self.faults else ""
        if self.secret is not None:
            raise errors.ApiError(409, "AlreadyExists", "exists")
        self.store(manifest)
        if fault == "lost":
            raise errors.UnknownOutcomeError("no answer")
        return self.secret

    async def patch(self, kind, namespace, name, body):
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "other":
            self.store({**self.secret, "data": encoded(certificates.make(NAMES, NOW + dt.timedelta(days=300)))})
        if body["metadata"]["resourceVersion"] != self.secret["metadata"]["resourceVersion"]:
            raise errors.ApiError(409, "Conflict", "changed")
        self.store({**self.secret, "data": {**self.secret["data"], **body["data"]}})
        if fault == "lost":
            raise errors.UnknownOutcomeError("no answer")
        return self.secret

    def store(self, manifest):
        self.version += 1
        self.writes += 1
        self.secret = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}


def encoded(bundle):
    return certificate_sources.encoded(bundle)


def source(cluster, now=NOW):
    return SharedSecret(cluster, PLACE, NAMES, lambda: now)


def test_of_several_replicas_the_first_makes_the_certificate_and_all_show_it():
    cluster = Cluster()

    async def main():
        return await asyncio.gather(*(source(cluster).read() for _ in range(5)))

    found = asyncio.run(main())

    assert len({each.certificate for each in found}) == 1
    assert cluster.writes == 1
    assert cluster.secret["type"] == "kubernetes.io/tls"


@pytest.mark.parametrize("fault", ["lost", ""])
def test_a_lost_answer_makes_no_second_certificate(fault):
    cluster = Cluster()
    cluster.faults = [fault]

    first = asyncio.run(source(cluster).read())

    assert cluster.writes == 1
    assert asyncio.run(source(cluster).read()) == first


@pytest.mark.parametrize(("fault", "writes"), [("", 2), ("lost", 2), ("other", 2)])
def test_a_certificate_is_renewed_once_whoever_else_tries(fault, writes):
    cluster = Cluster()
    first = asyncio.run(source(cluster).read())
    cluster.faults = [fault]
    later = NOW + dt.timedelta(days=300)

    renewed = asyncio.run(source(cluster, later).read())

    assert renewed != first
    assert cluster.writes == writes
    assert asyncio.run(source(cluster, later).read()) == renewed
    assert certificates.problem(renewed, NAMES, later) == ""


def test_a_secret_that_was_deleted_is_made_anew_and_the_old_authority_is_still_believed():
    cluster = Cluster()
    shared = source(cluster)
    first = asyncio.run(shared.read())
    cluster.secret = None

    second = asyncio.run(shared.read())

    assert cluster.secret["data"] == encoded(second)
    assert second.certificate != first.certificate
    assert first.authorities in second.authorities
    assert asyncio.run(source(cluster).read()) == second


def test_a_secret_of_volcanos_is_used_as_it_is_while_it_is_good():
    cluster = Cluster()
    cluster.store({"metadata": {"name": "secret", "namespace": "ns"}, "type": "Opaque", "data": encoded(FIRST)})

    assert asyncio.run(source(cluster).read()) == FIRST
    assert cluster.writes == 1


def test_what_may_not_be_read_is_said_with_the_name_of_the_secret():
    class Closed(Cluster):
        async def get(self, kind, namespace, name):
            raise errors.ApiError(403, "Forbidden", "may not")

    with pytest.raises(CertificateError, match=r"Secret ns/secret cannot be used: may not \(403 Forbidden\)"):
        asyncio.run(source(Closed()).read())


def test_files_are_read_anew_at_every_look(tmp_path):
    paths = [tmp_path / name for name in ("ca", "crt", "key")]
    for bundle in (FIRST, SECOND):
        for path, part in zip(paths, (bundle.authorities, bundle.certificate, bundle.key), strict=True):
            path.write_bytes(part)
        assert asyncio.run(Files(*map(str, paths)).read()) == bundle
    paths[2].unlink()
    with pytest.raises(CertificateError, match="key cannot be read"):
        asyncio.run(Files(*map(str, paths)).read())


class Script:
    """Gives one bundle after another; an exception is raised."""

    def __init__(self, *steps, patient=True):
        self._steps = list(steps)
        self.pause = 30.0
        self.patient = patient

    async def read(self):
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, Exception):
            raise step
        return step


def kept(script, seconds, *, usable=lambda _: True, announced=lambda _: True):
    """Keep a certificate for a while; tells what was trusted, shown and said, each with its time."""
    told = []

    async def main():
        loop = asyncio.get_running_loop()

        def show(bundle):
            told.append((round(loop.time()), "show", bundle))
            return usable(bundle)

        keeper = keeping.Keeper(
            script,
            trust=lambda bundle: told.append((round(loop.time()), "trust", bundle)),
            announced=lambda: announced(loop.time()),
            show=show,
            warn=lambda what, why: told.append((round(loop.time()), "warn", f"{what}: {why}")),
        )
        await keeper.start()
        try:
            async with asyncio.timeout(seconds):
                await keeper.run()
        except TimeoutError:
            return keeper.shown

    shown = virtual_loop.run(main())
    return told, shown


def test_a_new_certificate_is_shown_when_api_servers_had_time_to_hear_of_it():
    told, shown = kept(Script(FIRST, FIRST, SECOND), 200)

    assert told == [
        (0, "trust", FIRST),
        (0, "show", FIRST),
        (60, "trust", SECOND),
        (90, "show", SECOND),
    ]
    assert shown == SECOND


def test_a_certificate_that_could_not_be_announced_waits_for_that():
    told, _ = kept(Script(FIRST, SECOND), 400, announced=lambda moment: moment > 200)

    assert told[2:] == [(30, "trust", SECOND), (232, "show", SECOND)]


def test_a_secret_that_cannot_be_read_costs_nothing_while_a_certificate_is_shown():
    fault = CertificateError("away")
    told, shown = kept(Script(fault, fault, FIRST, fault, fault, FIRST), 200)

    assert [each[1:] for each in told] == [
        ("warn", "no certificate yet: away"),
        ("trust", FIRST),
        ("show", FIRST),
        ("warn", "the certificate cannot be looked after: away"),
    ]
    assert shown == FIRST


def test_files_that_are_not_there_are_an_error_at_once():
    with pytest.raises(CertificateError):
        kept(Script(CertificateError("no file"), patient=False), 10)


def test_a_certificate_that_cannot_be_used_leaves_the_old_one_shown():
    _, shown = kept(Script(FIRST, SECOND), 100, usable=lambda bundle: bundle != SECOND)

    assert shown == FIRST


def test_no_key_of_an_authority_is_kept():
    data = encoded(certificates.make(NAMES, NOW))

    assert sorted(data) == ["ca.crt", "tls.crt", "tls.key"]
    assert b"PRIVATE" not in base64.b64decode(data["ca.crt"])
