"""Provide an etcd that is too old for streamed lists, as many clusters still run one.

kube-apiserver offers WatchList only over an etcd whose progress notifications it trusts: 3.4.31, 3.5.13 or newer. Debian's `etcd-server` is older; its package is
unpacked into the cache folder, which needs no root and installs nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from testbed import building

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "old-etcd"
SYSTEM = Path("/usr/bin/etcd")
_PACKAGE = "etcd-server"


class OldEtcdError(Exception):
    """No etcd that is old enough could be found."""


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Read the version from what `etcd --version` prints; None if there is none."""
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def is_old(version: tuple[int, int, int]) -> bool:
    """Tell whether kube-apiserver refuses to stream lists over this version."""
    return version < (3, 4, 31) or (3, 5, 0) <= version < (3, 5, 13)


def find() -> Path | None:
    """Return an old etcd: the one installed on this machine, else the one unpacked before."""
    installed = shutil.which("etcd")
    for program in (Path(installed) if installed else None, SYSTEM, _unpacked()):
        if program is not None and _is_old_program(program):
            return program
    return None


def provide(say: Callable[[str], None]) -> Path:
    """Return an old etcd, unpacked from the distribution's package if this machine has none."""
    if found := find():
        return found
    with building.locked(say):
        if found := find():
            return found
        say(f"unpacking the distribution's {_PACKAGE} into {_unpacked().parent}")
        with tempfile.TemporaryDirectory(prefix="pumice-etcd-") as folder:
            _unpack(Path(folder), say)
    if found := find():
        return found
    version = ".".join(map(str, _version(_unpacked()) or ("unreadable",)))
    raise OldEtcdError(f"{_PACKAGE} of this distribution is {version}, not older than 3.4.31 or 3.5.13; {_advice()}")


def _unpacked() -> Path:
    return building.cache_folder() / NAME / "etcd"


def _is_old_program(program: Path) -> bool:
    version = _version(program)
    return version is not None and is_old(version)


def _version(program: Path) -> tuple[int, int, int] | None:
    try:
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return parse_version(done.stdout)


def _unpack(folder: Path, say: Callable[[str], None]) -> None:
    """Download the package, unpack it, and move the program to its place in one step."""
    if error := _apt(["download", _PACKAGE], folder):
        if os.geteuid() != 0:
            raise OldEtcdError(f"{error}; as root, `apt-get update` may help; {_advice()}")
        say("updating the package lists first")
        if error := _apt(["update"], folder) or _apt(["download", _PACKAGE], folder):
            raise OldEtcdError(f"{error}; {_advice()}")
    package = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "content")], check=True)
    _unpacked().parent.mkdir(parents=True, exist_ok=True)
    arriving = _unpacked().with_suffix(".unfinished")
    shutil.copy2(folder / "content" / "usr" / "bin" / "etcd", arriving)
    arriving.replace(_unpacked())


def _apt(arguments: list[str], folder: Path) -> str:
    """Run apt-get in a folder; return what went wrong, "" for nothing."""
    command = ["apt-get", "-q", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "this machine has no apt-get"
    return "" if done.returncode == 0 else f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}"


def _advice() -> str:
    return "an etcd of 3.4.30 or older on PATH would be taken"
