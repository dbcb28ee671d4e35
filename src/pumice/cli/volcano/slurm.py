"""The commands in Slurm's manner, under names of their own: vsub, vjobs, vqueues, vcancel, vsuspend, vresume.

Here `-n` is the name and `-N` the namespace, the other way round than in vcctl.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pumice.cli import completing
from pumice.cli.volcano import job_options, options

SCHEDULER_VARIABLE: Final = "VOLCANO_SCHEDULER_NAME"
IMAGE_VARIABLE: Final = "VOLCANO_DEFAULT_IMAGE"
NAMESPACE_VARIABLE: Final = "VOLCANO_DEFAULT_JOB_NAMESPACE"

_name = options.name("job", "-n")
_namespace = options.namespace("job", "-N")
_known = options.name("job", "-n", completing.jobs)

_SUBMIT = f"""\b
Examples:
  vsub -n train -r 4 -m 4 -c 'python train.py' -i my/image
  {IMAGE_VARIABLE}=my/image {NAMESPACE_VARIABLE}=research vsub -n train

\b
{SCHEDULER_VARIABLE}, {IMAGE_VARIABLE} and {NAMESPACE_VARIABLE}
are the defaults of -S, -i and -N.
"""


@click.command("vsub", cls=options.VerbCommand, epilog=_SUBMIT)
@_name
@click.option(
    "-N",
    "--namespace",
    envvar=NAMESPACE_VARIABLE,
    default="default",
    show_default=True,
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Namespace of the job.",
)
@job_options.described(IMAGE_VARIABLE, SCHEDULER_VARIABLE)
@options.cluster
def vsub(**given: Any) -> None:
    """Submit a job."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  imports the client of the cluster, which help does not need

    given["name"] = options.chosen_name(given, "job", "-n")
    job_verbs.run(options.place(given), {**given, "file": ""})


@click.command(
    "vjobs",
    cls=options.VerbCommand,
    epilog="\b\nExamples:\n  vjobs -N research\n  vjobs -N research -n train       one job in full\n  vjobs --all-namespaces --watch",
)
@_known
@_namespace
@options.all_namespaces
@job_options.selected
@options.output
@options.watch
@options.cluster
def vjobs(**given: Any) -> None:
    """List jobs, or show one of them in full."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    name = options.chosen_name(given, "job", "-n", required=False)
    if name:
        form = None if given["output"] == "wide" else given["output"]
        job_verbs.view(options.place(given), given["namespace"], name, form)
    else:
        job_verbs.show_list(options.place(given), given)


@click.command("vqueues", cls=options.VerbCommand, epilog="\b\nExamples:\n  vqueues\n  vqueues -n research -o wide")
@options.name("queue", "-n", completing.queues)
@options.output
@options.watch
@options.cluster
def vqueues(**given: Any) -> None:
    """List queues, or show one of them."""
    from pumice.cli.volcano import queue_verbs  # noqa: PLC0415  as above

    name = options.chosen_name(given, "queue", "-n", required=False)
    form = given["output"] or ""
    if name:
        queue_verbs.show(options.place(given), name, form)
    else:
        queue_verbs.show_list(options.place(given), form, watch=given["watch"])


@click.command("vcancel", cls=options.VerbCommand, epilog="\b\nExamples:\n  vcancel -n train -N research")
@_known
@_namespace
@options.cluster
def vcancel(**given: Any) -> None:
    """Delete a job with its pods."""
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    job_verbs.delete(options.place(given), given["namespace"], options.chosen_name(given, "job", "-n"), "cancel")


@click.command("vsuspend", cls=options.VerbCommand, epilog="\b\nExamples:\n  vsuspend -n train -N research")
@_known
@_namespace
@options.cluster
def vsuspend(**given: Any) -> None:
    """Abort a job: its pods end, and it can be resumed."""
    _order(given, "AbortJob")


@click.command("vresume", cls=options.VerbCommand, epilog="\b\nExamples:\n  vresume -n train -N research")
@_known
@_namespace
@options.cluster
def vresume(**given: Any) -> None:
    """Start a job again that was suspended."""
    _order(given, "ResumeJob")


def _order(given: dict[str, Any], action: str) -> None:
    from pumice.cli.volcano import job_verbs  # noqa: PLC0415  as above

    job_verbs.order(options.place(given), given["namespace"], options.chosen_name(given, "job", "-n"), action)
