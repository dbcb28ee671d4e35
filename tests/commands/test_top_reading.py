"""`pumice top` follows a cluster: it sees changes, goes on without the server, and says what it does not know."""

from __future__ import annotations

import asyncio
import contextlib

import command_objects as objects
import pytest

from pumice.cli.top import SECTIONS
from pumice.cli.volcano import calls
from pumice.study.following import reading, tracking
from testbed import waiting

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def test_changes_are_seen_and_a_server_that_goes_away_leaves_the_last_scene(real_server):
    server, stack = real_server, contextlib.ExitStack()

    async def seen():
        async with calls.Place(kubeconfig=str(server.kubeconfig)).client() as client:
            tracker = tracking.Tracker()
            watched = reading.Reading(client, reading.specs(SECTIONS), tracker, "")
            async with watched.running():
                await watched.wait()
                assert watched.complete
                assert watched.missing() == ()
                await asyncio.to_thread(server.call, "POST", QUEUES, objects.queue("for-top"))
                await waiting.soon(lambda: "for-top" in {each.name for each in tracker.look(0).queues})
                await asyncio.to_thread(stack.enter_context, server.down())
                await waiting.soon(lambda: len(watched.missing()) == 4)
                assert "for-top" in {each.name for each in tracker.look(0).queues}
                return watched.missing()

    try:
        missing = asyncio.run(seen())
    finally:
        stack.close()
        server.call("DELETE", f"{QUEUES}/for-top")
    assert all(" are as they were " in line and " s ago: " in line for line in missing), missing


@pytest.mark.parametrize(
    ("sections", "read"),
    [
        (("queues",), {"queues", "podgroups", "nodes"}),
        (("jobs",), {"podgroups", "pods"}),
        (("nodes",), {"nodes", "pods"}),
        (SECTIONS, {"queues", "podgroups", "nodes", "pods"}),
    ],
)
def test_only_what_is_shown_is_read(sections, read):
    assert {each.kind.plural for each in reading.specs(sections)} == read
