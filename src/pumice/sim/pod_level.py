"""What an API server fills in of the amounts that are stated for a pod as a whole."""

from __future__ import annotations

from typing import Any

from pumice.controllers import usage

Manifest = dict[str, Any]


def fill(spec: Manifest) -> None:
    """Complete the requests of a pod with limits as a whole: what its containers ask for together, else the limit."""
    stated = spec.get("resources")
    limits = stated.get("limits") if isinstance(stated, dict) else None
    if not isinstance(stated, dict) or not isinstance(limits, dict) or not limits:
        return
    requests = stated.get("requests")
    requests = dict(requests) if isinstance(requests, dict) else {}
    for name, amount in usage.of_containers(spec, "requests").items():
        if usage.is_pod_level(name):
            requests.setdefault(name, usage.written(name, amount))
    for name, limit in limits.items():
        requests.setdefault(name, limit)
    spec["resources"] = {**stated, "requests": requests}
