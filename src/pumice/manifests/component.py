"""The parts of an installation that run: each is a Deployment with an account, roles, flow schemas and a Service of its own."""

from __future__ import annotations

import msgspec

from pumice.kube import controller_permissions, permissions
from pumice.kube.permissions import Permission  # noqa: TC001  msgspec reads the annotations at run time
from pumice.manifests.release import CONTROLLERS_PORT, METRICS_PORT, Release


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One part; `name` is that of its Deployment, account, roles and container."""

    release: Release
    name: str
    app: str
    config_map: str
    leases: tuple[str, ...]
    permissions: tuple[Permission, ...]
    port: int

    @property
    def namespace(self) -> str:
        """Where all of it is."""
        return self.release.namespace

    @property
    def service(self) -> str:
        """The Service in front of the metrics."""
        return f"{self.name}-service"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object."""
        own = {"app.kubernetes.io/name": "pumice", "app.kubernetes.io/instance": self.release.name}
        return {**self.selector, **own}

    @property
    def selector(self) -> dict[str, str]:
        """The label that finds the pods, of this installation alone; in place of Volcano's it is that of its Deployment, which cannot be changed."""
        return {"app": self.app}


def scheduler(release: Release) -> Component:
    """Give the scheduler; with controllers in its process it needs what they need."""
    single = release.controllers == "single"
    return Component(
        release=release,
        name=release.scheduler,
        app=release.scheduler,
        config_map=f"{release.scheduler}-configmap",
        leases=(release.lease_name, *((release.controllers_lease,) if single else ())),
        permissions=permissions.PERMISSIONS + (controller_permissions.PERMISSIONS if single else ()),
        port=METRICS_PORT,
    )


def controllers(release: Release) -> Component:
    """Give the controllers, apart from the scheduler."""
    return Component(
        release=release,
        name=f"{release.name}-controllers",
        app=f"{release.name}-controller",
        config_map=release.controllers_config_map,
        leases=(release.controllers_lease,),
        permissions=controller_permissions.PERMISSIONS,
        port=CONTROLLERS_PORT,
    )
