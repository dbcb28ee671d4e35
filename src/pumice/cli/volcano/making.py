"""The objects that commands create: jobs from flags, queues, and the Commands that controllers carry out."""

from __future__ import annotations

import shlex
from typing import Any, Final

import msgspec

from pumice.api import kinds, quantity

Manifest = dict[str, Any]

ABORT: Final = "AbortJob"
RESUME: Final = "ResumeJob"
OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
LIMITS: Final = "cpu=1000m,memory=100Mi"
JOB_LABEL: Final = "job.volcano.sh"
COMMANDS_OF_QUEUES: Final = "default"
"""The namespace of Commands for queues, which have none of their own."""


class BadFlagError(ValueError):
    """A flag whose value cannot be used; the message names both."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags of `job run` say about a job."""

    name: str
    namespace: str
    image: str
    minimum: int
    replicas: int
    requests: str
    limits: str = ""
    scheduler: str
    queue: str = ""
    command: str = ""


def job(wanted: Wanted) -> Manifest:
    """Make a job of one task."""
    if wanted.minimum > wanted.replicas:
        raise BadFlagError(
            f"--min {wanted.minimum} is more than --replicas {wanted.replicas}, so the job could never start; "
            f"give --replicas {wanted.minimum} or a smaller --min"
        )
    container: Manifest = {"image": wanted.image, "name": wanted.name, "imagePullPolicy": "IfNotPresent"}
    if wanted.command:
        container["command"] = _words(wanted.command)
    container["resources"] = _resources(wanted)
    template = {
        "metadata": {"name": wanted.name, "labels": {JOB_LABEL: wanted.name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: Manifest = {
        "minAvailable": wanted.minimum,
        "schedulerName": wanted.scheduler,
        "tasks": [{"replicas": wanted.replicas, "template": template}],
    }
    if wanted.queue:
        spec["queue"] = wanted.queue
    return {**_head(kinds.JOB, wanted.name, wanted.namespace), "spec": spec}


def queue(name: str, weight: int) -> Manifest:
    """Make a queue."""
    return {**_head(kinds.QUEUE, name), "spec": {"weight": weight}}


def command(kind: kinds.Kind, target: Manifest, action: str) -> Manifest:
    """Make the Command that asks for an action on a job or a queue; it belongs to its target and goes with it."""
    metadata = target["metadata"]
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": kinds.COMMAND.api_version,
        "kind": kinds.COMMAND.name,
        "metadata": {
            "generateName": f"{metadata['name']}-{action.lower()}-",
            "namespace": metadata.get("namespace") or COMMANDS_OF_QUEUES,
            "ownerReferences": [owner],
        },
        "action": action,
        "target": owner,
    }


def amounts(written: str, flag: str) -> dict[str, str]:
    """Read `cpu=1,memory=1Gi`."""
    found: dict[str, str] = {}
    for part in filter(None, written.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name or "=" in value:
            raise BadFlagError(f"{flag}: {part!r} is no amount; write NAME=QUANTITY, as in cpu=1000m,memory=100Mi")
        try:
            quantity.parse(value)
        except quantity.QuantityError as error:
            raise BadFlagError(f"{flag}: {name}: {error}") from None
        found[name.strip()] = value
    return found


def _resources(wanted: Wanted) -> Manifest:
    """Read both lists of amounts; a limit that nobody gave is no lower than what is asked for."""
    requests, limits = amounts(wanted.requests, "--requests"), amounts(wanted.limits or LIMITS, "--limits")
    for name, asked in requests.items():
        limit = limits.get(name)
        if limit is None or quantity.parse(asked) <= quantity.parse(limit):
            continue
        if wanted.limits:
            raise BadFlagError(
                f"--requests {name}={asked} is more than --limits {name}={limit}; no pod could be created"
            )
        limits[name] = asked
    return {"limits": limits, "requests": requests}


def _words(command_line: str) -> list[str]:
    try:
        return shlex.split(command_line)
    except ValueError as error:
        raise BadFlagError(f"--command: {command_line!r} cannot be taken apart into words: {error}") from None


def _head(kind: kinds.Kind, name: str, namespace: str = "") -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
