"""Other Pythons: those that are here are found, launchers without one are not taken for it, and what could not be had is named."""

from __future__ import annotations

import sys
import tomllib

import pytest

from testbed import pythons

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
OTHERS = [version for version in pythons.SUPPORTED if version != OWN]


def launcher(folder, name, script):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_a_version_on_the_path_is_found(machine):
    path = launcher(machine / "bin", "python3.12", "echo 3.12")
    assert pythons.find("3.12") == pythons.Found(path)
    assert pythons.find("3.13") is None


@pytest.mark.parametrize("script", ["echo not installed >&2; exit 127", "echo 3.11"])
def test_a_launcher_that_has_another_version_or_none_is_passed_over_for_one_of_pyenv(machine, script):
    launcher(machine / "bin", "python3.12", script)
    path = launcher(machine / "pyenv/versions/3.12.9/bin", "python3.12", "echo 3.12")
    assert pythons.find("3.12") == pythons.Found(path)


def test_where_nobody_can_install_a_version_there_is_none(machine):
    assert pythons.install("3.14") is None


def test_one_that_brings_its_own_library_is_run_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/more")
    assert pythons.Found(tmp_path, "/own").environment["LD_LIBRARY_PATH"] == "/own:/more"
    assert pythons.Found(tmp_path).environment["LD_LIBRARY_PATH"] == "/more"


@pytest.mark.parametrize(
    ("found", "fails", "told"),
    [
        (OTHERS, [], f"ran: {', '.join(OTHERS)}; that could not be had: none"),
        (OTHERS[:1], [], f"ran: {OTHERS[0]}; that could not be had: {', '.join(OTHERS[1:])}"),
        ([], [], f"ran: none; that could not be had: {', '.join(OTHERS)}"),
        (OTHERS, OTHERS[1:2], f"something failed: {OTHERS[1]}"),
    ],
)
def test_what_ran_and_what_did_not_is_told(monkeypatch, capsys, found, fails, told):
    monkeypatch.setattr(pythons, "find", lambda version: version if version in found else None)
    monkeypatch.setattr(pythons, "install", lambda _: None)
    monkeypatch.setattr(pythons, "check", lambda version, _: version not in fails)
    assert pythons.main() == bool(fails)
    assert told in capsys.readouterr().out


def test_what_is_selected_exists_and_every_supported_version_is_named_where_users_look():
    assert [path for path in pythons.SELECTION if not (pythons.ROOT / path).exists()] == []
    project = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={pythons.SUPPORTED[0]}"
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert named == list(pythons.SUPPORTED)
