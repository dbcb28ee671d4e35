"""What is asked of the rules: an object that is to be created, changed or deleted, and the settings they follow."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from pumice.admission import parts, remarks

Document = dict[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE"]
JOB_PLUGINS: Final = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")


class PodRule(msgspec.Struct, frozen=True, kw_only=True):
    """What pods of one resource group are given; `key` tells what `values` are compared with: the namespace, or an annotation."""

    group: str
    key: Literal["namespace", "annotation"]
    values: tuple[str, ...]
    scheduler: str = ""
    labels: dict[str, str] = {}
    tolerations: tuple[Document, ...] = ()
    affinity: Document | None = None


class RuleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be chosen about the rules."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    job_plugins: tuple[str, ...] = JOB_PLUGINS
    most_depth: int = 5
    root_protected: bool = True
    allocated_pods_checked: bool = False
    gates_pods: bool = False
    pod_rules: tuple[PodRule, ...] = ()
    strict: bool = False
    """Whether objects are also refused by rules that only we have."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One write; `object` is what is to be stored, `old` what is there. A deletion has only the latter."""

    operation: Operation
    object: Document = {}
    old: Document = {}
    namespace: str = ""
    name: str = ""

    def part(self, found: remarks.Remarks) -> parts.Part:
        """Give the object as a part to read."""
        return parts.Part(self.object, found)


def written(operation: Operation, manifest: Document, old: Document | None = None, namespace: str = "") -> Request:
    """Give the request that writes an object, with the name and the namespace that the object states."""
    metadata = manifest.get("metadata")
    stated = metadata if isinstance(metadata, dict) else {}
    name, home = stated.get("name"), stated.get("namespace")
    return Request(
        operation=operation,
        object=manifest,
        old=old or {},
        namespace=home if isinstance(home, str) and home else namespace,
        name=name if isinstance(name, str) else "",
    )
