"""Helm, for tests that are left out where there is none."""

from __future__ import annotations

import pytest
from charting import Helm

from testbed import provide


@pytest.fixture
def helm(tmp_path):
    program = provide.program("helm")
    assert program is not None
    return Helm(program, tmp_path)
