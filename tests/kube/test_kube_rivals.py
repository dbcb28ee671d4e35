"""Two installations: no two that serve the same scheduler name ever lead at once, and the one that may not says whose it is."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace

import msgspec
import pytest

from pumice.api import kinds
from pumice.kube import election, errors, lease, rivals

SECOND = lease.SECOND
WALL = 1_767_225_600_000_000
TIMING = lease.Timing()
REAL_SLEEP = asyncio.sleep


def manifest(place="a/other", holder="them", renewed="1", serves="volcano", **spec):
    namespace, name = place.split("/")
    notes = {} if serves is None else {"annotations": {"pumice.dev/scheduler-names": serves}}
    metadata = {"namespace": namespace, "name": name, **notes}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


def claim(**fields):
    return rivals.Claim.read(manifest(**fields))


def own(*serves):
    return rivals.Rivals("ns/own", serves or ("volcano",))


# ---- the rules


@pytest.mark.parametrize(
    ("found", "who"),
    [
        ({}, "them"),
        ({"serves": "batch,volcano"}, "them"),
        ({"place": "a/volcano", "serves": None}, "them"),
        ({"place": "ns/volcano", "serves": None}, "them"),
        ({"serves": None}, None),
        ({"serves": "batch"}, None),
        ({"serves": "volcano-2"}, None),
        ({"holder": ""}, None),
        ({"place": "ns/own"}, None),
    ],
)
def test_a_rival_is_another_lease_that_is_held_and_serves_one_of_our_names(found, who):
    judged = own().judge([claim(**found)], 0)
    assert (judged and judged.holder) == who


@pytest.mark.parametrize(
    ("ours", "theirs", "rival"),
    [
        ("volcano#0/3", "volcano#1/3", False),
        ("volcano#0/3", "volcano#0/3", True),
        ("volcano#0/3", "volcano#1/2", True),
        ("volcano#0/3", "volcano", True),
        ("volcano", "volcano#2/3", True),
        ("batch#0/3", "volcano#0/3", False),
    ],
)
def test_parts_of_one_division_are_no_rivals(ours, theirs, rival):
    assert (own(ours).judge([claim(serves=theirs)], 0) is not None) == rival


def test_a_part_is_named_after_its_member():
    assert rivals.parted(("volcano", "batch"), "sched-1", 3) == ("volcano#1/3", "batch#1/3")


@pytest.mark.parametrize("change", [{"renewed": "2"}, {"holder": "another"}])
def test_a_rival_whose_lease_changes_lives_and_is_named(change):
    looking = own()
    looking.judge([claim()], 0)
    with pytest.raises(rivals.ServedError) as refusal:
        looking.judge([claim(**change)], 100 * SECOND)
    holder = change.get("holder", "them")
    assert str(refusal.value) == (
        f"scheduler name volcano served by {holder}, who holds Lease a/other: "
        "give this one another --scheduler-name, or end it"
    )


def test_of_volcanos_lease_the_way_to_take_its_place_is_said():
    looking = own()
    looking.judge([claim(place="v/volcano", serves=None)], 0)
    with pytest.raises(rivals.ServedError, match="or take its place with pumice install --replace-volcano"):
        looking.judge([claim(place="v/volcano", serves=None, renewed="2")], SECOND)


@pytest.mark.parametrize(("fields", "seconds"), [({}, 15), ({"leaseDurationSeconds": 60}, 60)])
def test_a_rival_counts_as_alive_for_as_long_as_its_own_lease_lasts_since_it_was_seen(fields, seconds):
    looking = own()
    assert looking.judge([claim(**fields)], 7) is not None
    assert looking.judge([claim(**fields)], 6 + seconds * SECOND) is not None
    assert looking.judge([claim(**fields)], 7 + seconds * SECOND) is None


def test_a_rival_whose_lease_is_deleted_is_waited_for_and_one_who_lets_go_is_not():
    looking = own()
    looking.judge([claim()], 0)
    assert looking.judge([], SECOND) is not None
    assert looking.judge([claim(holder="")], 2 * SECOND) is None
    assert looking.judge([], 3 * SECOND) is None


# ---- never two


class Store:
    """Leases with optimistic locking."""

    def __init__(self):
        self.version = 0
        self.specs = {}

    def record(self, place):
        if place not in self.specs:
            return None
        version, spec = self.specs[place]
        return lease.Record.read({"metadata": {"resourceVersion": str(version)}, "spec": spec})

    def write(self, place, write):
        known = str(self.specs[place][0]) if place in self.specs else ""
        if write.replaces != known:
            return None
        self.version += 1
        self.specs[place] = self.version, write.spec
        return self.record(place)

    def claims(self):
        return [
            rivals.Claim.read({"metadata": manifest(place)["metadata"], "spec": spec})
            for place, (_, spec) in self.specs.items()
        ]


class Scheduler:
    """One process of an installation, in steps: look, take, look again, lead, renew."""

    def __init__(self, place, identity):
        self.place = place
        self.identity = identity
        self.restart()

    def restart(self):
        self.candidate = lease.Candidate(self.identity, TIMING)
        self.rivals = rivals.Rivals(self.place, ("volcano",))
        self.looked = self.leads = False

    def leading(self, now):
        return self.leads and self.candidate.holds(now)

    def look(self, store, now):
        """Look at the others; a process that may not go on ends."""
        try:
            alone = self.rivals.judge(store.claims(), now) is None
        except rivals.ServedError:
            self.end(store)
            return
        self.leads = self.leads or (alone and self.looked and self.candidate.holds(now))
        self.looked = self.looked or alone

    def write(self, store, now):
        if not self.looked:
            return
        wish = self.candidate.renew(now, WALL + now) or self.candidate.look(store.record(self.place), now, WALL + now)
        if wish is None:
            return
        stored = store.write(self.place, wish)
        if stored is None:
            self.candidate.refused()
        else:
            self.candidate.stored(stored, now)

    def end(self, store):
        if (wish := self.candidate.release(WALL)) is not None:
            store.write(self.place, wish)
        self.restart()


PLACES = ("a/one", "b/two", "a/one")
STEPS = ("look", "write") * 8 + ("end", "crash")
PAUSES = (0,) * 5 + (1, 2, 5, 9, 16)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_installations_lead_at_once_and_each_leads_in_its_time(seed):
    rng = random.Random(seed)  # noqa: S311  the same lives again
    store = Store()
    processes = [Scheduler(place, f"p{number}") for number, place in enumerate(PLACES)]
    led = set()
    now = 0
    for _ in range(3000):
        now += rng.choice(PAUSES) * SECOND
        process = rng.choice(processes)
        if process.leads and not process.leading(now):
            process.restart()  # as whoever has lost its lease
        match rng.choice(STEPS):
            case "crash":
                process.restart()
            case "end":
                process.end(store)
            case step:
                getattr(process, step)(store, now)
        leading = [each.identity for each in processes if each.leading(now)]
        assert len(leading) <= 1
        led.update(leading)
    assert led == {each.identity for each in processes}


# ---- on an event loop


class Api:
    """One own Lease that is free, and the Leases of others."""

    def __init__(self, others=()):
        self.others = list(others)
        self.stored = None
        self.asked = []

    async def get(self, _kind, _namespace, _name):
        self.asked.append("get")
        if self.stored is None:
            raise errors.ApiError(404, "NotFound", "no")
        return self.stored

    async def create(self, _kind, manifest):
        return self._store("create", manifest)

    async def replace(self, _kind, manifest):
        return self._store("replace", manifest)

    async def list_page(self, kind, *, namespace="", query=None):
        assert (kind, namespace) == (kinds.LEASE, "")
        self.asked.append("list")
        found = self.others if "labelSelector" in query else []
        return msgspec.json.encode({"items": found})

    def _store(self, verb, manifest):
        self.asked.append(verb)
        version = str(len(self.asked))
        self.stored = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}
        return self.stored


class Clock:
    """Sleeping costs nothing and may change the world."""

    def __init__(self, monkeypatch, during=lambda _: None):
        self.now = 0
        self._during = during
        for module in (election, rivals):
            monkeypatch.setattr(module, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": self.sleep}))

    async def sleep(self, seconds):
        self.now += round(seconds * SECOND)
        self._during(self.now)
        await REAL_SLEEP(0)


def candidate(api, clock, said):
    return election.Election(
        api,
        lease.Candidate("me", TIMING),
        namespace="ns",
        name="own",
        monotonic=lambda: clock.now,
        wall=lambda: WALL + clock.now,
        rng=random.Random(1),  # noqa: S311  a seeded pause
        lookout=rivals.Lookout(api, rivals.Rivals("ns/own", ("volcano", "batch")), lambda: clock.now),
        tell=lambda *told: said.append(told),
    )


class LedError(Exception):
    """Raised when leading begins, to end the run."""


def lead(_version):
    raise LedError


def test_the_lease_says_what_its_holder_serves_and_others_are_looked_at_before_and_after_it_is_taken(monkeypatch):
    api = Api()
    with pytest.raises(LedError):
        asyncio.run(candidate(api, Clock(monkeypatch), []).run(lead))
    assert api.asked == ["list", "list", "get", "create", "list", "list"]
    assert api.stored["metadata"]["annotations"] == {"pumice.dev/scheduler-names": "volcano,batch"}
    assert api.stored["metadata"]["labels"] == {"pumice.dev/scheduler": "true"}


def test_whoever_finds_a_living_rival_refuses_without_having_taken_its_own_lease(monkeypatch):
    api, said = Api([manifest()]), []

    def renew(now):
        api.others = [manifest(renewed=str(now))]

    with pytest.raises(rivals.ServedError, match="name volcano served by them, who holds Lease a/other"):
        asyncio.run(candidate(api, Clock(monkeypatch, renew), said).run(lead))
    assert api.stored is None
    assert [situation for situation, _ in said] == ["held"]


def test_a_rival_that_is_gone_is_waited_for_a_whole_lease(monkeypatch):
    api, clock, said = Api([manifest()]), Clock(monkeypatch), []
    run = candidate(api, clock, said)
    with pytest.raises(LedError):
        asyncio.run(run.run(lead))
    assert 15 * SECOND <= clock.now <= 18 * SECOND
    assert run.allowance() > 0


@pytest.mark.parametrize(
    ("serves", "told"),
    [
        ("batch", ""),
        (None, ""),
        (
            "other",
            ", who serves other and not volcano, batch: give this one a Lease of its own with --leader-elect-resource-name",
        ),
    ],
)
def test_a_standby_says_if_the_holder_of_its_lease_serves_other_names(monkeypatch, serves, told):
    api, said = Api(), []
    api.stored = manifest("ns/own", serves=serves)

    def enough():
        raise EOFError

    with pytest.raises(EOFError):
        asyncio.run(candidate(api, Clock(monkeypatch), said).run(lead, enough))
    assert said == [("held", f"Lease ns/own is held by them{told}")]


def test_nothing_may_be_written_before_the_second_look(monkeypatch):
    """A rival that appears between the two looks: the lease is ours, and yet we neither lead nor write."""
    api, allowed = Api(), []
    run = candidate(api, Clock(monkeypatch, lambda _: allowed.append(run.allowance())), [])
    create = api.create

    async def create_at_once_with_the_other(kind, manifest_):
        api.others = [manifest(renewed=str(len(api.asked)))]
        return await create(kind, manifest_)

    async def list_page(kind, **query):
        api.others = [manifest(renewed=str(len(api.asked)))] if api.others else []
        return await Api.list_page(api, kind, **query)

    api.create, api.list_page = create_at_once_with_the_other, list_page
    with pytest.raises(rivals.ServedError):
        asyncio.run(run.run(lead))
    assert allowed
    assert set(allowed) == {0.0}


def test_whoever_may_not_look_does_not_lead_and_says_why(monkeypatch):
    api, said = Api(), []

    async def forbid(_kind, **_query):
        raise errors.ApiError(403, "Forbidden", "leases is forbidden")

    def enough():
        raise EOFError

    api.list_page = forbid
    with pytest.raises(EOFError):
        asyncio.run(candidate(api, Clock(monkeypatch), said).run(lead, enough))
    assert said == [("untaken", "the Leases of other schedulers: leases is forbidden (403 Forbidden)")]
    assert api.stored is None


def test_without_an_election_a_rival_is_waited_for_and_a_missing_permission_is_only_told(monkeypatch):
    api, told = Api([manifest()]), []
    clock = Clock(monkeypatch)
    lookout = rivals.Lookout(api, own(), lambda: clock.now)
    asyncio.run(lookout.wait(told.append))
    assert clock.now == 15 * SECOND
    assert told == [
        (
            "scheduler name volcano served by them, who holds Lease a/other: give this one another --scheduler-name, "
            "or end it; waiting to see whether it lives"
        )
    ]

    async def forbid(_kind, **_query):
        raise errors.ApiError(403, "Forbidden", "no")

    api.list_page = forbid
    asyncio.run(lookout.wait(told.append))
    assert told[1:] == ["the Leases of other schedulers: no (403 Forbidden)"]


def test_a_list_that_is_no_list_is_an_error():
    async def page(_kind, **_query):
        return b"<html>"

    api = Api([])
    api.list_page = page
    with pytest.raises(errors.BrokenConnectionError, match="no JSON object"):
        asyncio.run(rivals.Lookout(api, own(), lambda: 0).look())
