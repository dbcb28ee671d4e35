"""`pumice install`: print what a cluster needs to run the scheduler and the controllers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from pumice import plain_files
from pumice.admission import rules
from pumice.cli import release_options
from pumice.manifests import release

if TYPE_CHECKING:
    from typing import Any

_EXAMPLES = """\b
Examples:
  pumice install --print --create-namespace | kubectl apply --server-side -f -
  pumice install --print --single --create-namespace ...
                                       scheduler and controllers in one process
  pumice install --print --name team-a --namespace batch --scheduler-name team-a ...
                                       a second installation, beside the first
  pumice install --print --replace-volcano --without-crds ...
                                       take the place of Volcano's scheduler and controllers
  pumice install --print --part scheduler --part controllers ...
                                       without the admission webhooks
  pumice install --print --web --web-host pumice.example.com --web-tls-secret page-tls ...
                                       with the page, for who may list what is shown
  pumice install --print --crds-only   only the custom resource definitions
"""
ACCESS = frozenset({"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "FlowSchema"})


def _read_configuration(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> str:
    """Read a configuration, and refuse one that the scheduler would refuse."""
    if value is None:
        return release.CONFIGURATION
    from pumice.framework import configuration, registry  # noqa: PLC0415  imports numpy, which is not needed otherwise

    try:
        text = plain_files.text(value)
        configuration.load(text, registry.catalog(), str(value))
    except configuration.ConfigurationError as error:
        count = len(error.problems)
        raise click.BadParameter(
            f"{value} is not valid, {count} problem{'' if count == 1 else 's'}; see pumice config check {value}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value} cannot be read: {error}") from None
    return text


def _read_paths(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Read the paths of webhooks, and refuse one that nobody serves."""
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    for path in found:
        if path not in rules.BY_PATH:
            raise click.BadParameter(f"{path!r} is not served; there are {', '.join(rules.BY_PATH)}")
    return found


def _page(wanted: bool, told: release.Page) -> release.Page | None:
    """Give the page that is wanted; what belongs to one that is not is refused."""
    for option, value in zip(
        ("--web-host", "--web-tls-secret", "--web-client-ca"), msgspec.structs.astuple(told), strict=True
    ):
        if value and not wanted:
            raise click.UsageError(f"{option}: the page is not served; add --web")
    return told if wanted else None


_DEFAULTS = release.Release()


@click.command(epilog=_EXAMPLES)
@click.option(
    "--print", "printed", is_flag=True, help="Print the manifests. Nothing is installed by this command itself."
)
@release_options.named
@click.option("--create-namespace", is_flag=True, help="The namespace, too.")
@click.option("--image", default=_DEFAULTS.image, show_default=True, help="The image of everything.")
@click.option(
    "--pull-policy",
    type=click.Choice(["Always", "IfNotPresent", "Never"]),
    default=_DEFAULTS.pull_policy,
    show_default=True,
)
@click.option("--replicas", type=click.IntRange(min=0), default=_DEFAULTS.replicas, show_default=True)
@click.option(
    "--admission-replicas",
    type=click.IntRange(min=0),
    default=_DEFAULTS.admission_replicas,
    show_default=True,
    help="Replicas of the webhooks.",
)
@click.option(
    "--enabled-admissions",
    "admission_paths",
    default=",".join(_DEFAULTS.admission_paths),
    show_default=True,
    callback=_read_paths,
    help="The paths of the webhooks.",
)
@click.option(
    "--failure-policy",
    type=click.Choice(["Fail", "Ignore"]),
    default=_DEFAULTS.failure_policy,
    show_default=True,
    help="What becomes of an object that the webhooks cannot be asked about: refused, or stored unjudged.",
)
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    help="The schedulerName of pods; may be repeated.  [default: volcano]",
)
@click.option("--lease", default="", help="Schedulers that share a Lease take turns.  [default: the name]")
@click.option(
    "--config",
    "configuration",
    type=click.Path(path_type=Path),
    callback=_read_configuration,
    help="A scheduler configuration, checked first.  [default: Volcano's]",
)
@click.option("--web", is_flag=True, help="The page too: its Service, its port and the rights to review who looks.")
@click.option(
    "--web-host",
    "web_hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers call the page, such as that of an ingress; may be repeated.",
)
@click.option(
    "--web-tls-secret",
    default="",
    metavar="NAME",
    help="A Secret with tls.crt and tls.key for the page.  [default: a certificate is made at every start]",
)
@click.option(
    "--web-client-ca",
    default="",
    metavar="NAME",
    help="A ConfigMap with ca.crt: certificates of this authority are taken in place of tokens.",
)
@click.option("--without-config", is_flag=True, help="Leave the ConfigMaps out: keep those that are there.")
@click.option("--crds-only", is_flag=True, help="Only the custom resource definitions.")
@click.option("--roles-only", is_flag=True, help="Only the accounts, their roles and their flow schemas.")
@click.option(
    "--without-crds", is_flag=True, help="All but those: keep the ones that are there, as Volcano's users will."
)
@click.option("--kube-batch-crds", is_flag=True, help="The definitions of kube-batch's two older groups, too.")
def command(
    *,
    printed: bool,
    crds_only: bool,
    roles_only: bool,
    without_crds: bool,
    kube_batch_crds: bool,
    without_config: bool,
    create_namespace: bool,
    web: bool,
    web_hosts: tuple[str, ...],
    web_tls_secret: str,
    web_client_ca: str,
    **chosen: Any,
) -> None:
    """Print the manifests of scheduler, controllers and admission webhooks: custom resources, roles, configurations, Deployments and Services."""
    if not printed:
        raise click.UsageError(
            "nothing is installed by this command itself: pipe pumice install --print to kubectl apply --server-side -f -"
        )
    if (without_crds or roles_only) and (crds_only or kube_batch_crds):
        raise click.UsageError("--without-crds and --roles-only contradict --crds-only and --kube-batch-crds")
    if web and chosen["parts"] and "scheduler" not in chosen["parts"]:
        raise click.UsageError("--web: the scheduler serves the page; add --part scheduler")
    page = _page(web, release.Page(hosts=web_hosts, tls_secret=web_tls_secret, client_ca=web_client_ca))
    from pumice.manifests import installation, objects, resources, text  # noqa: PLC0415  the schemas are only needed here

    wanted = () if without_crds or roles_only else resources.CURRENT
    manifests = [resources.definition(each) for each in (*wanted, *(resources.KUBE_BATCH if kube_batch_crds else ()))]
    if not crds_only:
        named = release_options.chosen(page=page, **chosen)
        if not roles_only:
            release_options.check_scheduler_names(named)
        own = installation.manifests(named)
        left_out = {"ConfigMap"} if without_config else set()
        manifests += [objects.namespace(named)] if create_namespace else []
        manifests += [
            each for each in own if each["kind"] not in left_out and (not roles_only or each["kind"] in ACCESS)
        ]
    click.echo(text.stream(manifests), nl=False)
