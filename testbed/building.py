"""Build the programs from the Go modules pinned in `go/`, once, into the user's cache folder.

A program counts as built when it stands in its folder together with a mark that names what it was made from: it is moved there in one step when it is complete,
so a build that was interrupted leaves nothing that could be taken for a program, and a changed pin makes the old one count as missing.

To move to another release, change its version in `go/*/go.mod` and run `go mod tidy` there; Kubernetes' `replace` lines name the same release as v0.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from testbed import golang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MODULES = Path(__file__).parent / "go"
PROGRESS_SECONDS = 10
_KUBERNETES_STAMPS = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


class BuildError(Exception):
    """The Go compiler refused, or was not there."""


class Recipe(NamedTuple):
    """How one program is made."""

    module: str
    """The folder under `go/` that pins its modules."""
    package: str
    source: str
    """The required module whose version is the program's own."""
    definitions: str = ""
    """Which files of that module are its CustomResourceDefinitions and webhook configurations: patterns."""

    @property
    def version(self) -> str:
        """Return the version that go.mod requires."""
        pinned = (MODULES / self.module / "go.mod").read_text()
        found = re.search(rf"^(?:require|\t) ?{re.escape(self.source)} (v\S+)$", pinned, re.MULTILINE)
        if found is None:
            raise BuildError(f"{MODULES / self.module / 'go.mod'} does not require {self.source}")
        return found[1]

    @property
    def linking(self) -> str:
        """Return the linker's flags: no symbol tables, and the version stamped in where the program looks for it."""
        stamps: dict[str, str] = {}
        major, minor, *_ = self.version.removeprefix("v").split(".")
        if self.source == "k8s.io/kubernetes":
            for package in _KUBERNETES_STAMPS:
                stamps |= {
                    f"{package}.gitVersion": self.version,
                    f"{package}.gitMajor": major,
                    f"{package}.gitMinor": minor,
                    f"{package}.gitTreeState": "clean",
                }
        elif self.module == "helm":
            stamps["helm.sh/helm/v3/internal/version.version"] = self.version
        elif self.module == "volcano":
            stamps["volcano.sh/volcano/pkg/version.Version"] = self.version
        return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])

    @property
    def mark(self) -> str:
        """Return a digest of everything that decides what the program is."""
        digest = hashlib.sha256(f"{self.package}\n{self.linking}\n".encode())
        folder = MODULES / self.module
        for path in (folder / "go.mod", folder / "go.sum", *sorted(self._own(folder))):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _own(self, folder: Path) -> Iterator[Path]:
        """Give the sources that are ours: those of a package beside the pins."""
        return (folder / self.package).glob("*.go") if self.package.startswith("./") else iter(())


