"""A plugin in a package that somebody installs is found, configured and asked like our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "thirdparty" / "favour"
PUMICE = "from pumice.cli import main; main()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the package, without a network, into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", folder, PACKAGE], check=True)
    return folder


def pumice(*arguments, path=()):
    """Run the command line in a process of its own."""
    known = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *([known] if known else [])])}
    command = [sys.executable, "-c", PUMICE, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_plugin_of_an_installed_package_changes_a_placement(installed):
    """The scenarios pin both: n2 with the plugin, n1 without it."""
    done = pumice("test", PACKAGE / "scenario.yaml", path=[installed])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 0 failed" in done.stdout


def test_where_the_package_is_not_installed_the_configuration_is_refused_by_name():
    done = pumice("test", PACKAGE / "scenario.yaml")
    assert done.returncode == 1
    assert "favour" in done.stdout
    assert "1 passed, 1 failed" in done.stdout


def test_the_plugin_is_as_short_as_we_say():
    code = (PACKAGE / "pumice_favour.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in code) <= 20
