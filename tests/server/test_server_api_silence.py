"""Signs of life of the API server, and what is told about the watches."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.watches.informers import WatchReport
from pumice.server.health import api_silence, checks


class Watches:
    """Reports as told."""

    def __init__(self, *reports):
        self.reports = list(reports)

    def report(self):
        return self.reports


def watch(name, state="watching", error="", age=3.0, objects=7):
    return WatchReport(
        watch=name,
        kind=kinds.POD,
        state=state,
        synced=True,
        objects=objects,
        version="1",
        last_heard_age=age,
        lists=1,
        errors=1,
        error=error,
    )


class Time:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class LeaseClient:
    def __init__(self):
        self.error = None

    async def get(self, _kind, _namespace, name):
        return self._answer({"got": name})

    async def create(self, _kind, manifest):
        return self._answer({"created": manifest})

    async def replace(self, _kind, manifest):
        return self._answer({"replaced": manifest})

    def _answer(self, found):
        if self.error is not None:
            raise self.error
        return found


def heard_by(*reports):
    now = Time()
    made = api_silence.ApiSilence(now)
    made.watch(Watches(*reports))
    return now, made


def test_the_latest_sign_counts_whoever_heard_it():
    now, made = heard_by(watch("pods", age=50.0), watch("nodes", age=20.0), watch("queues", age=None))
    assert made.silence() == 0.0, "never heard counts from the start"
    now.now += 30
    assert made.silence() == 20.0
    client = made.listening(LeaseClient())
    assert asyncio.run(client.get(kinds.LEASE, "ns", "volcano")) == {"got": "volcano"}
    now.now += 2
    assert made.silence() == 2.0


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (errors.ApiError(409, "Conflict", "changed"), True),
        (errors.ApiError(403, "Forbidden", "no"), True),
        (errors.ApiError(503, "", "no backend"), False),
        (errors.UnreachableError("connection refused"), False),
        (errors.UnknownOutcomeError("cut"), False),
    ],
)
def test_a_refusal_is_a_sign_of_life_and_a_failure_is_none(error, counts):
    now, made = heard_by()
    server = LeaseClient()
    client = made.listening(server)
    assert asyncio.run(client.create(kinds.LEASE, {})) == {"created": {}}
    assert asyncio.run(client.replace(kinds.LEASE, {})) == {"replaced": {}}
    server.error = error
    now.now += 30
    with pytest.raises(type(error)):
        asyncio.run(client.replace(kinds.LEASE, {}))
    assert made.silence() == (0.0 if counts else 30.0)


def test_every_watch_has_a_line_and_so_has_the_server():
    _, made = heard_by(
        watch("pods"),
        watch("queues", "absent", age=40.0),
        watch("nodes", "waiting", "nodes: connection refused"),
        watch("services", "watching", "services: cut", age=9.0),
        watch("volumes", "listing", age=None, objects=0),
    )
    assert list(made.lines()) == [
        ("api-server", True, "last sign of life 0s ago"),
        ("watch pods", True, "7 objects, last heard 3s ago"),
        ("watch queues", True, "the API server does not serve this kind"),
        ("watch nodes", False, "waiting, 7 objects, last heard 3s ago; connection refused"),
        ("watch services", False, "opened again, nothing heard yet, 7 objects, last heard 9s ago; cut"),
        ("watch volumes", False, "listing, 0 objects, never heard"),
    ]


DOWN = [watch("pods", "waiting", "pods: refused", age=4.0), watch("nodes", "listing", "nodes: refused", age=5.0)]


@pytest.mark.parametrize(
    ("reports", "elect", "after", "told"),
    [
        ([watch("pods", age=60.0)], False, 80.0, (True, "last sign of life 60s ago")),
        ([watch("pods", age=91.0)], False, 91.0, (False, "no sign of life for 91s; 0 of 1 watches are down")),
        ([watch("pods", age=60.0)], True, 11.0, (False, "no sign of life for 11s; 0 of 1 watches are down")),
        ([*DOWN, watch("queues", "absent", age=9.0)], False, 9.0, (False, "no sign of life for 4s; 2 of 2 watches")),
        ([*DOWN, watch("queues")], False, 9.0, (True, "last sign of life 3s ago")),
        ([watch("pods", "forbidden", "pods: no"), *DOWN], False, 9.0, (True, "last sign of life 0s ago")),
        ([watch("pods", "forbidden", "no", age=None)], False, 99.0, (True, "last sign of life 0s ago")),
        ([], False, 91.0, (False, "no sign of life for 91s; 0 of 0 watches are down")),
    ],
)
def test_silence_is_told_where_it_is_longer_than_usual_or_no_watch_is_up(reports, elect, after, told):
    now, made = heard_by(*reports)
    if elect:
        made.listening(LeaseClient())
    now.now += after
    name, fine, text = next(iter(made.lines()))
    assert (name, fine) == ("api-server", told[0])
    assert text.startswith(told[1])


def test_a_server_that_is_away_leaves_a_process_ready_that_knows_its_cluster():
    now, made = heard_by(*DOWN)
    now.now += 42
    checked = checks.Health({}, {"informers": lambda: ""}, {"configuration": lambda: ""}, made.lines)
    good, text = checked.ready()
    assert good
    assert text.splitlines() == [
        "[+]informers ok",
        "[!]api-server: no sign of life for 4s; 2 of 2 watches are down",
        "[!]watch pods: waiting, 7 objects, last heard 4s ago; refused",
        "[!]watch nodes: listing, 7 objects, last heard 5s ago; refused",
    ]
