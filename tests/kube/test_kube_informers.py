"""States, settings and reports of watches, one rule each."""

import asyncio
import contextlib
import random

import msgspec
import pytest
from watch_server import KIND, WatchServer, bookmark, event, manifest
from watch_sink import CheckingSink

from pumice.api import kinds
from pumice.cache.options import Options
from pumice.controllers import podgroups
from pumice.kube import errors
from pumice.kube.watches import informers
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from testbed import waiting


class Clock:
    """Sleeping takes no time here and is written down; a sleep of more than `stop` seconds never ends."""

    def __init__(self, stop=float("inf")):
        self.time = 0.0
        self.slept = []
        self._stop = stop

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(3600 if seconds > self._stop else 0)


@contextlib.asynccontextmanager
async def running(source, specs, sink, clock=None, **settings):
    clock = clock or Clock()
    made = Informers(source, specs, sink, rng=random.Random(1), now=clock.now, sleep=clock.sleep, **settings)  # noqa: S311  jitter
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition):
    await waiting.soon(condition, every=0)


def asked(server):
    """Name the requests: how each list and watch began."""
    return [
        "list" if verb == "list" else "stream" if "sendInitialEvents" in query else f"watch {query['resourceVersion']}"
        for verb, query in server.requests
    ]


async def settle(server, informer):
    await until(server.idle.is_set)
    await until(lambda: informer.report()[0].version == str(server.version))


def test_a_streamed_list_is_one_request():
    async def run():
        server, sink = WatchServer(), CheckingSink()
        server.write("a")
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await informer.wait_synced()
            await settle(server, informer)
            assert asked(server) == ["stream"]
            assert informer.report()[0].version == "101"

    asyncio.run(run())


@pytest.mark.parametrize("streaming", ["refused", "broken"])
def test_without_streams_a_list_is_read_in_pages_and_streams_are_not_asked_for_again_at_once(streaming):
    async def run():
        server, sink = WatchServer([("gone",)], streaming=streaming), CheckingSink()
        server.script.extend([("quiet",)] * 4 + [("gone",)])
        for name in "abcde":
            server.write(name)
        async with running(server, [WatchSpec(KIND)], sink, page_size=2) as informer:
            await settle(server, informer)
            assert asked(server) == ["stream", "list", "list", "list", "watch 105", "list", "list", "list", "watch 105"]
            assert [query.get("limit") for _, query in server.requests[1:4]] == ["2"] * 3

    asyncio.run(run())


def test_a_page_that_expired_starts_the_list_anew_with_larger_pages():
    async def run():
        server, sink = WatchServer([("quiet",), ("quiet",), ("gone",)], streaming="refused"), CheckingSink()
        for name in "abc":
            server.write(name)
        async with running(server, [WatchSpec(KIND)], sink, page_size=2) as informer:
            await settle(server, informer)
        assert [(query["limit"], "continue" in query) for verb, query in server.requests if verb == "list"] == [
            ("2", False),
            ("2", True),
            ("8", False),
        ]

    asyncio.run(run())


def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones():
    async def run():
        server, sink = WatchServer([("quiet",), ("oversize",)], streaming="refused"), CheckingSink()
        async with running(server, [WatchSpec(KIND)], sink, page_size=40) as informer:
            await settle(server, informer)
        assert [query["limit"] for verb, query in server.requests if verb == "list"] == ["40", "10"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("script", "requests"),
    [
        ([("end",)], ["stream", "watch 101"]),
        ([("cut",)], ["stream", "watch 101"]),
        ([("silence",)], ["stream", "watch 101"]),
        ([("silence",), ("silence",)], ["stream", "watch 101", "stream"]),
        ([("silence",), ("quiet",), ("bookmark",), ("silence",)], ["stream", "watch 101", "watch 101"]),
        ([("cut",), ("cut",), ("cut",)], ["stream", "watch 101", "watch 101", "watch 101"]),
        ([("cut",), ("unauthorized",)], ["stream", "watch 101", "watch 101"]),
        ([("gone",)], ["stream", "stream"]),
        ([("cut",), ("gone",)], ["stream", "watch 101", "stream"]),
        ([("garbled",)], ["stream", "watch 101"]),
        ([("garbled",), ("quiet",), ("garbled",)], ["stream", "watch 101", "stream"]),
        ([("failure",), ("quiet",), ("failure",)], ["stream", "watch 101", "stream"]),
    ],
)
def test_a_watch_resumes_where_it_can_and_lists_where_it_must(script, requests):
    async def run():
        server, sink = WatchServer([("quiet",), ("quiet",), *script]), CheckingSink()
        server.write("a")
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await settle(server, informer)
        assert asked(server) == requests
        assert sink.told == [("ADDED", "a", "uid-0001", 101)]

    asyncio.run(run())


