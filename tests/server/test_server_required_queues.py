"""Queues that must exist are made before anything is listed."""

from __future__ import annotations

import asyncio

import pytest
from server_desk import Lines

from pumice.cache.options import Options
from pumice.kube import errors
from pumice.server.threads import required_queues


class Api:
    def __init__(self, error=None):
        self.error = error
        self.made = []

    async def create(self, kind, manifest):
        if self.error is not None:
            raise self.error
        self.made.append((manifest["metadata"]["name"], manifest["spec"]["reclaimable"]))
        return manifest


def ensure(api, *, may_write=True, **options):
    lines = Lines()
    asyncio.run(required_queues.Queues(api, Options(**options), lines.log, lambda: may_write).ensure())
    return lines


def test_root_and_the_default_queue_are_made():
    api = Api()
    lines = ensure(api, default_queue="mine")
    assert api.made == [("root", False), ("mine", True)]
    assert [line["queue"] for line in lines.of("queue created")] == ["root", "mine"]


def test_a_standby_makes_nothing_and_namespaces_need_no_queues():
    api = Api()
    ensure(api, may_write=False)
    ensure(api, enable_namespace_as_queue=True)
    assert api.made == []


def test_queues_that_exist_are_fine():
    assert ensure(Api(errors.ApiError(409, "AlreadyExists", "queue exists"))).all == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.ApiError(404, "NotFound", "no"), "does not know queues.scheduling.volcano.sh; install"),
        (errors.ApiError(403, "Forbidden", "not you"), "not you (403 Forbidden)"),
        (errors.UnreachableError("refused"), "refused"),
    ],
)
def test_what_goes_wrong_is_said_and_ends_nothing(error, told):
    assert told in ensure(Api(error)).of("queues cannot be created yet")[0]["problem"]
