"""`pumice uninstall`: print what an installation consists of, so that kubectl deletes that and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pumice.cli import release_options

if TYPE_CHECKING:
    from typing import Any

_EXAMPLES = """\b
Examples:
  pumice uninstall --print | kubectl delete --ignore-not-found -f -
  pumice uninstall --print --name team-a --namespace batch \\
    | kubectl delete --ignore-not-found -f -
  pumice uninstall --print --crds ...   and every PodGroup, Queue and Job of the cluster with them
"""


@click.command(epilog=_EXAMPLES)
@click.option("--print", "printed", is_flag=True, help="Print the objects. Nothing is deleted by this command itself.")
@release_options.named
@click.option("--lease", default="", help="The Lease, where it was named when installing.")
@click.option("--without-config", is_flag=True, help="Leave the ConfigMaps, as when installed with this option.")
@click.option(
    "--crds", is_flag=True, help="The custom resource definitions, too; every object of theirs goes with them."
)
@click.option("--kube-batch-crds", is_flag=True, help="The definitions of kube-batch's two older groups, too.")
@click.option("--namespace-too", is_flag=True, help="The namespace, too; everything in it goes with it.")
def command(
    *, printed: bool, without_config: bool, crds: bool, kube_batch_crds: bool, namespace_too: bool, **named: Any
) -> None:
    """Print what `pumice install` has installed under these names, for `kubectl delete`, and say what is left.

    Namespaces and custom resource definitions are only listed when asked for.
    """
    if not printed:
        raise click.UsageError(
            "nothing is deleted by this command itself: pipe pumice uninstall --print to kubectl delete --ignore-not-found -f -"
        )
    from pumice.manifests import removal, text  # noqa: PLC0415  the schemas are only needed here

    wanted = removal.Wanted(
        configuration=not without_config, crds=crds, kube_batch_crds=kube_batch_crds, namespace=namespace_too
    )
    found = release_options.chosen(**named)
    click.echo(text.stream(removal.objects_of(found, wanted)), nl=False)
    for line in removal.left(found, wanted):
        click.echo(f"left: {line}", err=True)
