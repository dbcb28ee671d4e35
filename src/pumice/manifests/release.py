"""What may be chosen about an installation, and the names that follow from it, in the form that Volcano's chart gives them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

import pumice
from pumice.admission import rules
from pumice.api import names

CONFIGURATION_FILE: Final = "volcano-scheduler.conf"
CONTROLLERS_FILE: Final = "volcano-controller.conf"
METRICS_PORT: Final = 8080
CONTROLLERS_PORT: Final = 8081
HEALTH_PORT: Final = 11251
PAGE_PORT: Final = 8443
VOLCANO_NAMESPACE: Final = "volcano-system"
PARTS: Final = ("scheduler", "controllers", "admission")

# Volcano's default: its users see no difference before they ask for one.
CONFIGURATION: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

# Where HyperNodes are discovered; the file of Volcano's chart, with every source off.
DISCOVERY: Final = """\
networkTopologyDiscovery: []
"""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """How the page is served: names by which browsers call it, a Secret with its certificate, and a ConfigMap with the authority of people's certificates."""

    hosts: tuple[str, ...] = ()
    tls_secret: str = ""
    client_ca: str = ""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One installation; controllers run apart, in the scheduler's own process (single), or not at all."""

    name: str = "pumice"
    namespace: str = "pumice-system"
    image: str = f"pumice:{pumice.__version__}"
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    scheduler_names: tuple[str, ...] = ()
    replace_volcano: bool = False
    lease: str = ""
    configuration: str = CONFIGURATION
    verbosity: int = 3
    discovery: str = DISCOVERY
    controllers: Literal["apart", "single", "none"] = "apart"
    parts: tuple[str, ...] = PARTS
    admission_replicas: int = 1
    admission_verbosity: int = 3
    admission_paths: tuple[str, ...] = rules.INSTALLED_PATHS
    failure_policy: str = "Fail"
    page: Page | None = None

    @property
    def scheduler(self) -> str:
        """The name of Deployment, ServiceAccount, roles and container."""
        return f"{self.name}-scheduler"

    @property
    def in_place(self) -> bool:
        """Whether all names are those of Volcano's own installation."""
        return self.name == names.LEASE_OF_VOLCANO

    @property
    def lease_name(self) -> str:
        """The Lease: of this installation alone, unless it is to be Volcano's."""
        return self.lease or (names.LEASE_OF_VOLCANO if self.replace_volcano else self.name)

    @property
    def controllers_lease(self) -> str:
        """The Lease of the controllers, likewise."""
        return names.CONTROLLER_MANAGER if self.replace_volcano else f"{self.name}-controllers"

    @property
    def controllers_config_map(self) -> str:
        """The ConfigMap that says where HyperNodes are discovered."""
        return f"{self.name}-controller-configmap"

    @property
    def config_map(self) -> str:
        """The ConfigMap with the configuration."""
        return f"{self.scheduler}-configmap"

    @property
    def service(self) -> str:
        """The Service in front of the metrics."""
        return f"{self.scheduler}-service"

    @property
    def page_service(self) -> str:
        """The Service in front of the page, and the roles that come with it."""
        return f"{self.scheduler}-web"

    @property
    def admission(self) -> str:
        """The name of the webhooks' Deployment, ServiceAccount, roles and container."""
        return f"{self.name}-admission"

    @property
    def admission_service(self) -> str:
        """The Service in front of the webhooks; their configurations are called after it."""
        return f"{self.admission}-service"

    @property
    def admission_secret(self) -> str:
        """The Secret that replicas of the webhooks share their certificate through."""
        return f"{self.admission}-secret"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object of the scheduler."""
        return self.labels_of(self.scheduler)

    def labels_of(self, part: str) -> dict[str, str]:
        """Give the labels of every object of a part."""
        return {"app": part, "app.kubernetes.io/name": "pumice", "app.kubernetes.io/instance": self.name}

    @property
    def selector(self) -> dict[str, str]:
        """The label that finds the pods, of this installation alone; in place of Volcano's it is that of its Deployment, which cannot be changed."""
        return {"app": self.scheduler}
