"""`pumice up`: a batch cluster on this machine that kubectl believes in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec
from click.core import ParameterSource

from pumice.cli import completing

if TYPE_CHECKING:
    from pumice.local_cluster.options import Admission, Options
    from pumice.local_cluster.pools import Pool

_EXAMPLES = """\b
Examples:
  pumice up                                      16 nodes and a scheduler, in memory
  pumice up --nodes 1000 --speed 60              a large cluster in which a minute takes a second
  pumice up --nodes pools.yaml --config my.yaml  nodes and a policy of your own
  pumice up --data ~/.pumice                     keep everything: the next start goes on from here
  pumice up --scheduler none                     leave scheduling to another process
  pumice up --demo                               the story of `pumice demo`, for kubectl
  pumice up --controllers none                   leave Jobs and the like to other controllers

\b
A file of pools:
  pools:
  - {name: cpu, count: 8, cpu: 32, memory: 128Gi, zones: 2}
  - name: gpu
    count: 4
    cpu: 64
    resources: {nvidia.com/gpu: 8}
    labels: {accelerator: a100}
    taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
    hyperNodes: 2

\b
Exit status: 0 ended by Ctrl-C or SIGTERM, 1 could not start or had to give up, 2 wrong options.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--nodes",
    default="16",
    show_default=True,
    metavar="N|FILE",
    shell_complete=completing.files,
    help="how many nodes, or a file of pools",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="keep the state in a folder; else it is in memory",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="port on 127.0.0.1; else that of the last run in --data, or any",
)
@click.option(
    "--scheduler", type=click.Choice(["pumice", "none"]), default="pumice", show_default=True, help="who schedules"
)
@click.option(
    "--controllers",
    type=click.Choice(["pumice", "none"]),
    default="pumice",
    show_default=True,
    help="who reconciles Jobs, Deployments and the like, collects garbage and empties namespaces",
)
@click.option(
    "--admission",
    type=click.Choice(["pumice", "strict", "none"]),
    default="pumice",
    show_default=True,
    help="who completes and judges Volcano's kinds; strict refuses what is otherwise a warning",
)
@click.option(
    "--gang-jobs",
    is_flag=True,
    help="make gangs of Kubernetes' own of Indexed Jobs whose pods all run at once, as its gate WorkloadWithJob does",
)
@click.option(
    "--config",
    default="",
    metavar="FILE",
    shell_complete=completing.files,
    help="the scheduler's configuration; a change of it is followed",
)
@click.option("--plugins-dir", default="", metavar="DIR", help="the scheduler's plugins of your own")
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 10_000),
    default=1.0,
    show_default=True,
    help="how fast workloads and timers run",
)
@click.option(
    "--load",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="start from a dump of a scheduler",
)
@click.option(
    "--demo",
    is_flag=True,
    help="let the jobs of `pumice demo` arrive on four nodes, ten times as fast, and tell what happens",
)
@click.option(
    "--web/--no-web", default=True, show_default=True, help="serve a page that shows it, and print its address"
)
@click.option("--web-port", type=click.IntRange(0, 65535), default=0, help="port of the page on 127.0.0.1; else any")
@click.option(
    "-v",
    "verbosity",
    type=int,
    default=0,
    help="write the scheduler's log to the standard error: 2 configuration, 3 decisions, 4 cycles",
)
@click.pass_context
def command(  # noqa: PLR0917  click gives each option by its name
    context: click.Context,
    nodes: str,
    data: Path | None,
    port: int,
    scheduler: str,
    controllers: str,
    admission: str,
    config: str,
    plugins_dir: str,
    speed: float,
    load: Path | None,
    verbosity: int,
    web_port: int,
    *,
    demo: bool,
    gang_jobs: bool,
    web: bool,
) -> None:
    """Run a batch cluster on this machine: API server, nodes, controllers and scheduler in one process."""
    from pumice.local_cluster import options, starting  # noqa: PLC0415  imports aiohttp, which help does not need

    wanted = options.Options(
        pools=_pools(nodes) if load is None or nodes != "16" else [],
        data=data.expanduser().absolute() if data else None,
        port=port,
        scheduler="none" if scheduler == "none" else "pumice",
        controllers="none" if controllers == "none" else "pumice",
        admission=cast("Admission", admission),
        gang_jobs=gang_jobs,
        config=config,
        plugins_dir=plugins_dir,
        speed=speed,
        load=load,
        verbosity=verbosity,
        web=web,
        web_port=web_port,
    )
    try:
        context.exit(_perform(context, wanted) if demo else starting.run(wanted, click.echo))
    except starting.UpError as error:
        raise click.ClickException(str(error)) from None


def _perform(context: click.Context, wanted: Options) -> int:
    """Run the demonstration's story; what was asked for on the command line comes before what the story has."""
    from pumice.cli.demo import performing, story  # noqa: PLC0415
    from pumice.local_cluster import pools, starting  # noqa: PLC0415

    asked = {name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    of_story: dict[str, Any] = {
        "nodes": {"pools": [pools.Pool(name="node", count=story.NODES, cpu=story.NODE_CPU, memory=story.NODE_MEMORY)]},
        "speed": {"speed": performing.SPEED},
        "config": {"policy": story.CONFIGURATION},
    }
    for name, change in of_story.items():
        if name not in asked and not (name == "nodes" and wanted.load is not None):
            wanted = msgspec.structs.replace(wanted, **change)
    return starting.run(wanted, click.echo, performing.Performance())


def _pools(text: str) -> list[Pool]:
    from pumice.local_cluster import pools  # noqa: PLC0415

    try:
        if not text.isdecimal():
            return pools.read(Path(text))
        if text == "0":
            return []
        pool = pools.Pool(name="node", count=int(text))
        pools.check(pool)
    except pools.PoolError as error:
        raise click.UsageError(f"--nodes: {error}") from None
    return [pool]
