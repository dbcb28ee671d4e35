"""Two clusters, one contract: each test here runs against the simulated API server and against a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract_kube import KubeHarness
from contract_sim import SimHarness

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture(scope="session")
def definitions(api_server):
    """The real API server, with the kinds that a scheduler needs."""
    api_server.crds(CRDS)
    return api_server


@pytest.fixture(params=["sim", pytest.param("kube", marks=pytest.mark.kube)])
def harness(request):
    """A cluster with one new namespace."""
    if request.param == "sim":
        return SimHarness()
    server = request.getfixturevalue("definitions")
    return KubeHarness(server, server.new_namespace())


@pytest.fixture
def kube(definitions):
    """The real cluster, where the simulated one has nothing to compare."""
    return KubeHarness(definitions, definitions.new_namespace())
