"""Start a local cluster, say how to use it, and run it until it is told to end."""

from __future__ import annotations

import functools
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice.apiserver.schemas import cel as rules
from pumice.cel import language
from pumice.local_cluster import access_files, api_thread, controlling, live_line, page, platforms
from pumice.local_cluster.options import SERVED
from pumice.server.health import overdue
from pumice.server.threads import watchdog

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.apiserver import cluster
    from pumice.local_cluster import clock
    from pumice.local_cluster.options import Options

_GUIDE: Final = """\
A batch cluster is at https://{host}:{port}: {nodes} nodes, {scheduler}.{kept}

  export KUBECONFIG={kubeconfig}

  kubectl get nodes
  kubectl run hello --image=busybox --restart=Never -- sh -c 'echo hello; sleep 10'
  kubectl get pods -w

Ctrl-C ends it{end}."""


class UpError(Exception):
    """Why a cluster cannot be started."""


class Beside(Protocol):
    """Something that runs beside the API server, in its thread; `start` tells it where it can print, and which configuration the scheduler has."""

    def start(self, tell: Callable[[str], None], config: str) -> None:
        """Hear where it is before it runs."""

    async def run(self, made: cluster.Cluster, time: clock.WallClock) -> None:
        """Run until it is cancelled."""


def run(options: Options, tell: Callable[[str], None], beside: Beside | None = None) -> int:
    """Run a cluster until a signal ends it; returns the exit status."""
    if problem := platforms.missing(options):
        raise UpError(problem)
    platforms.allow_many_files()
    folder = options.data or Path(tempfile.mkdtemp(prefix="pumice-up-"))
    try:
        return _run(_with_file(options, folder), folder, tell, beside)
    finally:
        if options.data is None:
            shutil.rmtree(folder, ignore_errors=True)


def _with_file(options: Options, folder: Path) -> Options:
    """Write a policy that was given as text into a file, which can be changed like any other."""
    if not options.policy or options.config:
        return options
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scheduler.yaml"
    if not path.exists():
        path.write_text(options.policy)
    return msgspec.structs.replace(options, config=str(path))


def _run(options: Options, folder: Path, tell: Callable[[str], None], beside: Beside | None) -> int:
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    access = access_files.AccessFiles(folder)
    watch, turns = overdue.Watch(), controlling.new_part()
    watch.add(turns)
    controllers = (
        (functools.partial(controlling.run, part=turns, gang_jobs=options.gang_jobs),)
        if options.controllers == "pumice"
        else ()
    )
    runs = controllers if beside is None else (*controllers, beside.run)
    api = api_thread.ApiThread(options, access, runs, watch)
    line = live_line.LiveLine(api.figures)
    if beside is not None:
        beside.start(line.print_above, options.config)
    api.start()
    watching = _watchdog(watch, api)
    try:
        api.await_ready(ending.is_set)
    except api_thread.StartError as error:
        watching.stop()
        raise UpError(str(error)) from error
    tell(_guide(options, api, access))
    if not language.is_installed():
        tell(rules.NOT_EVALUATED)
    line.start()
    shown = page.Page(options, access, line.print_above) if options.web else None
    try:
        wanted = options.scheduler == "pumice"
        status = _schedule(options, access, folder, ending, watching) if wanted else _wait(ending)
    except UpError:
        watching.stop()
        raise
    finally:
        if shown is not None:
            shown.stop()
        line.stop()
        api.stop()
    return 1 if api.has_failed else status


def _guide(options: Options, api: api_thread.ApiThread, access: access_files.AccessFiles) -> str:
    words = "scheduled by pumice" if options.scheduler == "pumice" else "and no scheduler"
    speed = f" at {options.speed:g} times the speed" if options.speed != 1 else ""
    return _GUIDE.format(
        host=options.host,
        port=api.port,
        nodes=api.figures.nodes,
        scheduler=words + speed,
        kept=f"\nIts state is kept in {options.data}." if options.data else "",
        kubeconfig=access.kubeconfig,
        end="; the next start with the same --data goes on from here"
        if options.data
        else ", and everything in it is gone",
    )


def _watchdog(watch: overdue.Watch, api: api_thread.ApiThread) -> watchdog.Watchdog:
    """Start whoever notices if a thread does not go on; it tells on the standard error, since nobody reads the scheduler's log."""
    from pumice.server.logs import logs  # noqa: PLC0415  takes a while to load, in which the API server starts

    made = watchdog.Watchdog(logs.Log(stream=sys.stderr), watch)
    made.before_leaving.append(api.stop)
    made.start()
    return made


def _wait(ending: threading.Event) -> int:
    """Wait for a signal."""
    while not ending.wait(0.5):
        pass
    return 0


def _schedule(
    options: Options,
    access: access_files.AccessFiles,
    folder: Path,
    ending: threading.Event,
    watching: watchdog.Watchdog,
) -> int:
    """Run the scheduler through plain HTTP, as on any cluster; it heeds the signals."""
    from pumice.server import process  # noqa: PLC0415  numpy and the plugins: the API server answers before they are loaded
    from pumice.server.flags import settings  # noqa: PLC0415
    from pumice.server.logs import logs  # noqa: PLC0415

    given: dict[str, Any] = {
        "kubeconfig": str(access.kubeconfig),
        "leader-elect": False,
        "scheduler-name": SERVED,
        "kube-api-qps": 20_000.0,
        "kube-api-burst": 20_000,
        "v": options.verbosity,
    }
    given |= {"scheduler-conf": options.config} if options.config else {}
    given |= {"plugins-dir": options.plugins_dir} if options.plugins_dir else {}
    with (folder / "scheduler.log").open("a") as stream:
        log = logs.Log(options.verbosity, stream=sys.stderr if options.verbosity else stream)
        logs.adopt_libraries(log)
        try:
            made = process.Process(settings.read(given), log, watching)
        except Exception as error:  # whatever keeps it from starting is told in one line
            raise UpError(f"the scheduler cannot start: {error}") from error
        return 0 if ending.is_set() else made.run()
