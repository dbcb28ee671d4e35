"""The plugin proportion: queues share the cluster by weight."""

from pumice.plugins.proportion.plugin import Proportion

__all__ = ["Proportion"]
