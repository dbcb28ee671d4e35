"""The plugin network-topology-aware: keep the members of a job inside few network domains."""

from pumice.plugins.network_topology.plugin import NetworkTopology

__all__ = ["NetworkTopology"]
