from __future__ import annotations

import pytest
from running_cluster import RunningCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A whole cluster of four nodes, one for all tests."""
    with RunningCluster(tmp_path_factory.mktemp("up"), "--nodes", "4", "--speed", "10") as running:
        yield running
