"""The plugin task-topology: bring the roles of a job together, or keep them apart."""

from pumice.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
