"""Provide etcd, kube-apiserver and kubectl: `python -m testbed.provide` prints the folder that holds all three as its last line.

Those in `$KUBEBUILDER_ASSETS` are taken, else those on PATH, else they are built from Go modules into the user's cache folder. Only a place that has all three
counts, so that a lone kubectl does not hide that there is no API server.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testbed import building, golang, old_etcd, operator_files

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
GO_CLIENTS = ("kube-scheduler", "kube-controllers")
VOLCANO = ("vc-scheduler", "vc-controller-manager", "vc-webhook-manager")
GROUPS = {"volcano": VOLCANO}
"""Extras that are several programs."""
DEFINITIONS = "definitions"
"""An extra that is no program: what operators of other projects define."""
OPERATORS = ("argo", "jobset", "kuberay", "lws", "mpi", "spark", "trainer")
EXTRAS = ("helm", *GO_CLIENTS, "kube-controller-manager", *GROUPS, *OPERATORS, DEFINITIONS, old_etcd.NAME)
HOW = "run `make kube` to get one"
_ABSENT = 3


class AbsentError(Exception):
    """Something is missing, and was not to be built."""


def binaries() -> Path | None:
    """Return the folder that holds etcd, kube-apiserver and kubectl; None if they have to be built first."""
    return _in_assets() or _on_path() or _built()


def program(name: str) -> Path | None:
    """Return where a program is, one of the extras included; None if it has to be built first."""
    if name == old_etcd.NAME:
        return old_etcd.find()
    if name == DEFINITIONS:
        found = [operator_files.kept(operator) for operator in OPERATORS]
        return found[0][0].parent.parent if all(found) else None
    if name in PROGRAMS:
        folder = binaries()
        return folder / name if folder else None
    # the pinned version of an extra comes first: it is compared with or depended on, and does not stand in for the user's own cluster
    if building.is_built(name):
        return building.built_folder() / name
    if name in OPERATORS:  # on PATH may be something else of that name
        return None
    on_path = shutil.which(name, path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which(name)
    return Path(on_path) if on_path else None


def how(*extras: str) -> str:
    """Say how to get some of the extras."""
    named = extras[0] if len(extras) == 1 else f'"{" ".join(extras)}"'
    return f"run `make kube WITH={named}` to get {'one' if len(extras) == 1 else 'them'}"


def _in_assets() -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(assets).absolute() if assets and not missing_from(Path(assets)) else None


def missing_from(folder: Path) -> list[str]:
    """Return which of the three programs a folder lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=str(folder)) is None]


def _on_path() -> Path | None:
    """Return the folder on PATH that holds all three; a folder of links if they stand in several."""
    found = [shutil.which(name) for name in PROGRAMS]
    places = [Path(place).absolute() for place in found if place]
    if len(places) < len(PROGRAMS):
        return None
    if len({place.parent for place in places}) == 1:
        return places[0].parent
    digest = hashlib.sha256("\n".join(map(str, places)).encode()).hexdigest()[:12]
    folder = building.cache_folder() / f"on-path-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    for place in places:
        link = folder / place.name
        if not link.is_symlink():
            arriving = folder / f".{place.name}-{os.getpid()}"
            arriving.symlink_to(place)
            arriving.replace(link)
    return folder


def _built() -> Path | None:
    return building.built_folder() if all(building.is_built(name) for name in PROGRAMS) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Find or build what is asked for; print where it is."""
    options = _parser().parse_args(arguments)
    extras = [name for extra in options.extras for name in GROUPS.get(extra, (extra,))]
    try:
        folder = _present(extras) if options.if_present else _provided(extras)
    except AbsentError as error:
        say(str(error))
        return _ABSENT
    except (building.BuildError, golang.GoMissingError, old_etcd.OldEtcdError) as error:
        say(f"error: {error}")
        return 1
    print(folder)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed.provide", description=__doc__)
    parser.add_argument(
        "--if-present", action="store_true", help=f"build nothing; exit with {_ABSENT} if something is missing"
    )
    parser.add_argument(
        "--with", dest="extras", action="append", default=[], choices=EXTRAS, help="provide this program too"
    )
    return parser


def _present(extras: Sequence[str]) -> Path:
    folder = binaries()
    if folder is None:
        raise AbsentError(f"no folder holds {', '.join(PROGRAMS)}: {HOW}")
    for name in extras:
        if program(name) is None:
            raise AbsentError(f"there is no {name}: {how(_extra(name))}")
    return folder


def _extra(program: str) -> str:
    """Return what to ask for to get a program."""
    return next((name for name, programs in GROUPS.items() if program in programs), program)


def _provided(extras: Sequence[str]) -> Path:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (missing := missing_from(Path(assets))):
        say(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}: it is left aside")
    folder = binaries()
    wanted = [name for name in extras if name in building.RECIPES and program(name) is None]
    if folder is None or wanted:
        built = building.build([*(() if folder else PROGRAMS), *wanted], say)
        folder = folder or built
    operator_files.fetch(OPERATORS if DEFINITIONS in extras else [name for name in extras if name in OPERATORS], say)
    if old_etcd.NAME in extras:
        old_etcd.provide(say)
    for name in extras:
        say(f"{name}: {program(name)}")
    return folder


def say(line: str) -> None:
    """Print a line of progress where it does not mix with the answer."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
