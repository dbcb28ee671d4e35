"""One API server, one proxy before it; each test has an empty cluster, a namespace and, if it asks, a scheduler of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults_view import ClusterView
from rig import Rig

from testbed.proxy import Proxy

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture(scope="session")
def defined(api_server):
    """The API server with the kinds that a scheduler needs."""
    api_server.crds(CRDS)
    return api_server


@pytest.fixture
def view(defined):
    """An empty cluster."""
    defined.empty()
    return ClusterView(defined)


@pytest.fixture
def proxy(defined):
    with Proxy(defined.url, defined.token, defined.ca_file) as running:
        yield running


@pytest.fixture
def rig(view, proxy):
    """A scheduler at work in an empty cluster."""
    with Rig(view, proxy) as running:
        yield running
