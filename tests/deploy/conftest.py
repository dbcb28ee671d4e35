"""Helm, and an API server that writes down what it is asked."""

from __future__ import annotations

import pytest
from audited import AuditedServer
from charting import ROOT, Helm

from testbed import provide


@pytest.fixture
def helm(tmp_path):
    program = provide.program("helm")
    assert program is not None
    return Helm(program, tmp_path)


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    audited = AuditedServer(tmp_path_factory.mktemp("audited"))
    with audited.server:
        audited.install(ROOT / "deploy" / "crds", ROOT / "deploy" / "crds-kube-batch.yaml")
        yield audited
