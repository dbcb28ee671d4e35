"""What may be chosen about an installation, and the names that follow from it; both are those of Volcano's chart."""

from __future__ import annotations

from typing import Final

import msgspec

import pumice

CONFIGURATION_FILE: Final = "volcano-scheduler.conf"
METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 11251

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


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One installation of the scheduler."""

    name: str = "pumice"
    namespace: str = "pumice-system"
    image: str = f"pumice:{pumice.__version__}"
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    scheduler_names: tuple[str, ...] = ()
    lease: str = "volcano"
    configuration: str = CONFIGURATION
    verbosity: int = 3

    @property
    def scheduler(self) -> str:
        """The name of Deployment, ServiceAccount, roles and container."""
        return f"{self.name}-scheduler"

    @property
    def config_map(self) -> str:
        """The ConfigMap with the configuration."""
        return f"{self.scheduler}-configmap"

    @property
    def service(self) -> str:
        """The Service in front of the metrics."""
        return f"{self.scheduler}-service"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object."""
        own = {"app.kubernetes.io/name": "pumice", "app.kubernetes.io/instance": self.name}
        return {**self.selector, **own}

    @property
    def selector(self) -> dict[str, str]:
        """The label that finds the pods, as in Volcano's Deployment, whose selector cannot be changed afterwards."""
        return {"app": "volcano-scheduler"}