def test_versions_that_go_back_ask_for_a_list():
    class Restored(WatchServer):
        async def stream(self, kind, *, query, silence):
            if len(self.requests) == 1:
                self.requests.append(("watch", dict(query)))
                yield bookmark(50)
            async for line in super().stream(kind, query=query, silence=silence):
                yield line

    async def run():
        server, sink = Restored([("quiet",), ("end",)]), CheckingSink()
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await settle(server, informer)
        assert asked(server) == ["stream", "watch 100", "stream"]

    asyncio.run(run())


def test_failures_in_a_row_wait_longer_and_longer_with_jitter_up_to_a_limit():
    async def run():
        server, clock = WatchServer([("quiet",)] + [("cut",)] * 12), Clock()
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock) as informer:
            await settle(server, informer)
        steps = [min(5.0, 0.2 * 2**n) for n in range(12)]
        assert all(step / 2 <= slept <= step for step, slept in zip(steps, clock.slept, strict=True))
        assert len(set(clock.slept)) == 12

    asyncio.run(run())


def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause():
    class Curt(WatchServer):
        async def stream(self, kind, *, query, silence):
            self.requests.append(("watch", dict(query)))
            if "sendInitialEvents" in query:
                yield bookmark(self.version, end=True)
            elif len(self.requests) > 5:
                await asyncio.sleep(3600)

    async def run():
        server, clock = Curt(), Clock()
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock):
            await until(lambda: len(server.requests) == 6)
        assert len(clock.slept) == 4

    asyncio.run(run())


class Forgetful(WatchServer):
    """Lists, and knows nothing of any history; before that it is away for so many watches."""

    def __init__(self, outage=0):
        super().__init__()
        self.outage = outage

    async def list_page(self, kind, *, query):
        self.requests.append(("list", dict(query)))
        return b'{"metadata":{"resourceVersion":"7"},"items":[]}'

    async def stream(self, kind, *, query, silence):
        if "sendInitialEvents" in query:
            raise errors.ApiError(400, "BadRequest", "no")
        self.outage -= 1
        if self.outage >= 0:
            raise errors.UnreachableError("nobody there")
        raise errors.ApiError(410, "Expired", "too old")
        yield b""


def test_a_list_that_is_gone_each_time_is_not_repeated_without_pause():
    async def run():
        server, clock = Forgetful(), Clock()
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock):
            await until(lambda: len(server.requests) == 6)
        assert clock.slept[0] == 0
        assert clock.slept[1] > 0.1
        assert clock.slept[4] > 1

    asyncio.run(run())


def test_after_an_outage_a_history_that_is_gone_is_listed_at_once():
    """However long the pauses had become: a server that answers is back."""

    async def run():
        server, clock = Forgetful(outage=7), Clock()
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock):
            await until(lambda: server.outage < -3)
        assert max(clock.slept[:7]) > 2
        assert clock.slept[7] == 0
        assert 0.1 < clock.slept[8] < clock.slept[9]

    asyncio.run(run())


