"""Run waits, recordings, readers and scenarios on every other Python that is supported: `python -m testbed.pythons` says which ran and which could not be had.

A version is taken from PATH or from pyenv, else it is installed into the user's cache folder: by uv if that is there, else from the Maven artefacts of CPython. Where
neither works the version is named at the end, and the run goes on with the others.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[1]
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
NEEDED: Final = ("-e", ".[cel]", "pytest", "pytest-xdist", "hypothesis")
SELECTION: Final = (
    "tests/server/test_server_mailbox.py",
    "tests/server/test_server_overdue.py",
    "tests/server/test_server_pacing.py",
    "tests/server/test_server_watchdog.py",
    "tests/readers/test_readers_changed_files.py",
    "tests/recording/test_recording_classes.py",
    "tests/recording/test_recording_files.py",
    "tests/recording/test_recording_hostile.py",
    "tests/recording/test_recording_replay.py",
    "tests/api/test_api_decoding.py",
    "tests/api/test_api_hostile_text.py",
    "tests/configuration/test_configuration_documents.py",
    "tests/scenario/test_scenario_format.py",
    "tests/kube/test_kube_kubeconfig.py",
    "tests/lives/test_lives_pinned.py",
    "tests/apiserver/test_apiserver_hostile.py",
)
ARTEFACTS: Final = {"3.11": "3.11.3-1.5.9", "3.12": "3.12.1-1.5.10", "3.13": "3.13.5-1.5.12", "3.14": "3.14.3-1.5.13"}
PATIENCE: Final = 600.0  # seconds that an installation may take
_NAME: Final = "import sys; print('%d.%d' % sys.version_info[:2])"


class Found(msgspec.Struct, frozen=True):
    """An interpreter, and the folder of its library, if the system would not find that."""

    program: Path
    libraries: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """What it is run with."""
        paths = [self.libraries, os.environ.get("LD_LIBRARY_PATH", "")]
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, paths))} if self.libraries else dict(os.environ)


def cache() -> Path:
    """Return the folder for what is installed here."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pumice" / "pythons"


def find(version: str) -> Found | None:
    """Look for a version on this machine; a name on PATH may be that of a launcher without it."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True),
    ]
    for each in candidates:
        if each and _is(found := Found(Path(each)), version):
            return found
    return None


def install(version: str) -> Found | None:
    """Install a version, if somebody here can."""
    for way in (_by_uv, _by_maven):
        found = way(version)
        if found is not None and _is(found, version):
            return found
    return None


def _is(found: Found, version: str) -> bool:
    try:
        done = subprocess.run(
            [found.program, "-c", _NAME], env=found.environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def _by_uv(version: str) -> Found | None:
    if shutil.which("uv") is None or not _runs("uv", "python", "install", "--quiet", version):
        return None
    done = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True, check=False)
    return Found(Path(done.stdout.strip())) if done.returncode == 0 else None


def _by_maven(version: str) -> Found | None:
    """Unpack the interpreter that Java programs carry with them."""
    platform = sysconfig.get_platform()
    if shutil.which("mvn") is None or version not in ARTEFACTS or platform != "linux-x86_64":
        return None
    folder = cache() / ARTEFACTS[version]
    home = folder / "org" / "bytedeco" / "cpython" / platform
    program = home / "bin" / f"python{version}"
    if not program.exists():
        jar = f"org.bytedeco:cpython:{ARTEFACTS[version]}:jar:{platform}"
        if not _runs("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={folder}"):
            return None
        for packed in folder.glob("*.jar"):
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(folder)
            packed.unlink()
        for each in (home / "bin").iterdir():
            each.chmod(0o755)
    return Found(program, str(home))


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def prepare(version: str, found: Found) -> Path:
    """Make an environment with the project in it; returns its interpreter. One that is there serves until what is installed changes."""
    digest = hashlib.sha256(f"{ROOT}{found.program}{NEEDED}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    folder = ROOT / ".pythons" / version
    stamp, python = folder / ".installed", folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([found.program, "-m", "venv", "--without-pip", folder], env=found.environment, check=True)
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "-c", "constraints.txt"]
        subprocess.run([*command, "--disable-pip-version-check", *NEEDED], cwd=ROOT, env=found.environment, check=True)
        stamp.write_text(digest.hexdigest())
    return python


def check(version: str, found: Found) -> bool:
    """Run the selection on one version."""
    python = prepare(version, found)
    tests = (str(python), "-m", "pytest", "-n", "2", "--dist", "worksteal", *SELECTION)
    scenarios = (str(python.with_name("pumice")), "test", "scenarios", "--jobs", "2")
    return all([_passes(version, "tests", tests, found), _passes(version, "scenarios", scenarios, found)])


def _passes(version: str, what: str, command: tuple[str, ...], found: Found) -> bool:
    """Run a command, and show what it said if it fails."""
    done = subprocess.run(command, cwd=ROOT, env=found.environment, capture_output=True, text=True, check=False)
    print(f"Python {version}: {what} {'failed' if done.returncode else 'passed'}", flush=True)
    if done.returncode:
        print(f"{done.stdout[-20_000:]}{done.stderr[-5_000:]}", flush=True)
    return not done.returncode


def main() -> int:
    """Run every version but this one; returns 1 if one of them fails."""
    ran: list[str] = []
    missing: list[str] = []
    failed: list[str] = []
    for version in SUPPORTED:
        if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            continue
        found = find(version) or install(version)
        if found is None:
            missing.append(version)
        else:
            (ran if check(version, found) else failed).append(version)
    print(f"Pythons that ran: {', '.join(ran) or 'none'}; that could not be had: {', '.join(missing) or 'none'}")
    if failed:
        print(f"Pythons on which something failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