KUBERAY = "github.com/ray-project/kuberay/ray-operator"
ARGO = "github.com/argoproj/argo-workflows/v3"
SPARK = "github.com/kubeflow/spark-operator/v2"
MPI = "github.com/kubeflow/mpi-operator"
TRAINER = "github.com/kubeflow/trainer/v2"
RECIPES = {
    "argo": Recipe("argo", f"{ARGO}/cmd/workflow-controller", ARGO, "manifests/base/crds/minimal/argoproj.io_*.yaml"),
    "etcd": Recipe("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
    "helm": Recipe("helm", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3"),
    "kube-apiserver": Recipe("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes"),
    "kube-controllers": Recipe("kubernetes", "./controllers", "k8s.io/kubernetes"),
    "kube-scheduler": Recipe("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes"),
    "kube-controller-manager": Recipe(
        "controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes"
    ),
    "kubectl": Recipe("kubernetes", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes"),
    "vc-controller-manager": Recipe("volcano", "volcano.sh/volcano/cmd/controller-manager", "volcano.sh/volcano"),
    "vc-scheduler": Recipe("volcano", "volcano.sh/volcano/cmd/scheduler", "volcano.sh/volcano"),
    "vc-webhook-manager": Recipe("volcano", "volcano.sh/volcano/cmd/webhook-manager", "volcano.sh/volcano"),
    "jobset": Recipe(
        "operators",
        "sigs.k8s.io/jobset",
        "sigs.k8s.io/jobset",
        "config/components/crd/bases/*.yaml config/components/webhook/manifests.yaml",
    ),
    "kuberay": Recipe("operators", KUBERAY, KUBERAY, "config/crd/bases/*.yaml"),
    "lws": Recipe(
        "operators",
        "sigs.k8s.io/lws/cmd",
        "sigs.k8s.io/lws",
        "config/crd/bases/*.yaml config/webhook/manifests.yaml",
    ),
    "mpi": Recipe("operators", "./mpi", MPI, "manifests/base/kubeflow.org_*.yaml"),
    "spark": Recipe("spark", f"{SPARK}/cmd/operator", SPARK, "config/crd/bases/*.yaml"),
    "trainer": Recipe(
        "operators", f"{TRAINER}/cmd/trainer-controller-manager", TRAINER, "manifests/base/crds/*_*.yaml"
    ),
}


def cache_folder() -> Path:
    """Return the folder in the user's cache that holds everything made here."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "pumice" / "kube"


def built_folder() -> Path:
    """Return the folder that the programs are built into; it is named after the version of Kubernetes."""
    return cache_folder() / RECIPES["kube-apiserver"].version


def is_built(program: str) -> bool:
    """Tell whether a program was built completely, from what is pinned now."""
    mark = built_folder() / ".built" / program
    return (built_folder() / program).is_file() and mark.is_file() and mark.read_text() == RECIPES[program].mark


def build(programs: Sequence[str], say: Callable[[str], None]) -> Path:
    """Build what is missing of `programs`, and return the folder that holds them."""
    with locked(say):
        missing = [program for program in programs if not is_built(program)]
        if missing:
            go = golang.locate(cache_folder(), say)
            say(f"building {', '.join(missing)} into {built_folder()}: some minutes, once")
            for program in missing:
                _build_one(go, program, say)
    return built_folder()


@contextlib.contextmanager
def locked(say: Callable[[str], None]) -> Iterator[None]:
    """Let one process at a time write into the cache folder; the lock ends with the process that holds it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    path = cache_folder() / "lock"
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_one(go: Path, program: str, say: Callable[[str], None]) -> None:
    recipe = RECIPES[program]
    started = time.monotonic()
    unfinished = built_folder() / ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    command = [str(go), "build", "-v", "-mod=readonly", "-trimpath", "-ldflags", recipe.linking]
    _run([*command, "-o", str(unfinished / program), recipe.package], recipe, program, say)
    marks = built_folder() / ".built"
    marks.mkdir(exist_ok=True)
    (marks / program).unlink(missing_ok=True)
    (unfinished / program).replace(built_folder() / program)
    (unfinished / "mark").write_text(recipe.mark)
    (unfinished / "mark").replace(marks / program)
    unfinished.rmdir()
    megabytes = (built_folder() / program).stat().st_size / 1e6
    say(f"{program} {recipe.version}: built in {time.monotonic() - started:.0f} s, {megabytes:.0f} MB")


def _run(command: list[str], recipe: Recipe, program: str, say: Callable[[str], None]) -> None:
    """Run the compiler; it names each package that it is done with, which shows that it is still going."""
    started = said = time.monotonic()
    last: deque[str] = deque(maxlen=20)
    packages = 0
    with subprocess.Popen(
        command, cwd=MODULES / recipe.module, env=golang.local_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr or ():
            last.append(line.rstrip())
            packages += not line.startswith("go: ")
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                say(f"{program}: {said - started:.0f} s, {packages} packages compiled")
    if process.returncode:
        raise BuildError(f"{program} {recipe.version} could not be built ({' '.join(command)}):\n" + "\n".join(last))
