"""The plugin numa-aware: pods go where the kubelet can give them CPUs that are close together."""

from pumice.plugins.numa_aware.plugin import NumaAware

__all__ = ["NumaAware"]