def test_a_kind_that_is_not_served_is_empty_and_probed_again():
    async def run():
        server, sink, clock = WatchServer(), CheckingSink(), Clock()
        server.served = server.serves_at_end = False
        async with running(server, [WatchSpec(KIND)], sink, clock, probe_interval=60.0) as informer:
            await informer.wait_synced()
            assert [(report.state, report.objects, report.error) for report in informer.report()] == [("absent", 0, "")]
            await until(lambda: len(clock.slept) == 9)
            server.served = True
            server.write("a")
            await settle(server, informer)
            assert list(sink.known) == ["a"]
        pauses = [2, 4, 8, 16, 32, 60, 60, 60, 60]
        assert all(0.9 * pause <= slept <= 1.1 * pause for pause, slept in zip(pauses, clock.slept, strict=True))
        assert len(set(clock.slept)) == len(clock.slept)

    asyncio.run(run())


def test_that_gangs_of_kubernetes_are_not_served_is_told_once_and_so_is_that_they_are():
    class Sink:
        def __init__(self):
            self.told = []

        def feed(self, kind, event_type, found, _):
            self.told.append((kind.name, event_type, found.metadata.name))

    async def run():
        server, sink, clock = WatchServer(kind=kinds.NATIVE_POD_GROUP), Sink(), Clock()
        server.served = server.serves_at_end = False
        async with running(server, [WatchSpec(kinds.NATIVE_POD_GROUP)], sink, clock) as informer:
            await until(lambda: len(clock.slept) == 3)
            assert sink.told == [("UnservedKind", "ADDED", "podgroups.scheduling.k8s.io")]
            assert informer.report()[0].errors == 0
            server.served = True
            server.write("a")
            await settle(server, informer)
        assert sink.told[1:] == [("PodGroup", "ADDED", "a"), ("UnservedKind", "DELETED", "podgroups.scheduling.k8s.io")]

    asyncio.run(run())


def test_objects_vanish_with_their_kind_once_that_is_certain():
    async def run():
        server, sink, clock = WatchServer([("quiet",)] * 3 + [("withdraw",)]), CheckingSink(), Clock(stop=30)
        server.serves_at_end = False
        server.write("a")
        async with running(server, [WatchSpec(KIND)], sink, clock) as informer:
            await until(lambda: informer.report()[0].state == "absent")
            assert sink.told == [("ADDED", "a", "uid-0001", 101), ("DELETED", "a", "uid-0001", 101)]
            assert informer.synced
        assert [slept < 1 for slept in clock.slept] == [True, False]

    asyncio.run(run())


def test_one_denial_does_not_make_objects_vanish():
    async def run():
        server, sink = WatchServer([("quiet",), ("quiet",), ("end",)]), CheckingSink()
        server.write("a")
        answer = server.answer

        def deny_once(step):
            if len(server.requests) == 2:
                raise errors.ApiError(404, "NotFound", "a proxy that does not know better")
            answer(step)

        server.answer = deny_once
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await settle(server, informer)
        assert sink.told == [("ADDED", "a", "uid-0001", 101)]

    asyncio.run(run())


def test_a_core_kind_that_is_not_found_is_a_failure_and_not_an_empty_list():
    class NoApi:
        async def stream(self, kind, *, query, silence):
            raise errors.ApiError(404, "NotFound", "404 page not found")
            yield b""

    async def run():
        clock = Clock(stop=2)
        async with running(NoApi(), [WatchSpec(kinds.POD)], CheckingSink(), clock) as informer:
            await until(lambda: clock.slept and clock.slept[-1] > 2)
            report = informer.report()[0]
            assert not informer.synced
            assert (report.state, report.errors) == ("waiting", len(clock.slept))
            assert "404 page not found" in report.error

    asyncio.run(run())


def test_a_kind_that_is_forbidden_is_not_synced_and_names_what_is_missing():
    async def run():
        server, sink = WatchServer([("forbidden",)] * 9), CheckingSink()
        clock = Clock(stop=1)
        async with running(server, [WatchSpec(KIND)], sink, clock) as informer:
            await until(lambda: clock.slept and clock.slept[-1] > 1)
            report = informer.report()[0]
            assert (report.state, report.synced, informer.synced) == ("forbidden", False, False)
            assert (
                'apiGroups: ["scheduling.volcano.sh"], resources: ["podgroups"], verbs: ["list", "watch"]'
                in report.error
            )

    asyncio.run(run())


