"""`pumice what-if`: the difference that a change of objects or of the configuration would make."""

from __future__ import annotations

from typing import Any

import click

from pumice.cli import cluster_options, completing, plugins_dir

_EXAMPLES = """\b
Examples:
  pumice what-if job.yaml                              what a new job would do to everybody else
  pumice what-if --from dump.json --drain node-3       who moves where when a node goes
  pumice what-if --delete queue/research --cycles 20   who waits without a queue
  pumice what-if --new-config scheduler.yaml           what another policy would decide now
  pumice what-if queue.yaml -o json                    for a program

\b
The cluster, live or from a file, is simulated twice, as it is and with the change, until nothing
more happens; nothing is written to it. Volcano Jobs get their pods from their controller, other
workloads with a pod template are taken apart into theirs. Pods of a drained node are made anew if
somebody owns them.
Exit status: 0 compared, 1 it cannot be read or the change is refused, 2 wrong usage, 3 refused
for want of rights: the answer could be wrong without what you may not read.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="[FILE...]", nargs=-1, shell_complete=completing.files)
@click.option("--drain", multiple=True, metavar="NODE", help="Cordon a node and send its pods away.")
@click.option("--delete", multiple=True, metavar="KIND/[NAMESPACE/]NAME", help="Delete an object.")
@click.option(
    "--new-config",
    default="",
    metavar="FILE[#KEY]",
    shell_complete=completing.files,
    help="Run the changed cluster with another configuration.",
)
@cluster_options.cycles
@cluster_options.output
@cluster_options.options
def command(files: tuple[str, ...], **given: Any) -> None:
    """Show what a change of objects or of the configuration would do, without doing it."""
    if not (files or given["drain"] or given["delete"] or given["new_config"]):
        raise click.UsageError(
            "say what is to change: manifests, --drain NODE, --delete KIND/NAME or --new-config FILE"
        )
    from pumice.study import changing, comparing, comparison_text, configuring, rights  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.study import files as study_files  # noqa: PLC0415  as above
    from pumice.study.state import StudyError  # noqa: PLC0415  as above

    known = plugins_dir.load(given["folder"])
    place = cluster_options.Place(given)
    try:
        change = changing.Change(
            apply=tuple(manifest for file in files for manifest in study_files.manifests_of(file)),
            delete=given["delete"],
            drain=given["drain"],
        )
        with cluster_options.collector_off():
            state = place.read(known)
        before = configuring.choose(
            state, known, given=given["config"], scheduler_names=given["schedulers"], access=place.access
        )
        rights.check(state, before.configuration, given_policy=bool(given["config"]))
        after = before
        if given["new_config"]:
            after = configuring.Policy(
                configuring.load_file(given["new_config"], known), given["new_config"], before.options
            )
        place.progress.say("simulating the cluster twice, until nothing more happens")
        found = comparing.compare(state, before, after, known, change=change, cycles=given["cycles"])
    except rights.RightsError as error:
        place.progress.clear()
        click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(rights.STATUS) from None
    except StudyError as error:
        raise click.ClickException(str(error)) from None
    finally:
        place.progress.clear()
    if given["output"] == "text":
        if state.denied:
            listed = ", ".join(denied.right for denied in state.denied)
            click.echo(f"not needed for this answer, and left out: you may not {listed}", err=True)
        if before.left_out:
            click.echo(f"warning: without {', '.join(before.left_out)}, not provided here", err=True)
        click.echo("\n".join(comparison_text.lines(found)))
    else:
        click.echo(cluster_options.printed(found, given["output"]))
