"""Which tasks are on which node, or on their way to it, and which of its ports, volumes and devices they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.devices.registry import Devices
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.model.volume_usage import Volumes


class Places:
    """Lists tasks under nodes; sums are the business of others."""

    __slots__ = ("_devices", "_volumes")

    def __init__(self, volumes: Volumes, devices: Devices) -> None:
        self._volumes = volumes
        self._devices = devices

    def put(self, task: Task, record: NodeRecord) -> None:
        """List a task under a node."""
        record.tasks[task.uid] = task
        constraint_class = task.shape.constraint_class
        if constraint_class.takes_ports:
            record.port_users[task.uid] = task
        if constraint_class.has_volumes:
            self._volumes.enter(task, record)
        if constraint_class.has_device_claims:
            self._devices.enter(task, record)

    def take(self, task: Task, record: NodeRecord) -> None:
        """List a task under a node no longer."""
        del record.tasks[task.uid]
        record.port_users.pop(task.uid, None)
        if task.uid in record.volume_users:
            self._volumes.leave(task, record)
        if task.shape.constraint_class.has_device_claims or task.uid in self._devices.reservations:
            self._devices.leave(task)

    def transfer(self, tasks: Sequence[Task], records: Sequence[NodeRecord | None]) -> None:
        """List each task under another node, or under none."""
        for task, record in zip(tasks, records, strict=True):
            source = task.node
            if record is source:
                continue
            if source is not None:
                self.take(task, source)
            if record is not None:
                self.put(task, record)
            task.node = record
