"""The plugin timeline: start big jobs on time, and let others go first only where that delays nobody."""

from pumice.plugins.timeline.plugin import Timeline

__all__ = ["Timeline"]
