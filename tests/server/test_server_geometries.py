"""The ConfigMap of geometries is read where virtual GPUs are shared, and whatever befalls it costs nothing but what it would have said."""

import asyncio

import pytest

from pumice.framework import configuration, registry
from pumice.kube import errors
from pumice.server import geometries

SHARED = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}, {plugins: [{name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.KnownGeometriesCMName: mine}}]}]'


class Server:
    """Answers what it is told to."""

    def __init__(self):
        self.answer = {"data": {"device-config.yaml": "nvidia: {}"}}
        self.asked = []

    async def get(self, kind, namespace, name):
        self.asked.append((kind.name, namespace, name))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def stage():
    server, fed, told = Server(), [], []
    loaded = configuration.load(SHARED, registry.catalog())
    reader = geometries.Reader(server, lambda: loaded, lambda found: fed.append(found.text), told.append)
    return server, fed, told, lambda: asyncio.run(reader.look())


def test_what_has_changed_is_fed_once(stage):
    server, fed, told, look = stage
    look()
    look()
    server.answer = {"data": {"device-config.yaml": "nvidia: {gpuMemoryFactor: 2}"}}
    look()
    assert fed == ["nvidia: {}", "nvidia: {gpuMemoryFactor: 2}"]
    assert server.asked[0] == ("ConfigMap", "kube-system", "mine")
    assert told == []


def test_one_that_is_away_says_nothing_and_one_that_may_not_be_read_is_told_of_once(stage):
    server, fed, told, look = stage
    look()
    server.answer = errors.ApiError(403, "Forbidden", "not for you")
    look()
    look()
    assert len(told) == 1
    assert "kube-system/mine" in told[0]
    assert fed == ["nvidia: {}"]
    server.answer = errors.ApiError(404, "NotFound", "gone")
    look()
    assert fed == ["nvidia: {}", ""]


def test_nobody_asks_where_no_virtual_gpus_are_shared():
    plain = configuration.default(registry.catalog())
    assert geometries.place(plain) is None
    assert geometries.place(None) is None
