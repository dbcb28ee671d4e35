"""Leader election: of several candidates at most one may write, whatever the network does and the clocks say."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds
from pumice.kube import election, errors, lease
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client

SECOND = lease.SECOND
REAL_SLEEP = asyncio.sleep
WALL = 1_767_225_600_000_000
TIMING = lease.Timing()


class Server:
    """One Lease with optimistic locking."""

    def __init__(self):
        self.version = 10
        self.spec = None

    def record(self):
        return None if self.spec is None else lease.Record.read(self.manifest())

    def manifest(self):
        return {"metadata": {"resourceVersion": str(self.version)}, "spec": self.spec}

    def write(self, write):
        if (write.replaces or None) != (None if self.spec is None else str(self.version)):
            return None
        self.version += 1
        self.spec = write.spec
        return lease.Record.read(self.manifest())


def held_by(server, identity, timing=TIMING, now=0):
    candidate = lease.Candidate(identity, timing)
    candidate.stored(server.write(candidate.look(server.record(), now, WALL)), now)
    return candidate


# ---- the rules


def test_the_first_candidate_creates_the_lease_and_leads():
    server = Server()
    first = lease.Candidate("a", TIMING)
    write = first.look(None, 5, WALL)
    assert write.replaces == ""
    assert not first.holds(5)
    first.stored(server.write(write), 7)
    assert first.holds(7)
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize(
    "manifest", [{}, {"metadata": None, "spec": []}, {"metadata": "m", "spec": {"leaseTransitions": "x"}}]
)
def test_a_lease_that_makes_no_sense_is_held_by_nobody(manifest):
    assert lease.Record.read(manifest) == lease.Record(version="")


def test_a_renewal_counts_from_when_it_was_asked_for():
    server = Server()
    first = lease.Candidate("a", TIMING)
    write = first.look(None, 0, WALL)
    first.stored(server.write(write), 9 * SECOND)
    assert first.holds(10 * SECOND - 1)
    assert first.allowance(10 * SECOND - 1) == 5 * SECOND + 1
    assert not first.holds(10 * SECOND)
    assert first.allowance(10 * SECOND) == 0


def test_a_renewal_keeps_the_time_of_acquisition_and_the_number_of_transitions():
    server = Server()
    first = held_by(server, "a")
    write = first.renew(2 * SECOND, WALL + 2 * SECOND)
    assert (write.spec["acquireTime"], write.spec["renewTime"]) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:02.000000Z",
    )
    assert write.spec["leaseTransitions"] == 0


def test_a_standby_waits_a_whole_lease_since_it_last_saw_a_change():
    server = Server()
    first = held_by(server, "a")
    second = lease.Candidate("b", TIMING)
    assert second.look(server.record(), 100 * SECOND, WALL) is None
    first.stored(server.write(first.renew(2 * SECOND, WALL)), 2 * SECOND)
    assert second.look(server.record(), 110 * SECOND, WALL) is None
    assert second.look(server.record(), 125 * SECOND - 1, WALL) is None
    write = second.look(server.record(), 125 * SECOND, WALL)
    assert write.spec["leaseTransitions"] == 1
    second.stored(server.write(write), 125 * SECOND)
    assert second.holds(125 * SECOND)


def test_the_times_that_others_write_are_never_believed():
    server = Server()
    held_by(server, "a")
    server.spec = {**server.spec, "renewTime": "1999-01-01T00:00:00.000000Z"}
    second = lease.Candidate("b", TIMING)
    assert second.look(server.record(), 0, WALL) is None
    assert second.look(server.record(), 14 * SECOND, WALL) is None


def test_failed_reads_do_not_make_a_standby_wait_longer():
    server = Server()
    held_by(server, "a")
    second = lease.Candidate("b", TIMING)
    assert second.look(server.record(), 0, WALL) is None
    for second_of in range(1, 15):
        second.refused()
        assert second.look(server.record(), second_of * SECOND, WALL) is None
    assert second.look(server.record(), 15 * SECOND, WALL) is not None


def test_a_released_lease_is_taken_at_once():
    server = Server()
    first = held_by(server, "a")
    write = first.release(WALL)
    assert not first.holds(0)
    server.write(write)
    second = lease.Candidate("b", TIMING)
    assert second.look(server.record(), 0, WALL) is not None


def test_who_never_led_releases_nothing():
    assert lease.Candidate("a", TIMING).release(WALL) is None


def test_a_leader_whose_reply_was_lost_looks_and_finds_itself():
    server = Server()
    first = held_by(server, "a")
    server.write(first.renew(2 * SECOND, WALL))
    first.refused()
    assert first.renew(3 * SECOND, WALL) is None
    write = first.look(server.record(), 3 * SECOND, WALL)
    first.stored(server.write(write), 3 * SECOND)
    assert first.holds(12 * SECOND)


def test_a_leader_that_finds_another_stops_at_once():
    server = Server()
    first = held_by(server, "a")
    server.spec = {**server.spec, "holderIdentity": "b"}
    assert first.look(server.record(), SECOND, WALL) is None
    assert not first.holds(SECOND)


def test_a_lease_deleted_under_another_is_left_alone_for_as_long_as_that_one_may_believe_in_it():
    server = Server()
    held_by(server, "a")
    second = lease.Candidate("b", TIMING)
    second.look(server.record(), 0, WALL)
    assert second.look(None, 20 * SECOND, WALL) is None
    assert second.look(None, 34 * SECOND, WALL) is None
    assert second.look(None, 35 * SECOND, WALL).replaces == ""


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None, "leaseTransitions": "many"}])
def test_a_lease_that_says_nothing_is_free(spec):
    candidate = lease.Candidate("a", TIMING)
    record = lease.Record.read({"metadata": {"resourceVersion": "3"}, "spec": spec})
    assert candidate.look(record, 0, WALL).replaces == "3"


# ---- never two


class Runner:
    """A candidate in a world of delays: each request takes a while to arrive and its answer a while to return, or never does."""

    def __init__(self, identity, skew, timing):
        self.candidate = lease.Candidate(identity, timing)
        self.skew = skew
        self.write = None
        self.found = None
        self.answer = None
        self.writing_until = 0  # when a write that it may have sent has ended at the latest


actions = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["read", "write", "answer", "lose", "release", "wait", "wait", "wait"]),
        st.integers(0, 6 * SECOND),
    ),
    max_size=120,
)


def act(runner, server, what, now):
    """Let one thing happen to a candidate."""
    candidate = runner.candidate
    match what:
        case "read" if runner.write is None and runner.answer is None:
            runner.write = candidate.renew(now, WALL) or candidate.look(server.record(), now, WALL)
        case "write" if runner.write is not None:  # the request arrives, maybe long after it was sent
            runner.answer = server.write(runner.write) or "refused"
            runner.write = None
        case "answer" if runner.answer is not None:
            if runner.answer == "refused":
                candidate.refused()
            else:
                candidate.stored(runner.answer, now)
            runner.answer = None
        case "lose" if runner.write is not None or runner.answer is not None:
            candidate.refused()
            runner.write = runner.answer = None
        case "release" if runner.write is None and runner.answer is None:
            runner.writing_until = 0  # writes end before the lease is released
            if (write := candidate.release(WALL)) is not None:
                server.write(write)


@settings(max_examples=drawn(400), deadline=None)
@given(actions, st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=3))
def test_no_two_candidates_may_write_at_once(steps, skews):
    server = Server()
    runners = [Runner(name, skew, TIMING) for name, skew in zip("abc", skews, strict=True)]
    time = 10**10
    for who, what, span in steps:
        time += span if what == "wait" else 0
        act(runners[who], server, what, time + runners[who].skew)
        holders = [r.candidate.identity for r in runners if r.candidate.holds(time + r.skew)]
        assert len(holders) <= 1, holders
        for each in runners:
            late = each.candidate.identity not in holders and each.writing_until > time
            assert not (holders and late), (
                f"{holders} may write while a write of {each.candidate.identity} is on its way"
            )
            if allowance := each.candidate.allowance(time + each.skew):
                each.writing_until = time + allowance


# ---- on an event loop


class Api:
    """A client that answers as told."""

    def __init__(self, server):
        self.server = server
        self.broken = None
        self.requests = []

    async def get(self, kind, namespace, name):
        assert (kind, namespace, name) == (kinds.LEASE, "ns", "lock")
        self._ask("get")
        if self.server.spec is None:
            raise errors.ApiError(404, "NotFound", "leases lock not found")
        return self.server.manifest()

    async def create(self, kind, manifest):
        self._ask("create")
        return self._write(lease.Write(manifest["spec"]))

    async def replace(self, kind, manifest):
        self._ask("replace")
        return self._write(lease.Write(manifest["spec"], manifest["metadata"]["resourceVersion"]))

    def _ask(self, verb):
        self.requests.append(verb)
        if self.broken is not None:
            raise self.broken

    def _write(self, write):
        if self.server.write(write) is None:
            raise errors.ApiError(409, "Conflict", "the object has been modified")
        return self.server.manifest()


class Time:
    """A clock in whose time sleeping costs nothing."""

    def __init__(self):
        self.now = 0
        self.during = lambda: None

    async def sleep(self, seconds):
        self.now += round(seconds * SECOND)
        self.during()
        await REAL_SLEEP(0)


def make(server, identity, monkeypatch, said=None):
    api, time = Api(server), Time()
    monkeypatch.setattr(election, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": time.sleep}))
    run = election.Election(
        api,
        lease.Candidate(identity, TIMING),
        namespace="ns",
        name="lock",
        monotonic=lambda: time.now,
        wall=lambda: WALL + time.now,
        rng=random.Random(1),  # noqa: S311  a seeded pause
        tell=lambda *told: said.append(told) if said is not None else None,
    )
    return api, time, run


def test_a_namespace_that_is_missing_is_said_with_what_to_do(monkeypatch):
    said = []
    api, _, run = make(Server(), "a", monkeypatch, said)

    async def refuse(kind, manifest):
        raise errors.ApiError(404, "NotFound", f"namespaces {manifest['metadata']['namespace']} not found")

    def enough():
        raise EOFError

    api.create = refuse
    with pytest.raises(EOFError):
        asyncio.run(run.run(lambda _: None, enough))
    hint = "create the namespace, or name another with --leader-elect-resource-namespace"
    assert said == [("untaken", f"Lease ns/lock: namespaces ns not found (404 NotFound); {hint}")]


def test_a_leader_renews_without_looking_and_stops_when_renewals_fail_for_the_deadline(monkeypatch):
    server, said, led = Server(), [], []
    api, time, run = make(server, "a", monkeypatch, said)

    def break_down():
        if time.now >= 6 * SECOND:
            api.broken = errors.UnreachableError("connection refused")

    time.during = break_down
    with pytest.raises(
        election.LostLeaseError, match="could not be renewed within 10s: Lease ns/lock: connection refused"
    ):
        asyncio.run(run.run(led.append))
    assert led == ["11"]
    assert api.requests[:4] == ["get", "create", "replace", "replace"]
    assert 14 * SECOND <= time.now <= 15 * SECOND
    assert run.allowance() == 0
    assert said == [("unrenewed", "Lease ns/lock: connection refused")]


def test_a_standby_takes_over_after_a_whole_lease_and_says_once_whom_it_waits_for(monkeypatch):
    server, said = Server(), []
    held_by(server, "dead")
    _, time, run = make(server, "b", monkeypatch, said)

    class DoneError(Exception):
        pass

    def lead(version):
        assert version == str(server.version)
        assert run.allowance() > 0
        raise DoneError

    with pytest.raises(DoneError):
        asyncio.run(run.run(lead))
    assert 15 * SECOND <= time.now <= 18 * SECOND
    assert said == [("held", "Lease ns/lock is held by dead")]


def test_a_leader_that_was_replaced_says_by_whom(monkeypatch):
    server, said = Server(), []
    api, time, run = make(server, "a", monkeypatch, said)

    def steal():
        server.spec = {**server.spec, "holderIdentity": "thief"}
        server.version += 1

    time.during = steal
    with pytest.raises(election.LostLeaseError, match="ns/lock is held by thief"):
        asyncio.run(run.run(lambda _: None))
    assert api.requests[-2:] == ["replace", "get"]
    assert said == [], "whoever ends does not stand by"


def test_an_error_that_keeps_the_lease_from_being_taken_is_repeated_about_once_a_minute(monkeypatch):
    said = []
    api, time, run = make(Server(), "a", monkeypatch, said)
    api.broken = errors.ApiError(403, "Forbidden", "no")

    def mend():
        if time.now > 150 * SECOND:
            api.broken = None
        else:
            assert (run.leading, run.holder) == (False, "")

    def lead(_):
        assert (run.leading, run.trouble) == (True, "")
        raise EOFError

    time.during = mend
    with pytest.raises(EOFError):
        asyncio.run(run.run(lead))
    assert said == [("untaken", "Lease ns/lock: no (403 Forbidden)")] * 3


def test_each_time_that_a_leader_cannot_renew_is_told_and_so_is_its_end(monkeypatch):
    said = []
    api, time, run = make(Server(), "a", monkeypatch, said)

    def disturb():
        second = time.now // SECOND
        assert run.leading
        api.broken = errors.UnreachableError("gone") if 4 <= second < 8 or 12 <= second < 16 else None
        if second >= 24:
            raise EOFError

    time.during = disturb
    with pytest.raises(EOFError):
        asyncio.run(run.run(lambda _: None))
    assert said == [("unrenewed", "Lease ns/lock: gone"), ("renewed", "ns/lock")] * 2
    assert run.trouble == ""


def test_one_who_comes_second_when_the_lease_is_made_stands_by_and_raises_no_alarm(monkeypatch):
    server, said = Server(), []
    api, _, run = make(server, "b", monkeypatch, said)
    create, vain = api.create, []

    async def beaten(kind, manifest):
        held_by(server, "a")
        return await create(kind, manifest)

    def stand_by():
        vain.append(run.holder)
        if len(vain) > 1:
            raise EOFError

    api.create = beaten
    with pytest.raises(EOFError):
        asyncio.run(run.run(lambda _: None, stand_by))
    assert [situation for situation, _ in said] == ["held", "held"]
    assert vain == ["", "a"]


def test_release_lets_the_next_one_lead_at_once_and_a_failure_costs_nothing(monkeypatch):
    server, said = Server(), []
    api, _, run = make(server, "a", monkeypatch, said)

    async def scenario():
        task = asyncio.ensure_future(run.run(lambda _: task.cancel()))
        await asyncio.gather(task, return_exceptions=True)
        assert run.allowance() > 0
        await run.release()

    asyncio.run(scenario())
    assert run.allowance() == 0
    assert server.spec["holderIdentity"] == ""

    api.broken = errors.UnreachableError("gone")
    server.spec = None

    async def again():
        api.broken = None
        task = asyncio.ensure_future(run.run(lambda _: task.cancel()))
        await asyncio.gather(task, return_exceptions=True)
        api.broken = errors.UnreachableError("gone")
        await run.release()

    asyncio.run(again())
    assert said[-1] == ("unreleased", "Lease ns/lock could not be released: gone")
    assert not run.leading


@pytest.mark.parametrize(("writer", "left"), [("a", ""), ("b", "b")])
def test_a_renewal_that_was_given_up_and_arrived_all_the_same_is_released_and_anothers_is_not(
    writer, left, monkeypatch
):
    server, said = Server(), []
    _, _, run = make(server, "a", monkeypatch, said)

    async def scenario():
        task = asyncio.ensure_future(run.run(lambda _: task.cancel()))
        await asyncio.gather(task, return_exceptions=True)
        server.write(lease.Write({**server.spec, "holderIdentity": writer}, str(server.version)))
        await run.release()

    asyncio.run(scenario())
    assert server.spec["holderIdentity"] == left
    assert not [situation for situation, _ in said if situation == "unreleased"]


def test_a_write_that_waited_for_its_turn_is_not_sent_after_the_fence_has_closed():
    connection = Connection("http://127.0.0.1:9")

    async def scenario():
        async with Client(connection, allowance=lambda: 0.0) as client:
            with pytest.raises(errors.UnreachableError, match=r"POST .*/binding was not sent: the lease") as caught:
                await client.bind("a", "p", "u", "n", {})
            assert caught.value.failure.code == "unavailable"

    asyncio.run(scenario())
