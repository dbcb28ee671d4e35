"""`pumice web`: a page that shows who holds what, who waits and why, live."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import cluster_options, completing, plugins_dir, recordings

if TYPE_CHECKING:
    from pumice.server.flags.addresses import Address
    from pumice.study.live import Access
    from pumice.study.state import State
    from pumice.web.sources import Policy

_EXAMPLES = """\b
Examples:
  pumice web                                the cluster of your kubeconfig, live
  pumice web --context prod -n train        another one, of which you may list one namespace
  pumice web --from dump.json               a dump, or what kubectl get -o json prints
  pumice web --from gang.yaml               a scenario, played to its end
  pumice web --recording recordings         a recording, with a slider over all of it
  pumice web --listen 127.0.0.1:8080        always on the same port
  pumice web --config scheduler.yaml        explain with a policy of your own

\b
The cluster is only read, with your own rights; it need not be scheduled by pumice, and nothing
has to be installed in it. The page is served on this machine alone: the address that is printed
carries a token, and whoever does not have it sees nothing. Ctrl-C ends it.
Exit status: 0 ended by Ctrl-C or SIGTERM, 1 the cluster cannot be read, 2 wrong usage.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Only the jobs and pods of one namespace, where you may not list all.",
)
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="ADDRESS",
    help="Where to serve, on this machine; port 0 is any that is free.",
)
@click.option(
    "--recording",
    default="",
    metavar="FOLDER|FILE",
    shell_complete=completing.files,
    help="What a scheduler recorded, with a slider over all of it, instead of a live cluster.",
)
@click.option("--until-input-ends", is_flag=True, hidden=True, help="End when the standard input does.")
@cluster_options.options
def command(**given: Any) -> None:
    """Serve a page that shows who holds what, who waits and why, live."""
    from pumice.kube.errors import KubeError  # noqa: PLC0415  imports aiohttp, which help does not need
    from pumice.recording import segments  # noqa: PLC0415  as above
    from pumice.study.state import StudyError  # noqa: PLC0415  as above
    from pumice.web.sources import Policy  # noqa: PLC0415  as above

    if given["until_input_ends"]:
        threading.Thread(target=_end_with_input, daemon=True).start()
    address = _address(given["listen"])
    known = plugins_dir.load(given["folder"])
    place = cluster_options.Place(given)
    policy = Policy(config=given["config"], plugins=given["folder"], schedulers=given["schedulers"])
    try:
        if given["recording"]:
            _check_alone(given)
            asyncio.run(_recorded(given["recording"], known, policy, address))
        elif given["file"]:
            state = place.read(known)
            place.progress.clear()
            asyncio.run(_file(state, known, policy, address))
        elif given["scenario"] or given["line"]:
            raise click.UsageError("--scenario and --until-line need --from FILE")
        else:
            asyncio.run(_live(place.access, policy, given["namespace"], address))
    except (StudyError, KubeError, segments.RecordingError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot serve on {given['listen']}: {error.strerror or error}") from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        return


def _address(text: str) -> Address:
    from pumice.server.flags import addresses  # noqa: PLC0415  as above

    try:
        address = addresses.parse(text)
    except ValueError as error:
        raise click.UsageError(f"--listen: {error}") from None
    if address.host not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError(
            f"--listen {text}: the page is served on this machine alone; write 127.0.0.1:{address.port}, and use ssh -L to see it from another"
        )
    return address


async def _live(access: Access, policy: Policy, namespace: str, address: Address) -> None:
    from pumice.kube.access import connection  # noqa: PLC0415  as above
    from pumice.kube.calls.client import Client  # noqa: PLC0415  as above
    from pumice.web import sources  # noqa: PLC0415  as above

    _end_on_signals()
    async with Client(connection.load(access.kubeconfig, access.context, access.master)) as client:
        click.echo(f"Reading {client.connection.server} …", err=True)
        async with sources.followed(client, policy, namespace) as cluster:
            await _serve(cluster, address)


async def _file(state: State, known: Any, policy: Policy, address: Address) -> None:
    from pumice.web import sources  # noqa: PLC0415  as above

    _end_on_signals()
    await _serve(sources.from_state(state, known, policy), address)


def _check_alone(given: dict[str, Any]) -> None:
    others = [name for name in ("file", "scenario", "line", "namespace") if given[name]]
    if others:
        raise click.UsageError("--recording is read alone: leave out --from, --scenario, --until-line and -n")


async def _recorded(path: str, known: Any, policy: Policy, address: Address) -> None:
    from pumice.web import recordings as web_recordings  # noqa: PLC0415  as above

    _end_on_signals()
    click.echo(f"Reading {path} …", err=True)
    await _serve(web_recordings.read(recordings.find(path), known, policy), address)


async def _serve(cluster: Any, address: Address) -> None:
    from pumice.web import running  # noqa: PLC0415  as above
    from pumice.web.guarding import PrintedToken  # noqa: PLC0415  as above

    guard = PrintedToken()

    def tell(bound: Address) -> None:
        for note in cluster.notes():
            click.echo(f"note: {note}", err=True)
        click.echo(f"{cluster.source} is shown at\n\n  http://{bound}/#token={guard.token}\n\nCtrl-C ends it.")

    await running.serve(cluster, address, guard, tell)


def _end_with_input() -> None:
    """End when whoever started this has: its end of the pipe is closed then, whatever happened to it."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _end_on_signals() -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
