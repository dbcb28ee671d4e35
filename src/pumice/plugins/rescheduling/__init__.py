"""The plugin rescheduling: pods leave nodes that are busy for nodes that are not."""

from pumice.plugins.rescheduling.plugin import Rescheduling

__all__ = ["Rescheduling"]
