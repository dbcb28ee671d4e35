"""Two clusters, one contract: each test here runs against the simulated API server and against a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract_kube import KubeHarness
from contract_sim import SimHarness
from contract_up import UpServer

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture(scope="session")
def definitions(api_server):
    """The real API server, with the kinds that a scheduler needs."""
    api_server.crds(CRDS)
    return api_server


@pytest.fixture(scope="session")
def up_server(tmp_path_factory):
    """The API server of `pumice up`, without nodes and kubelets."""
    with UpServer(tmp_path_factory.mktemp("up")) as server:
        yield server


KUBE = pytest.param("kube", marks=pytest.mark.kube)


def server_of(request):
    """Give one of the two API servers, by name."""
    return request.getfixturevalue("definitions" if request.param == "kube" else "up_server")


@pytest.fixture(params=["sim", pytest.param("up", marks=pytest.mark.kube), KUBE])
def harness(request):
    """A cluster with one new namespace."""
    if request.param == "sim":
        return SimHarness()
    server = server_of(request)
    return KubeHarness(server, server.new_namespace())


@pytest.fixture(params=["up", KUBE])
def server(request):
    """An API server: that of `pumice up`, or a real one."""
    return server_of(request)


@pytest.fixture
def kube(definitions):
    """The real cluster, where the simulated one has nothing to compare."""
    return KubeHarness(definitions, definitions.new_namespace())
