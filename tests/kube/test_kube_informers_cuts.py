"""Whatever a server does to a watch, the consumer ends up with the server's state and sees nothing twice, stale or out of order."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from watch_server import KIND, WatchServer
from watch_sink import CheckingSink

from drawing import drawn
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from testbed import waiting

FAULTS = [
    "cut", "end", "silence", "gone", "late", "failure", "garbled", "oversize", "unauthorized", "forbidden", "busy", "bookmark", "repeat", "quiet",
]  # fmt: skip
WRITES = st.tuples(
    st.just("write"), st.sampled_from("abcde"), st.sampled_from(["modify", "modify", "delete", "recreate"])
)
STEPS = st.one_of(
    WRITES,
    WRITES,
    st.tuples(st.sampled_from(FAULTS)),
    st.tuples(st.sampled_from(FAULTS)),
    st.tuples(st.sampled_from(["compact", "withdraw", "serve", "quiet"])),
)


async def follow(server, sink, *, page_size=2):
    """Run a watch against the server until its script is over and everything has been said."""
    clock = [0.0]

    async def sleep(seconds):
        clock[0] += seconds
        await asyncio.sleep(0)

    rng = random.Random(7)  # noqa: S311  jitter
    informers = Informers(
        server, [WatchSpec(KIND)], sink, page_size=page_size, rng=rng, now=lambda: clock[0], sleep=sleep
    )
    running = asyncio.create_task(informers.run())
    idle = asyncio.create_task(server.idle.wait())
    try:
        async with asyncio.timeout(waiting.PATIENCE):
            await asyncio.wait([running, idle], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
            for _ in range(3):
                await asyncio.sleep(0)
        return informers.report()[0]
    finally:
        for task in (running, idle):
            task.cancel()
        await asyncio.gather(running, idle, return_exceptions=True)


def check(script, streaming, first=()):
    async def run():
        server, sink = WatchServer(script, streaming=streaming), CheckingSink()
        for name in first:
            server.write(name)
        report = await follow(server, sink)
        assert sink.known == {
            name: (found["metadata"]["uid"], int(found["metadata"]["resourceVersion"]))
            for name, found in server.objects.items()
        }
        assert (report.state, report.synced, report.objects) == ("watching", True, len(server.objects))
        assert report.version == str(server.version)

    asyncio.run(run())


@settings(max_examples=drawn(400), deadline=None)
@given(
    st.lists(STEPS, max_size=40),
    st.sampled_from(["offered", "offered", "refused", "broken"]),
    st.sets(st.sampled_from("abcde")),
)
def test_the_consumer_ends_with_the_state_of_the_server(script, streaming, first):
    check(script, streaming, sorted(first))


HISTORY = [
    ("write", name, verb) for name, verb in ["ax", "bx", ("a", "recreate"), ("b", "delete"), "cx", ("c", "modify")]
]


@pytest.mark.parametrize("streaming", ["offered", "refused", "broken"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("twice", [False, True])
def test_a_fault_at_any_point_loses_nothing(fault, streaming, twice):
    for place in range(len(HISTORY) * 2 + 1):
        script = [step for write in HISTORY for step in (write, ("quiet",))]
        script[place:place] = [(fault,)] * (2 if twice else 1)
        check(script, streaming, "ad")
