"""Helm, and what it makes of the chart."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # reads the same, and the definitions ten times as fast


def read_all(text: str) -> list[dict]:
    """Return every document of what was printed."""
    return list(yaml.load_all(text, Loader=LOADER))


class Helm:
    """Runs helm on the chart."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        folders = {f"HELM_{kind}_HOME": str(self._folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        environment = {**folders, "HOME": str(self._folder), "KUBECONFIG": str(kubeconfig or self._folder / "none")}
        command = [str(self._program), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def install(self, kubeconfig: Path, *more: str, values: dict) -> str:
        """Install the chart and return what helm says at the end."""
        flags = ("--namespace=pumice-system", "--create-namespace", f"--values={self._write(values)}", *more)
        done = self.run("install", "pumice", str(CHART), *flags, kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refusal(self, *flags: str, values: dict | None = None, release: str = "pumice") -> str:
        """Return why the chart is refused with these values."""
        done = self._template(flags, values, release=release)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def template(
        self, *flags: str, values: dict | None = None, chart: Path = CHART, release: str = "pumice"
    ) -> list[dict]:
        """Return the objects of the chart with these values."""
        done = self._template(flags, values, chart, release)
        assert done.returncode == 0, done.stderr
        return [each for each in read_all(done.stdout) if each]

    # A helm that was built from its module knows no version of Kubernetes that it was made for.
    _version = ("--kube-version=1.36.0",)

    def _template(self, flags, values, chart=CHART, release="pumice"):
        given = [f"--values={self._write(values)}"] if values else []
        arguments = ("template", release, str(chart), "--namespace=pumice-system", *self._version)
        return self.run(*arguments, *given, *flags)

    def _write(self, values: dict) -> Path:
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        return file
