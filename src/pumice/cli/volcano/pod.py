"""`pumice pod`: list the pods of jobs and queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing
from pumice.cli.volcano import options

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXAMPLES = """\b
Examples:
  pumice pod list -n research              the pods of Volcano's jobs
  pumice pod list -j train --watch         those of one job
  pumice pod list -q research --all-namespaces -o wide
"""


@click.group(cls=options.VerbGroup, epilog=_EXAMPLES)
def command() -> None:
    """List the pods of jobs and queues."""


@command.command("list", cls=options.VerbCommand, epilog=_EXAMPLES)
@click.option(
    "-q",
    "--queue",
    default="",
    metavar="NAME",
    shell_complete=completing.queues,
    help="Only those of a queue, of other workloads too.",
)
@click.option("-j", "--job", default="", metavar="NAME", shell_complete=completing.jobs, help="Only those of a job.")
@options.namespace("pods")
@options.all_namespaces
@options.output
@options.watch
@options.cluster
def list_pods(**given: Any) -> None:
    """List pods with how many containers are ready and what state they are in."""
    from pumice.api import kinds, names  # noqa: PLC0415  imports msgspec, which help does not need
    from pumice.cli.volcano import failing, listing, lists, pod_rows  # noqa: PLC0415  as above

    job, queue = given["job"], given["queue"]
    # Pods of other workloads carry their queue in an annotation, which nobody can select by.
    labels = f"{names.JOB_NAME}={job}" if job else "" if queue else names.JOB_NAME
    table = (*pod_rows.COLUMNS, *(pod_rows.WIDE if given["output"] == "wide" else ()))

    def chosen(found: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        other = pod_rows.outside(found[0], queue) if job and queue else ""
        if other:
            raise failing.CommandError(f"job {job} is in queue {other}, not in {queue}; leave -q out")
        return found[0]

    wanted = pod_rows.in_queue(queue) if queue and not job else None
    namespace = "" if given["all_namespaces"] else given["namespace"]
    shown = lists.Listing((lists.Read(kinds.POD, namespace, labels, wanted),), lambda _: table, chosen)
    listing.show(options.place(given), shown, given["output"] or "", watch=given["watch"])
