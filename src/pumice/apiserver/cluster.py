"""The API server without its sockets: store, registry and rules put together, and one method for each thing a request may ask."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver import (
    admission,
    certificates,
    definitions,
    deleting,
    durability,
    logs,
    openapi,
    protobuf,
    reading,
    requests,
    resources,
    subresources,
    volcano_rules,
    watching,
    writing,
)
from pumice.apiserver.access import authorization, token_requests, tokens
from pumice.apiserver.webhooks import calling, consulting
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.durability import Durability
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_JOB_UID: Final = "batch.kubernetes.io/controller-uid"
_JOB_NAME: Final = "batch.kubernetes.io/job-name"


class Cluster:
    """Everything that requests are answered from."""

    def __init__(
        self,
        store: ObjectStore,
        now: Callable[[], int],
        durable: Durability | None = None,
        account_key: bytes | None = None,
        authority: bytes = b"",
    ) -> None:
        self.store = store
        self.now = now
        self.authority = authority  # the certificate that clients trust
        self.registry = resources.Registry(resources.describe())
        self.durable: Durability = durable or durability.InMemory()
        self.bells = durability.Bells()
        self.admission = admission.Admission(store)
        self.authorizer = authorization.Authorizer(store)
        self.tokens = tokens.Tokens(account_key or certificates.new_key(), store, now)
        self.token_requests = token_requests.TokenRequests(store, self.tokens, now)
        self.webhooks = calling.Caller()
        self.consulting = consulting.Consulting(store, self.registry)
        self.writing = writing.Writing(store, self.admission, now, self.authorizer, self.consulting)
        self.reading = reading.Reading(store)
        self.deleting = deleting.Deleting(store, self.consulting)
        self.subresources = subresources.Subresources(store, self.writing, self.deleting, self.consulting)
        self.logs = logs.Logs(store, now)
        self.definitions = definitions.Definitions(store, self.registry, now)
        self.watching = watching.Watching(store, self.durable, self.bells, now)
        self.protobuf = protobuf.Decoder(self.registry.description.messages)
        self.documents = openapi.Documents(self.registry)
        group = definitions.GROUP
        self.writing.rules.completes[group, "CustomResourceDefinition"] = self.definitions.complete
        self.writing.rules.judges[group, "CustomResourceDefinition"] = self.definitions.judge
        self.writing.rules.completes["batch", "Job"] = functools.partial(select_pods, store.new_uid)
        self.writing.rules.completes["resource.k8s.io", "ResourceSlice"] = self._date_taints
        self.writing.rules.completes["resource.k8s.io", "DeviceTaintRule"] = self._date_taints
        self.writing.rules.judges["batch", "Job"] = self.admission.gangs.check_job
        store.observe(self._seen)

    def _seen(self, key: Key, _: WatchEventType, __: Mapping[str, Any]) -> None:
        self.bells.ring(key.kind)

    def _date_taints(self, manifest: Document) -> None:
        """Say of taints of devices since when they are there, unless their writer does."""
        spec = structure.mapping(manifest, "spec")
        taints = [
            taint for device in spec.get("devices") or () for taint in structure.mapping(device).get("taints") or ()
        ]
        for taint in [*taints, spec.get("taint")]:
            if isinstance(taint, dict):
                taint["timeAdded"] = taint.get("timeAdded") or self.writing.stamp()

    def judge_volcano_kinds(self, *, strict: bool = False) -> None:
        """Complete and judge Volcano's kinds from now on, as a cluster with the webhooks would."""
        found = volcano_rules.VolcanoRules(self.store, strict=strict)
        self.writing.passing.volcano_rules = self.deleting.volcano_rules = found

    def start(self) -> None:
        """Make what every cluster has, as far as it is not there."""
        self.definitions.serve_all()
        self.authorizer.read()
        for name in NAMESPACES:
            self.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in NAMESPACES:
            self.ensure(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
            )
        for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
            critical = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
            self.ensure(critical)
        for manifest in self.registry.description.access:
            self.ensure(manifest)

    def ensure(self, manifest: Document) -> bool:
        """Create an object as the server itself unless one of its name is there; tells whether it was created."""
        resource = self.registry.of_kind(manifest["apiVersion"], manifest["kind"])
        if resource is None:
            raise ValueError(f"{manifest['apiVersion']} {manifest['kind']} is not served")
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        if self.store.find(Key(resource.kind, namespace, metadata["name"])) is not None:
            return False
        target = requests.Target(resource=resource, namespace=namespace)
        options = requests.Options(manager="pumice-up", validation="Strict", asks=False)
        self.writing.create(target, structure.copied(manifest), options, [])
        return True


def select_pods(new_uid: Callable[[], str], job: Document) -> None:
    """Let a Job select the pods that carry its uid, as batch/v1 does for whoever selects none by hand."""
    spec, metadata = job.get("spec"), job["metadata"]
    if not isinstance(spec, dict) or spec.get("manualSelector"):
        return
    uid = metadata.get("uid")
    if not uid:
        uid = metadata["uid"] = new_uid()
    name = metadata.get("name", "")
    if spec.get("selector") is None:
        spec["selector"] = {"matchLabels": {_JOB_UID: uid}}
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    stated = metadata.get("labels")
    shared = not stated or stated is template.get("labels")  # a Job that states no labels has those of its pods
    labels = template["labels"] = dict(template.get("labels") or {})
    labels |= {_JOB_UID: uid, _JOB_NAME: name, "controller-uid": uid, "job-name": name}
    if shared:
        metadata["labels"] = dict(labels)
