"""The plugin tensorflow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pumice.controllers.volcano.job_plugins import flags, hosts, pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import kinds
    from pumice.controllers.volcano.job_plugins.protocol import Beside, Place
    from pumice.controllers.volcano.jobs.reading import Job

_TYPES: Final = ("ps", "worker", "chief", "evaluator")


class TensorFlow:
    """Tells TensorFlow its cluster: the variable `TF_CONFIG` in every container. A Job of a single pod is left alone.

    `--ps`, `--worker`, `--chief`, `--evaluator` (the same words): which task is which. `--port` (2222): where they listen.
    """

    name: ClassVar[str] = "tensorflow"
    makes: ClassVar[tuple[kinds.Kind, ...]] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        found = flags.parse(self.name, arguments, {**dict(zip(_TYPES, _TYPES, strict=True)), "port": 2222})
        self._types = {found.text(each): each for each in _TYPES}
        self._port = found.port("port")

    def objects(self, job: Job) -> list[Beside]:
        """Need nothing."""
        del job
        return []

    def complete(self, pod: dict[str, Any], place: Place) -> None:
        """Set the variable."""
        job = place.job
        if len(job.roles) == 1 and job.replicas == 1:
            return
        listed = {
            self._types[role.name]: [f"{address}:{self._port}" for address in hosts.addresses(job, role)]
            for role in job.roles
            if role.name in self._types
        }
        cluster = {each: listed[each] for each in _TYPES if listed.get(each)}
        task = {"type": self._types.get(place.role.name, ""), "index": place.index}
        text = json.dumps({"cluster": cluster, "task": task}, separators=(",", ":"))
        for container in pods.containers(pod):
            pods.set_variable(container, "TF_CONFIG", text)