def test_a_kind_that_is_forbidden_and_not_served_is_empty():
    async def run():
        server, clock = WatchServer([("forbidden",)]), Clock(stop=30)
        server.served = False
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock) as informer:
            await informer.wait_synced()
            assert informer.report()[0].state == "absent"

    asyncio.run(run())


@pytest.mark.parametrize("end", [bookmark(101), None])
def test_a_server_that_never_says_where_its_list_ends_is_asked_for_pages(end):
    class Ignorant(WatchServer):
        async def stream(self, kind, *, query, silence):
            if "sendInitialEvents" in query:
                self.requests.append(("watch", dict(query)))
                yield event("ADDED", self.objects["a"])
                if end is not None:
                    yield end
                return
            async for line in super().stream(kind, query=query, silence=silence):
                yield line

    async def run():
        server, sink = Ignorant(), CheckingSink()
        server.write("a")
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await settle(server, informer)
        assert asked(server) == ["stream", "list", "watch 101"]

    asyncio.run(run())


def test_asking_for_lists_again_and_again_is_harmless():
    async def run():
        server, sink = WatchServer(), CheckingSink()
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await informer.wait_synced()
            for _ in range(3):
                server.write("a")
                asking = []
                for _ in range(3):
                    asking.append(asyncio.create_task(informer.catch_up(str(server.version))))
                    await asyncio.sleep(0)
                await asyncio.wait_for(asyncio.gather(*asking), waiting.PATIENCE)
                assert sink.known == {"a": ("uid-0001", server.version)}
        informer._followers[0].relist()  # noqa: SLF001  a call that was under way when everything ended

    asyncio.run(run())


def test_a_kind_that_was_forbidden_is_followed_once_it_is_allowed():
    async def run():
        server, sink = WatchServer([("forbidden",)] * 4), CheckingSink()
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await informer.wait_synced()
            await settle(server, informer)
            report = informer.report()[0]
            assert (report.state, report.error, report.errors) == ("watching", "", 4)

    asyncio.run(run())


def test_a_server_asks_for_a_pause_and_gets_it():
    class Busy(WatchServer):
        async def stream(self, kind, *, query, silence):
            if not self.requests:
                self.requests.append(("watch", dict(query)))
                raise errors.ApiError(429, "TooManyRequests", "slow down", retry_after=4.0)
            async for line in super().stream(kind, query=query, silence=silence):
                yield line

    async def run():
        server, clock = Busy(), Clock()
        async with running(server, [WatchSpec(KIND)], CheckingSink(), clock) as informer:
            await informer.wait_synced()
        assert clock.slept == [4.0]

    asyncio.run(run())


def test_two_watches_of_one_kind_bury_only_their_own():
    """The same server behind two selectors: what vanished from one is deleted there, once."""

    class Selecting(WatchServer):
        async def stream(self, kind, *, query, silence):
            wanted = query["fieldSelector"][-1]
            if "sendInitialEvents" in query:
                self.requests.append(("watch", dict(query)))
                for name, found in list(self.objects.items()):
                    if name == wanted:
                        yield event("ADDED", found)
                yield bookmark(self.version, end=True)
                await asyncio.sleep(3600)

    async def run():
        server, sink = Selecting(), CheckingSink()
        server.write("a")
        server.write("b")
        specs = [WatchSpec(KIND, field_selector=f"metadata.name={name}") for name in "ab"]
        async with running(server, specs, sink) as informer:
            await informer.wait_synced()
            server.write("a", "delete")
            server.write("b", "recreate")
            await informer.catch_up(str(server.version))
        assert sorted(sink.told[:2]) == [("ADDED", "a", "uid-0001", 101), ("ADDED", "b", "uid-0002", 102)]
        assert sorted(sink.told[2:]) == [
            ("ADDED", "b", "uid-0003", 105),
            ("DELETED", "a", "uid-0001", 101),
            ("DELETED", "b", "uid-0002", 102),
        ]

    asyncio.run(run())


