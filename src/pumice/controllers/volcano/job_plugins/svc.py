"""The plugin svc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.api import kinds, names
from pumice.controllers.volcano.job_plugins import flags, hosts, pods
from pumice.controllers.volcano.job_plugins.protocol import Beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.controllers.volcano.job_plugins.protocol import Place
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]


class Svc:
    """Lets the pods of a Job find each other by name.

    It makes a headless Service named after the Job, a NetworkPolicy that lets in only pods of the Job, and a ConfigMap with the addresses of each task,
    which is mounted at /etc/volcano and given as the variables `VC_<TASK>_HOSTS` and `VC_<TASK>_NUM`.

    `--publish-not-ready-addresses` (false): pods have names before they are ready. `--disable-network-policy` (false): make none.
    `--inject-hosts-env` (true): give the variables.
    """

    name: ClassVar[str] = "svc"
    makes: ClassVar[tuple[kinds.Kind, ...]] = (kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY)

    def __init__(self, arguments: Sequence[str]) -> None:
        defaults = {
            "publish-not-ready-addresses": False,
            "disable-network-policy": False,
            "inject-hosts-env": True,
        }
        self._flags = flags.parse(self.name, arguments, defaults)

    def objects(self, job: Job) -> list[Beside]:
        """Need a ConfigMap, a Service and a NetworkPolicy."""
        selector = {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace}
        found = [
            Beside(kind=kinds.CONFIG_MAP, name=f"{job.name}-svc", content={"data": _data(job)}, fresh=("data",)),
            Beside(kind=kinds.SERVICE, name=job.name, content={"spec": self._service(selector)}),
        ]
        if not self._flags.switch("disable-network-policy"):
            own = {"podSelector": {"matchLabels": selector}}
            policy = {**own, "ingress": [{"from": [own]}], "policyTypes": ["Ingress"]}
            found.append(Beside(kind=kinds.NETWORK_POLICY, name=job.name, content={"spec": policy}))
        return found

    def _service(self, selector: Manifest) -> Manifest:
        spec: Manifest = {
            "clusterIP": "None",
            "selector": selector,
            # A Service has to have a port; nobody listens on this one.
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
        }
        if self._flags.switch("publish-not-ready-addresses"):
            spec["publishNotReadyAddresses"] = True
        return spec

    def complete(self, pod: Manifest, place: Place) -> None:
        """Give the pod its name in the network, the list of hosts and the variables."""
        job, spec = place.job, pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job.name
        name = f"{job.name}-svc"
        volume = {"name": pods.volume_name(job.name, "svc"), "configMap": {"name": name}}
        pods.mount(pod, volume, {"mountPath": "/etc/volcano"})
        if not self._flags.switch("inject-hosts-env"):
            return
        keys = [key for role in job.roles for key in _variables(role.name)]
        for container in pods.containers(pod, init=True):
            for key in keys:
                pods.set_variable(container, key, {"configMapKeyRef": {"name": name, "key": key}})


def _variables(role: str) -> tuple[str, str]:
    word = role.replace("-", "_").upper()
    return f"VC_{word}_HOSTS", f"VC_{word}_NUM"


def _data(job: Job) -> dict[str, str]:
    found = {}
    for role in job.roles:
        addresses, (listed, count) = hosts.addresses(job, role), _variables(role.name)
        found[f"{role.name.replace('-', '_')}.host"] = "\n".join(addresses)
        found[listed], found[count] = ",".join(addresses), str(len(addresses))
    return found
