"""`pumice nodes`: simulated nodes on a real API server, to try schedulers and workloads without machines."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import click

from pumice.cli import kube_options

if TYPE_CHECKING:
    from pumice.fleet import kubelets
    from pumice.fleet import plan as plans
    from pumice.kube.calls.client import Client

_EXAMPLES = """\b
Examples:
  pumice nodes --count 100                              on the cluster of your kubeconfig
  pumice nodes --count 8 --cpu 64 --resource nvidia.com/gpu=8 --label pool=a100
  pumice nodes --count 1000 --zones 10 --no-kubelet     register them, and leave their pods alone
  pumice nodes --delete                                 remove every simulated node

\b
Pods that are bound to these nodes are Running at once. The annotation pumice.dev/run-time: 60s
ends them after that time, pumice.dev/exit: failed lets them fail. The nodes carry the label
pumice.dev/simulated=true and stay until they are deleted; stop with Ctrl-C and start again to go
on serving them.
"""


@click.command(epilog=_EXAMPLES)
@click.option("--count", type=int, default=1, show_default=True, help="how many nodes")
@click.option("--prefix", default="node", show_default=True, help="their names are PREFIX-0, PREFIX-1, …")
@click.option("--cpu", default="32", show_default=True, help="cpu that each offers")
@click.option("--memory", default="128Gi", show_default=True, help="memory that each offers")
@click.option("--pods", default="110", show_default=True, help="pods that each takes")
@click.option("--resource", "resources", multiple=True, metavar="NAME=AMOUNT", help="a further resource of each")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="a label of each")
@click.option("--zones", type=int, default=1, show_default=True, help="spread over this many zones")
@click.option(
    "--heartbeat", type=float, default=20.0, show_default=True, help="seconds between heartbeats; 0 sends none"
)
@click.option("--kubelet/--no-kubelet", default=True, show_default=True, help="serve the pods that are bound to them")
@click.option("--delete", is_flag=True, help="remove every simulated node of the cluster, and end")
@kube_options.kubeconfig()
@kube_options.context()
@kube_options.master()
def command(  # noqa: PLR0917  one parameter per option
    count: int,
    prefix: str,
    cpu: str,
    memory: str,
    pods: str,
    resources: tuple[str, ...],
    labels: tuple[str, ...],
    zones: int,
    heartbeat: float,
    kubelet: bool,
    delete: bool,
    kubeconfig: str,
    context_name: str,
    master: str,
) -> None:
    """Run simulated nodes on a real API server: they register, take pods and run them."""
    from pumice.fleet import plan  # noqa: PLC0415  help needs none of this
    from pumice.fleet.running import FleetError  # noqa: PLC0415
    from pumice.kube import errors  # noqa: PLC0415
    from pumice.kube.access import connection  # noqa: PLC0415
    from pumice.kube.calls.client import Client  # noqa: PLC0415

    wanted = plan.Plan(
        count=count,
        prefix=prefix,
        cpu=cpu,
        memory=memory,
        pods=pods,
        resources=_pairs("--resource", resources),
        labels=_pairs("--label", labels),
        zones=zones,
    )
    try:
        wanted.check()
        client = Client(connection.load(kubeconfig, context_name, master))
        asyncio.run(_delete(client) if delete else _run(client, wanted, heartbeat, kubelet=kubelet))
    except (plan.PlanError, FleetError, errors.KubeError) as error:
        raise click.ClickException(str(error)) from None


def _pairs(option: str, entries: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{entry!r} is not of the form name=value", param_hint=option)
        pairs[key] = value
    return pairs


async def _delete(client: Client) -> None:
    from pumice.fleet import running  # noqa: PLC0415

    async with client:
        click.echo(f"{await running.remove(client, click.echo)} simulated nodes removed")


async def _run(client: Client, wanted: plans.Plan, heartbeat: float, *, kubelet: bool) -> None:
    from pumice.fleet import kubelets, running  # noqa: PLC0415

    async with client:
        created = await running.register(client, wanted, click.echo)
        names = wanted.names()
        click.echo(f"{len(names)} nodes ready, {names[0]} … {names[-1]}: {created} new, {len(names) - created} known")
        if not kubelet:
            return
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, task.cancel if task is not None else loop.stop)
        click.echo("serving their pods; stop with Ctrl-C")
        fleet = kubelets.Kubelets(client, wanted.addresses())
        beating = asyncio.create_task(_watched(fleet))
        try:
            await running.serve(client, wanted, fleet, click.echo, heartbeat=heartbeat)
        except asyncio.CancelledError:
            click.echo("stopped; the nodes stay, `pumice nodes --delete` removes them")
        finally:
            beating.cancel()


async def _watched(fleet: kubelets.Kubelets) -> None:
    """Let somebody notice if the kubelets do not go on; it tells on the standard error."""
    from pumice.server.health import overdue  # noqa: PLC0415  as above
    from pumice.server.logs import logs  # noqa: PLC0415
    from pumice.server.threads import watchdog  # noqa: PLC0415

    watching = watchdog.Watchdog(logs.Log(stream=sys.stderr))
    loop = overdue.Part("nodes", "a turn of the nodes' loop")
    watching.watch.add(loop)
    what = "a turn of the kubelets"
    watching.watch.add(overdue.Turning("kubelets", what, lambda: fleet.turns, rests=lambda: fleet.is_held))
    watching.start()
    await watchdog.beat(loop)