def test_catching_up_asks_for_a_list_only_where_a_watch_is_behind():
    async def run():
        server, sink = WatchServer(), CheckingSink()
        server.write("a")
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await settle(server, informer)
            await informer.catch_up("101")
            assert asked(server) == ["stream"]
            server.write("a")
            await informer.catch_up("102")
            assert asked(server) == ["stream", "stream"]
            assert sink.known == {"a": ("uid-0001", 102)}

    asyncio.run(run())


def test_a_list_that_began_before_it_was_asked_for_does_not_count():
    class Slow(WatchServer):
        gate = None

        async def list_page(self, kind, *, query):
            answer = await super().list_page(kind, query=query)
            if self.gate is not None:
                gate, self.gate = self.gate, None
                with contextlib.suppress(asyncio.CancelledError):  # as if it had been answered in that very moment
                    await gate.wait()
            return answer

    async def run():
        server, sink = Slow(streaming="refused"), CheckingSink()
        server.gate = asyncio.Event()
        async with running(server, [WatchSpec(KIND)], sink) as informer:
            await until(lambda: server.gate is None)
            server.write("a")
            await informer.catch_up("101")
            assert asked(server)[:3] == ["stream", "list", "list"]
            assert sink.known == {"a": ("uid-0001", 101)}

    asyncio.run(run())


def test_the_json_of_an_object_is_handed_on_where_it_is_wanted():
    class Keeping(CheckingSink):
        def feed(self, kind, event_type, found, raw):
            super().feed(kind, event_type, found, raw)
            raws.append(raw)

    raws = []

    async def run(keep_raw):
        raws.clear()
        script = [("quiet",), ("quiet",), ("write", "a"), ("quiet",), ("withdraw",), ("quiet",), ("serve",)]
        server = WatchServer(script)
        server.write("a")
        async with running(server, [WatchSpec(KIND, keep_raw=keep_raw)], Keeping()) as informer:
            await settle(server, informer)
        return list(raws)

    first, second, third = asyncio.run(run(keep_raw=True))
    assert b'"minMember":101' in first
    assert b'"minMember":102' in second
    assert b'"kind":"PodGroup"' in third
    assert b'"uid":"uid-0001"' in third
    assert asyncio.run(run(keep_raw=False)) == [b"", b"", b""]


def test_a_watch_asks_the_server_to_end_it_after_five_to_ten_minutes():
    async def run():
        server = WatchServer([("end",)] * 40)
        async with running(server, [WatchSpec(KIND, label_selector="a=b")], CheckingSink()) as informer:
            await settle(server, informer)
        seconds = [int(query["timeoutSeconds"]) for _, query in server.requests]
        assert all(300 <= each <= 600 for each in seconds)
        assert len(set(seconds)) > 10
        assert all(query["labelSelector"] == "a=b" for _, query in server.requests)

    asyncio.run(run())


def test_a_bug_of_the_sink_is_not_hidden():
    class Broken:
        def feed(self, *arguments):
            raise ZeroDivisionError

    async def run():
        server = WatchServer()
        server.write("a")
        await Informers(server, [WatchSpec(KIND)], Broken()).run()

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run())
    assert caught.group_contains(ZeroDivisionError)


def test_a_malformed_object_is_handed_on_alone():
    class Odd(WatchServer):
        async def stream(self, kind, *, query, silence):
            bad = manifest("bad", "u", 7)
            bad["spec"]["minMember"] = "three"
            deep = manifest("deep", "v", 8)
            yield event("ADDED", bad)
            text = event("ADDED", {**deep, "x": 0}).replace(b'"x":0', b'"x":' + b"[" * 5000 + b"]" * 5000)
            yield text
            yield event("ADDED", manifest("good", "w", 9))
            yield bookmark(9, end=True)
            yield event("MODIFIED", manifest("bad", "u", 10))
            self.idle.set()
            await asyncio.sleep(3600)

    found = {}

    class Keeping:
        def feed(self, kind, event_type, subject, raw):
            found.setdefault(subject.metadata.name, []).append((event_type, type(subject).__name__))

    async def run():
        server = Odd()
        async with running(server, [WatchSpec(KIND)], Keeping()):
            await server.idle.wait()

    asyncio.run(run())
    assert found == {
        "bad": [("ADDED", "Malformed"), ("MODIFIED", "PodGroup")],
        "deep": [("ADDED", "Malformed")],
        "good": [("ADDED", "PodGroup")],
    }


