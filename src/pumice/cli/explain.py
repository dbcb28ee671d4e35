"""`pumice explain`: why an object stands as it does, and the smallest change that would start what waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import cluster_options, completing, plugins_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.registry import Registry
    from pumice.study.explanation import Request

_EXAMPLES = """\b
Examples:
  pumice explain job llama -n train               why it waits, and what would start it
  pumice explain job llama -n train -v            with nodes, queue, votes, and all that was tried
  pumice explain pod train/llama-worker-3         one pod of it
  pumice explain queue research                   share, due, ceiling, who holds what
  pumice explain node gpu-07                      what is on it, and why nobody goes there
  pumice explain job llama --from dump.json       from a dump, or what kubectl get -o json prints
  pumice explain job llama -n train --watch       again and again, printed when it changes
  kubectl pumice explain job llama -n train       the same through kubectl

\b
A live cluster is only read, with your own rights: what the scheduler watches is listed, and its
cycle is run in memory. It need not be scheduled by pumice; nothing has to be installed in it.
What you may not read is named, with the rule that grants it; an answer that could be wrong
without it is refused.
Exit status: 0 explained, 1 there is no such object or it cannot be read, 2 wrong usage,
3 refused for want of rights.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("what", type=click.Choice(["pod", "job", "queue", "node"]))
@click.argument("name")
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Namespace of the pod or job; else all are searched.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Say all: nodes, queue, gang, votes, and every change that was tried."
)
@click.option("--search/--no-search", default=True, show_default=True, help="Look for the smallest change.")
@click.option("--watch", is_flag=True, help="Explain again every few seconds; print what has changed.")
@click.option(
    "--period", type=click.FloatRange(min=0.1), default=5.0, show_default=True, metavar="SECONDS", help="With --watch."
)
@cluster_options.output
@cluster_options.options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Say why a pod, job, queue or node stands as it does, and what would change it."""
    from pumice.study import rights  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.study.explanation import Request  # noqa: PLC0415  as above
    from pumice.study.state import StudyError  # noqa: PLC0415  as above

    verbose = given["verbose"]
    request = Request(
        what=given["what"],
        name=given["name"],
        namespace=given["namespace"],
        config=given["config"],
        scheduler_names=given["schedulers"],
        search=given["search"],
    )
    known = plugins_dir.load(given["folder"])
    namespace = given["namespace"] or given["name"].rpartition("/")[0]
    place = cluster_options.Place(given, namespace)
    try:
        period = given["period"] if given["watch"] else None
        status = 0
        for text, refused in _texts(place, request, known, given["output"], period, verbose=verbose):
            click.echo(text)
            status = rights.STATUS if refused else 0
        context.exit(status)
    except rights.RightsError as error:
        place.progress.clear()
        click.echo(f"Error: {error}", err=True)
        context.exit(rights.STATUS)
    except StudyError as error:
        place.progress.clear()
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        context.exit(130)


def _texts(
    place: cluster_options.Place, request: Request, known: Registry, form: str, period: float | None, *, verbose: bool
) -> Iterator[tuple[str, bool]]:
    """Give the answer and whether it is refused, with a period again whenever it says something else."""
    from pumice.study import explanation, explanation_text  # noqa: PLC0415  as above

    said = ""
    while True:
        with cluster_options.collector_off():
            state = place.read(known)
            answer = explanation.answer(
                state, request, known, told=place.progress.say, access=place.access, warnings=place.warnings
            )
        place.progress.clear()
        body = "\n".join(explanation_text.body(answer, verbose=verbose))
        if body != said:
            plain = form == "text"
            text = explanation_text.whole(answer, verbose=verbose) if plain else cluster_options.printed(answer, form)
            yield text, bool(answer.refused)
            said = body
        if period is None:
            return
        time.sleep(period)
