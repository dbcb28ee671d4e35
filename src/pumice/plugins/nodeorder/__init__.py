"""The plugin nodeorder: prefer nodes as Kubernetes does."""

from pumice.plugins.nodeorder.plugin import NodeOrder

__all__ = ["NodeOrder"]
