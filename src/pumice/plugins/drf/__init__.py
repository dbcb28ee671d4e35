"""The plugin drf: jobs that hold little go first, by the resource of which they hold most."""

from pumice.plugins.drf.plugin import Drf

__all__ = ["Drf"]
