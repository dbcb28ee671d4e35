"""Clusters that are only data."""

from __future__ import annotations

from pumice.scenario import view


def pod(name, node="", phase="Pending", cpu=None, **status):
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}} if cpu else {}}]
    namespace, short = name.split("/")
    spec = {"containers": containers, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": short, "namespace": namespace}, "spec": spec, "status": {"phase": phase, **status}}


def by_name(*pods):
    return {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in pods}


def make_view(**parts):
    empty = {
        "pods": {},
        "pod_groups": {},
        "queues": {},
        "nodes": {},
        "evicted": {},
        "counts": view.Counts(),
        "events": [],
        "explain": lambda group: "",
        "objects": lambda kind: {},
    }
    return view.View(**{**empty, **parts})
