"""`pumice vet`: find mistakes in manifests before they are applied."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing, kube_options

if TYPE_CHECKING:
    from pumice.vetting.judging import Line, Report

_EXAMPLES = """\b
Examples:
  pumice vet job.yaml                      by the rules that a cluster would refuse it by
  pumice vet manifests/ --strict           every file of a folder; warnings count too
  helm template ./chart | pumice vet -     what a chart makes
  pumice vet job.yaml --kubeconfig FILE    with the queues of a cluster
  pumice vet manifests/ -o json            for a machine

\b
Exit status: 0 nothing would be refused, 1 something would be, 2 wrong options, or what cannot be
read.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", shell_complete=completing.files)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
@click.option("--strict", is_flag=True, help="Warnings count as refusals.")
@kube_options.kubeconfig(
    meaning="Look up queues, namespaces and priority classes in this cluster; nothing is written there."
)
@kube_options.context()
@click.option(
    "--scheduler-name", "schedulers", multiple=True, metavar="NAME", help="Whose pods are judged.  [default: volcano]"
)
@click.option(
    "--max-queue-depth", type=click.IntRange(min=1), default=5, show_default=True, help="Levels of queues below root."
)
def command(**given: Any) -> None:
    """Check manifests by their schemas and by the rules of admission, with file, line and field of every mistake.

    FILE may be a folder, or - for the standard input. No cluster is needed: a queue that is not among the files is only noted.
    """
    from pumice.admission import job_plugins  # noqa: PLC0415  help needs none of this
    from pumice.admission.requests import RuleSettings  # noqa: PLC0415
    from pumice.admission.surroundings import KnownObjects  # noqa: PLC0415
    from pumice.vetting import files, judging, live  # noqa: PLC0415

    settings = RuleSettings(
        scheduler_names=given["schedulers"] or ("volcano",),
        most_depth=given["max_queue_depth"],
        job_plugins=job_plugins.installed(),
    )
    try:
        entries = list(files.read(given["paths"]))
        asked = given["kubeconfig"] or given["context_name"]
        around = live.read(given["kubeconfig"], given["context_name"]) if asked else KnownObjects(complete=False)
    except (files.UnreadableError, live.ClusterError) as error:
        raise click.UsageError(str(error)) from None
    report = judging.Vetting(around, settings).judge(entries)
    if given["output"] == "json":
        _print_json(report)
    else:
        _print_text(report)
    sys.exit(1 if report.refused or (given["strict"] and report.findings) else 0)


def _print_json(report: Report) -> None:
    import msgspec  # noqa: PLC0415

    click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def _print_text(report: Report) -> None:
    from pumice.api import printable  # noqa: PLC0415

    for each in report.findings:
        click.echo(printable.printable(_text(each)))
    for called in report.unknown:
        click.echo(f"not checked: {printable.printable(called)}", err=True)
    refused = sum(each.refuses for each in report.findings)
    warned = len(report.findings) - refused
    objects = _count(report.objects, "object")
    if not report.findings:
        click.echo(f"{objects} in {_count(report.files, 'file')}: nothing to complain about")
        return
    click.echo(
        f"{objects} in {_count(report.files, 'file')}: {_count(refused, 'mistake')}, {_count(warned, 'warning')}"
    )


def _text(line: Line) -> str:
    about = f"{line.kind.lower()}/{line.name}: " if line.kind else ""
    field = f"{line.field}: " if line.field else ""
    return f"{line.file}:{line.line}: {'' if line.refuses else 'warning: '}{about}{field}{line.message}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
