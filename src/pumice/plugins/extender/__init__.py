"""The plugin extender: a server of somebody's own takes part in decisions."""

from pumice.plugins.extender.plugin import Extender

__all__ = ["Extender"]
