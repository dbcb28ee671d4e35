"""The plugin nodegroup: queues use groups of nodes."""

from pumice.plugins.nodegroup.plugin import NodeGroup

__all__ = ["NodeGroup"]
