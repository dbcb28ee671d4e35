import os

import pytest


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with a shell and nothing else: an empty cache, and nothing of ours on PATH."""
    shell = tmp_path / "shell"
    shell.mkdir()
    for name in ("sh", "chmod", "sleep", "touch"):
        (shell / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(shell))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


@pytest.fixture
def on_path(bare, monkeypatch):
    """Put folders on PATH, before what is there."""

    def put(*folders):
        monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))

    return put
