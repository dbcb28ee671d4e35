"""The custom resources: how each is called, what `kubectl get` shows of it, and its definition as the API server takes it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import kinds
from pumice.api.schemas import flow, language, scheduling, topology, workload

Manifest = dict[str, Any]


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; a wide one is shown by `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A custom resource; `status_apart` gives it a status subresource."""

    kind: kinds.Kind
    fields: dict[str, language.Schema]
    about: str
    short: tuple[str, ...] = ()
    status_apart: bool = False
    columns: tuple[Column, ...] = ()

    @property
    def name(self) -> str:
        """The name of its definition, such as `queues.scheduling.volcano.sh`."""
        return f"{self.kind.plural}.{self.kind.group}"


_AGE: Final = ".metadata.creationTimestamp"

SCHEDULING: Final = (
    Resource(
        kind=kinds.POD_GROUP,
        # Without a status subresource, as Volcano has it: operators create groups with a phase, which would be dropped.
        about="A gang: pods that are started together or not at all.",
        fields=scheduling.POD_GROUP,
        short=("pg", "podgroup-v1beta1"),
        columns=(
            Column("Phase", ".status.phase"),
            Column("Running", ".status.running", "integer"),
            Column("Minimum", ".spec.minMember", "integer"),
            Column("Queue", ".spec.queue"),
            Column("Age", _AGE, "date"),
            # The condition that holds: `Unschedulable` has a message that begins with the cause, `Scheduled` has none. It is long, and last.
            Column("Reason", '.status.conditions[?(@.status=="True")].message'),
        ),
    ),
    Resource(
        kind=kinds.QUEUE,
        about="A share of the cluster.",
        fields=scheduling.QUEUE,
        short=("q", "queue-v1beta1"),
        status_apart=True,
        columns=(
            Column("Parent", ".spec.parent"),
            Column("Weight", ".spec.weight", "integer"),
            Column("State", ".status.state"),
            Column("Allocated CPU", ".status.allocated.cpu"),
            Column("Allocated Memory", ".status.allocated.memory"),
            Column("Pending", ".status.pending", "integer"),
            Column("Running", ".status.running", "integer"),
            Column("Age", _AGE, "date", wide=True),
        ),
    ),
    Resource(
        kind=kinds.HYPER_NODE,
        about="Nodes that are well connected with each other.",
        fields=topology.HYPER_NODE,
        short=("hn",),
        status_apart=True,
        columns=(
            Column("Tier", ".spec.tier", "string"),
            Column("TierName", ".spec.tierName"),
            Column("NodeCount", ".status.nodeCount", "integer"),
            Column("Age", _AGE, "date"),
        ),
    ),
    Resource(
        kind=kinds.NUMATOPOLOGY,
        about="The NUMA cells of a node.",
        fields=topology.NUMATOPOLOGY,
        short=("numatopo",),
    ),
    Resource(
        kind=kinds.NODE_SHARD,
        about="The nodes of one of several schedulers.",
        fields=topology.NODE_SHARD,
        short=("nsh",),
        status_apart=True,
        columns=(Column("Age", _AGE, "date"),),
    ),
)

WORKLOADS: Final = (
    Resource(
        kind=kinds.JOB,
        about="A job of several roles.",
        fields=workload.JOB,
        short=("vcjob", "vj"),
        status_apart=True,
        columns=(
            Column("Phase", ".status.state.phase"),
            Column("Running", ".status.running", "integer"),
            Column("Minimum", ".spec.minAvailable", "integer"),
            Column("Queue", ".spec.queue"),
            Column("Age", _AGE, "date"),
            Column("Reason", ".status.state.message"),
        ),
    ),
    Resource(
        kind=kinds.CRON_JOB,
        about="A job that starts again and again.",
        fields=workload.CRON_JOB,
        short=("cronvcjob", "cronvj"),
        status_apart=True,
        columns=(
            Column("Schedule", ".spec.schedule"),
            Column("Suspend", ".spec.suspend", "boolean"),
            Column("Last", ".status.lastScheduleTime", "date"),
            Column("Age", _AGE, "date"),
        ),
    ),
    Resource(
        kind=kinds.COMMAND,
        about="An order to a controller; consumed once.",
        fields=flow.COMMAND,
    ),
    Resource(
        kind=kinds.JOB_FLOW,
        about="Jobs that depend on each other.",
        fields=flow.JOB_FLOW,
        short=("jf",),
        status_apart=True,
        columns=(Column("Status", ".status.state.phase"), Column("Age", _AGE, "date")),
    ),
    Resource(
        kind=kinds.JOB_TEMPLATE,
        about="A job that flows make copies of.",
        fields=flow.JOB_TEMPLATE,
        short=("jt",),
        status_apart=True,
    ),
)

CURRENT: Final = SCHEDULING + WORKLOADS

# Both groups of kube-batch; installed only where its users still have such objects.
KUBE_BATCH: Final = tuple(
    Resource(kind=kind, about=about, fields=fields)
    for group, queue in (
        (kinds.INCUBATOR_POD_GROUP, kinds.INCUBATOR_QUEUE),
        (kinds.SIGS_POD_GROUP, kinds.SIGS_QUEUE),
    )
    for kind, about, fields in (
        (group, "A gang, as kube-batch knew it.", scheduling.OLDER_POD_GROUP),
        (queue, "A share of the cluster, as kube-batch knew it.", scheduling.OLDER_QUEUE),
    )
)


def definition(resource: Resource) -> Manifest:
    """Give the CustomResourceDefinition; helm never deletes it, for its objects would go with it."""
    kind = resource.kind
    names: Manifest = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if resource.short:
        names["shortNames"] = list(resource.short)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name, "annotations": _annotations(kind.group)},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(resource)],
        },
    }


def _annotations(group: str) -> Manifest:
    annotations = {"helm.sh/resource-policy": "keep"}
    if group.endswith((".k8s.io", ".kubernetes.io")):
        # Groups of that domain are refused without a word on who approved them; this one never was reviewed.
        annotations["api-approved.kubernetes.io"] = "unapproved, kept for the objects of kube-batch"
    return annotations


def _version(resource: Resource) -> Manifest:
    properties = {
        "apiVersion": language.string("The version of this schema."),
        "kind": language.string("What the object is."),
        "metadata": {"type": "object"},  # the API server describes it itself, and takes no other word on it
    }
    version: Manifest = {
        "name": resource.kind.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "description": resource.about,
                "type": "object",
                "properties": {**properties, **resource.fields},
            }
        },
    }
    if resource.status_apart:
        version["subresources"] = {"status": {}}
    if resource.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in resource.columns]
    return version


def _column(column: Column) -> Manifest:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**shown, "priority": 1} if column.wide else shown
