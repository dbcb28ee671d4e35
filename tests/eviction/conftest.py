"""What several tests of eviction share."""

from __future__ import annotations

import pytest

from pumice.actions.eviction import exhaustive


@pytest.fixture(scope="module")
def node_by_node():
    """Let nodes be asked in small crowds too, where otherwise every combination would be tried before."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exhaustive, "MOST", 0)
        yield