def test_a_watch_that_comes_later_begins_with_the_lists_of_the_others_and_nobody_who_decides_waits_for_it():
    async def run():
        first, second = WatchServer(), WatchServer()
        hurdle = asyncio.Event()

        class Both:
            """Two servers behind one: later kinds have one of their own."""

            async def request(self, method, path):
                return await first.request(method, path)

            async def stream(self, kind, *, query, silence):
                if kind is KIND:
                    await hurdle.wait()
                async for line in (first if kind is KIND else second).stream(KIND, query=query, silence=silence):
                    yield line

        later = msgspec.structs.replace(KIND, plural="others")
        async with running(Both(), [WatchSpec(later, later=True), WatchSpec(KIND)], CheckingSink()) as informer:
            await asyncio.sleep(0)
            assert (asked(first), asked(second)) == ([], [])
            hurdle.set()
            await informer.wait_first()
            assert asked(second) == []
            assert not informer.synced
            await informer.wait_synced()
            assert (asked(first), asked(second)) == (["stream"], ["stream"])

    asyncio.run(run())


# -- what a scheduler watches


def names(specs):
    return [str(spec) for spec in specs]


def test_own_pods_are_followed_in_every_phase_and_others_while_they_hold_a_node():
    specs = informers.standard(Options(scheduler_name=("volcano", "a,b=c")))
    assert names(spec for spec in specs if spec.kind is kinds.POD) == [
        "pods spec.schedulerName=volcano",
        r"pods spec.schedulerName=a\,b\=c",
        r"pods spec.schedulerName!=volcano,spec.schedulerName!=a\,b\=c,spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    ]


def test_flags_decide_which_kinds_are_followed():
    everything = {spec.kind for spec in informers.standard(Options())}
    less = {
        spec.kind
        for spec in informers.standard(
            Options(priority_class=False),
            csi_storage=False,
            workloads=False,
            disruption_budgets=False,
            numatopology=False,
        )
    }
    assert everything - less == {
        kinds.PRIORITY_CLASS,
        kinds.CSI_DRIVER,
        kinds.CSI_STORAGE_CAPACITY,
        kinds.REPLICATION_CONTROLLER,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
        kinds.POD_DISRUPTION_BUDGET,
        kinds.NUMATOPOLOGY,
    }
    assert {kinds.INCUBATOR_POD_GROUP, kinds.SIGS_QUEUE, kinds.HYPER_NODE, kinds.VOLUME_ATTACHMENT} <= less


def test_json_is_kept_for_what_asks_for_it_and_only_of_own_pods():
    specs = informers.standard(Options(), raw=podgroups.WATCHED)
    assert names(spec for spec in specs if spec.keep_raw) == [
        "pods spec.schedulerName=volcano",
        "podgroups.scheduling.volcano.sh/v1beta1",
        "replicasets.apps/v1",
        "statefulsets.apps/v1",
        "daemonsets.apps/v1",
        "jobs.batch/v1",
    ]
    assert len({str(spec) for spec in specs}) == len(specs)


def test_what_no_decision_reads_comes_later():
    specs = informers.standard(Options(), raw=podgroups.WATCHED)
    assert names(spec for spec in specs if spec.later) == [
        "jobs.batch.volcano.sh/v1alpha1",
        "cronjobs.batch.volcano.sh/v1alpha1",
        "jobflows.flow.volcano.sh/v1alpha1",
        "daemonsets.apps/v1",
        "jobs.batch/v1",
    ]
