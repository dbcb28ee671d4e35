"""The scenarios of some folders as tests, for whoever looks for the quickest that could notice a change; `pumice test` runs them otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import runner

FOLDERS = os.environ.get("PUMICE_SCENARIOS", "eviction").split(",")
FILES = sorted(file for folder in FOLDERS for file in Path("scenarios", folder).rglob("*.yaml"))
SCENARIOS = {
    f"{file.stem}-{place}": each for file in FILES for place, each in enumerate(scenario_format.load(file).scenarios)
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_passes(name):
    result = runner.run(SCENARIOS[name])
    assert (result.failures, result.status) == ([], "passed")
