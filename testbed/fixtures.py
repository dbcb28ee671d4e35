"""The fixtures for tests against a real API server. A test that asks for one of them is marked `kube` by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed import describe
from testbed.server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """Return a running API server, one for all tests of this process: whoever stops or restarts it leaves it running."""
    with ApiServer() as server:
        yield server


@pytest.fixture(scope="session")
def old_api_server() -> Iterator[ApiServer]:
    """Return a running API server over an etcd that is too old for streamed lists."""
    with ApiServer(with_old_etcd=True) as server:
        yield server


@pytest.fixture(scope="session")
def gated_api_server() -> Iterator[ApiServer]:
    """Return a running API server that serves Kubernetes' own gangs."""
    with ApiServer(arguments=describe.GATED) as server:
        yield server


@pytest.fixture
def empty_api_server(api_server: ApiServer) -> ApiServer:
    """Return the API server without the pods, nodes, volumes and custom objects of earlier tests."""
    api_server.empty()
    return api_server


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """Return the name of a new namespace."""
    return api_server.new_namespace()
