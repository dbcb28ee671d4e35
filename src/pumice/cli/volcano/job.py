"""`pumice job`: run, list, view, suspend, resume and delete jobs of Volcano."""

from __future__ import annotations

from typing import Any

import click

from pumice.cli import completing
from pumice.cli.volcano import job_options, options

_EXAMPLES = """\b
Examples:
  pumice job run -N train -r 4 -m 4 -R cpu=2,memory=4Gi -i my/image
  pumice job run -f job.yaml                 one job, or several, from a file
  pumice job list -n research --watch
  pumice job view -N train                   what it wants, how it stands, its events
  pumice job suspend -N train                give its pods' room back; resume starts it again
  pumice explain job train                   why it waits
"""


@click.group(cls=options.VerbGroup, epilog=_EXAMPLES)
def command() -> None:
    """Run, list, view, suspend, resume and delete jobs of Volcano."""


_RUN = """\b
Examples:
  pumice job run -N train                                  one pod of busybox with 1 cpu and 100Mi
  pumice job run -N train -r 8 -m 4 -i my/image -q research
  pumice job run -N hello -c 'echo "hello world"'
  pumice job run -f job.yaml                               - reads standard input
"""


@command.command("run", cls=options.VerbCommand, epilog=_RUN)
@options.name("job")
@options.namespace("job", default=None)
@job_options.described()
@click.option(
    "-f",
    "--filename",
    "file",
    default="",
    metavar="FILE",
    shell_complete=completing.files,
    help="A file of jobs instead of the flags above.",
)
@options.cluster
def run(**given: Any) -> None:
    """Create a job from flags, or from a file."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  imports the client of the cluster, which help does not need

    given["name"] = options.chosen_name(given, "job", required=not given["file"])
    job_verbs.run(options.place(given), given)


_LIST = """\b
Examples:
  pumice job list -n research
  pumice job list --all-namespaces -q training -o wide
  pumice job list --selector bert --watch
  pumice job list --start                    groups that wait, the next to start first
  pumice job list --gangs                    Kubernetes' own gangs, with how their pods stand
  pumice job list -o name | xargs -n 1 kubectl describe
"""


@command.command("list", cls=options.VerbCommand, epilog=_LIST)
@options.namespace("jobs")
@options.all_namespaces
@job_options.selected
@click.option(
    "--start", is_flag=True, help="List groups that wait, by when they are expected to start (plugin timeline)."
)
@click.option("--gangs", is_flag=True, help="List Kubernetes' own gangs: PodGroups of scheduling.k8s.io.")
@options.output
@options.watch
@options.cluster
def list_jobs(**given: Any) -> None:
    """List jobs with their phase and how many of their pods stand how."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    show = job_verbs.show_starts if given["start"] else job_verbs.show_list
    if given["gangs"]:
        show = job_verbs.show_gangs
    show(options.place(given), given)


@command.command(
    "view",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice job view -N train -n research\n  pumice job view train -o yaml",
)
@options.name("job", complete=completing.jobs)
@options.namespace("job")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "name"]), default=None, help="The object itself, or its name."
)
@options.cluster
def view(**given: Any) -> None:
    """Show what a job wants, how it stands and what happened to it."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    job_verbs.view(options.place(given), given["namespace"], options.chosen_name(given, "job"), given["output"])


@command.command(
    "suspend",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  pumice job suspend -N train -n research\n  pumice job resume -N train -n research",
)
@options.name("job", complete=completing.jobs)
@options.namespace("job")
@options.cluster
def suspend(**given: Any) -> None:
    """Abort a job: its pods end, and it can be resumed."""
    _order(given, "AbortJob")


@command.command("resume", cls=options.VerbCommand, epilog="\b\nExamples:\n  pumice job resume -N train -n research")
@options.name("job", complete=completing.jobs)
@options.namespace("job")
@options.cluster
def resume(**given: Any) -> None:
    """Start a job again that was suspended."""
    _order(given, "ResumeJob")


@command.command("delete", cls=options.VerbCommand, epilog="\b\nExamples:\n  pumice job delete -N train -n research")
@options.name("job", complete=completing.jobs)
@options.namespace("job")
@options.cluster
def delete(**given: Any) -> None:
    """Delete a job with its pods."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    job_verbs.delete(options.place(given), given["namespace"], options.chosen_name(given, "job"), "delete")


def _order(given: dict[str, Any], action: str) -> None:
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    job_verbs.order(options.place(given), given["namespace"], options.chosen_name(given, "job"), action)
